//! Removes nodes that are no longer needed. What to remove is decided by `tenon_engine::disruption`.
//!
//! `gather` reads what that decision rests on, `pass` acts on it and reports, with the taint of `taint`. `pod_events` keeps
//! `status.lastPodEventTime` of NodeClaims up to date. `duration` reads texts in units of the clock.

mod count;
mod duration;
mod gather;
mod pass;
pub(crate) mod pod_events;
#[cfg(test)]
mod pod_events_tests;
pub(crate) mod taint;

pub use duration::{parse_duration, parse_duration_or_never};
pub(crate) use gather::model_time;
pub(crate) use pass::run;
