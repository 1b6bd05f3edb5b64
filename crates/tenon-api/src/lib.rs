//! The custom resources people write, and the names everything is found by.
//!
//! The kinds, fields, defaults and refusals are those of Karpenter v1 and of its Proxmox provider: whoever has manifests
//! for them changes none. What is ours besides is optional and begins with `tenon.dev/` where it is a name.

#![expect(clippy::duplicated_attributes, reason = "every column of a table has a type, and many have the same")]
#![expect(unreachable_pub, reason = "the schema macro repeats our public structs inside a function")]

mod condition;
mod condition_set;
pub mod drift;
#[cfg(test)]
mod drift_tests;
pub mod hash;
mod hash_canonical;
#[cfg(test)]
mod hash_laws;
pub mod hash_stamp;
pub mod hash_template;
#[cfg(test)]
mod hash_tests;
pub mod instance_types_file;
pub mod launch_record;
pub mod names;
mod nodeclaim;
mod nodeclass;
mod nodepool;
pub mod pod;
mod pod_requests;
mod quantity;
mod requirement;
mod unmanaged_template;

pub use condition::{Condition, ConditionStatus};
pub use condition_set::{ConditionSet, Statement, Subject};
pub use nodeclaim::{NodeClaim, NodeClaimSpec, NodeClaimStatus, ResourceRequests};
pub use nodeclass::{
    BootDevice, InstanceTemplateKind, InstanceTemplateRef, KubeletConfiguration, MetadataOptions, MetadataType,
    PlacementStrategy, ProxmoxNodeClass, ProxmoxNodeClassSpec, ProxmoxNodeClassStatus, SecretReference, SecurityGroup,
    ZoneBalance,
};
pub use nodepool::{
    Budget, ClaimTemplate, ClaimTemplateMetadata, ClaimTemplateSpec, ConsolidationPolicy, Disruption, DisruptionReason,
    NodeClassRef, NodePool, NodePoolSpec, NodePoolStatus,
};
pub use quantity::ResourceMap;
pub use requirement::{Operator, Requirement, Taint, TaintEffect};
pub use unmanaged_template::{ProxmoxTemplateStatus, ProxmoxUnmanagedTemplate, ProxmoxUnmanagedTemplateSpec};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// Every definition a cluster needs before the first object.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![NodePool::crd(), NodeClaim::crd(), ProxmoxNodeClass::crd(), ProxmoxUnmanagedTemplate::crd()]
}
