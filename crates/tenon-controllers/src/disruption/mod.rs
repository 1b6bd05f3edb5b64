//! Disrupts nodes: those that are empty, underutilized or have drifted. Which ones is decided by `tenon_engine::disruption`, and what
//! comes next of a decision by `tenon_engine::disruption_command`.
//!
//! `run` says when, `pass` is one look: `candidate` and `gather` read what it rests on, without drift that is undone (`undone_drift`),
//! with VMs on hosts that are offline (`offline_hosts`);
//! `memo` says whether anything changed since the last one, `start` makes a command of a decision, `report` and `count` say why other
//! nodes stay, and `scores` why policy `Balanced` approved a move. `queue` has the commands that run, `observe` how far each is, and `act` carries them on with the `marks` of NodeClaims
//! and the taint of `taint`. `rollout` halts replacements that never join. `reboot` hands nodes over that
//! are rebooted, `stopped_vms` those whose VM is only started again, `reboot_history` remembers them, and `repair_bound` says how long
//! the pods of a repaired node have. `consolidatable` and `pod_events` keep the condition
//! Consolidatable and `status.lastPodEventTime` of NodeClaims up to date. `labels` has the words for all of it; `duration` reads texts
//! in units of the clock.

mod act;
mod candidate;
mod consolidatable;
mod count;
#[cfg(test)]
mod disruption_tests;
mod duration;
mod gather;
mod labels;
#[cfg(test)]
mod look_tests;
mod marks;
mod memo;
mod observe;
mod offline_hosts;
mod pass;
pub(crate) mod pod_events;
#[cfg(test)]
mod pod_events_tests;
mod queue;
mod reboot;
mod reboot_history;
#[cfg(test)]
mod reboot_tests;
mod repair_bound;
#[cfg(test)]
mod repair_tests;
mod report;
mod rollout;
mod run;
mod scores;
mod start;
mod stopped_vms;
pub(crate) mod taint;
#[cfg(test)]
mod test_site;
mod undone_drift;

pub use duration::{parse_duration, parse_duration_or_never};
pub(crate) use gather::model_time;
pub(crate) use offline_hosts::offline_host;
pub(crate) use run::run;
