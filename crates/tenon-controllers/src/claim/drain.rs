//! Drains a node: taints it, evicts its pods and waits for volumes to detach. Which pods leave when is decided by
//! `tenon_engine::drain`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tenon_api::kube_objects::{Node, PersistentVolumeClaim, Pod, VolumeAttachment, WirePod};

use kube::ResourceExt;
use kube::api::{Api, ListParams};
use tenon_api::pod_predicates::pod_key;
use tenon_api::{NodeClaim, condition_reasons, drain_pod, event_reasons, names, timestamp};
use tenon_engine::claim::ObservedLaunch;
use tenon_engine::drain::{DrainPlan, has_seen_all_pods, is_drainable, plan_drain};
use tenon_engine::launch::ObservedVm;
use tenon_model::PodKey;

use super::deletion::DeletionReason;
use super::evict::{self, Refused, Removal};
use super::gather::{Observed, condition, is_true};
use super::outcome::Outcome;
use super::termination::deadline;
use super::{ClaimError, observe};
use crate::context::Context;
use crate::disruption::model_time;
use crate::disruption::taint::{has_disrupted_taint, taint_disrupted};
use crate::events::Event;
use crate::status::Verdict;

/// A drain is checked this often: pods leave at their own pace.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The taint shows in the cache within this time.
const TAINT_SHOWS_AFTER: Duration = Duration::from_millis(200);

/// One pass of a drain.
pub(crate) async fn pass(context: &Context, observed: &Observed) -> Result<Outcome, ClaimError> {
    let Some(node) = observed.our_node() else { return Ok(Outcome::again()) };
    if !has_disrupted_taint(node) {
        taint_disrupted(context, node).await?;
        return Ok(Outcome::after(TAINT_SHOWS_AFTER));
    }
    let Some(begun) = condition(&observed.claim, &condition_reasons::DRAINED) else {
        let note = format!("pods are being evicted from Node {}", node.name_any());
        return Ok(Outcome::again()
            .with_condition(&condition_reasons::DRAINED, Verdict::unknown(&condition_reasons::DRAINING, note)));
    };
    if !is_ready(node) && is_vm_absent(context, observed).await? {
        // Nobody is left who could end a pod, or hold a volume.
        return Ok(
            Outcome::again().with_condition(&condition_reasons::DRAINED, Verdict::holds(&condition_reasons::DRAINED))
        );
    }
    let now = context.clock.now();
    let pods = pods_on(context, node).await?;
    let drain_pods: Vec<_> = pods.iter().map(|pod| drain_pod(pod, model_time(now))).collect();
    let plan = plan_drain(&drain_pods, deadline(&observed.claim).map(model_time), model_time(now));
    let outcome = remove_pods(context, observed, &pods, &plan).await?;
    if plan.remaining > 0 {
        context
            .events
            .publish(node.as_ref(), &Event::new(&event_reasons::FAILED_DRAINING, remaining_note(node, &plan)))
            .await;
        return Ok(outcome);
    }
    if !has_seen_all_pods(timestamp(&begun.last_transition_time), model_time(now)) {
        return Ok(outcome);
    }
    let is_over = deadline(&observed.claim).is_some_and(|deadline| now > deadline);
    match (attached_volumes(context, node, &pods).await?.first(), is_over) {
        (Some(volume), false) => {
            let note = format!("PersistentVolume {volume} is still attached to Node {}", node.name_any());
            context
                .events
                .publish(node.as_ref(), &Event::new(&event_reasons::AWAITING_VOLUME_DETACHMENT, note.clone()))
                .await;
            Ok(outcome.with_condition(
                &condition_reasons::VOLUMES_DETACHED,
                Verdict::unknown(&condition_reasons::AWAITING_VOLUME_DETACHMENT, note),
            ))
        }
        (Some(volume), true) => {
            let node = node.name_any();
            let note = format!(
                "PersistentVolume {volume} was still attached to Node {node} when terminationGracePeriod ended"
            );
            let verdict = Verdict::fails(&condition_reasons::TERMINATION_GRACE_PERIOD_ELAPSED, note);
            Ok(Outcome::again()
                .with_condition(&condition_reasons::VOLUMES_DETACHED, verdict)
                .with_condition(&condition_reasons::DRAINED, Verdict::holds(&condition_reasons::DRAINED)))
        }
        (None, _) => Ok(Outcome::again()
            .with_condition(&condition_reasons::VOLUMES_DETACHED, Verdict::holds(&condition_reasons::VOLUMES_DETACHED))
            .with_condition(&condition_reasons::DRAINED, Verdict::holds(&condition_reasons::DRAINED))),
    }
}

/// Deletes and evicts what the plan says, each as soon as it may be tried. What is refused for one pod keeps no other.
async fn remove_pods(
    context: &Context,
    observed: &Observed,
    pods: &[Arc<Pod>],
    plan: &DrainPlan,
) -> Result<Outcome, ClaimError> {
    let claim = &observed.claim;
    let (reason, counted_as) = (disruption_reason(context, claim), drained_reason(context, claim));
    let removal = Removal { node: claim.name_any(), reason, counted_as };
    let find = |key: &PodKey| pods.iter().find(|pod| **pod_key(pod) == *key);
    let mut refused = Vec::new();
    // A pod that must go by the deadline does not wait for what its eviction waited for.
    for pod in plan.delete.iter().filter_map(find) {
        let outcome = evict::delete_pod(context, pod, &removal, deadline(&observed.claim)).await?;
        refused.extend(outcome.map(|refused| Refused { wait: CHECK_EVERY, ..refused }));
    }
    let (waiting, ready): (Vec<&PodKey>, Vec<_>) =
        plan.evict.iter().partition(|key| context.memory.evictions.wait(key).is_some());
    for pod in ready.into_iter().filter_map(find) {
        refused.extend(evict::evict_pod(context, pod, &removal).await?);
    }
    if let Some(node) = observed.our_node() {
        for Refused { event, .. } in &refused {
            context.events.publish(node.as_ref(), event).await;
        }
    }
    let waits = waiting.into_iter().filter_map(|key| context.memory.evictions.wait(key));
    let next = waits.chain(refused.iter().map(|refused| refused.wait)).fold(CHECK_EVERY, Duration::min);
    let events = refused.into_iter().map(|refused| refused.event).collect();
    Ok(Outcome { events, ..Outcome::after(next) })
}

/// Why the claim is removed, if somebody wrote it down.
fn disruption_reason(context: &Context, claim: &NodeClaim) -> Option<String> {
    context.memory.deletion_reason(&claim.name_any()).map(|reason| reason.to_string()).or_else(|| told_reason(claim))
}

/// The same in the words of the metric of drained pods.
fn drained_reason(context: &Context, claim: &NodeClaim) -> String {
    let is_empty = context.memory.deletion_reason(&claim.name_any()) == Some(DeletionReason::Empty);
    let otherwise = if is_empty { "Empty" } else { "Forceful Termination" };
    told_reason(claim).unwrap_or_else(|| otherwise.to_owned())
}

fn told_reason(claim: &NodeClaim) -> Option<String> {
    let is_told = is_true(claim, &condition_reasons::DISRUPTION_REASON);
    let told = condition(claim, &condition_reasons::DISRUPTION_REASON).filter(|_| is_told);
    told.map(|told| told.reason.clone())
}

fn remaining_note(node: &Node, plan: &DrainPlan) -> String {
    let pods = if plan.remaining == 1 { "pod is" } else { "pods are" };
    let protected = plan.protected.as_ref().map(|pod| {
        format!("; pod {pod} has {}: remove the annotation or delete the pod", names::ANNOTATION_DO_NOT_DISRUPT)
    });
    let (node, remaining) = (node.name_any(), plan.remaining);
    format!("Draining Node {node}: {remaining} {pods} waiting to be evicted{}", protected.unwrap_or_default())
}

async fn is_vm_absent(context: &Context, observed: &Observed) -> Result<bool, ClaimError> {
    let ObservedLaunch::Record(record) = &observed.state.launch else { return Ok(false) };
    let Ok(pve) = context.region(&record.place.region) else { return Ok(false) };
    let seen = observe::vm(&pve, &context.owner(&observed.claim), record).await?;
    Ok(seen.vm == ObservedVm::Absent)
}

/// Whether a node says that it is ready.
pub(crate) fn is_ready(node: &Node) -> bool {
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// All pods of the node, asked of the API server: a cache may not know yet of one that was bound just now.
pub(crate) async fn pods_on(context: &Context, node: &Node) -> Result<Vec<Arc<Pod>>, ClaimError> {
    let pods: Api<WirePod> = Api::all(context.workload.clone());
    let params = ListParams::default().fields(&format!("spec.nodeName={}", node.name_any()));
    let list = pods.list(&params).await;
    let action = || format!("list the pods of Node {}", node.name_any());
    let list = list.map_err(|source| ClaimError::kube(&action(), source))?;
    Ok(list.items.into_iter().map(|pod| Arc::new(pod.into())).collect())
}

/// Volumes that are attached to the node and not needed by pods that stay on it.
async fn attached_volumes(context: &Context, node: &Node, pods: &[Arc<Pod>]) -> Result<Vec<String>, ClaimError> {
    let failed = |source| ClaimError::kube(&format!("list the volumes of Node {}", node.name_any()), source);
    let all: Api<VolumeAttachment> = Api::all(context.workload.clone());
    let list = all.list(&ListParams::default()).await.map_err(failed)?.items;
    let here = list.into_iter().filter(|attachment| attachment.spec.node_name == node.name_any());
    let volumes: Vec<String> = here.filter_map(|attachment| attachment.spec.source.persistent_volume_name).collect();
    if volumes.is_empty() {
        return Ok(volumes);
    }
    let now = model_time(context.clock.now());
    let mut kept = BTreeSet::new();
    for pod in pods.iter().filter(|pod| !is_drainable(&drain_pod(pod, now), now)) {
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(context.workload.clone(), pod.namespace());
        for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
            let named = volume.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.clone());
            // One that is made with its pod is named after both.
            let made = || volume.ephemeral.as_ref().map(|_| format!("{}-{}", pod.name(), volume.name));
            let Some(claim) = named.or_else(made) else { continue };
            let found = claims.get_opt(&claim).await.map_err(failed)?;
            kept.extend(found.and_then(|found| found.spec?.volume_name));
        }
    }
    Ok(volumes.into_iter().filter(|volume| !kept.contains(volume)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_drain_that_is_not_over_says_how_many_pods_are_left_and_which_is_protected() {
        let node: Node = serde_json::from_value(json!({ "metadata": { "name": "default-x7" } })).unwrap();
        let note =
            |remaining, protected| remaining_note(&node, &DrainPlan { remaining, protected, ..DrainPlan::default() });
        assert_eq!(note(1, None), "Draining Node default-x7: 1 pod is waiting to be evicted");
        let key = PodKey { namespace: "shop".into(), name: "db-0".into(), uid: "u".into() };
        assert_eq!(
            note(2, Some(key)),
            "Draining Node default-x7: 2 pods are waiting to be evicted; pod shop/db-0 has \
             karpenter.sh/do-not-disrupt: remove the annotation or delete the pod"
        );
        let key = PodKey { namespace: "default".into(), name: "db-0".into(), uid: "u".into() };
        assert_eq!(note(1, Some(key)), event_reasons::FAILED_DRAINING.example());
    }
}
