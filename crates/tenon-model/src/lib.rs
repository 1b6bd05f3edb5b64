//! The values Tenon thinks in.
//!
//! A value is checked once, where it enters, and is plain data from there on. This crate knows no wire format, no
//! client and no time of day; the crates that decide build on it.

mod address;
mod assignment;
mod bound_pod;
mod calendar;
mod candidate;
mod capacity_rules;
mod catalog;
mod cpu_set;
mod deletion_cost;
mod disruption_budget;
mod disruption_inputs;
mod drain_pod;
mod duration;
mod error_message;
mod eviction_cost;
mod host;
mod host_cpus;
mod host_rules;
mod instance_type;
pub mod label_text;
pub mod labels;
mod launch;
mod launch_site;
mod min_values;
mod mirror;
#[cfg(test)]
mod mirror_tests;
mod node_labels;
mod node_settings;
mod node_share;
mod node_state;
mod options;
mod overlay;
mod place;
mod plan;
mod pod;
mod pool;
mod price;
mod price_formula;
mod protection;
mod provider_id;
mod pve_size;
mod quantity;
#[cfg(test)]
mod quantity_tests;
mod quantity_text;
mod reason_message;
mod repair;
mod repair_decision;
mod requirement;
#[cfg(test)]
mod requirement_tests;
mod requirements;
#[cfg(test)]
mod requirements_tests;
pub mod resources;
mod schedule;
#[cfg(test)]
mod schedule_tests;
mod size_rule;
mod skipped_hosts;
mod snapshot;
mod taint;
mod template_build;
mod timestamp;
mod topology_refusal;
pub mod validation;
#[cfg(test)]
mod validation_tests;
mod vmid;
mod volume_refusal;
mod volumes;
mod written_requirement;

pub use address::{AddressError, AddressRange, NetAddress};
pub use assignment::{AddressPool, AddressSite, CardAddresses, CardWish, GivenAddress, Source6};
pub use bound_pod::BoundPod;
pub use candidate::{
    CandidateClaim, CandidateKubeNode, CandidateNode, CandidatePod, ConsolidationPolicy, DisruptionFacts,
    DisruptionPool,
};
pub use capacity_rules::{CapacityRules, RegionCapacity};
pub use catalog::{AllocatableGroup, Catalog, CatalogType, Offering, Overlaid, Overrides, RESERVED, Reservation};
pub use cpu_set::{CPUS_MAX, CpuSet, CpuSetError};
pub use deletion_cost::{CostLeftover, NodeReplicas, Replica, WrittenCost};
pub use disruption_budget::{BudgetFault, BudgetText, BudgetWindow, DisruptionBudget, DisruptionReason};
pub use disruption_inputs::{DisruptionGates, DisruptionInputs, HoldKind, PodHold};
pub use drain_pod::DrainPod;
pub use duration::{DurationError, GoDuration, Timespan, TimespanOrNever};
pub use error_message::full_message;
pub use eviction_cost::{JOB_LENGTH_S, PodWorth};
pub use host::{HostName, HostNameError};
pub use host_cpus::{CellRoom, CpuRoom, CpuTopology, NodePolicy, PinnedCell, Pinning, Thread};
pub use host_rules::{HostGoal, HostRules, HostStrategy};
pub use instance_type::{CapacityType, InstanceType, Overhead};
pub use launch::{LaunchLimits, LaunchRecord, LaunchStep, Leftover, Seconds};
pub use launch_site::{BootImage, LaunchSite, VmIds};
pub use min_values::TooFewValues;
pub use mirror::Mirror;
pub use node_labels::{LabelTexts, NodeLabels};
pub use node_settings::{HostSettings, NodeSettings, NumaCell};
pub use node_share::{NodeShare, NodeShareError};
pub use node_state::{NodeStage, NodeState};
pub use options::{MinValuesPolicy, Options, PreferencePolicy, ReservedMode};
pub use overlay::{
    CatalogChanges, Contested, OverlaidPool, Overlay, OverlayConflict, OverlaySet, PriceChange, PriceChangeError,
};
pub use place::{Host, HostLoad, Place};
pub use plan::{Chosen, Met, NewNode, NoHost, NoType, Placement, Plan, PoolRefusal, Reason, ReservedTrouble, Unplaced};
pub use pod::{
    HostPort, NamespaceChoice, Pod, PodAffinityTerm, PodKey, PodShape, Preferred, Selector, Spread, UseNodes, Volume,
    WeightedPodAffinityTerm, WhenUnsatisfiable,
};
pub use pool::Pool;
pub use price::Price;
pub use price_formula::{PriceError, PriceFormula};
pub use protection::{Owner, Protection};
pub use provider_id::{ProviderId, ProviderIdError};
pub use pve_size::{PveSize, PveSizeError};
pub use quantity::{Quantity, QuantityFormat};
pub use quantity_text::QuantityError;
pub use repair::{RepairAction, RepairPolicies, RepairPolicy, RepairPolicyFault, SaidCondition};
pub use repair_decision::{RepairDecision, RepairVerdict, Unhealthy, judge_repair};
pub use requirement::{Operator, OperatorError, Requirement};
pub use requirements::{Incompatible, Requirements};
pub use resources::{Resources, Shortage};
pub use schedule::{Schedule, ScheduleError};
pub use size_rule::{Reserves, SizeRule};
pub use skipped_hosts::SkippedHosts;
pub use snapshot::Snapshot;
pub use taint::{Effect, Taint, Tolerated, Toleration};
pub use template_build::{TemplateBuild, TemplateStep};
pub use timestamp::Timestamp;
pub use topology_refusal::{TopologyConstraint, TopologyRefusal};
pub use vmid::{VmId, VmIdError, VmIdRange};
pub use volume_refusal::VolumeRefusal;
pub use volumes::{AttachLimit, Attachment, PodStorage, PodVolumes, attach_limits};
pub use written_requirement::{RequirementError, WrittenRequirement};
