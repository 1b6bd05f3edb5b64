//! The labels of namespaces, by which pods of other namespaces are chosen.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use tenon_model::{Pod, PodAffinityTerm, Snapshot};

use super::Surroundings;
use super::version_cache::VersionCache;
use crate::kube_objects::Namespace;
use crate::objects::{Kind, Objects};

/// Follows namespaces.
#[derive(Debug, Default)]
pub(super) struct NamespaceFollower {
    versions: VersionCache<Namespace>,
    labels: Arc<BTreeMap<String, BTreeMap<String, String>>>,
}

impl NamespaceFollower {
    /// Writes the labels of all namespaces into a snapshot; the same place again means that none changed. Where nobody may
    /// read them, pods that choose by them are refused: which pods they mean is not known.
    pub(super) fn look(&mut self, objects: &Objects, around: &dyn Surroundings, snapshot: &mut Snapshot) {
        let changes = self.versions.look(&objects.namespaces);
        if !(changes.removed.is_empty() && changes.added.is_empty()) {
            let labelled = objects.namespaces.iter().map(|found| (found.name_any(), found.labels().clone()));
            self.labels = Arc::new(labelled.collect());
        }
        snapshot.namespaces = self.labels.clone();
        if let Some(why) = around.unreadable(Kind::Namespace) {
            let refused = snapshot.pods.extract_if(.., |pod| chooses_namespaces(pod));
            snapshot.invalid.extend(refused.map(|pod| (pod.key.clone(), why.clone())));
            snapshot.invalid.sort();
        }
    }
}

fn chooses_namespaces(pod: &Pod) -> bool {
    let preferred = pod.preferred_pod_affinity.iter().chain(&pod.preferred_pod_anti_affinity);
    let required = pod.pod_affinity.iter().chain(&pod.pod_anti_affinity);
    let mut terms = required.chain(preferred.map(|weighted| &weighted.term));
    // An empty selector is every namespace, whatever its labels.
    let asks = |term: &PodAffinityTerm| term.namespaces.selector.as_ref().is_some_and(|it| !it.requirements.is_empty());
    terms.any(asks)
}
