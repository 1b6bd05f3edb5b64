//! What came of a pass, and how it reaches whoever asks: conditions, events, and when to reconcile again.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use serde_json::{Map, Value, json};
use tenon_api::NodeClaim;
use tenon_api::condition_reasons::ConditionType;
use tenon_api::pod_predicates::{bound_to, is_active};

use super::ClaimError;
use super::deletion::{DeletionReason, delete_claim};
use super::gather::expires_at;
use crate::context::Context;
use crate::events::Event;
use crate::status::{CLAIM_CONDITIONS, Verdict, stated, subject};
use crate::writes;

/// A claim that waits for nothing is reconciled again after this long, in case a wake-up was lost.
const RESYNC: Duration = Duration::from_secs(300);

/// A store that is behind catches up within this time; asking it sooner only asks it more often.
const OUTDATED: Duration = Duration::from_millis(200);

/// What came of a pass.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The claim as it was written in this pass, if it was.
    pub(crate) claim: Option<Box<NodeClaim>>,
    /// Conditions to set.
    pub(crate) conditions: Vec<(&'static ConditionType, Verdict)>,
    /// Other fields of its status to set.
    pub(crate) status: Map<String, Value>,
    /// Events on the claim.
    pub(crate) events: Vec<Event>,
    /// Events on the pods it was created for.
    pub(crate) pod_events: Vec<Event>,
    /// Why it is deleted, if it is.
    pub(crate) delete: Option<DeletionReason>,
    /// When to reconcile again, whatever happens; unset: when something changes.
    pub(crate) requeue_after: Option<Duration>,
}

impl Outcome {
    /// Something was done: reconcile again at once.
    pub(crate) fn again() -> Outcome {
        Outcome::after(Duration::ZERO)
    }

    /// Somebody else wrote first, or a store is behind: reconcile again when that has settled.
    pub(crate) fn outdated() -> Outcome {
        Outcome::after(OUTDATED)
    }

    /// Nothing can be done for a while.
    pub(crate) fn after(wait: Duration) -> Outcome {
        Outcome { requeue_after: Some(wait), ..Outcome::default() }
    }

    /// The claim is deleted for this reason.
    pub(crate) fn deleted(reason: DeletionReason) -> Outcome {
        Outcome { delete: Some(reason), ..Outcome::again() }
    }

    /// Reconciles again after this long.
    pub(crate) fn requeued(self, wait: Duration) -> Outcome {
        Outcome { requeue_after: Some(wait), ..self }
    }

    /// Adds a condition.
    pub(crate) fn with_condition(mut self, condition: &'static ConditionType, verdict: Verdict) -> Outcome {
        self.conditions.push((condition, verdict));
        self
    }

    /// Adds an event.
    pub(crate) fn with_event(mut self, event: Event) -> Outcome {
        self.events.push(event);
        self
    }
}

/// Writes the status and publishes the events of a pass; when to reconcile again.
pub(crate) async fn report(context: &Context, found: &NodeClaim, outcome: Outcome) -> Result<Duration, ClaimError> {
    let claim = outcome.claim.as_deref().unwrap_or(found);
    for event in &outcome.events {
        context.events.publish(claim, event).await;
    }
    let pods = context.memory.pods_of(claim.meta().name.as_deref().unwrap_or_default());
    for pod in pods.into_iter().filter(|pod| needs_node(context, pod)) {
        publish_on_pod(context, &pod, &outcome.pod_events).await;
    }
    write_status(context, claim, &outcome).await?;
    if let Some(reason) = outcome.delete {
        delete_claim(context, claim, reason).await?;
    }
    Ok(match outcome.requeue_after {
        Some(Duration::ZERO) => Duration::ZERO,
        wait => wait.unwrap_or(RESYNC).min(until_expiry(context, claim)),
    })
}

/// How long until a claim is too old, and a little: nothing wakes us then.
fn until_expiry(context: &Context, claim: &NodeClaim) -> Duration {
    let at = expires_at(claim).filter(|_| claim.metadata.deletion_timestamp.is_none());
    let left = at.map_or(i64::MAX, |at| at.since(context.clock.seconds()).saturating_add(1));
    Duration::from_secs(u64::try_from(left).unwrap_or(u64::MAX))
}

/// Whether a pod is still there and waits for a node: its owner is told nothing of a node that nobody needs any more.
fn needs_node(context: &Context, pod: &ObjectReference) -> bool {
    let (namespace, name) = (pod.namespace.as_deref().unwrap_or_default(), pod.name.as_deref().unwrap_or_default());
    let found = context.watched.pods.get(namespace, name);
    found.is_some_and(|found| {
        found.uid() == pod.uid.as_deref().unwrap_or_default() && is_active(&found) && bound_to(&found).is_none()
    })
}

async fn publish_on_pod(context: &Context, pod: &ObjectReference, events: &[Event]) {
    for event in events {
        context.events.publish_for(pod, event).await;
    }
}

async fn write_status(context: &Context, claim: &NodeClaim, outcome: &Outcome) -> Result<(), ClaimError> {
    let present = claim.status.as_ref().and_then(|status| status.conditions.as_deref());
    let said: Vec<(&str, &Verdict)> =
        outcome.conditions.iter().map(|(type_, verdict)| (type_.name(), verdict)).collect();
    let conditions = stated(CLAIM_CONDITIONS, present, &subject(claim.meta(), &context.clock.time()), &said);
    let mut status = outcome.status.clone();
    status.insert("conditions".to_owned(), json!(conditions));
    let stands = serde_json::to_value(&claim.status).unwrap_or_default();
    if status.iter().all(|(key, value)| stands.get(key) == Some(value)) {
        return Ok(());
    }
    let written = writes::merge_status(&context.workload, claim, &Value::Object(status)).await;
    written.map(drop).map_err(|source| ClaimError::kube("write the status of the NodeClaim", source))
}
