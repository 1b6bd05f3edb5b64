//! Which nodes are disrupted, how many at once, and which pods leave a drained node when.

#![expect(clippy::unwrap_used, reason = "a text of the test's own that does not read is a failed test")]

mod budgets;
mod candidates;
mod confirmation;
mod consolidation;
mod deletion_cost;
mod drain;
mod drift;
mod emptiness;
mod emptiness_laws;
mod further;
mod goal_laws;
mod goals;
mod growth;
mod moves_brute_force;
mod nodes;
mod repair;
mod scanner;
mod settling;
mod world;
