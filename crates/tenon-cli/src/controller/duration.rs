//! How long is `1m30s`? Durations as Go writes them, because the reference's manifests do.

use std::time::Duration;

/// A unit and its length in nanoseconds. Both signs for micro are in use.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Fractions finer than this are cut off: the longest unit has fewer nanoseconds than this.
const FRACTION_DIGITS: usize = 18;

const EXAMPLE: &str = "give a duration such as 1s, 500ms or 1m30s";

/// Reads a duration: numbers, each with its unit. An error says how to write one.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    if text.is_empty() {
        return Err(format!("the duration is empty; {EXAMPLE}"));
    }
    if text.starts_with(['-', '+']) {
        return Err(format!("a duration has no sign; {EXAMPLE}"));
    }
    // The one number that means the same in every unit.
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut total: u128 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (nanos, after) = term(rest)?;
        total = total.saturating_add(nanos);
        rest = after;
    }
    // Go counts nanoseconds in a signed word; what it refuses is refused here.
    let nanos = u64::try_from(total).ok().filter(|nanos| i64::try_from(*nanos).is_ok());
    nanos.map(Duration::from_nanos).ok_or_else(|| "the duration is too long; the maximum is 290 years".to_owned())
}

/// The same for what must take some time.
pub(super) fn parse_positive(text: &str) -> Result<Duration, String> {
    parse(text).and_then(
        |duration| if duration.is_zero() { Err(format!("the duration is 0; {EXAMPLE}")) } else { Ok(duration) },
    )
}

/// The first number with its unit in nanoseconds, and what comes after them.
fn term(text: &str) -> Result<(u128, &str), String> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), digits);
    if whole.is_empty() && fraction.is_empty() {
        return Err(format!("`{text}` does not begin with a number; {EXAMPLE}"));
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    if name.is_empty() {
        return Err(format!("the unit is missing; {EXAMPLE}"));
    }
    let Some((_, unit)) = UNITS.iter().find(|(known, _)| *known == name) else {
        return Err(format!("unknown unit `{name}` (known units: ns, us, ms, s, m, h); {EXAMPLE}"));
    };
    let unit = u128::from(*unit);
    // More digits than fit are more than any duration has, and saturate to what is refused.
    let whole = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(u128::MAX) };
    let fraction = &fraction[..fraction.len().min(FRACTION_DIGITS)];
    let part = fraction.bytes().fold(0, |sum, digit| sum * 10 + u128::from(digit - b'0')) * unit;
    let scale = fraction.bytes().fold(1, |scale: u128, _| scale * 10);
    Ok((whole.saturating_mul(unit).saturating_add(part / scale), after))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_take_some_time_cannot_take_none() {
        assert_eq!(parse_positive("30s"), Ok(Duration::from_secs(30)));
        for text in ["0", "0s", "0.0000000001s"] {
            assert!(parse_positive(text).unwrap_err().starts_with("the duration is 0; give"), "{text}");
        }
    }

    #[test]
    fn a_duration_is_read_as_go_reads_it() {
        for (text, nanos) in [
            ("0", 0),
            ("0s", 0),
            ("1s", 1_000_000_000),
            ("500ms", 500_000_000),
            ("1m30s", 90_000_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("7ns", 7),
            ("7us", 7_000),
            ("7µs", 7_000),
            ("7μs", 7_000),
            ("1h2m3.004s", 3_723_004_000_000),
            ("0.3333333333333333333333333h", 1_199_999_999_999),
            ("9223372036854775807ns", i64::MAX.unsigned_abs()),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_says_how_to_write_one() {
        for (text, words) in [
            ("", "the duration is empty"),
            ("-1s", "has no sign"),
            ("+1s", "has no sign"),
            ("10", "the unit is missing"),
            ("1m30", "the unit is missing"),
            ("s", "does not begin with a number"),
            (".s", "does not begin with a number"),
            ("1 s", "unknown unit ` s`"),
            ("1d", "unknown unit `d`"),
            ("1S", "unknown unit `S`"),
            ("1s-2s", "unknown unit `s-`"),
            ("9223372036854775808ns", "290 years"),
            ("999999999999999999999999999999999999999999h", "290 years"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
