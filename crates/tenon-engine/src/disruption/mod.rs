//! Which nodes are disrupted, and why the others are not?
//!
//! `emptiness` decides which empty nodes are deleted, `budget` how many at once, `validation` how long a node must stay
//! empty first. `blocked` has the reasons against it, with a sentence for each.

mod blocked;
mod budget;
mod emptiness;
mod validation;

pub use blocked::{DisruptionBlocked, Protected};
pub use budget::{AllowedDisruptions, InvalidBudget, UNBOUNDED, allowed_disruptions};
pub use emptiness::{
    Consolidatable, EmptinessInput, EmptinessVerdict, PoolDisruption, judge_emptiness, validate_emptiness,
};
pub use validation::Validation;
