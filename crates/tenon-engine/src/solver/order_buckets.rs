//! Which of the planned nodes is asked first, if of equal ones it is the one that was planned first? Nodes with equally many pods
//! are a set: whatever is looked for among them is found 64 nodes at a time.

use crate::index::{Bits, Id, OpenIx, PodCountIx, Table};

/// Nodes by number of pods.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    pods: Table<OpenIx, PodCountIx>,
    buckets: Vec<Bits<OpenIx>>,
    /// Numbers of pods that some node has.
    counts: Bits<PodCountIx>,
}

impl Buckets {
    pub(super) fn add(&mut self) {
        let node = self.pods.push(PodCountIx::of(1));
        self.put(node, 1);
    }

    pub(super) fn advance(&mut self, node: OpenIx) {
        let before = self.pods[node];
        let bucket = &mut self.buckets[before.position()];
        bucket.remove(node);
        if bucket.is_empty() {
            self.counts.remove(before);
        }
        self.put(node, before.position() + 1);
    }

    fn put(&mut self, node: OpenIx, pods: usize) {
        self.pods[node] = PodCountIx::of(pods);
        if self.buckets.len() <= pods {
            self.buckets.resize_with(pods + 1, Bits::default);
        }
        self.buckets[pods].insert(node);
        self.counts.insert(PodCountIx::of(pods));
    }

    pub(super) fn first(&self) -> Option<OpenIx> {
        self.first_with(0)
    }

    /// The first node with at least so many pods.
    fn first_with(&self, pods: usize) -> Option<OpenIx> {
        self.buckets[self.counts.next_from(pods)?.position()].next_from(0)
    }

    pub(super) fn next(&self, node: OpenIx) -> Option<OpenIx> {
        let pods = self.pods[node].position();
        self.buckets[pods].next_from(node.position() + 1).or_else(|| self.first_with(pods + 1))
    }

    pub(super) fn first_of(&self, nodes: &Bits<OpenIx>) -> Option<OpenIx> {
        self.counts.iter().find_map(|pods| self.buckets[pods.position()].first_common(nodes))
    }

    pub(super) fn rank(&self, node: OpenIx) -> (usize, i64) {
        (self.pods[node].position(), i64::try_from(node.position()).unwrap_or(i64::MAX))
    }
}
