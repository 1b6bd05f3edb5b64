//! When is what was counted of a NodePool or a ProxmoxNodeClass forgotten? Ten minutes after it is gone with all its NodeClaims, so
//! that the last values are collected, and who makes NodePools without end does not make metrics without end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::Instant;

use super::Metrics;
use super::catalogue::labels::{OF_CLASS, OF_POOL};

/// Prometheus collects once a minute as a rule, and some do every five.
const KEPT: Duration = Duration::from_secs(600);

/// The labels that name a NodePool.
const POOLS: [&str; 2] = ["nodepool", OF_POOL.name];

/// When what is still counted was first seen to be gone, by label and value.
pub(super) type GonePools = BTreeMap<(&'static str, String), Instant>;

impl Metrics {
    /// Forgets NodePools that are not among these for long.
    pub(crate) fn keep_pools(&self, known: &BTreeSet<String>) {
        POOLS.into_iter().for_each(|label| self.keep(label, known));
    }

    /// Forgets ProxmoxNodeClasses that are not among these for long.
    pub(crate) fn keep_classes(&self, known: &BTreeSet<String>) {
        self.keep(OF_CLASS.name, known);
    }

    fn keep(&self, label: &'static str, known: &BTreeSet<String>) {
        let mut counted = self.counted.values_of(label);
        self.conditions.values_of(label, &mut counted);
        let mut gone = self.gone_pools.lock().unwrap_or_else(PoisonError::into_inner);
        gone.retain(|(of, value), _| *of != label || (counted.contains(value) && !known.contains(value)));
        for value in counted.into_iter().filter(|value| !value.is_empty() && !known.contains(value)) {
            gone.entry((label, value)).or_insert_with(Instant::now);
        }
        let is_over =
            |value: &str| gone.get(&(label, value.to_owned())).is_some_and(|since: &Instant| since.elapsed() >= KEPT);
        if gone.values().any(|since| since.elapsed() >= KEPT) {
            self.counted.forget(label, &is_over);
            self.conditions.forget(label, &is_over);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::OfNode;
    use super::super::catalogue::by_kind::NODECLAIM;
    use super::super::conditions::ShownObject;
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

    #[tokio::test(start_paused = true)]
    async fn what_was_counted_of_claims_is_forgotten_with_their_nodepool_or_class() {
        let metrics = Metrics::default();
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let look = |claims: &[(&str, &str)]| {
            let shown = |(class, pool): &(&str, &str)| ShownObject {
                group: "karpenter.sh",
                by_kind: &NODECLAIM,
                name: format!("{pool}-{class}"),
                labels: vec![(*class).to_owned(), (*pool).to_owned()],
                conditions: Vec::new(),
                deleted: Some(now),
            };
            metrics.conditions.look(claims.iter().map(shown).collect(), now);
        };
        look(&[("old", "stays"), ("new", "stays"), ("new", "goes")]);
        look(&[]);
        let (pools, classes) = (BTreeSet::from(["stays".to_owned()]), BTreeSet::from(["new".to_owned()]));
        for _ in 0..2 {
            metrics.keep_pools(&pools);
            metrics.keep_classes(&classes);
            tokio::time::advance(KEPT).await;
        }
        let text = metrics.text();
        let count =
            text.lines().filter(|line| line.starts_with("operator_nodeclaim_termination_duration_seconds_count"));
        let count: Vec<&str> = count.collect();
        assert!(count.len() == 1 && count[0].contains("=\"new\"") && count[0].contains("=\"stays\""), "{count:?}");
    }
}
