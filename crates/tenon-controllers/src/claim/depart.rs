//! The way back: the node goes first, then its pods, then the VM with all that belongs to it, and the claim last.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::Api;
use kube::runtime::reflector::ObjectRef;
use serde_json::json;
use tenon_api::{NodeClaim, names};
use tenon_engine::claim::Ending;
use tenon_model::{LaunchRecord, Seconds};

use super::gather::Observed;
use super::making::husk_told;
use super::outcome::{Next, Outcome};
use super::release::{ReleasePass, release};
use super::{ClaimError, health, observe, token};
use crate::context::Context;
use crate::disruption::parse_duration;
use crate::events::Saying;
use crate::metrics::{OfNode, Terminated};
use crate::status::Verdict;
use crate::writes::{self, Written};

/// What is under way ends soon.
const LOOK_SOON: Duration = Duration::from_secs(1);
/// What an operator has to mend is looked at this often.
const LOOK_RARELY: Duration = Duration::from_secs(30);
/// A copy that is still locked this long after its claim was deleted is not being made any more.
const HUSK_AFTER_S: i64 = 600;
/// A lock that stands this long is worth telling.
const TELL_AFTER_S: i64 = 30;

/// Ends a claim whose node never came, is gone, or has become too old.
pub(crate) async fn end(context: &Context, observed: &Observed, ending: Ending) -> Result<Outcome, ClaimError> {
    let claim = &observed.claim;
    match ending {
        Ending::NodeGone => {
            let told = "its node is being deleted or is gone, so its vm goes too";
            let api: Api<NodeClaim> = Api::all(context.workload.clone());
            writes::delete(&api, claim).await.map_err(|source| ClaimError::kube("delete the claim", source))?;
            Ok(Outcome::again().tells(Saying::normal("NodeGone", told)))
        }
        Ending::Expired => {
            let told = format!("the node is older than its expireAfter of {} allows", claim.spec.expire_after);
            let outcome = Outcome { delete: Some("expired"), next: Next::Now, ..Outcome::default() };
            Ok(outcome.tells(Saying::normal("Expired", told)))
        }
        Ending::NeverJoined => {
            let told = "its vm runs, but no node joined within 15 minutes; read the vm's console for cloud-init and \
                        kubelet, and check that it reaches the API server at --cluster-endpoint";
            health::failed(context, claim, ("RegistrationFailed", told)).await?;
            let outcome = Outcome { delete: Some("registration_timeout"), next: Next::Now, ..Outcome::default() };
            Ok(outcome.tells(Saying::warning("RegistrationFailed", told)))
        }
    }
}

/// Begins: the time by which pods must have left is written down, then the node is deleted, which its finalizer holds.
pub(crate) async fn delete_node(context: &Context, observed: &Observed) -> Result<Outcome, ClaimError> {
    if let Some(outcome) = set_deadline(context, &observed.claim).await? {
        return Ok(outcome);
    }
    let Some(node) = observed.our_node() else { return Ok(Outcome::again()) };
    let api: Api<Node> = Api::all(context.workload.clone());
    writes::delete(&api, node.as_ref()).await.map_err(|source| ClaimError::kube("delete the node", source))?;
    tracing::info!(claim = observed.claim.name_any(), node = node.name_any(), "the node is being deleted");
    // The store shows it in a moment, and wakes us then.
    Ok(Outcome::after(LOOK_SOON))
}

async fn set_deadline(context: &Context, claim: &NodeClaim) -> Result<Option<Outcome>, ClaimError> {
    let grace = claim.spec.termination_grace_period.as_deref().and_then(|text| parse_duration(text).ok());
    let (Some(grace), Some(since), None) = (grace, &claim.metadata.deletion_timestamp, deadline(claim)) else {
        return Ok(None);
    };
    let by = since.0 + grace;
    let by = by.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_TERMINATION_TIMESTAMP: by } } });
    let written = writes::merge(&context.workload, claim, patch).await;
    let written = written.map_err(|source| ClaimError::kube("write down by when pods must leave", source))?;
    let saying = Saying::warning("TerminationGracePeriodExpiring", format!("all pods will be deleted by {by}"));
    Ok(Some(match written {
        Written::Done(claim) => Outcome { claim: Some(claim), ..Outcome::again() }.tells(saying),
        Written::Outdated => Outcome::outdated(),
    }))
}

/// By when pods must have left, if there is a limit.
pub(crate) fn deadline(claim: &NodeClaim) -> Option<Timestamp> {
    claim.annotations().get(names::ANNOTATION_TERMINATION_TIMESTAMP)?.parse().ok()
}

/// Takes the VM away, and then everything else.
pub(crate) async fn release_vm(
    context: &Context,
    observed: &Observed,
    record: &LaunchRecord,
) -> Result<Outcome, ClaimError> {
    let claim = &observed.claim;
    let pve = match context.region(&record.place.region) {
        Ok(pve) => pve,
        Err(why) => return Ok(refused(&why)),
    };
    let going = ("InstanceTerminating", Verdict::holds("InstanceTerminating"));
    match release(pve, &context.owner(claim), record).await? {
        ReleasePass::Again => Ok(Outcome::again().says(going.0, going.1)),
        ReleasePass::Wait(_) => Ok(Outcome::after(LOOK_SOON).says(going.0, going.1)),
        ReleasePass::Locked(lock) => locked(context, observed, record, &lock).await,
        ReleasePass::Refuse(why) => Ok(refused(&why)),
        ReleasePass::Released => finish(context, observed, Some(record)).await,
    }
}

/// The VM under our id is not proven to be ours.
fn refused(why: &str) -> Outcome {
    let told = format!(
        "{why}; nothing was touched. If the claim's own vm is gone for good, annotate the claim with {}=true to let it go",
        names::ANNOTATION_LET_GO
    );
    Outcome::after(LOOK_RARELY)
        .says("InstanceTerminating", Verdict::fails("NotProvenOurs", told.clone()))
        .tells(Saying::warning("FailedTermination", told))
}

/// Somebody holds the VM; or nobody does any more, and it is a half-made copy that only an operator can remove.
async fn locked(
    context: &Context,
    observed: &Observed,
    record: &LaunchRecord,
    lock: &str,
) -> Result<Outcome, ClaimError> {
    let since = observed.seen.deleting_since.unwrap_or(Seconds(i64::MAX));
    let waited = context.clock.seconds().since(since.max(record.last_progress_at));
    if matches!(lock, "clone" | "create") && waited > HUSK_AFTER_S {
        let told = Saying::warning("HalfMadeVm", husk_told(record, record.vmid, "its claim is gone"));
        tell_pool(context, &observed.claim, &told).await;
        return finish(context, observed, Some(record)).await;
    }
    let told = format!("vm {} is held by `{lock}`; it goes as soon as that ends", record.vmid);
    let outcome = Outcome::after(LOOK_SOON);
    Ok(if waited > TELL_AFTER_S { outcome.tells(Saying::warning("FailedTermination", told)) } else { outcome })
}

/// Lets a claim go for which nothing was made, or whose operator takes care of the rest.
pub(crate) async fn let_go(context: &Context, observed: &Observed) -> Result<Outcome, ClaimError> {
    finish(context, observed, None).await
}

/// Everything is gone: token, node, claim, in this order. Each may be gone already.
async fn finish(context: &Context, observed: &Observed, record: Option<&LaunchRecord>) -> Result<Outcome, ClaimError> {
    let claim = &observed.claim;
    token::delete(context, claim).await?;
    if let Some(record) = record {
        tell_of_husks(context, claim, record).await;
    }
    let of_node = OfNode { nodepool: label(claim, names::LABEL_NODEPOOL), zone: label(claim, names::LABEL_ZONE) };
    if let Some(node) = observed.our_node() {
        if !release_object(context, node.as_ref()).await? {
            return Ok(Outcome::outdated());
        }
        context.metrics.nodes_terminated.get_or_create(&of_node).inc();
    }
    if !release_object(context, claim).await? {
        return Ok(Outcome::outdated());
    }
    let OfNode { nodepool, zone } = of_node;
    let capacity_type = label(claim, names::LABEL_CAPACITY_TYPE);
    context.metrics.claims_terminated.get_or_create(&Terminated { nodepool, capacity_type, zone }).inc();
    context.memory.forget(&claim.name_any());
    tracing::info!(claim = claim.name_any(), vmid = record.map(|record| record.vmid.get()), "gone without a trace");
    // Nothing is left to write on.
    Ok(Outcome { claim: None, next: Next::OnChange, ..Outcome::default() })
}

/// Tells of half-made copies that are still there. One that cannot be looked at is told of too: nobody will later.
async fn tell_of_husks(context: &Context, claim: &NodeClaim, record: &LaunchRecord) {
    let Ok(pve) = context.region(&record.place.region) else { return };
    for husk in &record.retired {
        if observe::is_husk(pve, record, *husk).await.unwrap_or(true) {
            let told = husk_told(record, *husk, "its claim is gone");
            tell_pool(context, claim, &Saying::warning("HalfMadeVm", told)).await;
        }
    }
}

/// Takes our finalizer off an object; whether it is off.
async fn release_object<K>(context: &Context, object: &K) -> Result<bool, ClaimError>
where
    K: kube::Resource<DynamicType = ()> + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let rest: Vec<&String> = object.finalizers().iter().filter(|name| *name != names::FINALIZER).collect();
    if rest.len() == object.finalizers().len() {
        return Ok(true);
    }
    let patch = json!({ "metadata": { "finalizers": rest } });
    let written = writes::merge(&context.workload, object, patch).await;
    let told = |source| ClaimError::kube(&format!("let the {} go", K::kind(&())), source);
    Ok(matches!(written.map_err(told)?, Written::Done(_)))
}

fn label(claim: &NodeClaim, name: &str) -> String {
    claim.labels().get(name).cloned().unwrap_or_default()
}

/// Tells the pool, because the claim will be gone.
async fn tell_pool(context: &Context, claim: &NodeClaim, saying: &Saying) {
    let pool =
        claim.labels().get(names::LABEL_NODEPOOL).and_then(|name| context.watched.pools.get(&ObjectRef::new(name)));
    match pool {
        Some(pool) => context.events.say(pool.as_ref(), saying).await,
        None => tracing::warn!(claim = claim.name_any(), reason = saying.reason, "{}", saying.note),
    }
}
