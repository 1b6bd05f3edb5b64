//! What a plan is like: cases in words, and laws over random clusters.

#![expect(clippy::unwrap_used, reason = "a cluster of the test's own that does not read is a failed test")]

mod bin_packing;
mod brute_force;
mod checker;
mod claims;
pub(crate) mod cluster;
mod constraints;
mod daemons;
mod effective_zones;
mod existing;
mod golden_hosts;
mod hosts;
mod labels;
pub(crate) mod laws;
mod limits;
mod min_values;
mod node_taints;
mod offerings;
mod pinning;
mod placement;
mod pod_affinity;
mod pools;
mod preferences;
mod refusals;
mod reserved;
mod sizes;
mod sound;
mod speed;
mod topology_checker;
mod topology_spread;
mod topology_spread_checker;
mod volume_limits;
mod volumes;
mod well_known;
mod what_ifs;
