//! What templates, classes and pools say of themselves: found, ready, or what is in the way and the next move.
//!
//! Read in this order: `estate` (what Proxmox shows), `template` with `template_candidates`, `class`, `class_finalizer`, `pool` (pure decisions), `pass` (the one look
//! and the writes) with `pool_pass`; `counter` (what the nodes of a pool have together).

mod class;
mod class_finalizer;
mod class_first_boot;
pub(crate) mod counter;
#[cfg(test)]
mod counter_tests;
mod estate;
mod pass;
mod pool;
mod pool_pass;
mod run;
mod staleness;
mod template;
mod template_candidates;
mod template_reach;

pub(crate) use class::CLASS_CONDITIONS;
pub use class::{ClassVerdict, ObservedTemplate, judge_class};
pub use class_finalizer::finalizers;
pub(crate) use estate::has_room_for_seed;
pub use estate::{Estate, RegionTrouble, RegionView};
pub use pass::{StatusContext, StatusError, StatusReport, pass};
pub(crate) use pass::{counted, stated, subject};
pub(crate) use pool::POOL_CONDITIONS;
pub use pool::{ObservedClass, PoolVerdict, judge_pool};
pub(crate) use run::run;
pub(crate) use template::said_ready;
pub use template::{TemplateVerdict, judge_template};

use tenon_api::ConditionStatus;
use tenon_api::condition_reasons::{ConditionReason, ConditionType};

/// The conditions that make a claim ready.
pub(crate) const CLAIM_CONDITIONS: &[&str] = &["Launched", "Registered", "Initialized"];

/// One condition, decided. Its reason is a row of the table of reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    status: ConditionStatus,
    reason: &'static str,
    message: String,
}

impl Verdict {
    /// The condition is true.
    pub fn holds(condition: &'static ConditionType) -> Verdict {
        Verdict { status: ConditionStatus::True, reason: condition.name(), message: String::new() }
    }

    /// The condition is true, for one of several reasons.
    pub(crate) fn holds_because(reason: &'static ConditionReason, message: impl Into<String>) -> Verdict {
        Verdict { status: ConditionStatus::True, reason: reason.name(), message: message.into() }
    }

    /// The same condition with more to read.
    pub(crate) fn with_message(self, message: String) -> Verdict {
        Verdict { message, ..self }
    }

    /// The condition is false.
    pub fn fails(reason: &'static ConditionReason, message: impl Into<String>) -> Verdict {
        Verdict { status: ConditionStatus::False, reason: reason.name(), message: message.into() }
    }

    /// Whether the condition is true is not known.
    pub fn unknown(reason: &'static ConditionReason, message: impl Into<String>) -> Verdict {
        Verdict { status: ConditionStatus::Unknown, reason: reason.name(), message: message.into() }
    }

    /// Whether the condition is true.
    pub fn status(&self) -> ConditionStatus {
        self.status
    }

    /// Why, as one word.
    pub fn reason(&self) -> &'static str {
        self.reason
    }

    /// Why, as a sentence with the next step.
    pub fn message(&self) -> &str {
        &self.message
    }
}
