//! What is counted about what we know of the cluster: whether everything was read, and how many nodes there are.

use std::sync::{Mutex, PoisonError};

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::scheduling::SecondsGauge;

/// What is counted about what we know of the cluster.
#[derive(Debug)]
pub(crate) struct ClusterState {
    nodes: Gauge,
    synced: Gauge,
    unsynced: SecondsGauge,
    /// Since when there is something to be read that was not.
    unread_since: Mutex<Option<Instant>>,
}

impl ClusterState {
    pub(super) fn register(karpenter: &mut Registry) -> ClusterState {
        let (nodes, synced, unsynced) = (Gauge::default(), Gauge::default(), SecondsGauge::default());
        let told = "Nodes, and NodeClaims whose Node has not joined yet";
        karpenter.register("cluster_state_node_count", told, nodes.clone());
        let told = "Whether all caches are synced (1) or not (0)";
        karpenter.register("cluster_state_synced", told, synced.clone());
        let told = "Time for which a cache has not been synced";
        karpenter.register("cluster_state_unsynced_time_seconds", told, unsynced.clone());
        ClusterState { nodes, synced, unsynced, unread_since: Mutex::default() }
    }

    /// Reading begins.
    pub(crate) fn begin(&self) {
        self.synced.set(0);
        *self.unread_since.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Everything was read once.
    pub(crate) fn is_read(&self) {
        *self.unread_since.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.synced.set(1);
    }

    /// So many nodes are known.
    pub(crate) fn count_nodes(&self, nodes: usize) {
        self.nodes.set(i64::try_from(nodes).unwrap_or(i64::MAX));
    }

    /// Works out what grows by itself.
    pub(super) fn refresh(&self) {
        let since = *self.unread_since.lock().unwrap_or_else(PoisonError::into_inner);
        self.unsynced.set(since.map_or(0.0, |since| since.elapsed().as_secs_f64()));
    }
}
