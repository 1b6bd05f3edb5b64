//! The grammar of quantities, as Kubernetes reads it: sign, digits, point, digits, suffix.
//!
//! What is finer than a billionth is rounded up, away from zero. Amounts with a binary suffix end at 64 bits.

use crate::quantity::{NANO, Quantity, QuantityFormat};

/// Kubernetes reads up to so many digits into 64 bits, and only then may it keep the text as it was written.
const PLAIN_DIGITS: i64 = 18;
/// The same for digits and suffix of an amount in powers of two.
const PLAIN_BINARY_DIGITS: i64 = 14;
/// The finest power of ten there is.
const FINEST: i64 = -9;
/// More digits than this do not fit into 128 bits.
const MOST_DIGITS: usize = 38;

/// Why a text is no [`Quantity`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a quantity: a number, with an optional suffix such as m, k, Gi or e3")]
pub struct QuantityError {
    /// What was given.
    pub text: String,
}

/// What a suffix multiplies with: a power of ten or of two.
#[derive(Debug, Clone, Copy)]
enum Scale {
    Ten(i64),
    Two(u32),
}

/// A text taken apart. Digits that are not there are zero, to Kubernetes too: `Gi` and `-` are ways to write nothing.
struct Parts<'a> {
    is_negative: bool,
    /// Digits before the point, without leading zeros.
    whole: &'a str,
    /// Digits after it.
    fraction: &'a str,
    scale: Scale,
    format: QuantityFormat,
}

/// Digits times a power of ten that is no finer than a billionth.
struct Decimal {
    digits: String,
    power: i64,
}

pub(crate) fn read(text: &str) -> Result<Quantity, QuantityError> {
    let parts = Parts::of(text)?;
    let (nanos, format) = match parts.scale {
        Scale::Ten(power) => (parts.decimal(power).nanos(), parts.format),
        Scale::Two(power) => parts.binary(power),
    };
    Ok(Quantity::of_nanos(if parts.is_negative { -nanos } else { nanos }, format))
}

pub(crate) fn as_stored(text: &str) -> Result<String, QuantityError> {
    let text = text.trim();
    let parts = Parts::of(text)?;
    if parts.keeps_its_spelling() {
        return Ok(text.to_owned());
    }
    let Scale::Ten(power) = parts.scale else { return read(text).map(|amount| amount.to_string()) };
    let sign = if parts.is_negative { "-" } else { "" };
    Ok(match parts.decimal(power).printed(parts.format) {
        number if number == "0" => number,
        number => format!("{sign}{number}"),
    })
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Result<Parts<'a>, QuantityError> {
        let refused = || QuantityError { text: text.to_owned() };
        let (is_negative, rest) = match text.as_bytes().first().ok_or_else(refused)? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, rest) = split_digits(rest);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        let (scale, format) = scale(suffix).ok_or_else(refused)?;
        // Kubernetes takes a suffix without digits for nothing, but not where it would have to count with many of them.
        let is_bare = whole.is_empty() && fraction.is_empty();
        if is_bare && matches!(scale, Scale::Ten(..FINEST) | Scale::Two(50..)) {
            return Err(refused());
        }
        Ok(Parts { is_negative, whole: whole.trim_start_matches('0'), fraction, scale, format })
    }

    /// Whether Kubernetes takes the text for canonical and writes it back as it is.
    fn keeps_its_spelling(&self) -> bool {
        let length = |digits: &str| i64::try_from(digits.len()).unwrap_or(i64::MAX / 2);
        let whole = length(self.whole).max(1);
        match self.scale {
            Scale::Ten(power) => {
                let power = power - length(self.fraction);
                let is_plain = whole + length(self.fraction) <= PLAIN_DIGITS && power >= FINEST;
                let digits = [self.whole, self.fraction].concat();
                is_plain && power % 3 == 0 && !self.whole.is_empty() && !digits.ends_with("000")
            }
            Scale::Two(power) => {
                let is_plain = self.fraction.is_empty() && whole + i64::from(power * 3 / 10) <= PLAIN_BINARY_DIGITS;
                is_plain && self.whole.parse::<i64>().is_ok_and(|number| number % 8 != 0)
            }
        }
    }

    /// The digits times ten to the power, rounded up to billionths, without zeros at the end.
    fn decimal(&self, power: i64) -> Decimal {
        let digits = [self.whole, self.fraction].concat();
        let digits = digits.trim_start_matches('0');
        let power = power.saturating_sub(i64::try_from(self.fraction.len()).unwrap_or(i64::MAX));
        let excess = usize::try_from(FINEST.saturating_sub(power)).unwrap_or(0);
        let (kept, lost) = digits.split_at(digits.len().saturating_sub(excess));
        let mut kept = kept.to_owned();
        if lost.bytes().any(|digit| digit != b'0') {
            increment(&mut kept);
        }
        let power = power.max(FINEST);
        let zeros = kept.len() - kept.trim_end_matches('0').len();
        kept.truncate(kept.len() - zeros);
        Decimal { digits: kept, power: power.saturating_add(i64::try_from(zeros).unwrap_or(i64::MAX)) }
    }

    /// The amount times two to the power in billionths, rounded up, at most 64 bits of ones; and how it is printed.
    fn binary(&self, power: u32) -> (i128, QuantityFormat) {
        const LIMIT: i128 = i64::MAX as i128;
        let factor = 1_i128 << power;
        // More digits than 64 bits have are above the limit, whatever they are.
        let whole = if self.whole.len() > 19 { LIMIT } else { self.whole.parse().unwrap_or(0_i128) * factor };
        // From the last digit on, each step a tenth of what came before: exact, however many digits there are.
        let (mut part, mut inexact) = (0, false);
        for digit in self.fraction.bytes().rev() {
            let sum = i128::from(digit - b'0') * factor * NANO + part;
            inexact |= sum % 10 != 0;
            part = sum / 10;
        }
        let nanos = whole.min(LIMIT) * NANO + part + i128::from(inexact);
        let nanos = nanos.min(LIMIT * NANO);
        let is_below_one = nanos < NANO && nanos > 0;
        (nanos, if is_below_one { QuantityFormat::DecimalSi } else { self.format })
    }
}

impl Decimal {
    /// In billionths; what does not fit is the largest amount there is.
    fn nanos(&self) -> i128 {
        let shift = self.power.saturating_sub(FINEST);
        let shift = u32::try_from(shift).unwrap_or(u32::MAX);
        let length = self.digits.len().saturating_add(usize::try_from(shift).unwrap_or(usize::MAX));
        match self.digits.parse::<i128>() {
            Ok(digits) if length <= MOST_DIGITS => digits * 10_i128.pow(shift),
            Err(_) if self.digits.is_empty() => 0,
            _ => i128::MAX,
        }
    }

    /// As Kubernetes prints it: the power is made a multiple of three, and becomes the suffix.
    fn printed(mut self, format: QuantityFormat) -> String {
        if self.digits.is_empty() {
            return "0".to_owned();
        }
        while self.power % 3 != 0 {
            self.digits.push('0');
            self.power -= 1;
        }
        let suffix = match (format, self.power) {
            (_, 0) => String::new(),
            (QuantityFormat::DecimalExponent, power) => format!("e{power}"),
            (_, power) => suffix_of(power).to_owned(),
        };
        self.digits + &suffix
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Adds one to a number written in digits; nothing counts as zero.
fn increment(digits: &mut String) {
    let nines = digits.len() - digits.trim_end_matches('9').len();
    digits.truncate(digits.len() - nines);
    let last = digits.pop().and_then(|digit| digit.to_digit(10)).unwrap_or(0);
    digits.push(char::from_digit(last + 1, 10).unwrap_or('1'));
    digits.extend(std::iter::repeat_n('0', nines));
}

const SUFFIXES: [(&str, i64); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

const BINARY_SUFFIXES: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// Kubernetes has no suffix beyond `E` and then writes none.
fn suffix_of(power: i64) -> &'static str {
    SUFFIXES.iter().find(|(_, known)| *known == power).map_or("", |(suffix, _)| *suffix)
}

fn scale(suffix: &str) -> Option<(Scale, QuantityFormat)> {
    if let Some((_, power)) = SUFFIXES.iter().find(|(known, _)| *known == suffix) {
        return Some((Scale::Ten(*power), QuantityFormat::DecimalSi));
    }
    if let Some((_, power)) = BINARY_SUFFIXES.iter().find(|(known, _)| *known == suffix) {
        return Some((Scale::Two(*power), QuantityFormat::BinarySi));
    }
    let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    // Kubernetes reads 64 bits and keeps 32 of them, so that `1e4294967296` is one.
    #[expect(clippy::cast_possible_truncation, reason = "that is what it does")]
    let kept = exponent as i32;
    Some((Scale::Ten(i64::from(kept)), QuantityFormat::DecimalExponent))
}
