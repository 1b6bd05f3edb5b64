//! What came of a pass, and how it reaches whoever asks: conditions, events, and when to look again.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use kube::api::Api;
use serde_json::{Map, Value, json};
use tenon_api::{NodeClaim, names};

use super::ClaimError;
use super::gather::expires_at;
use crate::context::Context;
use crate::events::Saying;
use crate::metrics::Disrupted;
use crate::status::{CLAIM_CONDITIONS, Verdict, stated, subject};
use crate::writes;

/// A claim that waits for nothing is looked at again after this long, in case a wake-up was lost.
const IDLE: Duration = Duration::from_secs(300);

/// A store that is behind catches up within this time; asking it sooner only asks it more often.
const OUTDATED: Duration = Duration::from_millis(200);

/// What came of a pass.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The claim as it was written in this pass, if it was.
    pub(crate) claim: Option<Box<NodeClaim>>,
    /// What is to be said of it.
    pub(crate) statements: Vec<(&'static str, Verdict)>,
    /// What else its status says.
    pub(crate) status: Map<String, Value>,
    /// What its owner hears.
    pub(crate) sayings: Vec<Saying>,
    /// What the owners of the pods it was made for hear.
    pub(crate) for_pods: Vec<Saying>,
    /// Why it is deleted, if it is.
    pub(crate) delete: Option<&'static str>,
    /// When to look again.
    pub(crate) next: Next,
}

/// When to look again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Next {
    /// At once.
    Now,
    /// After a while.
    After(Duration),
    /// When something changes.
    #[default]
    OnChange,
}

impl Outcome {
    /// Something was done: look again at once.
    pub(crate) fn again() -> Outcome {
        Outcome { next: Next::Now, ..Outcome::default() }
    }

    /// Somebody else wrote first, or a store is behind: look again when that has settled.
    pub(crate) fn outdated() -> Outcome {
        Outcome::after(OUTDATED)
    }

    /// Nothing can be done for a while.
    pub(crate) fn after(wait: Duration) -> Outcome {
        Outcome { next: Next::After(wait), ..Outcome::default() }
    }

    /// Adds a statement.
    pub(crate) fn says(mut self, type_: &'static str, verdict: Verdict) -> Outcome {
        self.statements.push((type_, verdict));
        self
    }

    /// Adds an event.
    pub(crate) fn tells(mut self, saying: Saying) -> Outcome {
        self.sayings.push(saying);
        self
    }
}

/// Writes down and tells what came of a pass.
pub(crate) async fn report(context: &Context, found: &NodeClaim, outcome: Outcome) -> Result<Duration, ClaimError> {
    let claim = outcome.claim.as_deref().unwrap_or(found);
    for saying in &outcome.sayings {
        context.events.say(claim, saying).await;
    }
    for pod in context.memory.pods_of(claim.meta().name.as_deref().unwrap_or_default()) {
        tell_pod(context, &pod, &outcome.for_pods).await;
    }
    write_status(context, claim, &outcome).await?;
    if let Some(reason) = outcome.delete {
        let api: Api<NodeClaim> = Api::all(context.workload.clone());
        writes::delete(&api, claim).await.map_err(|source| ClaimError::kube("delete the claim", source))?;
        count_disrupted(context, claim, reason);
    }
    Ok(match outcome.next {
        Next::Now => Duration::ZERO,
        Next::After(wait) => wait.min(until_expiry(context, claim)),
        Next::OnChange => IDLE.min(until_expiry(context, claim)),
    })
}

/// How long until a claim is too old, and a little: nobody wakes us then.
fn until_expiry(context: &Context, claim: &NodeClaim) -> Duration {
    let at = expires_at(claim).filter(|_| claim.metadata.deletion_timestamp.is_none());
    let left = at.map_or(i64::MAX, |at| at.since(context.clock.seconds()).saturating_add(1));
    Duration::from_secs(u64::try_from(left).unwrap_or(u64::MAX))
}

async fn tell_pod(context: &Context, pod: &ObjectReference, sayings: &[Saying]) {
    for saying in sayings {
        context.events.say_of(pod, saying).await;
    }
}

async fn write_status(context: &Context, claim: &NodeClaim, outcome: &Outcome) -> Result<(), ClaimError> {
    let present = claim.status.as_ref().and_then(|status| status.conditions.as_deref());
    let said: Vec<(&str, &Verdict)> = outcome.statements.iter().map(|(type_, verdict)| (*type_, verdict)).collect();
    let conditions = stated(CLAIM_CONDITIONS, present, &subject(claim.meta(), &context.clock.time()), &said);
    let mut status = outcome.status.clone();
    status.insert("conditions".to_owned(), json!(conditions));
    let stands = serde_json::to_value(&claim.status).unwrap_or_default();
    if status.iter().all(|(key, value)| stands.get(key) == Some(value)) {
        return Ok(());
    }
    let written = writes::merge_status(&context.workload, claim, &Value::Object(status)).await;
    written.map(drop).map_err(|source| ClaimError::kube("write the status of the claim", source))
}

pub(crate) fn count_disrupted(context: &Context, claim: &NodeClaim, reason: &str) {
    let label = |name: &str| claim.metadata.labels.iter().flatten().find(|(key, _)| *key == name);
    let label = |name: &str| label(name).map(|(_, value)| value.clone()).unwrap_or_default();
    let mode = if claim.spec.termination_grace_period.is_none() { "graceful" } else { "eventual" };
    context
        .metrics
        .claims_disrupted
        .get_or_create(&Disrupted {
            reason: reason.to_owned(),
            nodepool: label(names::LABEL_NODEPOOL),
            capacity_type: label(names::LABEL_CAPACITY_TYPE),
            consolidation_policy: String::new(),
            termination_mode: mode.to_owned(),
        })
        .inc();
}
