//! What is counted of looks for nodes to disrupt, and of what is done?

use std::collections::BTreeMap;

use tenon_engine::disruption::{Command, Disruption, Kept as Why, Method, allowed_disruptions};
use tenon_model::{DisruptionReason, Snapshot, Timestamp};
use tokio::time::Instant;

use super::labels::{METHODS, consolidation_type, decision, reason_label};
use crate::metrics::{ByReason, Kept, Metrics, PoolDecision, PoolReason, TerminatedFirst, WhyDisrupted, variant};

/// Reasons that nodes are disrupted for by now.
const REASONS: [DisruptionReason; 3] =
    [DisruptionReason::Empty, DisruptionReason::Drifted, DisruptionReason::Underutilized];

/// How long each method of a look takes. What all of them share is read by the first.
pub(super) struct MethodTimer<'m> {
    metrics: &'m Metrics,
    began: Instant,
}

impl MethodTimer<'_> {
    /// A look begins.
    pub(super) fn begin(metrics: &Metrics) -> MethodTimer<'_> {
        MethodTimer { metrics, began: Instant::now() }
    }

    /// A method is done, and the next one begins.
    pub(super) fn done(&mut self, method: Method) {
        let why =
            WhyDisrupted { reason: reason_label(method.reason()), consolidation_type: consolidation_type(method) };
        let now = Instant::now();
        let took = now.duration_since(std::mem::replace(&mut self.began, now));
        self.metrics.disruption_evaluation.get_or_create(&why).observe(took.as_secs_f64());
    }
}

/// What a look found.
pub(super) fn decided(metrics: &Metrics, disruption: &Disruption, snapshot: &Snapshot) {
    for reason in REASONS {
        let eligible = eligible(disruption, reason);
        metrics.disruption_eligible.get_or_create(&ByReason { reason: reason_label(reason) }).set(eligible);
    }
    budgets(metrics, disruption, snapshot);
    let mut kept: BTreeMap<String, u64> = BTreeMap::new();
    for (_, why) in disruption.kept.iter().filter_map(|node| node.reasons.last()) {
        let reason = match why {
            Why::Blocked(blocked) => variant(blocked),
            Why::Host(stay) => variant(stay),
            why => variant(why),
        };
        *kept.entry(reason).or_default() += 1;
    }
    metrics.nodes_kept.clear();
    for (reason, nodes) in kept {
        metrics.nodes_kept.get_or_create(&Kept { reason }).set(nodes);
    }
}

fn budgets(metrics: &Metrics, disruption: &Disruption, snapshot: &Snapshot) {
    metrics.allowed_disruptions.clear();
    metrics.consuming_budgets.clear();
    let now = Timestamp::from(snapshot.now);
    for found in &disruption.pools {
        let rules = snapshot.pools.iter().find(|pool| pool.name == found.pool);
        let Some(rules) = rules.and_then(|pool| pool.disruption.as_deref()) else { continue };
        let nodes = usize::try_from(found.total).unwrap_or(usize::MAX);
        for reason in REASONS {
            let allowed = allowed_disruptions(&rules.budgets, reason, nodes, now).count;
            let of = PoolReason { nodepool: found.pool.clone(), reason: reason_label(reason) };
            let left = allowed.saturating_sub(found.disrupting);
            metrics.allowed_disruptions.get_or_create(&of).set(u64::from(left));
            metrics.consuming_budgets.get_or_create(&of).set(u64::from(found.disrupting));
        }
    }
}

/// How many nodes pass everything that is asked of them before a method weighs them.
fn eligible(disruption: &Disruption, reason: DisruptionReason) -> usize {
    let chosen = disruption.commands.iter().filter(|command| command.method.reason() == reason);
    let chosen: usize = chosen.map(|command| command.removed.len()).sum();
    let of_reason = |(method, why): &(Method, Why)| method.reason() == reason && is_weighed(why);
    chosen + disruption.kept.iter().filter(|node| node.reasons.iter().any(of_reason)).count()
}

fn is_weighed(why: &Why) -> bool {
    !matches!(
        why,
        Why::Blocked(_)
            | Why::InProgress
            | Why::Rebooting
            | Why::NoInstanceTypes { .. }
            | Why::PodHeld { .. }
            | Why::UnknownPrice { .. }
            | Why::OnlyWhenEmpty { .. }
            | Why::RolloutHalted { .. }
    )
}

/// A command was begun.
pub(super) fn begun(metrics: &Metrics, command: &Command) {
    let decision = decision(command);
    metrics.disruption_decisions.get_or_create(&decision).inc();
    let pools: std::collections::BTreeSet<&str> = command.removed.iter().map(|removed| removed.pool.as_str()).collect();
    for pool in pools {
        let of = PoolDecision {
            nodepool: pool.to_owned(),
            decision: decision.decision,
            reason: decision.reason,
            consolidation_type: decision.consolidation_type,
        };
        metrics.pool_decisions.get_or_create(&of).inc();
        if let Some(why) = command.terminate_first {
            let (nodepool, terminate_first_reason) = (pool.to_owned(), why.as_str());
            let of = TerminatedFirst { nodepool, reason: decision.reason, terminate_first_reason };
            metrics.terminate_first.get_or_create(&of).inc();
        }
    }
}

/// Nothing is there that could be disrupted.
pub(super) fn nothing(metrics: &Metrics) {
    metrics.allowed_disruptions.clear();
    metrics.consuming_budgets.clear();
    metrics.nodes_kept.clear();
    for method in METHODS.into_iter().filter(|method| REASONS.contains(&method.reason())) {
        metrics.disruption_eligible.get_or_create(&ByReason { reason: reason_label(method.reason()) }).set(0_u64);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenon_engine::disruption::{DisruptionBlocked, KeptNode, PoolDisruption, RemovedNode};
    use tenon_model::{BudgetText, ConsolidationPolicy, DisruptionBudget, DisruptionPool, Pool, TimespanOrNever};

    use super::*;

    fn pool(name: &str) -> PoolDisruption {
        PoolDisruption { pool: name.to_owned(), allowed: 2, disrupting: 1, total: 5, invalid: Vec::new() }
    }

    fn snapshot() -> Snapshot {
        let two = BudgetText { nodes: "2", schedule: None, duration: None };
        let of = |name: &str| {
            let budgets = vec![DisruptionBudget::read(two, None)];
            let rules = DisruptionPool {
                name: name.to_owned(),
                is_deleting: false,
                is_static: false,
                policy: ConsolidationPolicy::WhenEmpty,
                consolidate_after: Ok(TimespanOrNever::Never),
                budgets,
            };
            Arc::new(Pool { name: name.to_owned(), disruption: Some(Arc::new(rules)), ..Pool::default() })
        };
        Snapshot { pools: vec![of("a"), of("b")], ..Snapshot::default() }
    }

    fn command() -> Command {
        let removed = RemovedNode {
            node: "x".to_owned(),
            claim: "x".to_owned(),
            pool: "a".to_owned(),
            instance_type: String::new(),
            price: None,
            disruption_cost: 1.0,
        };
        Command {
            method: Method::Emptiness,
            removed: vec![removed],
            replacements: Vec::new(),
            repair: None,
            terminate_first: None,
            moves: Vec::new(),
            savings: 0.0,
            scores: Vec::new(),
            fingerprint: 0,
        }
    }

    #[test]
    fn j9_reasons_are_in_lower_case_and_only_what_there_is_now_is_shown() {
        let metrics = Metrics::default();
        let nominated = Why::Blocked(DisruptionBlocked::Nominated);
        let kept = KeptNode { node: "n".to_owned(), pool: None, reasons: vec![(Method::SingleNode, nominated)] };
        let found = Disruption {
            commands: vec![command()],
            kept: vec![kept],
            pools: vec![pool("a"), pool("b")],
            ..Disruption::default()
        };
        decided(&metrics, &found, &snapshot());
        assert!(metrics.text().contains("tenon_nodes_kept{reason=\"Nominated\"} 1"), "{}", metrics.text());
        let now = Disruption { pools: vec![pool("a")], kept: Vec::new(), ..found };
        decided(&metrics, &now, &snapshot());
        begun(&metrics, &command());
        let text = metrics.text();
        for line in [
            "karpenter_nodepools_allowed_disruptions{nodepool=\"a\",reason=\"empty\"} 1",
            "karpenter_nodepools_nodes_consuming_budgets{nodepool=\"a\",reason=\"underutilized\"} 1",
            "karpenter_voluntary_disruption_eligible_nodes{reason=\"empty\"} 1",
            "karpenter_voluntary_disruption_eligible_nodes{reason=\"drifted\"} 0",
            "karpenter_voluntary_disruption_decisions_total{decision=\"delete\",reason=\"empty\",consolidation_type=\"empty\"} 1",
            "karpenter_voluntary_disruption_decisions_by_nodepool_total{nodepool=\"a\",decision=\"delete\",reason=\"empty\",consolidation_type=\"empty\"} 1",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
        }
        assert!(!text.contains("nodepool=\"b\"") && !text.contains("tenon_nodes_kept{"), "{text}");
    }

    #[test]
    fn h16_a_node_that_goes_before_its_replacement_is_counted_with_the_reason() {
        let metrics = Metrics::default();
        let first = Some(tenon_engine::disruption::TerminateFirst::StaticAtLimit);
        begun(&metrics, &Command { method: Method::StaticDrift, terminate_first: first, ..command() });
        begun(&metrics, &command());
        let text = metrics.text();
        let name = "karpenter_voluntary_disruption_terminate_first_decisions_total";
        let of = "{nodepool=\"a\",reason=\"drifted\",terminate_first_reason=\"static-at-limit\"} 1\n";
        assert!(text.contains(&format!("{name}{of}")), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with(name)).count(), 1, "{text}");
    }
}
