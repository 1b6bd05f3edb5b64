//! A moment to the nanosecond, as Kubernetes objects and the clock give it. Decisions are handed the time as one of these.

use std::fmt;
use std::time::Duration;

use crate::calendar::Day;
use crate::launch::Seconds;

const SECOND: i128 = 1_000_000_000;
const DAY_SECONDS: i64 = 24 * 60 * 60;

/// A moment in UTC, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    nanos: i128,
}

impl Timestamp {
    /// The last moment a Kubernetes object can name: adding to a moment ends here.
    pub const MAX: Timestamp = Timestamp { nanos: 253_402_207_200 * SECOND + 999_999_999 };

    /// So many nanoseconds after 1970 began.
    pub fn from_nanos(nanos: i128) -> Timestamp {
        Timestamp { nanos }
    }

    /// Nanoseconds since 1970 began.
    pub fn as_nanos(self) -> i128 {
        self.nanos
    }

    /// The second this moment is in.
    pub fn seconds(self) -> Seconds {
        Seconds(i64::try_from(self.nanos.div_euclid(SECOND)).unwrap_or(i64::MAX))
    }

    /// So long after this moment, at most [`Timestamp::MAX`].
    pub fn after(self, span: Duration) -> Timestamp {
        Timestamp { nanos: self.nanos.saturating_add(nanos_of(span)) }.min(Timestamp::MAX)
    }

    /// So long before this moment.
    pub fn before(self, span: Duration) -> Timestamp {
        Timestamp { nanos: self.nanos.saturating_sub(nanos_of(span)) }
    }

    /// Nanoseconds from `earlier` to this moment, negative if it is later; about 292 years at most.
    pub fn nanos_since(self, earlier: Timestamp) -> i64 {
        let nanos = self.nanos.saturating_sub(earlier.nanos);
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }
}

fn nanos_of(span: Duration) -> i128 {
    i128::try_from(span.as_nanos()).unwrap_or(i128::MAX)
}

impl From<Seconds> for Timestamp {
    fn from(seconds: Seconds) -> Timestamp {
        Timestamp { nanos: i128::from(seconds.0) * SECOND }
    }
}

impl fmt::Display for Timestamp {
    /// As Kubernetes writes it: `2026-03-11T10:10:01Z`, with a fraction only where there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.seconds().0, self.nanos.rem_euclid(SECOND));
        let (day, second) = (Day::of(seconds.div_euclid(DAY_SECONDS)), seconds.rem_euclid(DAY_SECONDS));
        let Day { year, month, day, .. } = day;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        let fraction = format!("{nanos:09}");
        match fraction.trim_end_matches('0') {
            "" => f.write_str("Z"),
            digits => write!(f, ".{digits}Z"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: i128) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn a_moment_prints_as_kubernetes_writes_it() {
        assert_eq!(Timestamp::from(Seconds(1_773_223_801)).to_string(), "2026-03-11T10:10:01Z");
        assert_eq!(at(1_773_223_801_500_000_000).to_string(), "2026-03-11T10:10:01.5Z");
        assert_eq!(at(1_773_223_801_000_000_007).to_string(), "2026-03-11T10:10:01.000000007Z");
        assert_eq!(at(-1).to_string(), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-30T22:00:00.999999999Z");
    }

    #[test]
    fn fractions_of_a_second_count_and_whole_seconds_are_rounded_down() {
        assert!(at(1) < at(2) && at(SECOND - 1) < Timestamp::from(Seconds(1)));
        assert_eq!((at(SECOND - 1).seconds(), at(-1).seconds()), (Seconds(0), Seconds(-1)));
        assert_eq!(at(5).nanos_since(at(7)), -2);
    }

    #[test]
    fn spans_too_long_to_count_end_at_the_last_moment() {
        assert_eq!(at(0).after(Duration::from_secs(u64::MAX)), Timestamp::MAX);
        assert_eq!(at(0).after(Duration::from_nanos(3)), at(3));
        assert!(at(0).before(Duration::from_secs(u64::MAX)) < at(-1));
        assert_eq!(Timestamp::MAX.nanos_since(at(0)), i64::MAX);
        assert_eq!(at(0).nanos_since(Timestamp::MAX), i64::MIN);
    }
}
