//! Which claims, volumes and storage classes there are, found by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::{Source, claim_key};
use crate::kube_objects::{PersistentVolume, PersistentVolumeClaim, StorageClass};
use crate::objects::Kind;

/// Marks the storage class of claims that name none; the second spelling is older.
const IS_DEFAULT: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// All claims, volumes and storage classes.
#[derive(Debug, Default)]
pub(crate) struct VolumeIndex {
    claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
    volumes: BTreeMap<String, Arc<PersistentVolume>>,
    classes: BTreeMap<String, Arc<StorageClass>>,
    /// Kinds that cannot be read, and why.
    unreadable: BTreeMap<Kind, String>,
}

impl VolumeIndex {
    /// A claim is there, or is another now. Returns its key.
    pub(crate) fn set_claim(&mut self, claim: &Arc<PersistentVolumeClaim>) -> String {
        let key = key_of(claim);
        self.claims.insert(key.clone(), claim.clone());
        key
    }

    /// A claim is gone. Returns its key.
    pub(crate) fn remove_claim(&mut self, claim: &PersistentVolumeClaim) -> String {
        let key = key_of(claim);
        self.claims.remove(&key);
        key
    }

    /// A volume is there, or is another now.
    pub(crate) fn set_volume(&mut self, volume: &Arc<PersistentVolume>) {
        self.volumes.insert(volume.name_any(), volume.clone());
    }

    /// A volume is gone.
    pub(crate) fn remove_volume(&mut self, volume: &PersistentVolume) {
        self.volumes.remove(&volume.name_any());
    }

    /// A storage class is there, or is another now.
    pub(crate) fn set_class(&mut self, class: &Arc<StorageClass>) {
        self.classes.insert(class.name_any(), class.clone());
    }

    /// A storage class is gone.
    pub(crate) fn remove_class(&mut self, class: &StorageClass) {
        self.classes.remove(&class.name_any());
    }

    /// Which kinds cannot be read, and why. Returns whether that is news.
    pub(crate) fn set_unreadable(&mut self, kinds: BTreeMap<Kind, String>) -> bool {
        let is_news = self.unreadable != kinds;
        self.unreadable = kinds;
        is_news
    }

    pub(super) fn claim(&self, key: &str) -> Option<&PersistentVolumeClaim> {
        self.claims.get(key).map(AsRef::as_ref)
    }

    pub(super) fn volume(&self, name: &str) -> Option<&PersistentVolume> {
        self.volumes.get(name).map(AsRef::as_ref)
    }

    pub(super) fn class(&self, name: &str) -> Option<&StorageClass> {
        self.classes.get(name).map(AsRef::as_ref)
    }

    /// Why objects of a kind are not known, if they are not.
    pub(super) fn readable(&self, kind: Kind) -> Result<(), String> {
        self.unreadable.get(&kind).map_or(Ok(()), |why| Err(why.clone()))
    }

    /// The storage class of a claim. An API server gives the newest of the default classes to a claim that names none, as
    /// soon as there is one; of equally new ones the first by name.
    pub(super) fn class_name<'a>(&'a self, claim: &'a PersistentVolumeClaim) -> Option<&'a str> {
        match claim.storage_class_name() {
            Some("") => None,
            Some(name) => Some(name),
            None => {
                let newest = self.classes.iter().rev().filter(|(_, class)| is_default(class));
                newest.max_by_key(|(_, class)| created(class)).map(|(name, _)| name.as_str())
            }
        }
    }

    /// Where the data of a claim is, or will be, as far as that is known.
    pub(super) fn source(&self, key: &str) -> Option<Source<'_>> {
        let claim = self.claim(key)?;
        match claim.volume_name() {
            Some(volume) => self.volume(volume).map(Source::Volume),
            None => self.class(self.class_name(claim)?).map(Source::Class),
        }
    }
}

fn key_of(claim: &PersistentVolumeClaim) -> String {
    claim_key(claim.metadata.namespace.as_deref().unwrap_or_default(), &claim.name_any())
}

fn is_default(class: &StorageClass) -> bool {
    let annotations = class.annotations();
    IS_DEFAULT.iter().any(|name| annotations.get(*name).is_some_and(|value| value == "true"))
}

fn created(class: &StorageClass) -> Option<&Time> {
    class.metadata.creation_timestamp.as_ref()
}
