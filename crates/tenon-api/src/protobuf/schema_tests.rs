//! Whoever reads one more field of a pod adds its number to the table, or a pod from a list would lack it.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};

use super::*;
use crate::kube_objects::{
    Container, ContainerStatus, EphemeralVolumeSource, PersistentVolumeClaimSpec, PersistentVolumeClaimTemplate,
    PersistentVolumeClaimVolumeSource, PodSchedulingGate, PodSpec, PodStatus, Volume,
};

/// Takes down the fields that a type asks for, and gives it nothing.
struct Listener<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Listener<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("nothing here"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("nothing here"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

/// Every field that a type reads is in the table, but for these.
fn holds<'de, T: Deserialize<'de>>(schema: Schema, but_for: &[&str]) {
    let mut read: &[&str] = &[];
    assert!(T::deserialize(Listener(&mut read)).is_err());
    let name = std::any::type_name::<T>();
    assert!(!read.is_empty(), "{name} is no struct");
    let inner = schema.fields.iter().flat_map(|field| match field.kind {
        Inline(schema) => schema.fields,
        _ => std::slice::from_ref(field),
    });
    let known: Vec<&str> = inner.map(|field| field.name).chain(but_for.iter().copied()).collect();
    let missing: Vec<&&str> = read.iter().filter(|field| !known.contains(*field)).collect();
    assert!(missing.is_empty(), "{name}: {missing:?} are read, and not in the table");
}

#[test]
fn every_field_of_a_pod_that_is_read_is_in_the_table() {
    // What pods of one workload do not share is read by itself (`pods.rs`).
    holds::<PodSpec>(POD_SPEC, &["nodeName"]);
    holds::<PodSchedulingGate>(NAMED, &[]);
    holds::<Container>(CONTAINER, &[]);
    holds::<Volume>(VOLUME, &[]);
    holds::<PersistentVolumeClaimVolumeSource>(PERSISTENT_VOLUME_CLAIM, &[]);
    holds::<EphemeralVolumeSource>(EPHEMERAL, &[]);
    holds::<PersistentVolumeClaimTemplate>(CLAIM_TEMPLATE, &[]);
    holds::<PersistentVolumeClaimSpec>(CLAIM_SPEC, &[]);
    holds::<PodStatus>(POD_STATUS, &["startTime"]);
    holds::<ContainerStatus>(CONTAINER_STATUS, &[]);
}

#[test]
fn every_field_of_the_types_of_the_library_is_in_the_table() {
    holds::<meta::OwnerReference>(OWNER_REFERENCE, &[]);
    holds::<meta::LabelSelector>(LABEL_SELECTOR, &[]);
    holds::<meta::LabelSelectorRequirement>(EXPRESSION, &[]);
    holds::<core::NodeSelectorRequirement>(EXPRESSION, &[]);
    holds::<core::ContainerPort>(CONTAINER_PORT, &[]);
    holds::<core::ResourceRequirements>(RESOURCES, &[]);
    holds::<core::ResourceClaim>(RESOURCE_CLAIM, &[]);
    holds::<core::PodResourceClaim>(POD_RESOURCE_CLAIM, &[]);
    holds::<core::Toleration>(TOLERATION, &[]);
    holds::<core::TopologySpreadConstraint>(TOPOLOGY_SPREAD_CONSTRAINT, &[]);
    holds::<core::Affinity>(AFFINITY, &[]);
    holds::<core::NodeAffinity>(NODE_AFFINITY, &[]);
    holds::<core::NodeSelector>(NODE_SELECTOR, &[]);
    holds::<core::NodeSelectorTerm>(NODE_SELECTOR_TERM, &[]);
    holds::<core::PreferredSchedulingTerm>(PREFERRED_SCHEDULING_TERM, &[]);
    holds::<core::PodAffinity>(POD_AFFINITY, &[]);
    holds::<core::PodAntiAffinity>(POD_AFFINITY, &[]);
    holds::<core::PodAffinityTerm>(POD_AFFINITY_TERM, &[]);
    holds::<core::WeightedPodAffinityTerm>(WEIGHTED_POD_AFFINITY_TERM, &[]);
    // A pod drops these when it is made small.
    let dropped = ["lastProbeTime", "lastTransitionTime", "message", "observedGeneration"];
    holds::<core::PodCondition>(POD_CONDITION, &dropped);
    // So are these: what a pod is called and whose it is makes its metadata. The others are read by themselves.
    let dropped =
        ["deletionGracePeriodSeconds", "finalizers", "generateName", "generation", "managedFields", "selfLink"];
    let own = ["creationTimestamp", "deletionTimestamp", "name", "namespace", "resourceVersion", "uid"];
    holds::<meta::ObjectMeta>(COMMON_META, &[&dropped[..], &own].concat());
}
