//! What is counted about what we know of the cluster: whether everything was read, and how many nodes there are.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use super::catalogue::karpenter;
use super::exposition::Exposition;
use super::families::Series;

/// What is counted about what we know of the cluster.
#[derive(Debug)]
pub(crate) struct ClusterState {
    nodes: Series<()>,
    synced: Series<()>,
    unsynced: Series<()>,
    /// Since when there is something to be read that was not.
    unread_since: Mutex<Option<Instant>>,
}

impl Default for ClusterState {
    fn default() -> ClusterState {
        let state = ClusterState {
            nodes: Series::new(&karpenter::CLUSTER_NODES),
            synced: Series::new(&karpenter::CLUSTER_SYNCED),
            unsynced: Series::new(&karpenter::CLUSTER_UNSYNCED),
            unread_since: Mutex::default(),
        };
        state.nodes.get_or_create(&());
        state.synced.get_or_create(&());
        state
    }
}

impl ClusterState {
    /// Reading begins.
    pub(crate) fn begin(&self) {
        self.synced.get_or_create(&()).set(0_i64);
        *self.unread_since.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Everything was read once.
    pub(crate) fn is_read(&self) {
        *self.unread_since.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.synced.get_or_create(&()).set(1_i64);
    }

    /// So many nodes are known.
    pub(crate) fn count_nodes(&self, nodes: usize) {
        self.nodes.get_or_create(&()).set(nodes);
    }

    /// Works out what grows by itself, and writes all of it down.
    pub(super) fn show(&self, page: &mut Exposition<'_>) {
        let since = *self.unread_since.lock().unwrap_or_else(PoisonError::into_inner);
        self.unsynced.get_or_create(&()).set(since.map_or(0.0, |since| since.elapsed().as_secs_f64()));
        [&self.nodes, &self.synced, &self.unsynced].into_iter().for_each(|series| series.family.show(page));
    }
}
