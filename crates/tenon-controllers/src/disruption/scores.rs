//! What did NodePools say to moves that save money? Counted for all of them; a move that policy `Balanced` approved is told, one that it
//! rejected only with the node that stays.

use std::collections::BTreeSet;

use kube::ResourceExt;
use tenon_api::event_reasons;
use tenon_engine::disruption::{Command, Disruption, Kept, Method, PoolScore, THRESHOLD};
use tenon_model::{ConsolidationPolicy, Snapshot};

use super::candidate::Shown;
use crate::context::Context;
use crate::events::Event;
use crate::metrics::{Metrics, Scored};

/// How a move was judged, as metrics call it.
const APPROVED: &str = "approved";
const REJECTED: &str = "rejected";

fn is_consolidation(method: Method) -> bool {
    matches!(method, Method::MultiNode | Method::SingleNode)
}

/// Counts what was found.
pub(super) fn count(metrics: &Metrics, disruption: &Disruption, snapshot: &Snapshot) {
    for command in disruption.commands.iter().filter(|command| is_consolidation(command.method)) {
        let pools: BTreeSet<&str> = command.removed.iter().map(|removed| removed.pool.as_str()).collect();
        for pool in pools {
            metrics.consolidation_moves.get_or_create(&scored(snapshot, pool, APPROVED)).inc();
        }
        for found in &command.scores {
            metrics.consolidation_score.get_or_create(&scored(snapshot, &found.pool, APPROVED)).observe(found.score);
        }
    }
    for (method, why) in disruption.kept.iter().flat_map(|node| &node.reasons) {
        if let (true, Kept::BelowThreshold { pool, score, .. }) = (is_consolidation(*method), why) {
            let of = scored(snapshot, pool, REJECTED);
            metrics.consolidation_moves.get_or_create(&of).inc();
            metrics.consolidation_score.get_or_create(&of).observe(*score);
        }
    }
}

fn scored(snapshot: &Snapshot, pool: &str, decision: &'static str) -> Scored {
    let rules = snapshot.pools.iter().find(|found| found.name == pool).and_then(|found| found.disruption.as_deref());
    let policy = match rules.map(|rules| rules.policy).unwrap_or_default() {
        ConsolidationPolicy::WhenEmpty => "WhenEmpty",
        ConsolidationPolicy::WhenEmptyOrUnderutilized => "WhenEmptyOrUnderutilized",
        ConsolidationPolicy::Balanced => "Balanced",
    };
    Scored { decision, nodepool: pool.to_owned(), policy }
}

/// Tells of moves that policy `Balanced` approved: one node on its NodeClaim and its Node, several on the NodePool.
pub(super) async fn report(context: &Context, shown: &Shown, disruption: &Disruption) {
    for command in disruption.commands.iter().filter(|command| is_consolidation(command.method)) {
        for score in &command.scores {
            report_score(context, shown, (command, score)).await;
        }
    }
}

async fn report_score(context: &Context, shown: &Shown, (command, score): (&Command, &PoolScore)) {
    if let [removed] = command.removed.as_slice() {
        let what = format!("NodeClaim {}", removed.claim);
        let event = Event::new(&event_reasons::CONSOLIDATION_APPROVED, note(&what, score));
        if let Some(claim) = shown.claim(&removed.claim) {
            context.events.publish(claim.as_ref(), &event).await;
        }
        if let Some(node) = shown.nodes.get(&removed.node) {
            context.events.publish(node.as_ref(), &event).await;
        }
    } else if let Some(pool) = shown.pools.iter().find(|pool| pool.name_any() == score.pool) {
        let what = format!("{} NodeClaims", command.removed.len());
        let event = Event::new(&event_reasons::POOL_CONSOLIDATION_APPROVED, note(&what, score));
        context.events.publish(pool.as_ref(), &event).await;
    }
}

fn note(what: &str, score: &PoolScore) -> String {
    format!(
        "Approved consolidation of {what}: it saves {:.1} % of the cost of NodePool {} for {:.1} % of its disruption cost \
         (score {:.2}, at least {THRESHOLD:.2})",
        score.saved * 100.0,
        score.pool,
        score.disrupted * 100.0,
        score.score
    )
}

#[cfg(test)]
#[path = "scores_tests.rs"]
mod tests;
