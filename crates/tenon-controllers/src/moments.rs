//! Adds to moments, and doubles waits, without overflow. A duration may come from whoever writes an object, and objects hold
//! durations that are longer than time: what goes past the end of time ends there.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Longer than any process runs, and short enough for every clock.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// So long after a moment; the first or the last moment there is where that would be past it.
pub(crate) fn after(moment: Timestamp, span: SignedDuration) -> Timestamp {
    let end = if span.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
    moment.checked_add(span).unwrap_or(end)
}

/// The same for the clock that timers follow.
pub(crate) fn instant_after(moment: Instant, wait: Duration) -> Instant {
    let wait = wait.min(FAR);
    moment.checked_add(wait).unwrap_or(moment)
}

/// How long to wait after this many failures in a row: `first`, and twice as long each time, up to `most`.
pub(crate) fn backoff(first: Duration, most: Duration, failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    first.saturating_mul(1 << doublings).min(most)
}

#[cfg(test)]
mod tests {
    use testbed::mutation::{COUNT, mutations};

    use super::*;
    use crate::disruption::parse_duration;

    #[test]
    fn what_goes_past_the_end_of_time_ends_there() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        assert_eq!(after(now, SignedDuration::from_secs(5)), Timestamp::from_second(1_700_000_005).unwrap());
        assert_eq!(after(now, SignedDuration::MAX), Timestamp::MAX);
        assert_eq!(after(now, SignedDuration::MIN), Timestamp::MIN);
        assert_eq!(after(Timestamp::MAX, SignedDuration::from_nanos(1)), Timestamp::MAX);
        let begun = Instant::now();
        assert_eq!(instant_after(begun, Duration::MAX), begun + FAR);
        assert_eq!(instant_after(begun, Duration::from_secs(1)), begun + Duration::from_secs(1));
    }

    /// What a NodeClaim's terminationGracePeriod comes to.
    #[test]
    fn any_duration_of_an_object_can_be_added_to_any_moment() {
        let corpus = "8h\n99999999999h\n9223372036854775807s\n1h30m\n18446744073709551616h1s\n";
        let read = mutations(corpus, 18, COUNT).filter_map(|text| parse_duration(&text).ok());
        let mut count = 0;
        for span in read {
            for moment in [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
                assert!(after(moment, span) >= moment);
            }
            count += 1;
        }
        assert!(count > COUNT / 10, "only {count} could be read");
    }

    #[test]
    fn waits_double_up_to_a_bound_however_often_something_failed() {
        let wait = |failures| backoff(Duration::from_secs(1), Duration::from_secs(60), failures).as_secs();
        assert_eq!([0, 1, 2, 3, 6, 7, 100, u32::MAX].map(wait), [1, 1, 2, 4, 32, 60, 60, 60]);
    }
}
