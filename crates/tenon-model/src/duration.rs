//! How long is `1h30m`? Durations as the fields of our objects and Go's own parser write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

const SECOND: u128 = 1_000_000_000;

/// Nanoseconds of each unit that a field of ours may name.
const OF_FIELDS: &[(&str, u128)] = &[("s", SECOND), ("m", 60 * SECOND), ("h", 3600 * SECOND)];
/// Nanoseconds of each unit Go knows; its microsecond has two code points for its first letter.
const OF_GO: &[(&str, u128)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
];

/// A duration as Go's `time.ParseDuration` reads it and `time.Duration` prints it: a sign, fractions, units from `ns` to
/// `h`, at most 64 bits of nanoseconds. Annotations of pods have this form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoDuration {
    nanos: i64,
}

/// A duration as a field of ours has it: whole hours, minutes and seconds. The text stays what it was, so that writing
/// an object back changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timespan {
    text: String,
    seconds: u64,
}

/// The same, or the word that switches something off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimespanOrNever {
    /// Off.
    Never,
    /// So long.
    After(Timespan),
}

/// A text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration; use hours, minutes and seconds, such as 1h30m")]
pub struct DurationError {
    /// What was given.
    pub text: String,
}

impl GoDuration {
    /// So many nanoseconds.
    pub fn from_nanos(nanos: i64) -> GoDuration {
        GoDuration { nanos }
    }

    /// How many nanoseconds it has.
    pub fn as_nanos(self) -> i64 {
        self.nanos
    }
}

impl FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<GoDuration, DurationError> {
        let refused = || DurationError { text: text.to_owned() };
        let (is_negative, amount) = match text.strip_prefix('-') {
            Some(amount) => (true, amount),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        // Zero is the only amount that needs no unit.
        let nanos = if amount == "0" { 0 } else { sum(amount, OF_GO).ok_or_else(refused)? };
        let nanos = i128::try_from(nanos).map_err(|_| refused())?;
        let nanos = i64::try_from(if is_negative { -nanos } else { nanos }).map_err(|_| refused())?;
        Ok(GoDuration { nanos })
    }
}

impl fmt::Display for GoDuration {
    /// As Go prints it: `1h30m0s`, `1.5s`, `100µs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = u128::from(self.nanos.unsigned_abs());
        let sign = if self.nanos < 0 { "-" } else { "" };
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{sign}{nanos}ns"),
            1_000..1_000_000 => write!(f, "{sign}{}\u{b5}s", Fraction { nanos, unit: 1_000 }),
            1_000_000..SECOND => write!(f, "{sign}{}ms", Fraction { nanos, unit: 1_000_000 }),
            _ => {
                let (minutes, rest) = (nanos / (60 * SECOND), nanos % (60 * SECOND));
                let hours = if minutes >= 60 { format!("{}h", minutes / 60) } else { String::new() };
                let minutes = if minutes > 0 { format!("{}m", minutes % 60) } else { String::new() };
                write!(f, "{sign}{hours}{minutes}{}s", Fraction { nanos: rest, unit: SECOND })
            }
        }
    }
}

/// Nanoseconds as a number of a larger unit, without zeros at the end.
struct Fraction {
    nanos: u128,
    unit: u128,
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.nanos / self.unit)?;
        let digits = self.unit.to_string().len() - 1;
        let fraction = format!("{:0digits$}", self.nanos % self.unit);
        let fraction = fraction.trim_end_matches('0');
        if fraction.is_empty() { Ok(()) } else { write!(f, ".{fraction}") }
    }
}

impl Timespan {
    /// How many seconds it has. An amount too large to count is the largest: whoever wrote it meant "practically for
    /// ever".
    pub fn as_seconds(&self) -> u64 {
        self.seconds
    }

    /// The same, to count moments with.
    pub fn as_duration(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// The text it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Timespan {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Timespan, DurationError> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let nanos = if is_plain { sum(text, OF_FIELDS) } else { None };
        let nanos = nanos.ok_or_else(|| DurationError { text: text.to_owned() })?;
        Ok(Timespan { text: text.to_owned(), seconds: u64::try_from(nanos / SECOND).unwrap_or(u64::MAX) })
    }
}

impl fmt::Display for Timespan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for TimespanOrNever {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<TimespanOrNever, DurationError> {
        if text == "Never" { Ok(TimespanOrNever::Never) } else { text.parse().map(TimespanOrNever::After) }
    }
}

impl fmt::Display for TimespanOrNever {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimespanOrNever::Never => f.write_str("Never"),
            TimespanOrNever::After(span) => span.fmt(f),
        }
    }
}

/// The sum of all amounts with their units; nothing if anything else is in the text, or the text is empty.
fn sum(text: &str, units: &[(&str, u128)]) -> Option<u128> {
    let mut rest = text;
    let mut total: u128 = 0;
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

fn number(digits: &str) -> u128 {
    digits.bytes().fold(0, |number: u128, digit| number.saturating_mul(10).saturating_add(u128::from(digit - b'0')))
}

/// The digits after a point, of a unit with so many nanoseconds. Go counts them in floating point, as long as they fit
/// into 63 bits, and so do we: `0.9999999999999999s` is a second.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "to lose the same digits as Go"
)]
fn part(digits: &str, nanos: u128) -> u128 {
    let (mut number, mut scale) = (0_u64, 1_f64);
    for digit in digits.bytes().map(|byte| u64::from(byte - b'0')) {
        let next = Some(number).filter(|number| *number <= (i64::MAX as u64) / 10).map(|number| number * 10 + digit);
        let Some(next) = next.filter(|next| *next <= 1 << 63) else { break };
        number = next;
        scale *= 10.0;
    }
    (number as f64 * (nanos as f64 / scale)) as u128
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(text: &str) -> DurationError {
        DurationError { text: text.to_owned() }
    }

    #[test]
    fn amounts_add_up_in_any_order_and_as_often_as_they_are_named() {
        for (text, seconds) in [("0s", 0), ("1h30m", 5400), ("30m1h", 5400), ("1m1m1m", 180), ("007s", 7)] {
            let span: Timespan = text.parse().unwrap();
            assert_eq!((span.as_seconds(), span.as_str()), (seconds, text));
            assert_eq!(text.parse::<GoDuration>().unwrap().as_nanos(), i64::try_from(seconds).unwrap() * 1_000_000_000);
        }
    }

    #[test]
    fn a_field_takes_no_more_than_its_pattern_does() {
        for text in ["", "0", "5", "s", "5ms", "1.5h", "-1h", "+1h", "1h ", "1d", "1h5", "never", "Never", "٣s", "5µs"]
        {
            assert_eq!(text.parse::<Timespan>(), Err(refused(text)));
        }
        assert_eq!("Never".parse(), Ok(TimespanOrNever::Never));
        assert_eq!("5s".parse::<TimespanOrNever>().unwrap().to_string(), "5s");
        assert!("never".parse::<TimespanOrNever>().is_err());
    }

    #[test]
    fn an_annotation_takes_what_go_takes_and_prints_what_go_prints() {
        for (text, nanos, printed) in [
            ("0", 0, "0s"),
            ("-0", 0, "0s"),
            ("1.5h", 5_400_000_000_000, "1h30m0s"),
            (".5s", 500_000_000, "500ms"),
            ("5.s", 5_000_000_000, "5s"),
            ("-1.5s", -1_500_000_000, "-1.5s"),
            ("-2m3.5s", -123_500_000_000, "-2m3.5s"),
            ("1us2µs3μs", 6_000, "6µs"),
            ("1ms1ns", 1_000_001, "1.000001ms"),
            ("0.999999999s", 999_999_999, "999.999999ms"),
            ("0.9999999999999999999999s", 1_000_000_000, "1s"),
            ("0.1ns", 0, "0s"),
            ("61m", 3_660_000_000_000, "1h1m0s"),
            ("7ns", 7, "7ns"),
            ("9223372036854775807ns", i64::MAX, "2562047h47m16.854775807s"),
            ("-9223372036854775808ns", i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            let duration: GoDuration = text.parse().unwrap();
            assert_eq!((duration.as_nanos(), duration.to_string().as_str()), (nanos, printed), "{text}");
        }
        let too_long = ["2562048h", "9223372036854775808ns", "99999999999999999999999999999999999999999h"];
        let malformed = ["", "-", "3", ".", ".s", "1.5", "1h 2m", "1d", "--1s", "+-1s", "1e3s", "true", "1.1.1s"];
        for text in malformed.into_iter().chain(too_long) {
            assert_eq!(text.parse::<GoDuration>(), Err(refused(text)));
        }
    }

    #[test]
    fn a_field_that_is_too_long_to_count_is_the_longest() {
        let nines = "9".repeat(60);
        assert_eq!(format!("{nines}h{nines}h").parse::<Timespan>().unwrap().as_seconds(), u64::MAX);
    }

    proptest! {
        #[test]
        fn printing_and_reading_agree(nanos in prop_oneof![any::<i64>(), -10_000_000_i64..10_000_000]) {
            let duration = GoDuration::from_nanos(nanos);
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn a_field_keeps_its_text(text in "([0-9]{1,4}[smh]){1,4}") {
            prop_assert_eq!(text.parse::<Timespan>().unwrap().to_string(), text);
        }
    }
}
