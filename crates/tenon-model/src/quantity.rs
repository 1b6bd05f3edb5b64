//! Amounts of resources: adding, comparing and printing them as Kubernetes does.
//!
//! A quantity is kept as a whole number of billionths, so that adding and comparing are exact; that is enough for ten to
//! the power of 29, and what is larger stays there. How it was written (`1Gi`, `1e9`, `1G`) is kept for printing and
//! matters to nothing else. The grammar is in `quantity_text.rs`.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::Sum;
use std::ops::{Add, Neg, Sub};
use std::str::FromStr;

use crate::quantity_text::{self, QuantityError};

/// Billionths in one.
pub(crate) const NANO: i128 = 1_000_000_000;

/// Suffixes of powers of a thousand, from a billionth on.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// Suffixes of powers of 1,024, from one on.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// How an amount was written, which is how it is printed again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QuantityFormat {
    /// With powers of a thousand: `500m`, `2`, `3G`.
    #[default]
    DecimalSi,
    /// With powers of 1,024: `2Gi`.
    BinarySi,
    /// With an exponent: `5e3`.
    DecimalExponent,
}

/// An amount of something: cores, bytes, pods. Equal amounts are equal however they are written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quantity {
    nanos: i128,
    format: QuantityFormat,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Quantity = Quantity { nanos: 0, format: QuantityFormat::DecimalSi };

    /// A whole amount.
    pub fn whole(amount: i64) -> Quantity {
        Quantity { nanos: i128::from(amount) * NANO, ..Quantity::ZERO }
    }

    /// An amount in thousandths, such as millicores.
    pub fn milli(thousandths: i64) -> Quantity {
        Quantity { nanos: i128::from(thousandths) * (NANO / 1_000), ..Quantity::ZERO }
    }

    /// A whole number of bytes, printed with powers of 1,024 where that leaves no fraction.
    pub fn bytes(amount: i64) -> Quantity {
        Quantity::whole(amount).with_format(QuantityFormat::BinarySi)
    }

    pub(crate) fn of_nanos(nanos: i128, format: QuantityFormat) -> Quantity {
        Quantity { nanos, format }
    }

    /// The same amount, printed in another way.
    #[must_use]
    pub fn with_format(self, format: QuantityFormat) -> Quantity {
        Quantity { format, ..self }
    }

    /// How it was written.
    pub fn format(self) -> QuantityFormat {
        self.format
    }

    /// How the API server writes a quantity back that was sent to it as this text.
    ///
    /// Mostly that is the printed [`Quantity`], for any number of digits; but what the server takes for canonical keeps
    /// its spelling (`+1`, `007`, `1.500`), and a plain decimal above what `E` reaches loses its zeros there.
    pub fn as_stored(text: &str) -> Result<String, QuantityError> {
        quantity_text::as_stored(text)
    }

    /// The amount as a whole number, rounded up.
    pub fn value(self) -> i64 {
        self.rounded_up(NANO)
    }

    /// The amount in thousandths, rounded up.
    pub fn milli_value(self) -> i64 {
        self.rounded_up(NANO / 1_000)
    }

    /// The amount in billionths.
    pub fn nanos(self) -> i128 {
        self.nanos
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether it is less than nothing.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// This amount, but nothing where it would be less.
    #[must_use]
    pub fn at_least_zero(self) -> Quantity {
        if self.is_negative() { Quantity::ZERO } else { self }
    }

    /// So many times this amount.
    #[must_use]
    pub fn times(self, count: u32) -> Quantity {
        Quantity { nanos: self.nanos.saturating_mul(i128::from(count)), ..self }
    }

    fn rounded_up(self, unit: i128) -> i64 {
        let away = if self.nanos % unit == 0 { 0 } else { self.nanos.signum() };
        i64::try_from(self.nanos / unit + away).unwrap_or(if self.nanos < 0 { i64::MIN } else { i64::MAX })
    }

    /// What a sum is printed as: nothing plus something is written like the something.
    fn joined_format(self, other: Quantity) -> QuantityFormat {
        if self.is_zero() { other.format } else { self.format }
    }

    /// Whether it is printed with powers of 1,024: only what is large enough and leaves no fraction.
    fn prints_binary(self) -> bool {
        self.format == QuantityFormat::BinarySi && self.nanos % NANO == 0 && self.nanos.abs() >= 1024 * NANO
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl Add for Quantity {
    type Output = Quantity;

    fn add(self, other: Quantity) -> Quantity {
        Quantity { nanos: self.nanos.saturating_add(other.nanos), format: self.joined_format(other) }
    }
}

impl Sub for Quantity {
    type Output = Quantity;

    fn sub(self, other: Quantity) -> Quantity {
        Quantity { nanos: self.nanos.saturating_sub(other.nanos), format: self.joined_format(other) }
    }
}

impl Neg for Quantity {
    type Output = Quantity;

    fn neg(self) -> Quantity {
        Quantity { nanos: self.nanos.saturating_neg(), ..self }
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Quantity>>(amounts: I) -> Quantity {
        amounts.fold(Quantity::ZERO, Add::add)
    }
}

impl fmt::Display for Quantity {
    /// The canonical form: the largest unit that leaves no fraction, in the way the amount was written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        if self.prints_binary() {
            let (amount, times) = reduced(self.nanos / NANO, 1_024, BINARY.len() - 1);
            return write!(f, "{amount}{}", BINARY.get(times).copied().unwrap_or_default());
        }
        let is_exponent = self.format == QuantityFormat::DecimalExponent;
        let most = if is_exponent { usize::MAX } else { DECIMAL.len() - 1 };
        let (amount, times) = reduced(self.nanos, 1_000, most);
        match DECIMAL.get(times) {
            Some(suffix) if !is_exponent => write!(f, "{amount}{suffix}"),
            _ if times == 3 => write!(f, "{amount}"),
            _ => write!(f, "{amount}e{}", i64::try_from(times * 3).unwrap_or(i64::MAX) - 9),
        }
    }
}

/// The amount without its factors of `base`, and how many there were; at most so many are taken out.
fn reduced(mut amount: i128, base: i128, most: usize) -> (i128, usize) {
    let mut times = 0;
    while amount != 0 && amount % base == 0 && times < most {
        amount /= base;
        times += 1;
    }
    (amount, times)
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Quantity, QuantityError> {
        quantity_text::read(text)
    }
}
