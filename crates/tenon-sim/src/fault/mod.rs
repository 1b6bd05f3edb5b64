//! What goes wrong in an estate, and when: rules for calls, events at a time, faults of guests.
//!
//! Read in this order: `rule` (what a rule says), `book` (which rules strike a call), `strike` (what that does to the
//! call), `event` (what happens to the world by itself), `plan` and `file` (all of it in one YAML file).

mod book;
mod event;
mod fields;
mod file;
mod plan;
mod rule;
mod snapshots;
mod strike;

pub use event::{WorldChange, WorldEvent};
pub use file::FaultFileError;
pub use plan::{FaultPlan, FaultPlanError};
pub use rule::{FaultEffect, FaultKind, FaultMatch, FaultRule, FaultSpec, Repeat, ReplyLost};

pub(crate) use book::{Book, Occurrence, Tally};
pub(crate) use fields::Fields;
pub(crate) use file::repeat;
pub(crate) use rule::glob;
pub(crate) use snapshots::Snapshots;
pub(crate) use strike::{AnswerFault, Strike, TaskFault, TaskLot};
