//! Does the whole system work, on a real control plane and a simulated estate?

mod asking;
mod away;
mod bench;
mod crash;
mod determinism;
mod drifting;
mod election;
mod embedded;
mod fleet;
mod ground;
mod guest;
mod line;
mod ownership;
mod packing;
mod planning;
mod real;
mod refusals;
mod schema;
mod schema_samples;
mod seed;
mod static_pools;
mod status;
mod takeover;
mod takeover_fixtures;
mod trouble;
mod world;
