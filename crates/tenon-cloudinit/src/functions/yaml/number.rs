//! How are floats written?

use super::super::digits::Digits;

/// Exponents from here up are written with an `e`.
const LARGE_EXPONENT: i32 = 6;
/// Exponents below this are as well.
const SMALL_EXPONENT: i32 = -4;

/// A float as YAML: the shortest digits that give it back, and words for what has none.
pub(super) fn float(number: f64) -> String {
    if number.is_nan() {
        return ".nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let digits = Digits::of(number);
    if digits.exponent < SMALL_EXPONENT || digits.exponent >= LARGE_EXPONENT {
        return digits.scientific(2);
    }
    digits.decimal()
}
