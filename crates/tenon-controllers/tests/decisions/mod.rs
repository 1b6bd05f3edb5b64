//! The pure parts of the controllers, without a server.

#![expect(clippy::unwrap_used, reason = "an object of the test's own that does not read is a failed test")]

mod address_laws;
mod addresses;
mod budgets;
mod candidates;
mod claim_shape;
mod claims;
mod class_in_use;
mod class_sizes;
mod cpus;
mod draining_pods;
mod emptiness;
mod extremes;
mod first_boot;
mod holding_pods;
mod host_rules;
mod objects;
mod pool_limits;
mod pools_in_use;
mod static_pools;
mod verdicts;
