//! What an operator decides about the controllers; everything else follows from the cluster.

use std::time::Duration;

use tenon_api::plan_options::PlanOptions;
use tenon_model::{InstanceType, LaunchLimits, NodePolicy, NodeSettings, VmIdRange};

use crate::claim::CloneLimits;
use crate::watched::Owners;

/// What an operator decides.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The Kubernetes cluster, as it stands in the proof of every VM. Unset: the uid of the namespace kube-system.
    pub cluster_id: Option<String>,
    /// Where new nodes find the API server. Unset: what kube-public/cluster-info says.
    pub cluster_endpoint: Option<String>,
    /// How long a bootstrap token is valid before it is extended; never less than [`Settings::TOKEN_TTL_LEAST`].
    pub bootstrap_token_ttl: Duration,
    /// The namespace whose `kube-root-ca.crt` new nodes trust.
    pub system_namespace: String,
    /// Sizes of VMs.
    pub types: Vec<InstanceType>,
    /// Ids of VMs.
    pub ids: VmIdRange,
    /// Pods that come within this time of each other are planned together …
    pub batch_idle: Duration,
    /// … but none waits longer than this.
    pub batch_max: Duration,
    /// How long pods have to leave a node whose pool does not say so, as a duration; unset: for ever.
    pub termination_grace_period: Option<String>,
    /// How long a launch may take.
    pub launch_limits: LaunchLimits,
    /// Who initializes new nodes.
    pub ccm: CloudControllerManager,
    /// What changes a plan.
    pub planning: PlanOptions,
    /// Whether broken nodes are deleted at once, without a replacement first and whatever protects them.
    pub legacy_node_repair: bool,
    /// Who approves the certificates that kubelets of our claims ask for.
    pub csr_approver: CsrApprover,
    /// How many clones run at once.
    pub clones: CloneLimits,
    /// How long a guest has to shut down before its VM is stopped; zero stops it at once.
    pub shutdown_within: Duration,
    /// Whether VMs are bound to CPUs.
    pub node_policy: NodePolicy,
    /// How CPUs of hosts lie, and what of hosts no VM gets.
    pub node_settings: NodeSettings,
}

/// Whether the cluster has a cloud controller manager, which removes the taint of nodes it has initialized.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CloudControllerManager {
    /// It has one: its taint is waited for.
    #[default]
    External,
    /// It has none: we remove the taint.
    None,
}

/// Who approves the certificates that kubelets ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CsrApprover {
    /// Kubernetes' own approver, which needs a binding of bootstrap tokens.
    #[default]
    KubeControllerManager,
    /// We do, for our claims only.
    Tenon,
    /// Another approver, or a person.
    External,
}

/// A promise to pods holds at least this long, however short the window is.
const NOMINATION_LEAST: Duration = Duration::from_secs(10);

impl Settings {
    /// The shortest time a bootstrap token may be valid: it is extended at half of that, by a look every minute.
    pub const TOKEN_TTL_LEAST: Duration = Duration::from_secs(600);

    /// Default spread constraints are deduced from the Services and controllers of pods; nobody else asks for these.
    pub(crate) fn owners(&self) -> Owners {
        if self.planning.default_spread.is_empty() { Owners::Unwatched } else { Owners::Watched }
    }

    /// How long pods are expected on a node they were promised: two windows.
    pub(crate) fn nomination(&self) -> Duration {
        self.batch_max.saturating_mul(2).max(NOMINATION_LEAST)
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            cluster_id: None,
            cluster_endpoint: None,
            bootstrap_token_ttl: Duration::from_secs(3600),
            system_namespace: "kube-system".to_owned(),
            types: InstanceType::built_in(),
            ids: VmIdRange::default(),
            batch_idle: Duration::from_secs(1),
            batch_max: Duration::from_secs(10),
            termination_grace_period: None,
            launch_limits: LaunchLimits::default(),
            ccm: CloudControllerManager::default(),
            planning: PlanOptions::default(),
            legacy_node_repair: false,
            csr_approver: CsrApprover::default(),
            clones: CloneLimits::default(),
            shutdown_within: Duration::from_secs(30),
            node_policy: NodePolicy::default(),
            node_settings: NodeSettings::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_holds_for_two_windows_and_not_less_than_ten_seconds() {
        let with = |batch_max| Settings { batch_max, ..Settings::default() }.nomination();
        assert_eq!(Settings::default().nomination(), Duration::from_secs(20));
        assert_eq!(with(Duration::from_secs(2)), Duration::from_secs(10));
    }
}
