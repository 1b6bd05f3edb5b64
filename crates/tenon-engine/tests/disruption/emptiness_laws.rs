//! What holds for deleting empty nodes, whatever the cluster looks like.

use proptest::collection::vec;
use proptest::prelude::*;
use tenon_model::{CandidateNode, DisruptionPool};

use crate::disruption::nodes::{With as _, ago, empty_node, pod, pool, verdict, with_budget};

const POOLS: [&str; 3] = ["default", "red", "gone"];

/// What may be odd about one node.
#[derive(Debug, Clone)]
struct Oddities {
    pool: usize,
    minute: u64,
    deleting: bool,
    ready: bool,
    initialized: bool,
    nominated: bool,
    pods: usize,
}

fn oddities() -> impl Strategy<Value = Oddities> {
    let often = || prop::bool::weighted(0.85);
    let seldom = || prop::bool::weighted(0.15);
    (0..POOLS.len(), 0_u64..4, seldom(), often(), often(), seldom(), 0_usize..3).prop_map(
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

fn node(index: usize, odd: &Oddities) -> CandidateNode {
    let node = empty_node(&format!("n{index}"))
        .in_pool(Some(POOLS[odd.pool]))
        .with(|claim| (claim.created, claim.is_deleting) = (Some(ago(4200 - 60 * odd.minute)), odd.deleting))
        .with_node(|node| (node.is_ready, node.is_initialized) = (odd.ready, odd.initialized));
    let node = (0..odd.pods).fold(node, |node, index| node.with_pod(pod(&format!("cart-{index}"))));
    CandidateNode { is_nominated: odd.nominated, ..node }
}

fn pools(default: &str, red: &str) -> Vec<DisruptionPool> {
    vec![with_budget(pool("default"), default), with_budget(pool("red"), red)]
}

fn budget() -> impl Strategy<Value = String> {
    prop_oneof![(0_u32..6).prop_map(|count| count.to_string()), (0_u32..=100).prop_map(|share| format!("{share}%"))]
}

proptest! {
    #[test]
    fn a_pool_never_loses_more_nodes_than_it_allows(odd in vec(oddities(), 0..16), a in budget(), b in budget()) {
        let nodes: Vec<CandidateNode> = odd.iter().enumerate().map(|(index, odd)| node(index, odd)).collect();
        let verdict = verdict(&pools(&a, &b), &nodes);
        prop_assert_eq!(verdict.delete.len() + verdict.blocked.len(), nodes.len());
        for budget in &verdict.pools {
            let of_pool = |name: &&String| {
                let index: usize = name[1..].parse().unwrap();
                POOLS[odd[index].pool] == budget.pool
            };
            let deleted = verdict.delete.iter().filter(of_pool).count();
            let left = usize::try_from(budget.allowed.saturating_sub(budget.disrupting)).unwrap();
            prop_assert!(deleted <= left, "{deleted} of {budget:?}");
        }
        for name in &verdict.delete {
            let odd = &odd[name[1..].parse::<usize>().unwrap()];
            let is_empty = !odd.deleting && odd.initialized && !odd.nominated && odd.pods == 0 && odd.pool < 2;
            prop_assert!(is_empty, "{odd:?}");
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
        prop_assert_eq!(verdict(&pools(&a, &b), &made(&straight)), verdict(&reversed, &others));
    }
}
