//! What decides about disruption besides what every plan looks at: gates, pods that budgets hold, nodes that go already.
//!
//! What only a running controller knows, it adds: nominations, and moves whose replacement failed.

use tenon_model::{DisruptionGates, DisruptionInputs, NodeState, Snapshot};

use super::pod_holds::pod_holds;
use crate::names;
use crate::objects::Objects;
use crate::plan_options::{FeatureGates, PlanOptions};

/// What decides about the nodes of a snapshot that was taken of the same objects.
pub fn disruption_inputs(objects: &Objects, snapshot: &Snapshot, options: &PlanOptions) -> DisruptionInputs {
    let is_tainted = |node: &NodeState| node.taints.iter().any(|taint| taint.key == names::TAINT_DISRUPTED);
    let in_progress = snapshot.nodes.iter().filter(|node| !node.is_leaving && is_tainted(node));
    DisruptionInputs {
        gates: gates(options.feature_gates),
        held: pod_holds(objects),
        in_progress: in_progress.map(|node| node.name.clone()).collect(),
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
