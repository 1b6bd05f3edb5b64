//! Does the whole system work, on a real control plane and a simulated estate?

mod bench;
mod guest;
mod line;
mod provision;
mod refusals;
mod seed;
mod status;
