//! Does the whole system work, on a real control plane and a simulated estate?

mod asking;
mod away;
mod bench;
mod crash;
mod election;
mod fleet;
mod guest;
mod line;
mod ownership;
mod refusals;
mod seed;
mod status;
mod trouble;
mod world;
