//! One NodeClaim: from a written intent to a node that takes pods, and back to nothing.
//!
//! `queue` says whose turn it is, `reconcile` is the way in. `gather` reads, the engine decides, then one of these acts:
//! `launch` (with `address_fence`, `before_clone`, `launch_clone`, `launch_pass`, `launch_failure`, `desired_vm`,
//! `card_addresses`, `network_card`, `bound_cpus`, `seed`, `token`, `bootstrap`, `clone_slots`, `seen_vm`, `firewall`) creates
//! the VM, `await_node` (with `late_node`, `diagnosis`, `diagnoses`, `boot_log`, `hidden_words`),
//! `registration` and `readiness` match its node, `hydration` labels it, `consistency` compares it with its claim,
//! `seed_cleanup` deletes first-boot data, `adoption` (with `adoption_marks`) takes over VMs of the Go provider, `drain` (with `evict`, `eviction_backoff`) drains the node, `drain_orphan` one
//! without a claim, `termination` (with `release`) deletes everything. `outcome` reports.
//!
//! A pass starts from the record as it was last written down and makes at most one outside change. Dying between any two
//! lines costs a look, never a VM.

mod address_fence;
mod adoption;
mod adoption_marks;
#[cfg(test)]
mod adoption_tests;
mod await_node;
mod before_clone;
mod boot_log;
mod bootstrap;
mod bound_cpus;
mod card_addresses;
#[cfg(test)]
mod ccm_tests;
mod clone_slots;
mod consistency;
mod deletion;
mod desired_vm;
mod diagnoses;
mod diagnosis;
mod drain;
mod drain_orphan;
#[cfg(test)]
mod drain_tests;
#[cfg(test)]
mod drain_volume_tests;
mod end_counts;
mod evict;
#[cfg(test)]
mod evict_tests;
mod eviction_backoff;
#[cfg(test)]
mod example_tests;
mod firewall;
mod gather;
#[cfg(test)]
mod health_tests;
mod hidden_words;
mod hydration;
mod image;
mod late_node;
#[cfg(test)]
mod late_node_tests;
mod launch;
mod launch_clone;
mod launch_failure;
mod launch_pass;
#[cfg(test)]
mod launch_tests;
mod network_card;
mod observe;
mod outcome;
mod pending_request;
mod queue;
mod readiness;
mod reboot;
mod reboot_call;
mod reboot_fence;
#[cfg(test)]
mod reboot_tests;
mod reconcile;
mod registration;
mod registration_health;
#[cfg(test)]
mod registration_tests;
mod release;
mod seed_cleanup;
mod seed_file;
mod seed_parts;
mod seen_vm;
mod termination;
#[cfg(test)]
mod termination_tests;
#[cfg(test)]
pub(crate) mod test_stage;
mod token;
#[cfg(test)]
mod token_tests;
#[cfg(test)]
mod upkeep_tests;

pub use adoption_marks::{AdoptionLook, Claimed, FoundVm, Sighting, look as look_for_adoption};
pub use bootstrap::{Joined, cluster as joined_cluster, is_this_computer};
pub use clone_slots::CloneLimits;
pub(crate) use clone_slots::CloneSlots;
pub(crate) use consistency::Comparisons;
pub(crate) use deletion::{DeletionReason, count_disrupted, delete_claim, termination_mode};
pub(crate) use desired_vm::disk_storage;
pub use desired_vm::{CloneSource, DesiredVm, FirstBoot, Owner, Render};
pub(crate) use diagnoses::Diagnoses;
pub(crate) use drain::{is_ready, pods_on};
pub(crate) use drain_orphan::drain_orphan;
pub(crate) use eviction_backoff::EvictionBackoff;
pub(crate) use firewall::VmFirewall;
pub(crate) use gather::{is_true, node_of_vm};
pub(crate) use image::image_id;
pub use launch_pass::{VmReader, launch_pass};
pub(crate) use network_card::filtered as filtered_cards;
pub(crate) use observe::vm as observe_vm;
pub(crate) use queue::run;
pub(crate) use reboot_call::RebootCalls;
pub use reconcile::ClaimError;
pub use release::{PowerOff, ReleasePass, SeedLeft, release};
pub(crate) use seed_file::{SEED_TAG, attached_seed_storage};
pub use seed_file::{SeedFile, seed_file};
pub use seen_vm::SeenVms;
pub(crate) use termination::deadline as termination_deadline;
#[cfg(test)]
pub(crate) use token::make as make_token;
pub use token::read as bootstrap_token;
pub(crate) use token::{NAMESPACE as TOKEN_NAMESPACE, TYPE as TOKEN_TYPE, expiration as token_expiration};
pub(crate) use token::{expires as token_expires, recorded as recorded_token, secret_name as token_secret};
