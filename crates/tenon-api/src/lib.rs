//! The custom resources people write, and the names everything is found by.
//!
//! The kinds, fields, defaults and refusals are those of Karpenter v1 and of its Proxmox provider: whoever has manifests
//! for them changes none. What is ours besides is optional and begins with `tenon.dev/` where it is a name.

#![expect(clippy::duplicated_attributes, reason = "every column of a table has a type, and many have the same")]
#![expect(unreachable_pub, reason = "the schema macro repeats our public structs inside a function")]

mod absent_spec;
mod addresses;
mod candidate;
mod capacity_buffer;
mod class_sizes;
mod class_timeouts;
mod condition;
pub mod condition_reasons;
mod condition_set;
mod definitions;
mod deletion_cost;
mod disruption;
mod disruption_record;
pub mod drift;
#[cfg(test)]
mod drift_tests;
pub mod event_reasons;
pub mod hash;
mod hash_canonical;
#[cfg(test)]
mod hash_laws;
pub mod hash_reference;
pub mod hash_stamp;
pub mod hash_template;
#[cfg(test)]
mod hash_tests;
pub mod instance_types_file;
pub mod kube_objects;
mod kubelet;
pub mod launch_record;
mod listed_claim;
pub mod names;
mod node_affinity;
pub mod node_settings_file;
mod nodeclaim;
mod nodeclass;
mod nodeoverlay;
mod nodepool;
pub mod objects;
mod placement_strategy;
pub mod plan_options;
pub mod planning;
pub mod pod;
mod pod_affinity;
pub mod pod_predicates;
mod pod_requests;
pub mod pod_usage;
mod pool_faults;
pub mod protobuf;
mod quantity;
mod requirement;
mod status_message;
mod template;
mod template_devices;
pub mod template_image;
pub mod template_record;
mod template_status;
mod timestamp;
mod unmanaged_template;
mod volumes;
pub mod yaml_words;

pub use addresses::{AddressRules, Addresses};
pub use candidate::{
    CandidateObjects, disruption_budget, disruption_pool, drain_pod, legacy_unhealthy_conditions, unhealthy_conditions,
};
pub use capacity_buffer::{CapacityBuffer, CapacityBufferSpec, CapacityBufferStatus, PodTemplateRef, ScalableRef};
pub use class_sizes::{ClassSizes, for_class};
pub use class_timeouts::ClassTimeouts;
pub use condition::{Condition, ConditionStatus};
pub use condition_set::{ConditionSet, Statement, Subject};
pub use definitions::{definitions, file_name};
pub use deletion_cost::{replica, replicas_by_node};
pub use disruption::{Budget, ConsolidationPolicy, Disruption, DisruptionReason};
pub use disruption_record::{DisruptionRecord, DisruptionRecordError, RepairRecord};
pub use kubelet::KubeletConfiguration;
pub use listed_claim::ListedClaim;
pub use nodeclaim::{NodeClaim, NodeClaimSpec, NodeClaimStatus, ResourceRequests};
pub use nodeclass::{
    BootDevice, CloneMode, InstanceTemplateKind, InstanceTemplateRef, MetadataOptions, MetadataType, ProxmoxNodeClass,
    ProxmoxNodeClassSpec, ProxmoxNodeClassStatus, SecretReference, SecurityGroup,
};
pub use nodeoverlay::{NodeOverlay, NodeOverlaySpec, NodeOverlayStatus, OverlayRequirement};
pub use nodepool::{
    ClaimTemplate, ClaimTemplateMetadata, ClaimTemplateSpec, NodeClassRef, NodePool, NodePoolSpec, NodePoolStatus,
};
pub use placement_strategy::{HostChoice, HostGoal, MinAvailable, PlacementStrategy, ZoneBalance};
pub use pool_faults::{pool_faults, pool_not_ready, unknown_pool_values, written_requirement};
pub use quantity::{KubeResources, ResourceMap, quantity_of, resources_of};
pub use requirement::{Operator, Requirement, Taint, TaintEffect};
pub use status_message::status_message;
pub use template::{Bios, ChecksumType, Machine, ProxmoxTemplate, ProxmoxTemplateSpec, SourceImage};
pub use template_devices::{
    Agent, AgentType, CardModel, Cpu, CpuType, NetworkCard, PciDevice, Tpm, TpmVersion, Vga, VgaType,
};
pub use template_status::ProxmoxTemplateStatus;
pub use timestamp::timestamp;
pub use unmanaged_template::{ProxmoxUnmanagedTemplate, ProxmoxUnmanagedTemplateSpec};
