//! Which moves and scores are counted, and what is told of a move that policy `Balanced` approved?

use std::sync::Arc;

use tenon_engine::disruption::{KeptNode, RemovedNode};
use tenon_model::{DisruptionPool, Pool, TimespanOrNever};

use super::*;

fn snapshot() -> Snapshot {
    let of = |name: &str, policy: ConsolidationPolicy| {
        let rules = DisruptionPool {
            name: name.to_owned(),
            is_deleting: false,
            is_static: false,
            policy,
            consolidate_after: Ok(TimespanOrNever::Never),
            budgets: Vec::new(),
        };
        Arc::new(Pool { name: name.to_owned(), disruption: Some(Arc::new(rules)), ..Pool::default() })
    };
    let pools =
        vec![of("weighed", ConsolidationPolicy::Balanced), of("free", ConsolidationPolicy::WhenEmptyOrUnderutilized)];
    Snapshot { pools, ..Snapshot::default() }
}

fn command(method: Method, pools: &[&str], scores: &[f64]) -> Command {
    let removed = |pool: &&str| RemovedNode {
        node: "x".to_owned(),
        claim: "x".to_owned(),
        pool: (*pool).to_owned(),
        instance_type: String::new(),
        price: None,
        disruption_cost: 1.0,
    };
    let score = |score: &f64| PoolScore { pool: "weighed".to_owned(), saved: 0.2, disrupted: 0.05, score: *score };
    Command {
        method,
        removed: pools.iter().map(removed).collect(),
        replacements: Vec::new(),
        repair: None,
        terminate_first: None,
        moves: Vec::new(),
        savings: 0.0,
        scores: scores.iter().map(score).collect(),
        fingerprint: 0,
    }
}

#[test]
fn h14_moves_are_counted_for_every_policy_and_scores_for_balanced_only() {
    let metrics = Metrics::default();
    let why = Kept::BelowThreshold { pool: "weighed".to_owned(), saved: 0.1, disrupted: 0.5, score: 0.2 };
    let kept = KeptNode { node: "n".to_owned(), pool: None, reasons: vec![(Method::SingleNode, why)] };
    let commands = vec![
        command(Method::MultiNode, &["weighed", "free", "free"], &[4.0]),
        command(Method::Emptiness, &["weighed"], &[]),
    ];
    count(&metrics, &Disruption { commands, kept: vec![kept], ..Disruption::default() }, &snapshot());
    let text = metrics.text();
    for line in [
        "karpenter_consolidation_moves_total{decision=\"approved\",nodepool=\"weighed\",policy=\"Balanced\"} 1",
        "karpenter_consolidation_moves_total{decision=\"approved\",nodepool=\"free\",policy=\"WhenEmptyOrUnderutilized\"} 1",
        "karpenter_consolidation_moves_total{decision=\"rejected\",nodepool=\"weighed\",policy=\"Balanced\"} 1",
        "karpenter_consolidation_score_sum{decision=\"approved\",nodepool=\"weighed\",policy=\"Balanced\"} 4",
        "karpenter_consolidation_score_bucket{decision=\"rejected\",nodepool=\"weighed\",policy=\"Balanced\",le=\"0.25\"} 1",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
    }
    assert!(!text.contains("karpenter_consolidation_score_count{decision=\"approved\",nodepool=\"free\""), "{text}");
}

#[test]
fn h14_an_approved_move_says_what_it_saves_for_what() {
    let score = PoolScore { pool: "default".to_owned(), saved: 0.2, disrupted: 0.05, score: 4.0 };
    assert_eq!(
        note("NodeClaim default-x7", &score),
        "Approved consolidation of NodeClaim default-x7: it saves 20.0 % of the cost of NodePool default for 5.0 % of its \
         disruption cost (score 4.00, at least 0.50)"
    );
}
