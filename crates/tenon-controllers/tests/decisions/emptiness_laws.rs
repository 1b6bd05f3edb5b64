//! What holds for taking empty nodes away, whatever the cluster looks like.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use tenon_api::NodePool;

use crate::quiet_nodes::{NOW, OwnedNode, now, pool, quiet, verdict};

const POOLS: [&str; 3] = ["default", "red", "gone"];

/// What may be odd about one node.
#[derive(Debug, Clone)]
struct Oddities {
    pool: usize,
    minute: u32,
    deleting: bool,
    ready: bool,
    initialized: bool,
    nominated: bool,
    pods: usize,
}

fn oddities() -> impl Strategy<Value = Oddities> {
    let often = || prop::bool::weighted(0.85);
    let seldom = || prop::bool::weighted(0.15);
    (0..POOLS.len(), 0_u32..4, seldom(), often(), often(), seldom(), 0_usize..3).prop_map(
        |(pool, minute, deleting, ready, initialized, nominated, pods)| Oddities {
            pool,
            minute,
            deleting,
            ready,
            initialized,
            nominated,
            pods: pods.saturating_sub(1),
        },
    )
}

fn node(index: usize, odd: &Oddities) -> OwnedNode {
    let labels = json!({
        "karpenter.sh/nodepool": POOLS[odd.pool],
        "karpenter.sh/initialized": odd.initialized.to_string(),
    });
    let ready = if odd.ready { "True" } else { "False" };
    let born = format!("2026-03-11T09:{:02}:00Z", odd.minute);
    let mut made = quiet(&format!("n{index}"))
        .with_claim(&json!({ "metadata": { "creationTimestamp": born } }))
        .with_node(&json!({
            "metadata": { "labels": labels },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        }));
    if odd.deleting {
        made = made.with_claim(&json!({ "metadata": { "deletionTimestamp": NOW } }));
    }
    for _ in 0..odd.pods {
        made = made.with_pod(&json!({}));
    }
    made.nominated = odd.nominated;
    made
}

fn pools(default: &str, red: &str) -> Vec<NodePool> {
    let with =
        |name, nodes: &str| pool(name, &json!({ "spec": { "disruption": { "budgets": [{ "nodes": nodes }] } } }));
    vec![with("default", default), with("red", red)]
}

fn budget() -> impl Strategy<Value = String> {
    prop_oneof![(0_u32..6).prop_map(|count| count.to_string()), (0_u32..=100).prop_map(|share| format!("{share}%"))]
}

proptest! {
    #[test]
    fn a_pool_never_loses_more_nodes_than_it_allows(odd in vec(oddities(), 0..16), a in budget(), b in budget()) {
        let nodes: Vec<OwnedNode> = odd.iter().enumerate().map(|(index, odd)| node(index, odd)).collect();
        let verdict = verdict(&pools(&a, &b), &nodes, now());
        prop_assert_eq!(verdict.remove.len() + verdict.keep.len(), nodes.len());
        for budget in &verdict.pools {
            let of_pool = |name: &&String| {
                let index: usize = name[1..].parse().unwrap();
                POOLS[odd[index].pool] == budget.pool
            };
            let removed = verdict.remove.iter().filter(of_pool).count();
            let left = usize::try_from(budget.allowed.saturating_sub(budget.disrupting)).unwrap();
            prop_assert!(removed <= left, "{removed} of {budget:?}");
        }
        for name in &verdict.remove {
            let odd = &odd[name[1..].parse::<usize>().unwrap()];
            let may_go = !odd.deleting && odd.initialized && !odd.nominated && odd.pods == 0 && odd.pool < 2;
            prop_assert!(may_go, "{odd:?}");
        }
    }

    #[test]
    fn the_order_of_the_lists_does_not_matter(
        (straight, shuffled) in vec(oddities(), 0..12).prop_flat_map(|odd| {
            let numbered: Vec<(usize, Oddities)> = odd.into_iter().enumerate().collect();
            (Just(numbered.clone()), Just(numbered).prop_shuffle())
        }),
        (a, b) in (budget(), budget()),
    ) {
        let made = |list: &[(usize, Oddities)]| list.iter().map(|(index, odd)| node(*index, odd)).collect::<Vec<_>>();
        let mut reversed = pools(&a, &b);
        reversed.reverse();
        let mut others = made(&shuffled);
        others.iter_mut().for_each(|node| node.pods.reverse());
        prop_assert_eq!(verdict(&pools(&a, &b), &made(&straight), now()), verdict(&reversed, &others, now()));
    }
}
