//! A pod, kept small: there are more pods than anything else in a cluster.
//!
//! What pods of one workload have in common can be held once for all of them (`pod_sharing.rs`). What an API server sends is
//! a [`WirePod`]; it lives for a moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{NodeAffinity, NodeSelectorRequirement, ObjectReference, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::Deserialize;
use tenon_model::PodKey;

use super::meta::metadata;
use super::pod_spec::PodSpec;
use super::pod_status::PodStatus;
use crate::names;

/// Annotations of pods that somebody asks for. All others are dropped: they are often the largest part of a pod.
const READ_ANNOTATIONS: [&str; 4] = [
    names::ANNOTATION_DO_NOT_DISRUPT,
    names::ANNOTATION_DISRUPTION_COST,
    names::ANNOTATION_POD_DELETION_COST,
    names::ANNOTATION_MANAGED_DELETION_COST,
];

/// Whether somebody asks for an annotation of this name.
pub(crate) fn is_read_annotation(name: &str) -> bool {
    READ_ANNOTATIONS.contains(&name)
}

/// A pod as it is sent and written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct WirePod {
    /// Its name, labels and owners.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What it asks for.
    pub spec: Option<PodSpec>,
    /// What became of it.
    pub status: Option<PodStatus>,
}

impl k8s_openapi::Resource for WirePod {
    const API_VERSION: &'static str = "v1";
    const GROUP: &'static str = "";
    const KIND: &'static str = "Pod";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "pods";
    type Scope = k8s_openapi::NamespaceResourceScope;
}

impl k8s_openapi::Metadata for WirePod {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl WirePod {
    /// The node it is bound to.
    pub fn node_name(&self) -> Option<&str> {
        self.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
    }
}

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "WirePod")]
pub struct Pod {
    /// Its name, labels and owners.
    pub metadata: PodMeta,
    /// The node it is bound to.
    pub node_name: Option<Arc<str>>,
    /// What it asks for.
    pub spec: Option<Arc<PodSpec>>,
    /// When a node took it.
    pub start_time: Option<Time>,
    /// What became of it.
    pub status: Option<Arc<PodStatus>>,
}

/// What a pod is called, whose it is, and what is written on it, as far as anybody asks.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "ObjectMeta")]
pub struct PodMeta {
    /// What it is found by. What is not known is empty. Whoever speaks of the pod has the same.
    pub key: Arc<PodKey>,
    /// When it was made.
    pub creation_timestamp: Option<Time>,
    /// When it has to be gone, once somebody deleted it.
    pub deletion_timestamp: Option<Time>,
    /// Its labels.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Its annotations, as far as anybody asks for them.
    pub annotations: Arc<BTreeMap<String, String>>,
    /// Whose it is.
    pub owner_references: Arc<Vec<OwnerReference>>,
}

impl Pod {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.metadata.key.name
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        &self.metadata.key.namespace
    }

    /// Its uid.
    pub fn uid(&self) -> &str {
        &self.metadata.key.uid
    }

    /// Its labels.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.metadata.labels
    }

    /// Its annotations, as far as anybody asks for them.
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        &self.metadata.annotations
    }

    /// Whose it is.
    pub fn owner_references(&self) -> &[OwnerReference] {
        &self.metadata.owner_references
    }

    /// What an event about it refers to.
    pub fn reference(&self) -> ObjectReference {
        let text = |value: &str| (!value.is_empty()).then(|| value.to_owned());
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: text(self.name()),
            namespace: text(self.namespace()),
            uid: text(self.uid()),
            ..ObjectReference::default()
        }
    }
}

impl From<WirePod> for Pod {
    fn from(mut sent: WirePod) -> Pod {
        let node_name = sent.node_name().map(Arc::from);
        if let Some(spec) = &mut sent.spec {
            spec.node_name = None;
            // The others are made anew for each pod or hold files; where a pod can run does not depend on them.
            let claims = spec.volumes.take().into_iter().flatten();
            let claims: Vec<_> =
                claims.filter(|it| it.persistent_volume_claim.is_some() || it.ephemeral.is_some()).collect();
            spec.volumes = (!claims.is_empty()).then_some(claims);
            node_fields(spec).for_each(|field| field.values = None);
        }
        let start_time = sent.status.as_mut().and_then(|status| status.start_time.take());
        for condition in sent.status.iter_mut().flat_map(|status| status.conditions.iter_mut().flatten()) {
            let PodCondition { type_, status, reason, .. } = std::mem::take(condition);
            *condition = PodCondition { type_, status, reason, ..PodCondition::default() };
        }
        Pod {
            metadata: sent.metadata.into(),
            node_name,
            spec: sent.spec.map(Arc::new),
            start_time,
            status: sent.status.map(Arc::new),
        }
    }
}

/// What a pod asks of fields of its node. A DaemonSet asks for another name with each pod; that there is one is all that counts.
fn node_fields(spec: &mut PodSpec) -> impl Iterator<Item = &mut NodeSelectorRequirement> {
    let affinity = spec.affinity.as_mut().and_then(|affinity| affinity.node_affinity.as_mut());
    let (required, preferred) = affinity.map_or((None, None), |affinity| {
        let NodeAffinity {
            required_during_scheduling_ignored_during_execution: required,
            preferred_during_scheduling_ignored_during_execution: preferred,
        } = affinity;
        (required.as_mut(), preferred.as_mut())
    });
    let required = required.into_iter().flat_map(|selector| &mut selector.node_selector_terms);
    let preferred = preferred.into_iter().flatten().map(|wish| &mut wish.preference);
    required.chain(preferred).flat_map(|term| term.match_fields.iter_mut().flatten())
}

impl From<ObjectMeta> for PodMeta {
    fn from(sent: ObjectMeta) -> PodMeta {
        let mut annotations = sent.annotations.unwrap_or_default();
        annotations.retain(|name, _| is_read_annotation(name));
        let key = PodKey {
            namespace: sent.namespace.unwrap_or_default().into(),
            name: sent.name.unwrap_or_default().into(),
            uid: sent.uid.unwrap_or_default().into(),
        };
        PodMeta {
            key: Arc::new(key),
            creation_timestamp: sent.creation_timestamp,
            deletion_timestamp: sent.deletion_timestamp,
            labels: Arc::new(sent.labels.unwrap_or_default()),
            annotations: Arc::new(annotations),
            owner_references: Arc::new(sent.owner_references.unwrap_or_default()),
        }
    }
}
