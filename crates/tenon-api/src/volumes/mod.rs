//! What the volumes of a pod ask of its node: which nodes can reach them, and which of them have to be attached.
//!
//! Pure: the objects are handed in. A claim that no node can be chosen for yet stops its own pod, with a sentence for whoever
//! wrote the pod, and no other pod.

mod check;
mod driver;
mod index;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod refusal_tests;
#[cfg(test)]
mod test_objects;
mod topology;
#[cfg(test)]
mod topology_tests;

use tenon_model::{Attachment, PodStorage, PodVolumes, Volume};

use crate::kube_objects::{PersistentVolume, Pod as KubePod, StorageClass};
use crate::pod;

pub(crate) use index::VolumeIndex;

/// Where the data of a claim is, or will be.
#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    /// In a volume that exists.
    Volume(&'a PersistentVolume),
    /// In a volume that is created once a node was chosen.
    Class(&'a StorageClass),
}

/// The key of a claim: `namespace/name`.
pub(crate) fn claim_key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// The keys of the claims that a pod has.
pub(crate) fn claim_keys(pod: &KubePod) -> impl Iterator<Item = String> {
    claims(pod).into_iter().map(|volume| claim_key(pod.namespace(), &volume.claim))
}

fn claims(pod: &KubePod) -> Vec<Volume> {
    pod.spec.as_deref().map(|spec| pod::volumes(pod.name(), spec)).unwrap_or_default()
}

impl VolumeIndex {
    /// Where the volumes of a pod that needs a node are, or why the pod has to wait for them.
    pub(crate) fn storage_of(&self, pod: &KubePod) -> PodStorage {
        match self.resolve(pod) {
            Ok(volumes) => PodStorage::Known(volumes),
            Err(why) => PodStorage::Refused(why),
        }
    }

    fn resolve(&self, pod: &KubePod) -> Result<PodVolumes, String> {
        let (mut places, mut attachments) = (topology::Places::default(), Vec::new());
        for volume in claims(pod) {
            let key = claim_key(pod.namespace(), &volume.claim);
            let source = self.checked(&key, volume.is_ephemeral)?;
            places.narrow(&source.places(&key)?)?;
            attachments.extend(driver::of(source).map(|driver| Attachment { driver, volume: key }));
        }
        Ok(PodVolumes::new(places.into_alternatives(), attachments))
    }

    /// The volumes of a pod that is on a node. Whatever is wrong with a claim, the pod is there: what nothing is known of
    /// takes no place.
    pub(crate) fn attachments_of(&self, pod: &KubePod) -> Vec<Attachment> {
        let attached = claim_keys(pod).filter_map(|key| {
            let driver = self.source(&key).and_then(driver::of)?;
            Some(Attachment { driver, volume: key })
        });
        PodVolumes::new([], attached.collect()).attachments
    }
}
