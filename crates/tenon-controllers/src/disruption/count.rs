//! What is counted of the look for empty nodes?

use std::collections::BTreeMap;

use kube::ResourceExt;
use tenon_api::{NodeClaim, names};
use tenon_engine::disruption::EmptinessVerdict;
use tokio::time::Instant;

use crate::metrics::{
    ByReason, Consolidation, DisruptionDecision, Kept, Metrics, PoolDecision, PoolReason, WhyDisrupted, variant,
};

/// Why nodes are disrupted today.
const REASON: &str = "empty";

/// How the reference calls the method that finds empty nodes.
pub(super) const EMPTY: Consolidation = Consolidation { consolidation_type: REASON };

/// The decision about an empty node.
pub(super) const DELETE_EMPTY: DisruptionDecision =
    DisruptionDecision { decision: "delete", reason: REASON, consolidation_type: REASON };

/// What a look found.
pub(super) fn verdict(metrics: &Metrics, verdict: &EmptinessVerdict, began: Instant) {
    let why = WhyDisrupted { reason: REASON, consolidation_type: REASON };
    metrics.disruption_evaluation.get_or_create(&why).observe(began.elapsed().as_secs_f64());
    metrics.disruption_eligible.get_or_create(&ByReason { reason: REASON }).set(verdict.delete.len());
    metrics.allowed_disruptions.clear();
    metrics.consuming_budgets.clear();
    for disruption in &verdict.pools {
        let of = PoolReason { nodepool: disruption.pool.clone(), reason: REASON };
        metrics.allowed_disruptions.get_or_create(&of).set(u64::from(disruption.left()));
        metrics.consuming_budgets.get_or_create(&of).set(u64::from(disruption.disrupting));
    }
    let mut kept: BTreeMap<String, u64> = BTreeMap::new();
    for (_, blocked) in &verdict.blocked {
        *kept.entry(variant(blocked)).or_default() += 1;
    }
    metrics.nodes_kept.clear();
    for (reason, nodes) in kept {
        metrics.nodes_kept.get_or_create(&Kept { reason }).set(nodes);
    }
}

/// An empty node was removed.
pub(super) fn deleted(metrics: &Metrics, claim: &NodeClaim) {
    metrics.disruption_decisions.get_or_create(&DELETE_EMPTY).inc();
    let nodepool = claim.labels().get(names::LABEL_NODEPOOL).cloned().unwrap_or_default();
    let DisruptionDecision { decision, reason, consolidation_type } = DELETE_EMPTY;
    metrics.pool_decisions.get_or_create(&PoolDecision { nodepool, decision, reason, consolidation_type }).inc();
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenon_engine::disruption::{DisruptionBlocked, PoolDisruption};

    use super::*;

    #[test]
    fn j9_reasons_are_in_lower_case_and_only_what_there_is_now_is_shown() {
        let metrics = Metrics::default();
        let pool = |name: &str| PoolDisruption {
            pool: name.to_owned(),
            allowed: 2,
            disrupting: 1,
            total: 5,
            invalid: Vec::new(),
        };
        let blocked = vec![("n".to_owned(), DisruptionBlocked::Nominated)];
        let found = EmptinessVerdict {
            consolidatable: Vec::new(),
            delete: vec!["x".to_owned()],
            blocked,
            pools: vec![pool("a"), pool("b")],
        };
        verdict(&metrics, &found, Instant::now());
        verdict(&metrics, &EmptinessVerdict { pools: vec![pool("a")], blocked: Vec::new(), ..found }, Instant::now());
        let labels = json!({ "karpenter.sh/nodepool": "a" });
        let class = json!({ "group": "g", "kind": "k", "name": "n" });
        let claim = json!({ "metadata": { "name": "x", "labels": labels }, "spec": { "requirements": [], "nodeClassRef": class } });
        deleted(&metrics, &serde_json::from_value(claim).unwrap());
        let text = metrics.text();
        for line in [
            "karpenter_nodepools_allowed_disruptions{nodepool=\"a\",reason=\"empty\"} 1",
            "karpenter_nodepools_nodes_consuming_budgets{nodepool=\"a\",reason=\"empty\"} 1",
            "karpenter_voluntary_disruption_eligible_nodes{reason=\"empty\"} 1",
            "karpenter_voluntary_disruption_decisions_total{decision=\"delete\",reason=\"empty\",consolidation_type=\"empty\"} 1",
            "karpenter_voluntary_disruption_decisions_by_nodepool_total{nodepool=\"a\",decision=\"delete\",reason=\"empty\",consolidation_type=\"empty\"} 1",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
        }
        assert!(!text.contains("nodepool=\"b\"") && !text.contains("tenon_nodes_kept{"), "{text}");
    }
}
