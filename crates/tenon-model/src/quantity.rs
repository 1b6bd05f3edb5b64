//! Amounts of resources, with the grammar and the rounding of Kubernetes.
//!
//! A quantity is kept as a whole number of billionths, so that adding and comparing are exact. What is finer than that is
//! rounded up, away from zero, as Kubernetes does.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};
use std::str::FromStr;

/// Billionths in one.
const NANO: i128 = 1_000_000_000;

/// Kubernetes keeps quantities within 64 bits; larger ones are cut to this.
const LIMIT: i128 = i64::MAX as i128 * NANO;

/// An amount of something: cores, bytes, pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    nanos: i128,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Quantity = Quantity { nanos: 0 };

    /// A whole amount.
    pub fn whole(amount: i64) -> Quantity {
        Quantity { nanos: i128::from(amount) * NANO }
    }

    /// An amount in thousandths, such as millicores.
    pub fn milli(thousandths: i64) -> Quantity {
        Quantity { nanos: i128::from(thousandths) * (NANO / 1_000) }
    }

    /// The amount as a whole number, rounded up.
    pub fn value(self) -> i64 {
        self.rounded_up(NANO)
    }

    /// The amount in thousandths, rounded up.
    pub fn milli_value(self) -> i64 {
        self.rounded_up(NANO / 1_000)
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// This amount, but nothing where it would be less.
    pub fn at_least_zero(self) -> Quantity {
        self.max(Quantity::ZERO)
    }

    fn rounded_up(self, unit: i128) -> i64 {
        let away = if self.nanos % unit == 0 { 0 } else { self.nanos.signum() };
        i64::try_from(self.nanos / unit + away).unwrap_or(if self.nanos < 0 { i64::MIN } else { i64::MAX })
    }

    fn capped(nanos: i128) -> Quantity {
        Quantity { nanos: nanos.clamp(-LIMIT, LIMIT) }
    }
}

impl Add for Quantity {
    type Output = Quantity;

    fn add(self, other: Quantity) -> Quantity {
        Quantity::capped(self.nanos.saturating_add(other.nanos))
    }
}

impl Sub for Quantity {
    type Output = Quantity;

    fn sub(self, other: Quantity) -> Quantity {
        Quantity::capped(self.nanos.saturating_sub(other.nanos))
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Quantity>>(amounts: I) -> Quantity {
        amounts.fold(Quantity::ZERO, Add::add)
    }
}

impl fmt::Display for Quantity {
    /// The decimal form Kubernetes writes: the largest unit that leaves no fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        let (mut amount, mut unit) = (self.nanos, 0);
        while amount != 0 && amount % 1_000 == 0 && unit + 1 < units.len() {
            amount /= 1_000;
            unit += 1;
        }
        let suffix = if amount == 0 { "" } else { units.get(unit).copied().unwrap_or_default() };
        write!(f, "{amount}{suffix}")
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Quantity, QuantityError> {
        read(text).ok_or_else(|| QuantityError { text: text.to_owned() })
    }
}

/// What a suffix multiplies with: a power of ten or of two.
enum Scale {
    Ten(i32),
    Two(u32),
}

fn read(text: &str) -> Option<Quantity> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, text.get(1..)?),
        b'+' => (1, text.get(1..)?),
        _ => (1, text),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // Digits that are not there are zero, to Kubernetes too: `Gi` and `-` are ways to write nothing.
    if fraction.contains('.') {
        return None;
    }
    let magnitude = match scale(suffix)? {
        Scale::Ten(power) => decimal(whole, fraction, power),
        Scale::Two(power) => binary(whole, fraction, power),
    };
    Some(Quantity::capped(magnitude.saturating_mul(sign)))
}

fn scale(suffix: &str) -> Option<Scale> {
    Some(match suffix {
        "n" => Scale::Ten(-9),
        "u" => Scale::Ten(-6),
        "m" => Scale::Ten(-3),
        "" => Scale::Ten(0),
        "k" => Scale::Ten(3),
        "M" => Scale::Ten(6),
        "G" => Scale::Ten(9),
        "T" => Scale::Ten(12),
        "P" => Scale::Ten(15),
        "E" => Scale::Ten(18),
        "Ki" => Scale::Two(10),
        "Mi" => Scale::Two(20),
        "Gi" => Scale::Two(30),
        "Ti" => Scale::Two(40),
        "Pi" => Scale::Two(50),
        "Ei" => Scale::Two(60),
        exponent => Scale::Ten(exponent.strip_prefix(['e', 'E']).filter(|digits| is_exponent(digits))?.parse().ok()?),
    })
}

fn is_exponent(digits: &str) -> bool {
    let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// `whole.fraction` times ten to the power, in billionths, rounded up; larger than any limit stays there.
fn decimal(whole: &str, fraction: &str, power: i32) -> i128 {
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    // Where the last digit stands, counted in billionths.
    let shift = i64::from(power) + 9 - i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    if digits.is_empty() {
        return 0;
    }
    if i64::try_from(digits.len()).unwrap_or(i64::MAX).saturating_add(shift) > 30 {
        return LIMIT;
    }
    if shift >= 0 {
        return digits.parse::<i128>().unwrap_or(LIMIT) * 10_i128.pow(u32::try_from(shift).unwrap_or(0));
    }
    let cut = digits.len().saturating_sub(usize::try_from(-shift).unwrap_or(usize::MAX));
    let (kept, lost) = digits.split_at(cut);
    let round_up = i128::from(lost.bytes().any(|digit| digit != b'0'));
    kept.parse::<i128>().unwrap_or(0) + round_up
}

/// `whole.fraction` times two to the power, in billionths, rounded up.
fn binary(whole: &str, fraction: &str, power: u32) -> i128 {
    let factor = 1_i128 << power;
    let whole = decimal(whole, "", 0).saturating_mul(factor);
    // From the last digit on, each step a tenth of what came before: exact, however many digits there are.
    let (mut part, mut inexact) = (0, false);
    for digit in fraction.bytes().rev() {
        let sum = i128::from(digit - b'0') * factor * NANO + part;
        inexact |= sum % 10 != 0;
        part = sum / 10;
    }
    whole.saturating_add(part + i128::from(inexact))
}

/// Why a text is no [`Quantity`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a quantity: a number, with an optional suffix such as m, k, Gi or e3")]
pub struct QuantityError {
    text: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Quantity {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn suffixes_mean_what_kubernetes_means() {
        for (text, milli) in [
            ("0", 0),
            ("500m", 500),
            ("0.5", 500),
            (".5", 500),
            ("5.", 5_000),
            ("+1", 1_000),
            ("-1", -1_000),
            ("2k", 2_000_000),
            ("1e3", 1_000_000),
            ("1E3", 1_000_000),
            ("1e-3", 1),
            ("1Ki", 1_024_000),
            ("1.5Ki", 1_536_000),
            ("0.5Mi", 524_288_000),
            ("Gi", 0),
            ("-", 0),
            (".", 0),
        ] {
            assert_eq!(read(text).milli_value(), milli, "{text}");
        }
        assert_eq!(read("1E").value(), 1_000_000_000_000_000_000);
        assert_eq!(read("2Gi").value(), 2_147_483_648);
    }

    #[test]
    fn what_is_finer_than_a_billionth_is_rounded_up() {
        assert_eq!(read("0.0000000001"), read("1n"));
        assert_eq!(read("1.1n"), read("2n"));
        assert_eq!(read("-1.1n"), read("-2n"));
        assert_eq!(read("1n").milli_value(), 1);
        assert_eq!(read("1.0000000001").value(), 2);
        assert_eq!(read("0.00000000001Ki"), read("11n"));
    }

    #[test]
    fn what_is_too_large_is_cut_to_64_bits() {
        for text in ["9223372036854775808", "1e100", "10E", "8Ei", "99999999999999999999999999999999999999999"] {
            assert_eq!(read(text).value(), i64::MAX, "{text}");
        }
        assert_eq!(read("9223372036854775807").value(), i64::MAX);
        assert_eq!(read("-1e100").value(), -i64::MAX);
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "1.2.3", "1 Gi", "1gi", "1K", "1e", "1e+", "1e1.5", "0x10", "1Gi ", "NaN", "1ee3", "--1"] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
    }

    #[test]
    fn it_prints_the_largest_unit_without_a_fraction() {
        for (text, printed) in [
            ("1500m", "1500m"),
            ("2000m", "2"),
            ("1000", "1k"),
            ("1Ki", "1024"),
            ("0.1m", "100u"),
            ("-0.5", "-500m"),
            ("0m", "0"),
        ] {
            assert_eq!(read(text).to_string(), printed, "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_agree(nanos in -1_000_000_000_000_000_000_000_i128..1_000_000_000_000_000_000_000) {
            let quantity = Quantity { nanos };
            prop_assert_eq!(quantity.to_string().parse::<Quantity>(), Ok(quantity));
        }

        #[test]
        fn reading_never_panics(text in "[-+0-9.eEinukKMGTPm]{0,24}") {
            let _ = text.parse::<Quantity>();
        }

        #[test]
        fn adding_is_the_undoing_of_subtracting(a in any::<i32>(), b in any::<i32>()) {
            let (a, b) = (Quantity::milli(a.into()), Quantity::milli(b.into()));
            prop_assert_eq!(a + b - b, a);
        }
    }
}
