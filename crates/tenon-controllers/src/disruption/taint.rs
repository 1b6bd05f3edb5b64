//! The taint `karpenter.sh/disrupted`: no new pods are scheduled to a node that has it, and load balancers leave it out.

use k8s_openapi::api::core::v1::Taint;
use kube::ResourceExt;
use serde_json::json;
use tenon_api::kube_objects::Node;
use tenon_api::names::{LABEL_EXCLUDE_BALANCERS, TAINT_DISRUPTED};

use crate::claim::ClaimError;
use crate::context::Context;
use crate::writes::{self, Written};

/// What keeps new pods off.
const NO_SCHEDULE: &str = "NoSchedule";

fn taints(node: &Node) -> impl Iterator<Item = &Taint> {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten())
}

/// Whether new pods are kept off the node.
pub(crate) fn has_disrupted_taint(node: &Node) -> bool {
    taints(node).any(|taint| taint.key == TAINT_DISRUPTED && taint.effect == NO_SCHEDULE)
}

/// Whether the taint is on the node with whatever effect, so that there is something to remove.
pub(super) fn is_disrupted_taint_left(node: &Node) -> bool {
    taints(node).any(|taint| taint.key == TAINT_DISRUPTED)
}

/// Adds the taint and excludes the node from load balancers. Whether that was written.
pub(crate) async fn taint_disrupted(context: &Context, node: &Node) -> Result<bool, ClaimError> {
    let mut taints: Vec<Taint> = taints(node).filter(|taint| taint.key != TAINT_DISRUPTED).cloned().collect();
    taints.push(Taint { key: TAINT_DISRUPTED.to_owned(), effect: NO_SCHEDULE.to_owned(), ..Taint::default() });
    let labels = json!({ LABEL_EXCLUDE_BALANCERS: "karpenter" });
    let patch = json!({ "metadata": { "labels": labels }, "spec": { "taints": taints } });
    let written = writes::merge(&context.workload, node, patch).await;
    let action = || format!("taint Node {}", node.name_any());
    let written = written.map_err(|source| ClaimError::kube(&action(), source))?;
    Ok(matches!(written, Written::Done(_)))
}

/// Removes the taint and includes the node in load balancers again. Whether that was written.
pub(super) async fn untaint_disrupted(context: &Context, node: &Node) -> Result<bool, ClaimError> {
    let taints: Vec<&Taint> = taints(node).filter(|taint| taint.key != TAINT_DISRUPTED).collect();
    let labels = json!({ LABEL_EXCLUDE_BALANCERS: null });
    let patch = json!({ "metadata": { "labels": labels }, "spec": { "taints": taints } });
    let written = writes::merge(&context.workload, node, patch).await;
    let action = || format!("remove the disruption taint of Node {}", node.name_any());
    let written = written.map_err(|source| ClaimError::kube(&action(), source))?;
    Ok(matches!(written, Written::Done(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(effect: &str) -> Node {
        let taint = json!({ "key": "karpenter.sh/disrupted", "effect": effect });
        serde_json::from_value(json!({ "spec": { "taints": [taint] } })).unwrap()
    }

    #[test]
    fn a_taint_with_another_effect_keeps_no_pods_off_and_is_removed_all_the_same() {
        assert!(has_disrupted_taint(&node("NoSchedule")) && is_disrupted_taint_left(&node("NoSchedule")));
        assert!(!has_disrupted_taint(&node("NoExecute")) && is_disrupted_taint_left(&node("NoExecute")));
        assert!(!has_disrupted_taint(&Node::default()) && !is_disrupted_taint_left(&Node::default()));
    }
}
