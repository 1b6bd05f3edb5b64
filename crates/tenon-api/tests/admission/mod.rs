//! The definitions and values on a real control plane: what is accepted, defaulted and refused, and what a pod counts for.

mod compact_lists;
mod definitions;
mod durations;
mod pod_shapes;
mod quantities;
mod scheduler;
