//! What tests may rely on when they talk to the testbed: a real control plane, and nothing left of it afterwards.

mod access;
mod bootstrap;
mod disruption;
mod life;
mod programs;
mod scheduling;
mod support;
