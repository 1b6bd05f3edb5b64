//! Who does what kube-scheduler and kube-controller-manager do in a cluster that has neither.
//!
//! [`Actors`] look at the whole cluster whenever something changed, and each does its part in turn: pods for workloads, nodes
//! for pods, budgets, taints of nodes that fell silent and the end of their pods, tokens that are too old. What they do, they do as the real ones
//! would; what the real ones do besides is not done.

mod board;
mod budgets;
mod daemons;
mod jobs;
mod neighbours;
mod nodes;
mod owner;
mod persistent_volumes;
mod runner;
mod scheduler;
mod silent_nodes;
mod tokens;
mod volume_binding;
mod workloads;

pub use runner::Actors;
