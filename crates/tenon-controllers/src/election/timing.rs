//! How long a Lease is good for, how long its holder tries to keep it, and how often it is looked at.

use std::time::Duration;

/// The three times of an election, which fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    lease: Duration,
    renew: Duration,
    retry: Duration,
}

/// Times that do not fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// The Lease says its duration in whole seconds.
    #[error("the lease duration {0:?} is not a whole number of seconds, one or more")]
    NotWhole(Duration),
    /// Another would take over while the holder still works.
    #[error(
        "the renew deadline {renew:?} is not shorter than the lease duration {lease:?}: a second leader could start before the first one stops"
    )]
    TooLong {
        /// The renew deadline.
        renew: Duration,
        /// The lease duration.
        lease: Duration,
    },
    /// One failed attempt would cost the Lease.
    #[error(
        "the retry period {retry:?} is not shorter than half the renew deadline {renew:?}: one lost reply would cost the leadership"
    )]
    TooRare {
        /// The retry period.
        retry: Duration,
        /// The renew deadline.
        renew: Duration,
    },
}

impl Timing {
    /// Times that fit together, or why they do not.
    pub fn new(lease: Duration, renew: Duration, retry: Duration) -> Result<Timing, TimingError> {
        if lease.is_zero() || lease.subsec_nanos() != 0 || i32::try_from(lease.as_secs()).is_err() {
            return Err(TimingError::NotWhole(lease));
        }
        if renew >= lease {
            return Err(TimingError::TooLong { renew, lease });
        }
        if retry.is_zero() || retry >= renew / 2 {
            return Err(TimingError::TooRare { retry, renew });
        }
        Ok(Timing { lease, renew, retry })
    }

    /// How long others wait after they saw the Lease change.
    pub(crate) fn lease(&self) -> Duration {
        self.lease
    }

    /// The same as the Lease says it.
    pub(crate) fn lease_seconds(&self) -> i32 {
        i32::try_from(self.lease.as_secs()).unwrap_or(i32::MAX)
    }

    /// How long a holder may work after it sent its last good renewal.
    pub(crate) fn renew(&self) -> Duration {
        self.renew
    }

    /// How often the Lease is renewed or looked at.
    pub(crate) fn retry(&self) -> Duration {
        self.retry
    }

    /// The most that one request may take: a second one must fit in before the deadline.
    pub fn request(&self) -> Duration {
        self.renew / 2
    }
}

impl Default for Timing {
    fn default() -> Timing {
        Timing { lease: Duration::from_secs(15), renew: Duration::from_secs(10), retry: Duration::from_secs(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_must_fit_together() {
        let timing = |lease, renew, retry| {
            Timing::new(Duration::from_millis(lease), Duration::from_millis(renew), Duration::from_millis(retry))
        };
        assert_eq!(timing(15_000, 10_000, 2_000), Ok(Timing::default()));
        for lease in [0, 500, 1_500] {
            assert!(matches!(timing(lease, 10, 2), Err(TimingError::NotWhole(_))), "{lease}");
        }
        assert!(matches!(timing(10_000, 10_000, 2_000), Err(TimingError::TooLong { .. })));
        for retry in [0, 5_000, 20_000] {
            assert!(matches!(timing(15_000, 10_000, retry), Err(TimingError::TooRare { .. })), "{retry}");
        }
    }
}
