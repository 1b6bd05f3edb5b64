//! When is what was counted of a NodePool forgotten? Ten minutes after it is gone with all its NodeClaims, so that the last
//! values are collected, and who makes NodePools without end does not make metrics without end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::Instant;

use super::Metrics;

/// Prometheus collects once a minute as a rule, and some do every five.
const KEPT: Duration = Duration::from_secs(600);

/// The label that names a NodePool.
const LABEL: &str = "nodepool";

/// When NodePools that are still counted were first seen to be gone.
pub(super) type GonePools = BTreeMap<String, Instant>;

impl Metrics {
    /// Forgets NodePools that are not among these for long.
    pub(crate) fn keep_pools(&self, known: &BTreeSet<String>) {
        let counted = self.counted.values_of(LABEL);
        let mut gone = self.gone_pools.lock().unwrap_or_else(PoisonError::into_inner);
        gone.retain(|pool, _| counted.contains(pool) && !known.contains(pool));
        for pool in counted.into_iter().filter(|pool| !pool.is_empty() && !known.contains(pool)) {
            gone.entry(pool).or_insert_with(Instant::now);
        }
        if gone.values().any(|since| since.elapsed() >= KEPT) {
            self.counted.forget(LABEL, &|pool| gone.get(pool).is_some_and(|since| since.elapsed() >= KEPT));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::OfNode;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_counted_of_a_nodepool_is_forgotten_ten_minutes_after_it_is_gone() {
        let metrics = Metrics::default();
        let count = |pool: &str| {
            let of_node = OfNode { nodepool: pool.to_owned(), zone: "pve1".to_owned() };
            metrics.nodes_created.get_or_create(&of_node).inc();
        };
        ["stays", "goes", "returns", ""].into_iter().for_each(count);
        let names = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        metrics.keep_pools(&names(&["stays", "goes", "returns"]));
        metrics.keep_pools(&names(&["stays"]));
        tokio::time::advance(KEPT / 2).await;
        metrics.keep_pools(&names(&["stays", "returns"]));
        assert!(metrics.text().contains("nodepool=\"goes\""));
        tokio::time::advance(KEPT / 2).await;
        metrics.keep_pools(&names(&["stays", "returns"]));
        let text = metrics.text();
        assert!(!text.contains("nodepool=\"goes\""), "{text}");
        assert!(["stays", "returns", ""].iter().all(|pool| text.contains(&format!("{{nodepool=\"{pool}\""))), "{text}");
        metrics.keep_pools(&names(&["stays"]));
        assert!(metrics.text().contains("nodepool=\"returns\""), "it counts from when it is gone again");
    }
}
