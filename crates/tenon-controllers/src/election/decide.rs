//! Is the Lease ours to take, to renew, to wait for, or lost? Decided from what was observed, and when, without asking anybody.
//!
//! Another holder's Lease is over when it has not changed for its duration, counted on our monotonic clock from when we
//! saw it change: the times that stand in it are by somebody else's clock and are never compared.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;

use super::lease::{duration, holder};
use super::timing::Timing;

/// Now, by both clocks. The monotonic one does not count while a machine sleeps, the other may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) monotonic: Instant,
    pub(crate) wall: Timestamp,
}

impl Moment {
    fn monotonic_since(self, earlier: Moment) -> Duration {
        self.monotonic.saturating_duration_since(earlier.monotonic)
    }

    /// A clock that was set back says that no time passed; the other one still counts.
    fn wall_since(self, earlier: Moment) -> Duration {
        Duration::try_from(self.wall.duration_since(earlier.wall)).unwrap_or_default()
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Nobody holds the Lease, or its holder is gone: write our name into it.
    Acquire,
    /// We hold it, and it is time to say so.
    Renew,
    /// We held it before we slept: read it before anything else.
    Look,
    /// Nothing before this moment.
    Wait(Instant),
    /// We held it, and must not work any more.
    Lost(Lost),
}

/// Why a leader must end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// Another name stands in the Lease.
    #[error("{0} holds the Lease now")]
    Taken(String),
    /// Somebody gave it back in our name.
    #[error("the holder of the Lease was removed")]
    Removed,
    /// No renewal succeeded in time.
    #[error("the Lease was not renewed for {}: {last}", InSeconds(*.within))]
    NotRenewed {
        /// The renew deadline.
        within: Duration,
        /// How the last attempt failed.
        last: String,
    },
}

struct InSeconds(Duration);

impl std::fmt::Display for InSeconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} s", self.0.as_secs_f64())
    }
}

/// The Lease as we saw it last, and since when it has looked like this.
#[derive(Debug)]
struct ObservedLease {
    lease: Lease,
    since: Instant,
}

/// After a sleep: since when we doubt that we lead, and whether the Lease has been read since.
#[derive(Debug)]
struct Doubt {
    since: Moment,
    has_looked: bool,
}

/// One who wants to hold the Lease: what it knows, and what follows from that.
#[derive(Debug)]
pub(crate) struct Candidate {
    identity: String,
    timing: Timing,
    observed: Option<ObservedLease>,
    /// When the last good renewal was sent; nothing if we do not lead.
    renewed: Option<Moment>,
    doubt: Option<Doubt>,
    last_tick: Option<Moment>,
    /// How the last attempt failed.
    pub(crate) failure: String,
}

impl Candidate {
    /// One who has seen nothing yet.
    pub(crate) fn new(identity: String, timing: Timing) -> Candidate {
        let failure = "no answer".to_owned();
        Candidate { identity, timing, observed: None, renewed: None, doubt: None, last_tick: None, failure }
    }

    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    pub(crate) fn timing(&self) -> &Timing {
        &self.timing
    }

    /// The Lease as we saw it last.
    pub(crate) fn lease(&self) -> Option<&Lease> {
        self.observed.as_ref().map(|observed| &observed.lease)
    }

    /// The Lease was read; it is seen to change only if its own fields do, not if somebody put a label on it.
    pub(crate) fn saw(&mut self, lease: Option<Lease>, now: Moment) {
        let before = self.observed.take();
        self.observed = lease.map(|lease| {
            let is_old = before.as_ref().is_some_and(|observed| observed.lease.spec == lease.spec);
            let since = before.filter(|_| is_old).map_or(now.monotonic, |observed| observed.since);
            ObservedLease { lease, since }
        });
        if let Some(doubt) = &mut self.doubt {
            doubt.has_looked = true;
        }
    }

    /// The Lease was written, with our name in it; `sent` is when that was asked for.
    pub(crate) fn wrote(&mut self, lease: Lease, sent: Moment) {
        self.observed = Some(ObservedLease { lease, since: sent.monotonic });
        self.renewed = Some(sent);
        self.last_tick = Some(sent);
        self.doubt = None;
    }

    /// Called before every decision: whoever has slept longer than it may go without a renewal knows nothing any more.
    pub(crate) fn tick(&mut self, now: Moment) {
        let limit = self.timing.renew();
        let has_slept =
            self.last_tick.is_some_and(|last| now.monotonic_since(last) > limit || now.wall_since(last) > limit);
        // The wall clock alone says that the deadline passed: a sleep in pieces, or a clock that was set.
        let is_odd = self.doubt.is_none()
            && self.renewed.is_some_and(|sent| now.wall_since(sent) >= limit && now.monotonic_since(sent) < limit);
        if self.renewed.is_some() && (has_slept || is_odd) {
            self.doubt = Some(Doubt { since: now, has_looked: false });
        }
        self.last_tick = Some(now);
    }

    /// When a leader that got no answer by then is none any more.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let from = self.doubt.as_ref().map_or(self.renewed, |doubt| Some(doubt.since))?;
        Some(from.monotonic + self.timing.renew())
    }

    /// What to do now.
    pub(crate) fn decide(&self, now: Moment) -> Decision {
        match (self.renewed, self.deadline()) {
            (Some(renewed), Some(deadline)) => self.as_leader(now, renewed, deadline),
            _ => self.as_standby(now),
        }
    }

    fn as_standby(&self, now: Moment) -> Decision {
        let Some(observed) = &self.observed else { return Decision::Acquire };
        let holder = holder(&observed.lease);
        // Our own name without our knowing: the answer to our own write was lost.
        if holder.is_empty() || holder == self.identity {
            return Decision::Acquire;
        }
        let over = observed.since + duration(&observed.lease).unwrap_or(self.timing.lease());
        if now.monotonic >= over {
            Decision::Acquire
        } else {
            Decision::Wait(over.min(now.monotonic + self.timing.retry()))
        }
    }

    fn as_leader(&self, now: Moment, renewed: Moment, deadline: Instant) -> Decision {
        // A Lease that somebody deleted is made again by the renewal.
        if let Some(name) =
            self.observed.as_ref().map(|observed| holder(&observed.lease)).filter(|name| *name != self.identity)
        {
            return Decision::Lost(if name.is_empty() { Lost::Removed } else { Lost::Taken(name.to_owned()) });
        }
        if now.monotonic >= deadline {
            let last = self.failure.clone();
            return Decision::Lost(Lost::NotRenewed { within: self.timing.renew(), last });
        }
        match &self.doubt {
            Some(doubt) if !doubt.has_looked => return Decision::Look,
            Some(_) => return Decision::Renew,
            None => {}
        }
        let due = renewed.monotonic + self.timing.retry();
        if now.monotonic >= due { Decision::Renew } else { Decision::Wait(due) }
    }
}
