//! What an operator decides about the controllers; everything else follows from the cluster.

use std::time::Duration;

use tenon_model::{InstanceType, VmIdRange};

/// What an operator decides.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The Kubernetes cluster, as it stands in the proof of every VM. Unset: the uid of the namespace kube-system.
    pub cluster_id: Option<String>,
    /// Where new nodes find the API server. Unset: what kube-public/cluster-info says.
    pub cluster_endpoint: Option<String>,
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
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            cluster_id: None,
            cluster_endpoint: None,
            system_namespace: "kube-system".to_owned(),
            types: InstanceType::built_in(),
            ids: VmIdRange::default(),
            batch_idle: Duration::from_secs(1),
            batch_max: Duration::from_secs(10),
        }
    }
}
