//! Durations in objects, as the clock here counts them. How they are read is the model's business.

use jiff::SignedDuration;
use tenon_model::{DurationError, Timespan, TimespanOrNever};

/// A duration as `terminationGracePeriod` and a budget's `duration` have it: whole hours, minutes and seconds. One that
/// is too long to count is the longest.
pub fn parse_duration(text: &str) -> Result<SignedDuration, DurationError> {
    text.parse().map(|span: Timespan| of(&span))
}

/// A duration as `consolidateAfter` and `expireAfter` have it; `Never` is none.
pub fn parse_duration_or_never(text: &str) -> Result<Option<SignedDuration>, DurationError> {
    Ok(match text.parse()? {
        TimespanOrNever::Never => None,
        TimespanOrNever::After(span) => Some(of(&span)),
    })
}

fn of(span: &Timespan) -> SignedDuration {
    i64::try_from(span.as_seconds()).map_or(SignedDuration::MAX, SignedDuration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_arrive_in_the_unit_of_the_clock() {
        assert_eq!(parse_duration("1h30m"), Ok(SignedDuration::from_secs(5400)));
        assert_eq!(parse_duration_or_never("Never"), Ok(None));
        assert_eq!(parse_duration_or_never("5s"), Ok(Some(SignedDuration::from_secs(5))));
        assert!(parse_duration("Never").is_err() && parse_duration_or_never("1d").is_err());
        assert_eq!(parse_duration(&format!("{}h", "9".repeat(60))), Ok(SignedDuration::MAX));
    }
}
