//! Claims, volumes, classes and pods in short, for tests.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenon_model::{Attachment, PodStorage, PodVolumes, Requirements};

use super::VolumeIndex;
use crate::kube_objects::Pod;

pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

/// What a cluster has, and what a pod of it asks for.
#[derive(Debug, Default)]
pub(super) struct Storage {
    pub(super) index: VolumeIndex,
    volumes: Vec<Value>,
}

fn object<K: DeserializeOwned>(value: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn merged(mut base: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        match base.get_mut(key) {
            Some(present) if present.is_object() && value.is_object() => *present = merged(present.clone(), value),
            _ => base[key] = value.clone(),
        }
    }
    base
}

impl Storage {
    /// The pod has a claim of this name that is bound to a volume of the same name, which is like this.
    pub(super) fn bound(self, name: &str, spec: &Value) -> Storage {
        self.volume(name, &json!({ "spec": spec })).claim(name, &bound_to(name))
    }

    /// The pod has a claim of this name that names a class.
    pub(super) fn unbound(self, name: &str, class: &str) -> Storage {
        self.claim(name, &json!({ "spec": { "storageClassName": class } }))
    }

    pub(super) fn claim(mut self, name: &str, more: &Value) -> Storage {
        let claim = json!({ "metadata": { "name": name, "namespace": "shop" } });
        self.index.set_claim(&object(merged(claim, more)));
        self.uses(name)
    }

    /// The pod names a claim, whether or not it is there.
    pub(super) fn uses(mut self, name: &str) -> Storage {
        self.volumes.push(json!({ "name": name, "persistentVolumeClaim": { "claimName": name } }));
        self
    }

    /// The pod has an ephemeral volume of this name.
    pub(super) fn ephemeral(mut self, name: &str) -> Storage {
        self.volumes.push(json!({ "name": name, "ephemeral": { "volumeClaimTemplate": { "spec": {} } } }));
        self
    }

    /// The claim of an ephemeral volume of the pod.
    pub(super) fn ephemeral_claim(mut self, name: &str, more: &Value) -> Storage {
        let claim = json!({ "metadata": { "name": format!("web-{name}"), "namespace": "shop" } });
        self.index.set_claim(&object(merged(claim, more)));
        self.ephemeral(name)
    }

    pub(super) fn volume(mut self, name: &str, more: &Value) -> Storage {
        let volume = json!({ "metadata": { "name": name }, "spec": { "csi": { "driver": "csi.example" } } });
        self.index.set_volume(&object(merged(volume, more)));
        self
    }

    /// A class whose volumes wait for a pod, but for what is said.
    pub(super) fn class(mut self, name: &str, more: &Value) -> Storage {
        let class = json!({ "metadata": { "name": name }, "provisioner": "csi.example",
            "volumeBindingMode": "WaitForFirstConsumer" });
        self.index.set_class(&object(merged(class, more)));
        self
    }

    pub(super) fn pod(&self) -> Pod {
        let metadata = json!({ "name": "web", "namespace": "shop" });
        serde_json::from_value(json!({ "metadata": metadata, "spec": { "volumes": self.volumes } })).unwrap()
    }

    /// Why the pod is refused.
    pub(super) fn refusal(&self) -> String {
        match self.index.storage_of(&self.pod()) {
            PodStorage::Refused(why) => why,
            PodStorage::Known(volumes) => panic!("not refused: {volumes:?}"),
        }
    }

    pub(super) fn resolved(&self) -> PodVolumes {
        match self.index.storage_of(&self.pod()) {
            PodStorage::Refused(why) => panic!("refused: {why}"),
            PodStorage::Known(volumes) => volumes,
        }
    }

    /// Where the pod may go, as text.
    pub(super) fn places(&self) -> Vec<String> {
        self.resolved().alternatives.iter().map(shown).collect()
    }

    /// What is attached for the pod, as `driver volume`.
    pub(super) fn attached(&self) -> Vec<String> {
        let text = |it: &Attachment| format!("{} {}", it.driver, it.volume);
        self.resolved().attachments.iter().map(text).collect()
    }
}

/// The host name too, which the usual text leaves out.
fn shown(place: &Requirements) -> String {
    place.iter().map(|(label, wanted)| format!("{label} {wanted}")).collect::<Vec<_>>().join(", ")
}

/// A claim that is bound to a volume.
pub(super) fn bound_to(volume: &str) -> Value {
    json!({ "metadata": { "annotations": { "pv.kubernetes.io/bind-completed": "yes" } },
        "spec": { "volumeName": volume }, "status": { "phase": "Bound" } })
}

/// Node affinity with these terms, each a list of labels and their values.
pub(super) fn terms(terms: &[&[(&str, &[&str])]]) -> Value {
    let expression = |(key, values): &(&str, &[&str])| json!({ "key": key, "operator": "In", "values": values });
    let term = |of: &&[(&str, &[&str])]| json!({ "matchExpressions": of.iter().map(expression).collect::<Vec<_>>() });
    json!({ "nodeAffinity": { "required": { "nodeSelectorTerms": terms.iter().map(term).collect::<Vec<_>>() } } })
}

/// The topologies of a class, each one label and its values.
pub(super) fn topologies(terms: &[(&str, &[&str])]) -> Value {
    let term = |(key, values): &(&str, &[&str])| json!({ "matchLabelExpressions": [{ "key": key, "values": values }] });
    json!({ "allowedTopologies": terms.iter().map(term).collect::<Vec<_>>() })
}
