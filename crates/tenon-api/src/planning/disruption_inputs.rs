//! What decides about disruption besides what every plan looks at: gates, pods that budgets hold, nodes that go already.
//!
//! What only a running controller knows, it adds: nominations, and moves whose replacement failed.

use std::sync::Arc;

use kube::ResourceExt;
use tenon_model::{DisruptionGates, DisruptionInputs, NodeState, Snapshot};

use super::pod_holds::pod_holds;
use crate::names;
use crate::objects::Objects;
use crate::plan_options::{FeatureGates, PlanOptions};
use crate::{NodeClaim, NodePool};

/// What decides about the nodes of a snapshot that was taken of the same objects.
pub fn disruption_inputs(objects: &Objects, snapshot: &Snapshot, options: &PlanOptions) -> DisruptionInputs {
    let is_tainted = |node: &NodeState| node.taints.iter().any(|taint| taint.key == names::TAINT_DISRUPTED);
    let is_in_command = |claim: &&Arc<NodeClaim>| {
        claim.annotations().contains_key(names::ANNOTATION_DISRUPTION) && claim.metadata.deletion_timestamp.is_none()
    };
    let commanded = objects.node_claims.iter().filter(is_in_command).map(|claim| claim.name_any());
    let tainted = snapshot.nodes.iter().filter(|node| !node.is_leaving && is_tainted(node));
    let is_halted = |pool: &&Arc<NodePool>| pool.annotations().contains_key(names::ANNOTATION_ROLLOUT_HALTED);
    DisruptionInputs {
        gates: gates(options.feature_gates),
        held: pod_holds(objects),
        in_progress: tainted.map(|node| node.name.clone()).chain(commanded).collect(),
        halted: objects.node_pools.iter().filter(is_halted).map(|pool| pool.name_any()).collect(),
        ..DisruptionInputs::default()
    }
}

fn gates(gates: FeatureGates) -> DisruptionGates {
    DisruptionGates {
        spot_to_spot: gates.spot_to_spot_consolidation,
        terminate_first_drift: gates.terminate_first_drift,
        node_repair: gates.node_repair,
        terminate_first_repair: gates.terminate_first_repair,
    }
}
