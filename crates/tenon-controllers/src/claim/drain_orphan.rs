//! Drains a Node that is deleted and has no NodeClaim any more: its pods are asked to leave, and nobody says by when.

use tenon_api::kube_objects::Node;

use kube::ResourceExt;
use tenon_api::drain_pod;
use tenon_api::pod_predicates::pod_key;
use tenon_engine::drain::plan_drain;

use super::ClaimError;
use super::drain::{is_ready, pods_on};
use super::evict::{Removal, evict_pod};
use crate::context::Context;
use crate::disruption::model_time;
use crate::disruption::taint::{has_disrupted_taint, taint_disrupted};

/// One pass; whether the Node may go. On one that is not Ready nobody is left who could end a pod.
pub(crate) async fn drain_orphan(context: &Context, node: &Node) -> Result<bool, ClaimError> {
    if !is_ready(node) {
        return Ok(true);
    }
    if !has_disrupted_taint(node) {
        taint_disrupted(context, node).await?;
        return Ok(false);
    }
    let now = model_time(context.clock.now());
    let pods = pods_on(context, node).await?;
    let drain_pods: Vec<_> = pods.iter().map(|pod| drain_pod(pod, now)).collect();
    let plan = plan_drain(&drain_pods, None, now);
    let removal = Removal { node: node.name_any(), reason: None, counted_as: "Forceful Termination".to_owned() };
    for pod in pods.iter().filter(|pod| plan.evict.contains(pod_key(pod))) {
        if let Some(refused) = evict_pod(context, pod, &removal).await? {
            context.events.publish(node, &refused.event).await;
        }
    }
    Ok(plan.remaining == 0)
}
