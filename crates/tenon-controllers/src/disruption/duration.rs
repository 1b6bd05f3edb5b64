//! How long is `1h30m`? Durations as our objects and Go's own parser write them.
//!
//! An amount too large to count is the longest one there is: whoever wrote it meant "practically for ever".

use jiff::SignedDuration;

/// Nanoseconds of each unit that a field of ours may name.
const OF_FIELDS: &[(&str, i128)] = &[("s", SECOND), ("m", 60 * SECOND), ("h", 3600 * SECOND)];
/// Nanoseconds of each unit Go knows; its microsecond has two code points for its first letter.
const OF_GO: &[(&str, i128)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
];
const SECOND: i128 = 1_000_000_000;
/// Digits after the point that can matter: an hour has fewer than 10^13 nanoseconds.
const FRACTION_DIGITS: usize = 15;

/// A text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration of hours, minutes and seconds such as 1h30m")]
pub struct BadDuration(pub String);

/// A duration as `terminationGracePeriod` and a budget's `duration` have it: whole hours, minutes and seconds.
pub fn parse_duration(text: &str) -> Result<SignedDuration, BadDuration> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let nanos = if is_plain { sum(text, OF_FIELDS) } else { None };
    nanos.map(to_duration).ok_or_else(|| BadDuration(text.to_owned()))
}

/// A duration as `consolidateAfter` and `expireAfter` have it; `Never` is none.
pub fn parse_duration_or_never(text: &str) -> Result<Option<SignedDuration>, BadDuration> {
    if text == "Never" { Ok(None) } else { parse_duration(text).map(Some) }
}

/// A duration as Go's `time.ParseDuration` reads it: a sign, fractions, units from `ns` to `h`.
pub fn parse_go_duration(text: &str) -> Option<SignedDuration> {
    let (sign, amount) = match text.strip_prefix('-') {
        Some(amount) => (-1, amount),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    // Zero is the only amount that needs no unit.
    let nanos = if amount == "0" { 0 } else { sum(amount, OF_GO)? };
    Some(to_duration(nanos.saturating_mul(sign)))
}

/// The sum of all amounts with their units; nothing if anything else is in the text, or the text is empty.
fn sum(text: &str, units: &[(&str, i128)]) -> Option<i128> {
    let mut rest = text;
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), split_digits);
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = after.find(|char: char| char == '.' || char.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (_, nanos) = units.iter().find(|(name, _)| *name == unit)?;
        total = total.saturating_add(number(whole).saturating_mul(*nanos)).saturating_add(part(fraction, *nanos));
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len()))
}

fn number(digits: &str) -> i128 {
    digits.bytes().fold(0, |number: i128, digit| number.saturating_mul(10).saturating_add(i128::from(digit - b'0')))
}

/// The digits after a point, of a unit with so many nanoseconds.
fn part(digits: &str, nanos: i128) -> i128 {
    let digits = &digits[..digits.len().min(FRACTION_DIGITS)];
    let scale = digits.bytes().fold(1, |scale: i128, _| scale * 10);
    number(digits) * nanos / scale
}

fn to_duration(nanos: i128) -> SignedDuration {
    let limit = if nanos < 0 { SignedDuration::MIN } else { SignedDuration::MAX };
    SignedDuration::try_from_nanos_i128(nanos).unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_add_up_in_any_order_and_as_often_as_they_are_named() {
        for (text, seconds) in [("0s", 0), ("1h30m", 5400), ("30m1h", 5400), ("1m1m1m", 180), ("007s", 7)] {
            assert_eq!(parse_duration(text), Ok(SignedDuration::from_secs(seconds)), "{text}");
            assert_eq!(parse_go_duration(text), Some(SignedDuration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn a_field_takes_no_more_than_its_pattern_does() {
        for text in ["", "0", "5", "s", "5ms", "1.5h", "-1h", "+1h", "1h ", "1d", "1h5", "never", "Never", "٣s", "5µs"]
        {
            assert_eq!(parse_duration(text), Err(BadDuration(text.to_owned())));
        }
        assert_eq!(parse_duration_or_never("Never"), Ok(None));
        assert_eq!(parse_duration_or_never("5s"), Ok(Some(SignedDuration::from_secs(5))));
        assert!(parse_duration_or_never("never").is_err());
    }

    #[test]
    fn an_annotation_takes_what_go_takes() {
        for (text, nanos) in [
            ("0", 0),
            ("-0", 0),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("5.s", 5_000_000_000),
            ("-2m3.5s", -123_500_000_000),
            ("1us2µs3μs", 6_000),
            ("1ms1ns", 1_000_001),
            ("0.9999999999999999999999s", 999_999_999),
        ] {
            assert_eq!(parse_go_duration(text).unwrap().as_nanos(), nanos, "{text}");
        }
        for text in ["", "-", "3", ".", ".s", "1.5", "1h 2m", "1d", "--1s", "+-1s", "1e3s", "true", "1.1.1s"] {
            assert_eq!(parse_go_duration(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_too_long_to_count_is_the_longest() {
        let nines = "9".repeat(60);
        assert_eq!(parse_duration(&format!("{nines}h{nines}h")), Ok(SignedDuration::MAX));
        assert_eq!(parse_go_duration(&format!("-{nines}h")), Some(SignedDuration::MIN));
    }
}
