//! Which pods have to be looked at again, because something about their volumes changed: only those.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use tenon_model::PodKey;

use super::Surroundings;
use super::version_cache::{Changes, VersionCache};
use crate::kube_objects::{PersistentVolume, PersistentVolumeClaim, Pod as KubePod, StorageClass};
use crate::objects::{Kind, Objects};
use crate::pod_predicates::pod_key;
use crate::volumes::{VolumeIndex, claim_keys};

/// Kinds without which nothing is known of the volumes of a pod.
const NEEDED: [Kind; 3] = [Kind::PersistentVolumeClaim, Kind::PersistentVolume, Kind::StorageClass];

/// Keys of claims.
type ClaimKeys = BTreeSet<String>;

/// Follows claims, volumes, storage classes and the pods that have them.
#[derive(Debug, Default)]
pub(super) struct VolumeFollower {
    /// What is there now.
    pub(super) index: VolumeIndex,
    claims: VersionCache<PersistentVolumeClaim>,
    volumes: VersionCache<PersistentVolume>,
    classes: VersionCache<StorageClass>,
    /// Claims by the volume they name; under no name those that name none.
    by_volume: BTreeMap<Option<String>, ClaimKeys>,
    /// Pods by the claims they have: nearly always one, and there are many claims.
    pods: BTreeMap<String, Vec<Arc<KubePod>>>,
}

impl VolumeFollower {
    /// Takes note of everything that changed, pods too. Returns pods that are the same as before and whose volumes may not be.
    pub(super) fn look(
        &mut self,
        objects: &Objects,
        around: &dyn Surroundings,
        pods: &Changes<KubePod>,
    ) -> Vec<Arc<KubePod>> {
        self.note(pods);
        let mut touched = self.look_at_claims(objects);
        for name in self.look_at_volumes(objects) {
            touched.extend(self.by_volume.get(&Some(name)).into_iter().flatten().cloned());
        }
        if self.look_at_classes(objects) {
            touched.extend(self.by_volume.get(&None).into_iter().flatten().cloned());
        }
        let unreadable = NEEDED.into_iter().filter_map(|kind| Some((kind, around.unreadable(kind)?)));
        if self.index.set_unreadable(unreadable.collect()) {
            touched.extend(self.pods.keys().cloned());
        }
        self.pods_with(&touched, pods)
    }

    fn note(&mut self, Changes { removed, added }: &Changes<KubePod>) {
        for pod in removed {
            for claim in claim_keys(pod) {
                if let Some(pods) = self.pods.get_mut(&claim) {
                    pods.retain(|known| pod_key(known) != pod_key(pod));
                    if pods.is_empty() {
                        self.pods.remove(&claim);
                    }
                }
            }
        }
        for pod in added {
            for claim in claim_keys(pod) {
                let pods = self.pods.entry(claim).or_insert_with(|| Vec::with_capacity(1));
                pods.retain(|known| pod_key(known) != pod_key(pod));
                pods.push(pod.clone());
            }
        }
    }

    fn look_at_claims(&mut self, objects: &Objects) -> ClaimKeys {
        let Changes { removed, added } = self.claims.look(&objects.persistent_volume_claims);
        let mut touched = ClaimKeys::new();
        for claim in removed {
            let key = self.index.remove_claim(&claim);
            if let Some(claims) = self.by_volume.get_mut(&claim.volume_name().map(str::to_owned)) {
                claims.remove(&key);
            }
            touched.insert(key);
        }
        for claim in added {
            let key = self.index.set_claim(&claim);
            self.by_volume.entry(claim.volume_name().map(str::to_owned)).or_default().insert(key.clone());
            touched.insert(key);
        }
        self.by_volume.retain(|_, claims| !claims.is_empty());
        touched
    }

    /// The names of those that changed.
    fn look_at_volumes(&mut self, objects: &Objects) -> BTreeSet<String> {
        let Changes { removed, added } = self.volumes.look(&objects.persistent_volumes);
        removed.iter().for_each(|volume| self.index.remove_volume(volume));
        added.iter().for_each(|volume| self.index.set_volume(volume));
        removed.iter().chain(&added).map(|volume| volume.name_any()).collect()
    }

    /// Whether one changed. There are few, and which of them a claim has depends on all of them.
    fn look_at_classes(&mut self, objects: &Objects) -> bool {
        let Changes { removed, added } = self.classes.look(&objects.storage_classes);
        removed.iter().for_each(|class| self.index.remove_class(class));
        added.iter().for_each(|class| self.index.set_class(class));
        !(removed.is_empty() && added.is_empty())
    }

    fn pods_with(&self, claims: &ClaimKeys, changed: &Changes<KubePod>) -> Vec<Arc<KubePod>> {
        let found = claims.iter().filter_map(|claim| self.pods.get(claim)).flatten();
        let theirs: BTreeMap<&PodKey, &Arc<KubePod>> = found.map(|pod| (&**pod_key(pod), pod)).collect();
        if theirs.is_empty() {
            return Vec::new();
        }
        let place = |pod: &Arc<KubePod>| Arc::as_ptr(pod).addr();
        let changed: BTreeSet<usize> = changed.added.iter().map(place).collect();
        theirs.into_values().filter(|pod| !changed.contains(&place(pod))).cloned().collect()
    }
}
