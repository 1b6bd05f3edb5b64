//! What every pass works with: clients, settings, stores and a memory that may be lost.

use std::sync::Arc;

use kube::runtime::reflector::ObjectRef;
use kube::{Client, ResourceExt};
use tenon_api::{ClassTimeouts, NodeClaim, NodeClassRef, for_class, names};
use tenon_engine::launch::LaunchTime;
use tenon_model::{InstanceType, LaunchLimits, Seconds};

use crate::addresses::AddressSurvey;
use crate::claim::Owner;
use crate::clock::Clock;
use crate::cpus::CpuSurvey;
use crate::events::Events;
use crate::first_boot::NodeSecrets;
use crate::join::{Board, JoinChecks};
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::provision::instance_type_of;
use crate::regions::Regions;
use crate::settings::Settings;
use crate::vm_id_book::VmIdBook;
use crate::watched::Watched;

/// What every pass works with.
pub(crate) struct Context {
    pub(crate) workload: Client,
    /// Where the Secrets with first-boot data are.
    pub(crate) secrets: NodeSecrets,
    pub(crate) regions: Regions,
    pub(crate) settings: Settings,
    /// The cluster's name in the proof of every VM.
    pub(crate) cluster_id: String,
    pub(crate) clock: Clock,
    pub(crate) events: Events,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) watched: Watched,
    pub(crate) memory: Memory,
    pub(crate) ids: VmIdBook,
    pub(crate) survey: AddressSurvey,
    pub(crate) cpus: CpuSurvey,
    /// What is seen of nodes that are expected.
    pub(crate) board: Board,
}

impl Context {
    /// What proves that a VM belongs to a claim.
    pub(crate) fn owner(&self, claim: &NodeClaim) -> Owner {
        Owner { cluster: self.cluster_id.clone(), claim_uid: claim.metadata.uid.clone().unwrap_or_default() }
    }

    /// Now, how long a launch may take, and since when this one stands still.
    pub(crate) fn launch_time(&self, claim: &NodeClaim) -> LaunchTime {
        let since = self.memory.blocked_since(&claim.name_any(), self.clock.now());
        LaunchTime {
            now: self.clock.seconds(),
            limits: self.launch_limits(claim),
            blocked_since: Seconds(since.as_second()),
        }
    }

    /// What new nodes need to join.
    pub(crate) fn join_checks(&self) -> JoinChecks {
        let Settings { system_namespace, cluster_endpoint, .. } = &self.settings;
        let place = (system_namespace.as_str(), cluster_endpoint.as_deref());
        JoinChecks::with(&self.workload, &self.board, place)
    }

    /// How long a launch may take: the class's word, or the operator's.
    fn launch_limits(&self, claim: &NodeClaim) -> LaunchLimits {
        let limits = self.settings.launch_limits;
        let stalled_s = self.timeouts_of(claim).and_then(|timeouts| timeouts.launch_s());
        LaunchLimits { stalled_s: stalled_s.unwrap_or(limits.stalled_s), ..limits }
    }

    /// The time limits that the class of a claim sets.
    pub(crate) fn timeouts_of(&self, claim: &NodeClaim) -> Option<ClassTimeouts> {
        self.watched.classes.get(&ObjectRef::new(&claim.spec.node_class_ref.name))?.spec.timeouts.clone()
    }

    /// The instance type a claim was created for, as its class has it.
    pub(crate) fn instance_type_of(&self, claim: &NodeClaim) -> Option<InstanceType> {
        let size = instance_type_of(claim, &self.settings.types)?;
        let class = self.watched.classes.get(&ObjectRef::new(&claim.spec.node_class_ref.name));
        Some(class.map_or_else(|| size.clone(), |class| for_class(size, &class)))
    }

    /// The client of a region, or what to do if there is none.
    pub(crate) fn region(&self, name: &str) -> Result<tenon_pve::Client, String> {
        self.regions.client(name)
    }
}

/// Whether a claim is one of ours: its class is of our kind.
pub(crate) fn is_ours(claim: &NodeClaim) -> bool {
    is_our_class(&claim.spec.node_class_ref)
}

/// Whether a class is of our kind.
pub(crate) fn is_our_class(class: &NodeClassRef) -> bool {
    class.group == names::PROXMOX && class.kind == "ProxmoxNodeClass"
}
