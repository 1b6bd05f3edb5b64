//! Why nodes stay, as events. What changes with every look, or is true of nearly every node, is said in metrics only.

use jiff::SignedDuration;
use kube::ResourceExt;
use tenon_api::event_reasons::{self, EventReason};
use tenon_engine::disruption::{
    Command, Disruption, DisruptionBlocked, Kept, KeptNode, Method, PoolDisruption, Rejection,
};

use super::candidate::Shown;
use crate::context::Context;
use crate::events::Event;

/// That a node cannot be consolidated is repeated only after this long, as in the reference.
const UNCONSOLIDATABLE_REPEAT_AFTER: SignedDuration = SignedDuration::from_mins(15);

/// That too many nodes are broken is repeated only after this long, as in the reference.
const NODE_REPAIR_REPEAT_AFTER: SignedDuration = SignedDuration::from_mins(15);

/// Says why nodes stay and which budgets cannot be read.
pub(super) async fn report(context: &Context, shown: &Shown, disruption: &Disruption) {
    for node in &disruption.kept {
        let Some(claim) = shown.claim(&node.node) else { continue };
        for event in events(node) {
            context.events.publish(claim.as_ref(), &event).await;
            if *event.reason == event_reasons::NODE_REPAIR_BLOCKED {
                report_repair_blocked(context, shown, (node, &event)).await;
            }
        }
    }
    report_invalid_budgets(context, shown, &disruption.pools).await;
}

/// The same on the Node and its NodePool: what is broken is looked for there.
async fn report_repair_blocked(context: &Context, shown: &Shown, (kept, event): (&KeptNode, &Event)) {
    if let Some(node) = shown.nodes.get(&kept.node) {
        context.events.publish(node.as_ref(), event).await;
    }
    let is_its = |name: String| Some(name) == kept.pool;
    if let Some(pool) = shown.pools.iter().find(|pool| is_its(pool.name_any())) {
        context.events.publish(pool.as_ref(), event).await;
    }
}

/// What is said of a node that stays: one sentence for each way it cannot go.
fn events(kept: &KeptNode) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for (method, why) in &kept.reasons {
        let Some(reason) = reason_of(*method, why) else { continue };
        let name = &kept.node;
        let event = if *reason == event_reasons::NODE_REPAIR_BLOCKED {
            Event::new(reason, format!("Cannot repair Node {name}: {why}")).repeat_after(NODE_REPAIR_REPEAT_AFTER)
        } else if *reason == event_reasons::UNCONSOLIDATABLE {
            Event::new(reason, format!("Cannot consolidate NodeClaim {name}: {why}"))
                .repeat_after(UNCONSOLIDATABLE_REPEAT_AFTER)
        } else {
            Event::new(reason, format!("Cannot disrupt NodeClaim {name}: {why}"))
        };
        // One reason may stand in the way of several methods.
        if !events.contains(&event) {
            events.push(event);
        }
    }
    events
}

/// Under which reason something is told; nothing if it is no news.
fn reason_of(method: Method, why: &Kept) -> Option<&'static EventReason> {
    // A broken node is told of as a drifted one is: somebody waits for it to go.
    let is_drift = matches!(method, Method::Drift | Method::StaticDrift | Method::Repair);
    match why {
        Kept::Blocked(DisruptionBlocked::DoNotDisrupt { .. } | DisruptionBlocked::InvalidConsolidateAfter { .. })
        | Kept::PodHeld { .. } => Some(&event_reasons::DISRUPTION_BLOCKED),
        Kept::TooManyUnhealthy { .. } => Some(&event_reasons::NODE_REPAIR_BLOCKED),
        Kept::DoNotRepair { .. } => Some(&event_reasons::DISRUPTION_BLOCKED),
        Kept::Blocked(DisruptionBlocked::ConsolidationDisabled { .. }) => Some(&event_reasons::UNCONSOLIDATABLE),
        Kept::Budget(_) if is_drift || method == Method::Emptiness => Some(&event_reasons::DISRUPTION_BLOCKED),
        Kept::Unschedulable { .. }
        | Kept::Uninitialized { .. }
        | Kept::NeedsSeveral
        | Kept::ReplacementFailed
        | Kept::StaticLimit { .. }
            if is_drift =>
        {
            Some(&event_reasons::DISRUPTION_BLOCKED)
        }
        Kept::OnlyWhenEmpty { .. }
        | Kept::UnknownPrice { .. }
        | Kept::Unschedulable { .. }
        | Kept::NeedsSeveral
        | Kept::NotCheaper { .. }
        | Kept::MinValues
        | Kept::SpotToSpotOff
        | Kept::FewSpotTypes { .. }
        | Kept::BelowThreshold { .. }
        | Kept::ReplacementFailed
            if method == Method::SingleNode =>
        {
            Some(&event_reasons::UNCONSOLIDATABLE)
        }
        _ => None,
    }
}

async fn report_invalid_budgets(context: &Context, shown: &Shown, pools: &[PoolDisruption]) {
    for disruption in pools.iter().filter(|disruption| !disruption.invalid.is_empty()) {
        if let Some(pool) = shown.pools.iter().find(|pool| pool.name_any() == disruption.pool) {
            let faults: Vec<String> = disruption.invalid.iter().map(ToString::to_string).collect();
            let note = format!("Cannot disrupt nodes of NodePool {}: {}", disruption.pool, faults.join("; "));
            context.events.publish(pool.as_ref(), &Event::new(&event_reasons::POOL_DISRUPTION_BLOCKED, note)).await;
        }
    }
}

/// Says that a move does not hold any more.
pub(super) async fn report_rejection(context: &Context, shown: &Shown, command: &Command, rejection: &Rejection) {
    let why = match rejection {
        Rejection::Churn { node, why } => match why {
            Some(why) => format!("node {node}: {why}"),
            None => format!("node {node} is gone or in use"),
        },
        Rejection::Budget { node, why } => format!("node {node}: {why}"),
        Rejection::Scheduling { why: Some(why) } => why.to_string(),
        Rejection::Scheduling { why: None } => "its pods need other new nodes by now".to_owned(),
    };
    tracing::info!(method = %command.method, nodes = command.names().join(", "), "skipped disruption after the second check: {why}");
    for removed in &command.removed {
        if let Some(claim) = shown.claim(&removed.claim) {
            let note = format!("Skipped consolidation of NodeClaim {} ({}): {why}", removed.claim, rejection.reason());
            context.events.publish(claim.as_ref(), &Event::new(&event_reasons::CONSOLIDATION_REJECTED, note)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(reasons: Vec<(Method, Kept)>) -> Vec<(&'static str, String)> {
        let kept = KeptNode { node: "default-x7".to_owned(), pool: Some("default".to_owned()), reasons };
        events(&kept).into_iter().map(|event| (event.reason.name(), event.note)).collect()
    }

    #[test]
    fn one_reason_against_several_methods_is_told_once() {
        let pool = "default".to_owned();
        let off = || Kept::Blocked(DisruptionBlocked::ConsolidationDisabled { pool: pool.clone() });
        let told = kept(vec![(Method::MultiNode, off()), (Method::SingleNode, off())]);
        assert_eq!(told, [(
            "Unconsolidatable",
            "Cannot consolidate NodeClaim default-x7: consolidateAfter: Never on NodePool default; set a duration such as 5m to \
             remove empty nodes"
                .to_owned()
        )]);
        assert_eq!(told[0].1, event_reasons::UNCONSOLIDATABLE.example());
    }

    #[test]
    fn that_a_node_is_new_or_waits_for_another_is_no_news() {
        let until = tenon_model::Timestamp::default();
        let later = Kept::Later { method: Method::Drift, node: "b".to_owned() };
        for why in [Kept::Blocked(DisruptionBlocked::TooRecent { until }), Kept::InProgress, later] {
            assert_eq!(kept(vec![(Method::SingleNode, why)]), []);
        }
        assert_eq!(kept(vec![(Method::MultiNode, Kept::NeedsSeveral)]), [], "of several nodes the next one is tried");
        assert_eq!(kept(vec![(Method::SingleNode, Kept::NeedsSeveral)])[0].0, "Unconsolidatable");
        assert_eq!(kept(vec![(Method::Drift, Kept::NeedsSeveral)])[0].0, "DisruptionBlocked");
    }
}
