//! Removes empty nodes after a second check, and reports why other nodes are not removed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tenon_api::kube_objects::Node;

use kube::ResourceExt;
use kube::api::Api;
use serde_json::json;
use tenon_api::{NodeClaim, condition_reasons, event_reasons};
use tenon_engine::disruption::{
    Consolidatable, DisruptionBlocked, EmptinessVerdict, Validation, judge_emptiness, validate_emptiness,
};
use tokio::time::Instant;

use super::count;
use super::gather::{Gathered, gather, model_time};
use super::taint::{is_disrupted_taint_left, taint_disrupted, untaint_disrupted};
use crate::claim::{ClaimError, DeletionReason, delete_claim, pods_on};
use crate::context::Context;
use crate::events::Event;
use crate::metrics::Loop;
use crate::status::{Verdict, stated, subject};
use crate::stop::Stop;
use crate::writes;

/// How often nodes are checked.
const EVERY: Duration = Duration::from_secs(10);

/// The condition of claims whose node had no pod events for as long as its NodePool wants.
const CONSOLIDATABLE: &str = condition_reasons::CONSOLIDATABLE.name();

/// Checks nodes until stopped.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    let mut validation = Validation::default();
    // What failed in the last pass: the same again is no news.
    let mut failed = BTreeMap::new();
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep(EVERY) => {}
            () = stop.wait() => return,
        }
        let began = Instant::now();
        let failures = pass(&context, &mut validation).await;
        let result = if failures.is_empty() { "success" } else { "error" };
        context.metrics.reconciled("disruption", began, result);
        for (name, error) in &failures {
            context.metrics.errors.get_or_create(&Loop { controller: "disruption" }).inc();
            let error = error.full_message();
            if failed.get(name) != Some(&error) {
                tracing::warn!(claim = name, error, "cannot disrupt NodeClaim; retrying");
            }
        }
        failed = failures.into_iter().map(|(name, error)| (name, error.full_message())).collect();
    }
}

/// One pass. Returns which claims something failed for; the others go on.
async fn pass(context: &Context, validation: &mut Validation) -> Vec<(String, ClaimError)> {
    let mut failures = Vec::new();
    let mut note = |name: &str, outcome: Result<(), ClaimError>| {
        failures.extend(outcome.err().map(|error| (name.to_owned(), error)));
    };
    let began = Instant::now();
    let gathered = gather(context);
    let now = context.clock.now();
    let verdict = judge_emptiness(&gathered.emptiness_input(context, now));
    count::verdict(&context.metrics, &verdict, began);
    for (name, consolidatable) in &verdict.consolidatable {
        if let Some(claim) = gathered.claim(name) {
            note(name, write_consolidatable(context, claim, *consolidatable).await);
        }
    }
    report(context, &gathered, &verdict).await;
    let now = model_time(now);
    validation.begin_pass(&verdict.delete, now);
    for (name, node) in stale_taints(&gathered, validation) {
        note(&name, remove_stale_taint(context, &node).await);
    }
    for name in &verdict.delete {
        if validation.choose(name, now) {
            let outcome = disrupt(context, &gathered, name).await;
            if outcome.is_err() {
                context.metrics.queue_failures.get_or_create(&count::DELETE_EMPTY).inc();
            }
            note(name, outcome);
        }
    }
    failures
}

/// Says why a node that has nothing to do is not removed; that a node is in use or new is no news.
async fn report(context: &Context, gathered: &Gathered, verdict: &EmptinessVerdict) {
    for (name, blocked) in &verdict.blocked {
        let event = match blocked {
            DisruptionBlocked::DoNotDisrupt { .. }
            | DisruptionBlocked::BudgetExhausted { .. }
            | DisruptionBlocked::InvalidConsolidateAfter { .. } => {
                Event::new(&event_reasons::DISRUPTION_BLOCKED, format!("Cannot disrupt NodeClaim {name}: {blocked}"))
            }
            DisruptionBlocked::ConsolidationDisabled { .. } => {
                Event::new(&event_reasons::UNCONSOLIDATABLE, format!("Cannot consolidate NodeClaim {name}: {blocked}"))
            }
            _ => continue,
        };
        if let Some(claim) = gathered.claim(name) {
            context.events.publish(claim.as_ref(), &event).await;
        }
    }
    for disruption in verdict.pools.iter().filter(|disruption| !disruption.invalid.is_empty()) {
        if let Some(pool) = gathered.pools.iter().find(|pool| pool.name_any() == disruption.pool) {
            let faults: Vec<String> = disruption.invalid.iter().map(ToString::to_string).collect();
            let note = format!("Cannot disrupt nodes of NodePool {}: {}", disruption.pool, faults.join("; "));
            context.events.publish(pool.as_ref(), &Event::new(&event_reasons::POOL_DISRUPTION_BLOCKED, note)).await;
        }
    }
}

async fn write_consolidatable(
    context: &Context,
    claim: &NodeClaim,
    consolidatable: Consolidatable,
) -> Result<(), ClaimError> {
    let present = claim.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let is_present = present.iter().any(|condition| condition.type_ == CONSOLIDATABLE);
    let is_true = consolidatable == Consolidatable::True;
    if is_present == is_true {
        return Ok(());
    }
    let conditions = if is_true {
        let verdict = Verdict::holds(&condition_reasons::CONSOLIDATABLE);
        let subject = subject(&claim.metadata, &context.clock.time());
        stated(crate::status::CLAIM_CONDITIONS, Some(&present), &subject, &[(CONSOLIDATABLE, &verdict)])
    } else {
        present.into_iter().filter(|condition| condition.type_ != CONSOLIDATABLE).collect()
    };
    let written = writes::merge_status(&context.workload, claim, &json!({ "conditions": conditions })).await;
    let action = || format!("write condition {CONSOLIDATABLE} of NodeClaim {}", claim.name_any());
    written.map(drop).map_err(|source| ClaimError::kube(&action(), source))
}

/// Taints the node, checks once more with what the API server itself says, and only then deletes the claim.
async fn disrupt(context: &Context, gathered: &Gathered, name: &str) -> Result<(), ClaimError> {
    let nodes: Api<Node> = Api::all(context.workload.clone());
    let read = |source| ClaimError::kube(&format!("read Node {name}"), source);
    let (Some(claim), Some(node)) = (gathered.claim(name), nodes.get_opt(name).await.map_err(read)?) else {
        return Ok(());
    };
    if !taint_disrupted(context, &node).await? {
        return Ok(());
    }
    let pods = pods_on(context, &node).await?;
    let now = context.clock.now();
    let candidate = gathered.candidate(context, claim, &pods, now);
    if let Err(blocked) = validate_emptiness(&candidate, &gathered.disruption_pools(), model_time(now)) {
        tracing::info!(claim = name, "skipped disruption after the second check: {blocked}");
        context.metrics.failed_validations.get_or_create(&count::EMPTY).inc();
        return match nodes.get_opt(name).await.map_err(read)? {
            Some(node) => untaint_disrupted(context, &node).await,
            None => Ok(()),
        };
    }
    let note = format!("Deleting NodeClaim {name}: Node {name} is empty");
    context.events.publish(claim.as_ref(), &Event::new(&event_reasons::DISRUPTION_TERMINATING, note)).await;
    delete_claim(context, claim, DeletionReason::Empty).await?;
    count::deleted(&context.metrics, claim);
    Ok(())
}

/// A controller that died between the taint and the deletion left a node that takes no pods and that nobody removes.
fn stale_taints(gathered: &Gathered, validation: &Validation) -> Vec<(String, Arc<Node>)> {
    let kept = gathered.claims.iter().filter(|claim| claim.metadata.deletion_timestamp.is_none());
    let settled = kept.map(|claim| claim.name_any()).filter(|name| !validation.is_settling(name));
    let nodes = settled.filter_map(|name| Some((gathered.nodes.get(&name)?.clone(), name)));
    let is_stale = |node: &Node| node.metadata.deletion_timestamp.is_none() && is_disrupted_taint_left(node);
    nodes.filter(|(node, _)| is_stale(node)).map(|(node, name)| (name, node)).collect()
}

async fn remove_stale_taint(context: &Context, node: &Node) -> Result<(), ClaimError> {
    untaint_disrupted(context, node).await?;
    tracing::info!(node = node.name_any(), "removed stale disruption taint");
    Ok(())
}
