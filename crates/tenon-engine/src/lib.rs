//! Decides. No clock, no network, no randomness: the same snapshot gives the same plan, byte for byte.
//!
//! [`plan`] packs pods onto nodes and nodes onto hosts; [`check`] reads a finished plan again and says what is wrong
//! with it, knowing nothing of how it was made; [`sound_part`] leaves that out.
//!
//! `base` is a snapshot, indexed; `solver` places its pods; `plan` says what came of it. `index`, `resources`,
//! `instance_types`, `topology`, `capacity` and `cpu` are what these three are built from; `lifecycle` and `disruption` decide about nodes that
//! are there.

mod base;
mod capacity;
mod checker;
pub mod cpu;
pub mod disruption;
mod engine;
mod index;
mod instance_types;
mod lifecycle;
mod plan;
mod resources;
mod solver;
mod topology;
mod what_ifs;

pub use checker::{CheckedPlan, Subject, Violation, check, sound_part};
pub use engine::{Engine, plan};
pub use lifecycle::{
    Arranged, Sparing, StaticCounts, StaticNode, StaticPod, StaticStage, TemplateTarget, WantedTemplates, adoption,
    arrange, claim, disruption_command, drain, is_host_gone, launch, lifetime_remaining, reboot, registration_health,
    static_pool, template,
};
pub use plan::{LaunchRefusal, NoAddress, give, launches};
pub use solver::Effort;
pub use what_ifs::{Change, Destinations, MovedPods, WhatIfs};
