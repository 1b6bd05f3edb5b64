//! One event: its reason from the table, its sentence, and how often it may be repeated.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::SignedDuration;
use tenon_api::event_reasons::{self, EventReason, Severity};

/// The same sentence about the same object is published again only after this long, unless the event says otherwise.
pub(super) const REPEAT_AFTER: SignedDuration = SignedDuration::from_mins(2);

/// That no node can be created for a pod is repeated only after this long, as long as nothing but numbers in it changed: how
/// much room hosts have left changes all the time, and is no news to a pod that does not fit.
const UNSCHEDULABLE_REPEAT_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// What may concern very many objects at once, and is therefore rate-limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RateLimit {
    Nominated,
    InsufficientCapacity,
    CsrDenied,
    CsrApproved,
    CsrUndecided,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its row in the table.
    pub(crate) reason: &'static EventReason,
    /// One sentence with the next step.
    pub(crate) note: String,
    /// The same is published again only after this long.
    pub(super) repeat_after: SignedDuration,
    /// Whether other numbers make it another event.
    numbers_matter: bool,
    pub(super) rate_limit: Option<RateLimit>,
}

impl Event {
    /// An event. Whether it is a warning is a property of its reason.
    pub(crate) fn new(reason: &'static EventReason, note: impl Into<String>) -> Event {
        Event { reason, note: note.into(), repeat_after: REPEAT_AFTER, numbers_matter: true, rate_limit: None }
    }

    /// A pod has a node to run on.
    pub(crate) fn nominated(note: impl Into<String>) -> Event {
        Event { rate_limit: Some(RateLimit::Nominated), ..Event::new(&event_reasons::NOMINATED, note) }
    }

    /// No node can be created for a pod or a claim.
    pub(crate) fn failed_scheduling(note: impl Into<String>) -> Event {
        let event = Event::new(&event_reasons::FAILED_SCHEDULING, note).repeat_after(UNSCHEDULABLE_REPEAT_AFTER);
        Event { numbers_matter: false, ..event }
    }

    /// A VM could not be created where it was planned.
    pub(crate) fn insufficient_capacity(note: impl Into<String>) -> Event {
        let rate_limit = Some(RateLimit::InsufficientCapacity);
        Event { rate_limit, ..Event::new(&event_reasons::INSUFFICIENT_CAPACITY, note) }
    }

    /// A certificate was denied. Whoever has a bootstrap token can ask for as many as it likes.
    pub(crate) fn csr_denied(note: impl Into<String>) -> Event {
        Event { rate_limit: Some(RateLimit::CsrDenied), ..Event::new(&event_reasons::CSR_DENIED, note) }
    }

    /// A certificate was approved.
    pub(crate) fn csr_approved(note: impl Into<String>) -> Event {
        Event { rate_limit: Some(RateLimit::CsrApproved), ..Event::new(&event_reasons::CSR_APPROVED, note) }
    }

    /// It cannot be decided about a certificate.
    pub(crate) fn csr_undecided(note: impl Into<String>) -> Event {
        Event { rate_limit: Some(RateLimit::CsrUndecided), ..Event::new(&event_reasons::CSR_UNDECIDED, note) }
    }

    /// The event, repeated after this long.
    pub(crate) fn repeat_after(self, repeat_after: SignedDuration) -> Event {
        Event { repeat_after, ..self }
    }

    /// Whether somebody should look.
    pub(super) fn is_warning(&self) -> bool {
        self.reason.severity() == Severity::Warning
    }

    /// A hash of what it says, as far as that matters.
    pub(super) fn gist(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let matters = |letter: &char| self.numbers_matter || !letter.is_ascii_digit();
        self.note.chars().filter(matters).for_each(|letter| letter.hash(&mut hasher));
        hasher.finish()
    }
}
