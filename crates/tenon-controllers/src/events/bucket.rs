//! May one more be said? So many at once, and then so many a second.

use jiff::{SignedDuration, Timestamp};

use crate::moments::after;

/// As many may be said at once …
const BURST: i32 = 10;

/// … and then one every so often.
const EVERY: SignedDuration = SignedDuration::from_millis(200);

/// Fills by itself, and is emptied by whoever speaks.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// When it is full again.
    full_at: Option<Timestamp>,
}

impl Bucket {
    /// Whether one more may be said now; if so, it counts as said.
    pub(super) fn take(&mut self, now: Timestamp) -> bool {
        let full_at = after(self.full_at.map_or(now, |at| at.max(now)), EVERY);
        let is_allowed = full_at <= after(now, EVERY.saturating_mul(BURST));
        if is_allowed {
            self.full_at = Some(full_at);
        }
        is_allowed
    }
}
