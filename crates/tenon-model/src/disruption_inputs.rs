//! What decides about disruption besides nodes, pods and pools: gates, pods that a PodDisruptionBudget holds, nominations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::pod::PodKey;

/// Part of a snapshot that no plan for pending pods looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DisruptionInputs {
    /// What an operator switched on.
    pub gates: DisruptionGates,
    /// Nodes that pods were nominated to a moment ago, by the name of the node.
    pub nominated: BTreeSet<String>,
    /// Nodes that are being disrupted already, by the name of the node.
    pub in_progress: BTreeSet<String>,
    /// Pods on nodes that cannot be evicted now.
    pub held: BTreeMap<Arc<PodKey>, PodHold>,
    /// NodePools whose roll-out was halted, because a replacement never took pods: none of their nodes is replaced for drift.
    pub halted: BTreeSet<String>,
    /// NodeClaims whose VM is on a host that Proxmox lists as offline, if an operator wants their nodes replaced: the cause is known,
    /// so it does not matter how many of a pool they are.
    pub on_offline_hosts: BTreeSet<String>,
    /// NodeClaims whose VM was rebooted so often within a day that another reboot would not help: their nodes are replaced.
    pub rebooted_often: BTreeSet<String>,
    /// Nodes whose replacement failed, and the move that was tried: it is not tried again as long as it is the same.
    pub failed: BTreeMap<String, u64>,
}

/// What an operator switched on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct DisruptionGates {
    /// Spot nodes may be replaced by cheaper spot nodes.
    pub spot_to_spot: bool,
    /// A drifted node may go before its replacement is there, where nothing else can place its pods.
    pub terminate_first_drift: bool,
    /// Broken nodes are replaced.
    pub node_repair: bool,
    /// A broken node may go before its replacement is there, where nothing else can place its pods.
    pub terminate_first_repair: bool,
}

/// Why a pod cannot be evicted now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodHold {
    /// The PodDisruptionBudgets that choose it, as `namespace/name`.
    pub budgets: Vec<String>,
    /// For how long.
    pub kind: HoldKind,
}

/// For how long a pod cannot be evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldKind {
    /// Its budget allows no disruption at the moment.
    Now,
    /// Its budget never allows one.
    Always,
    /// Several budgets choose it, which the eviction API refuses.
    Several,
}

impl PodHold {
    /// Whether no new node helps the pod, because it will not leave the one it has.
    pub fn is_lasting(&self) -> bool {
        self.kind != HoldKind::Now
    }
}
