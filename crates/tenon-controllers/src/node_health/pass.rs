//! One look at all Nodes, and the end of those that have been broken for too long.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use serde_json::json;
use tenon_api::kube_objects::Node;
use tenon_api::{NodeClaim, NodePool, event_reasons, legacy_unhealthy_conditions, names};
use tenon_engine::disruption::{HealthClaim, HealthVerdict, NodeHealth, TooManyUnhealthy, judge_node_health};
use tenon_model::{RepairPolicies, Unhealthy};
use tokio::time::Instant;

use super::count::{Repaired, count_repaired};
use crate::claim::{ClaimError, DeletionReason, delete_claim};
use crate::context::{Context, is_ours};
use crate::disruption::model_time;
use crate::events::Event;
use crate::metrics::Loop;
use crate::stop::Stop;
use crate::writes::{self, Written};

/// How often Nodes are looked at. It costs no request while none is broken.
const EVERY: Duration = Duration::from_secs(10);

/// That too many nodes are broken is repeated after this long. As in Karpenter.
const REPEAT_AFTER: SignedDuration = SignedDuration::from_mins(15);

/// How the loop is called in metrics.
const LOOP: Loop = Loop { controller: "node.health" };

/// Looks until stopped. Does nothing without `--legacy-node-repair`.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    if !context.settings.legacy_node_repair {
        return stop.wait().await;
    }
    let mut failed = BTreeMap::new();
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep(EVERY) => {}
            () = stop.wait() => return,
        }
        let began = Instant::now();
        let failures = pass(&context).await;
        context.metrics.reconciled(LOOP.controller, began, if failures.is_empty() { "success" } else { "error" });
        for (name, error) in &failures {
            context.metrics.errors.get_or_create(&LOOP).inc();
            if failed.get(name) != Some(error) {
                tracing::warn!(claim = name, error, "cannot repair Node; retrying");
            }
        }
        failed = failures;
    }
}

/// One look. Returns what failed, by NodeClaim.
pub(super) async fn pass(context: &Context) -> BTreeMap<String, String> {
    let claims: BTreeMap<String, Arc<NodeClaim>> =
        context.watched.claims.state().into_iter().map(|claim| (claim.name_any(), claim)).collect();
    let mut nodes = context.watched.nodes.state();
    nodes.sort_by_key(|node| node.name_any());
    let policies = &context.settings.planning.repair_policies;
    let seen: Vec<NodeHealth> = nodes.iter().map(|node| health(node, &claims, policies)).collect();
    let mut failures = BTreeMap::new();
    for (name, verdict) in judge_node_health(&seen, model_time(context.clock.now())) {
        let Some(claim) = claims.get(&name) else { continue };
        let done = match verdict {
            HealthVerdict::Tolerated { .. } => continue,
            HealthVerdict::Blocked(why) => {
                let node = nodes.iter().find(|node| node.name_any() == name);
                report_blocked(context, (claim, node.map(AsRef::as_ref)), &why).await;
                continue;
            }
            HealthVerdict::Delete { unhealthy } => delete(context, claim, unhealthy).await,
        };
        failures.extend(done.err().map(|error| (name, error.full_message())));
    }
    failures
}

/// A Node for the engine. Its NodeClaim has its name and, once both say so, its VM; one whose VM another controller created is
/// nobody's to delete.
fn health(node: &Node, claims: &BTreeMap<String, Arc<NodeClaim>>, policies: &RepairPolicies) -> NodeHealth {
    let name = node.name_any();
    let pool = |labels: &BTreeMap<String, String>| labels.get(names::LABEL_NODEPOOL).cloned();
    let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()).filter(|id| !id.is_empty());
    let is_its = |claim: &&Arc<NodeClaim>| {
        let own = claim.status.as_ref().and_then(|status| status.provider_id.as_deref());
        is_ours(claim)
            && claim.annotations().contains_key(names::ANNOTATION_LAUNCH)
            && own.zip(id).is_none_or(|(own, id)| own == id)
    };
    let claim = claims.get(&name).filter(is_its);
    NodeHealth {
        pool: pool(node.labels()),
        unhealthy: legacy_unhealthy_conditions(node, policies),
        claim: claim.map(|claim| HealthClaim {
            pool: pool(claim.labels()),
            is_deleting: claim.metadata.deletion_timestamp.is_some(),
        }),
        name,
    }
}

/// Its pods have no time any more, whatever their budgets and the NodePool say; then the claim is deleted.
async fn delete(context: &Context, claim: &NodeClaim, unhealthy: Unhealthy) -> Result<(), ClaimError> {
    let now = context.clock.now();
    let written = claim.annotations().get(names::ANNOTATION_TERMINATION_TIMESTAMP);
    let is_past = written.and_then(|text| text.parse::<jiff::Timestamp>().ok()).is_some_and(|by| by <= now);
    if !is_past {
        let by = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_TERMINATION_TIMESTAMP: by } } });
        let action = || format!("annotate NodeClaim {} with its termination time", claim.name_any());
        let written = writes::merge(&context.workload, claim, patch).await;
        match written.map_err(|source| ClaimError::kube(&action(), source))? {
            Written::Done(_) => {}
            // Whoever wrote may have deleted it: the next pass looks again.
            Written::Outdated => return Ok(()),
        }
    }
    let name = claim.name_any();
    let note = format!("Deleting NodeClaim {name}: Node {name} is unhealthy ({unhealthy})");
    context.events.publish(claim, &Event::new(&event_reasons::DISRUPTION_TERMINATING, note)).await;
    delete_claim(context, claim, DeletionReason::Unhealthy).await?;
    count_repaired(context, claim, Repaired { condition: &unhealthy.condition, mode: Some("forceful") });
    tracing::info!(claim = name, condition = %unhealthy, "deleted NodeClaim of unhealthy Node");
    Ok(())
}

async fn report_blocked(context: &Context, (claim, node): (&NodeClaim, Option<&Node>), why: &TooManyUnhealthy) {
    let note = format!("Cannot repair Node {}: {why}", claim.name_any());
    let event = Event::new(&event_reasons::NODE_REPAIR_BLOCKED, note).repeat_after(REPEAT_AFTER);
    context.events.publish(claim, &event).await;
    if let Some(node) = node {
        context.events.publish(node, &event).await;
    }
    let pool = why.pool.as_ref().and_then(|pool| context.watched.pools.get(&ObjectRef::<NodePool>::new(pool)));
    if let Some(pool) = pool {
        let note = format!("Cannot repair nodes of NodePool {}: {why}", pool.name_any());
        let event = Event::new(&event_reasons::NODE_REPAIR_BLOCKED, note).repeat_after(REPEAT_AFTER);
        context.events.publish(pool.as_ref(), &event).await;
    }
}
