//! What templates, classes and pools say of themselves: found, ready, or what is in the way and the next move.
//!
//! Read in this order: `estate` (what Proxmox shows), `template`, `class`, `pool` (pure decisions), `pass` (the one look
//! and the writes).

mod class;
mod estate;
mod pass;
mod pool;
mod run;
mod template;

pub(crate) use class::CLASS_CONDITIONS;
pub use class::{ClassVerdict, TemplateSeen, judge_class};
pub use estate::{Estate, RegionView};
pub use pass::{StatusContext, StatusError, StatusReport, pass};
pub(crate) use pass::{stated, subject};
pub(crate) use pool::POOL_CONDITIONS;
pub use pool::{ClassSeen, PoolVerdict, judge_pool};
pub(crate) use run::run;
pub use template::{TemplateVerdict, judge_managed_template, judge_template};

use tenon_api::ConditionStatus;

/// The conditions that make a claim ready.
pub(crate) const CLAIM_CONDITIONS: &[&str] = &["Launched", "Registered", "Initialized"];

/// One condition, decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, as one word.
    pub reason: String,
    /// Why, as a sentence with the next move.
    pub message: String,
}

impl Verdict {
    /// It holds.
    pub fn holds(type_: &str) -> Verdict {
        Verdict { status: ConditionStatus::True, reason: type_.to_owned(), message: String::new() }
    }

    /// It does not hold.
    pub fn fails(reason: &str, message: impl Into<String>) -> Verdict {
        Verdict { status: ConditionStatus::False, reason: reason.to_owned(), message: message.into() }
    }

    /// It cannot be told.
    pub fn unknown(reason: &str, message: impl Into<String>) -> Verdict {
        Verdict { status: ConditionStatus::Unknown, reason: reason.to_owned(), message: message.into() }
    }
}
