//! Brings the pods of a node that goes to leave: no new ones come, those that are there are asked, and disks are waited for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;
use tenon_api::{condition_reasons, event_reasons, names};
use tenon_engine::claim::ObservedLaunch;
use tenon_engine::launch::ObservedVm;

use super::gather::{Observed, condition};
use super::leaving::{is_drainable, leaving};
use super::outcome::Outcome;
use super::termination::deadline;
use super::{ClaimError, evict, observe};
use crate::context::Context;
use crate::disruption::pods::key;
use crate::events::Event;
use crate::status::Verdict;
use crate::writes::{self, Written};

/// A pod may have been bound just before the taint was seen, and shows up within this time.
const AT_LEAST: SignedDuration = SignedDuration::from_secs(5);

/// Pods leave at their own pace.
const LOOK_SOON: Duration = Duration::from_secs(1);

/// One pass of a drain.
pub(crate) async fn pass(context: &Context, observed: &Observed) -> Result<Outcome, ClaimError> {
    let Some(node) = observed.our_node() else { return Ok(Outcome::again()) };
    if !is_fenced(node) {
        fence(context, node).await?;
        return Ok(Outcome::after(Duration::from_millis(200)));
    }
    let Some(begun) = condition(&observed.claim, &condition_reasons::DRAINED) else {
        return Ok(Outcome::again().with_condition(
            &condition_reasons::DRAINED,
            Verdict::unknown(&condition_reasons::DRAINING, "its pods are asked to leave"),
        ));
    };
    if !is_ready(node) && is_vm_gone(context, observed).await? {
        // Nobody is left who could end a pod, or hold a volume.
        return Ok(
            Outcome::again().with_condition(&condition_reasons::DRAINED, Verdict::holds(&condition_reasons::DRAINED))
        );
    }
    let (now, deadline) = (context.clock.now(), deadline(&observed.claim));
    let pods = pods_on(context, node).await?;
    let plan = leaving(&pods, deadline, now);
    let mut outcome = Outcome::after(LOOK_SOON);
    for pod in &plan.force {
        outcome.events.extend(evict::force(context, pod, deadline).await?);
    }
    for pod in &plan.evict {
        outcome.events.extend(evict::ask(context, pod).await?);
    }
    if plan.waiting > 0 {
        let unwilling = plan.unwilling.map(|pod| format!("; pod {} forbids it by annotation", key(&pod)));
        let told = format!("{} pods are waiting to be evicted{}", plan.waiting, unwilling.unwrap_or_default());
        context.events.publish(node.as_ref(), &Event::new(&event_reasons::FAILED_DRAINING, told)).await;
        return Ok(outcome);
    }
    if now.duration_since(begun.last_transition_time.0) < AT_LEAST {
        return Ok(outcome);
    }
    let is_over = deadline.is_some_and(|deadline| now > deadline);
    match attached(context, node, &pods).await?.first() {
        Some(volume) if !is_over => {
            let told = format!("volume {volume} is still attached to node {}", node.name_any());
            context
                .events
                .publish(node.as_ref(), &Event::new(&event_reasons::AWAITING_VOLUME_DETACHMENT, told.clone()))
                .await;
            Ok(outcome.with_condition(
                &condition_reasons::VOLUMES_DETACHED,
                Verdict::unknown(&condition_reasons::AWAITING_VOLUME_DETACHMENT, told),
            ))
        }
        Some(volume) => {
            let told = format!("volume {volume} was still attached when its time was up");
            let verdict = Verdict::fails(&condition_reasons::TERMINATION_GRACE_PERIOD_ELAPSED, told);
            Ok(Outcome::again()
                .with_condition(&condition_reasons::VOLUMES_DETACHED, verdict)
                .with_condition(&condition_reasons::DRAINED, Verdict::holds(&condition_reasons::DRAINED)))
        }
        None => Ok(Outcome::again()
            .with_condition(&condition_reasons::VOLUMES_DETACHED, Verdict::holds(&condition_reasons::VOLUMES_DETACHED))
            .with_condition(&condition_reasons::DRAINED, Verdict::holds(&condition_reasons::DRAINED))),
    }
}

async fn is_vm_gone(context: &Context, observed: &Observed) -> Result<bool, ClaimError> {
    let ObservedLaunch::Record(record) = &observed.state.launch else { return Ok(false) };
    let Ok(pve) = context.region(&record.place.region) else { return Ok(false) };
    let seen = observe::vm(pve, &context.owner(&observed.claim), record).await?;
    Ok(seen.vm == ObservedVm::Absent)
}

/// Whether a node says that it is ready.
pub(crate) fn is_ready(node: &Node) -> bool {
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|told| told.type_ == "Ready" && told.status == "True")
}

fn is_fenced(node: &Node) -> bool {
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.any(|taint| taint.key == names::TAINT_DISRUPTED && taint.effect == "NoSchedule")
}

/// Keeps new pods off the node, and load balancers from sending it more. Whether that stands now.
pub(crate) async fn fence(context: &Context, node: &Node) -> Result<bool, ClaimError> {
    let present = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let mut taints: Vec<_> = present.filter(|taint| taint.key != names::TAINT_DISRUPTED).cloned().collect();
    taints.push(k8s_openapi::api::core::v1::Taint {
        key: names::TAINT_DISRUPTED.to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Default::default()
    });
    let labels = json!({ names::LABEL_EXCLUDE_BALANCERS: "karpenter" });
    let patch = json!({ "metadata": { "labels": labels }, "spec": { "taints": taints } });
    let written = writes::merge(&context.workload, node, patch).await;
    let written = written.map_err(|source| ClaimError::kube("keep new pods off the node", source))?;
    Ok(matches!(written, Written::Done(_)))
}

/// All pods of the node, asked of the API server: a store may not know yet of one that was bound just now.
pub(crate) async fn pods_on(context: &Context, node: &Node) -> Result<Vec<Arc<Pod>>, ClaimError> {
    let pods: Api<Pod> = Api::all(context.workload.clone());
    let params = ListParams::default().fields(&format!("spec.nodeName={}", node.name_any()));
    let list = pods.list(&params).await.map_err(|source| ClaimError::kube("list the pods of the node", source))?;
    Ok(list.items.into_iter().map(Arc::new).collect())
}

/// Volumes that are attached to the node and not needed by pods that stay with it.
async fn attached(context: &Context, node: &Node, pods: &[Arc<Pod>]) -> Result<Vec<String>, ClaimError> {
    let told = |source| ClaimError::kube("list the volumes of the node", source);
    let all: Api<VolumeAttachment> = Api::all(context.workload.clone());
    let list = all.list(&ListParams::default()).await.map_err(told)?.items;
    let here = list.into_iter().filter(|attachment| attachment.spec.node_name == node.name_any());
    let volumes: Vec<String> = here.filter_map(|attachment| attachment.spec.source.persistent_volume_name).collect();
    if volumes.is_empty() {
        return Ok(volumes);
    }
    let now = context.clock.now();
    let mut kept = BTreeSet::new();
    for pod in pods.iter().filter(|pod| !is_drainable(pod, now)) {
        let claims: Api<PersistentVolumeClaim> =
            Api::namespaced(context.workload.clone(), &pod.namespace().unwrap_or_default());
        for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
            let Some(claim) = &volume.persistent_volume_claim else { continue };
            let found = claims.get_opt(&claim.claim_name).await.map_err(told)?;
            kept.extend(found.and_then(|found| found.spec?.volume_name));
        }
    }
    Ok(volumes.into_iter().filter(|volume| !kept.contains(volume)).collect())
}
