//! What is a cluster made of before anybody calls it?

use serde_json::Value;

use crate::cluster_schema::{FieldError, admit};

/// Prunes, defaults and checks a custom resource by its schema. `old` is what an update replaces.
pub type Admit = fn(&Value, &mut Value, Option<&Value>) -> Result<(), Vec<FieldError>>;

/// Everything a [`Cluster`](crate::Cluster) is built from.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// Seed of all randomness: uids, generated names, keys.
    pub seed: u64,
    /// Seconds since 1970 at the moment the cluster is made.
    pub epoch_s: u64,
    /// Off: whoever is known may do everything. On: only administrators and, for what is theirs, nodes.
    pub rbac: bool,
    /// Whether kube-controller-manager approves client certificates of kubelets, for any node name that a bootstrap token
    /// or a node asks for. Off: as in a cluster without the bindings for it.
    pub stock_approver: bool,
    /// Changes of one resource that a watch can still catch up with.
    pub history: usize,
    /// How custom resources are checked by their schemas.
    pub admit: Admit,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self { seed: 1, epoch_s: 1_794_700_000, rbac: false, stock_approver: true, history: 10_000, admit }
    }
}
