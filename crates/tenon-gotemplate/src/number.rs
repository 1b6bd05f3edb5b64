//! Which numbers can a constant stand for?
//!
//! A constant has no type until it meets one: `1` fits an integer as well as a float, `1.5` only the latter.

#[cfg(test)]
mod tests;

use crate::token::Kind;
use crate::{Value, unquote};

/// All that a constant can be.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Number {
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
    pub(crate) complex: Option<(f64, f64)>,
    /// Whether it is written as a float: with a point or an exponent.
    looks_float: bool,
    /// As it was written.
    pub(crate) text: String,
}

impl Number {
    /// Its value where nothing asks for a type: the way it is written decides.
    pub(crate) fn ideal(&self) -> Result<Value, String> {
        match (self.complex, self.float, self.int) {
            (Some((real, imaginary)), ..) => Ok(Value::Complex(real, imaginary)),
            (None, Some(float), _) if self.looks_float => Ok(Value::Float(float)),
            (None, _, Some(int)) => Ok(Value::int(int)),
            _ => Err(format!("{} overflows int", self.text)),
        }
    }
}

/// Reads a constant, or says why it is none.
pub(crate) fn read(text: &str, bytes: &[u8], kind: Kind) -> Result<Number, String> {
    Ok(Number { text: text.to_owned(), ..value(text, bytes, kind)? })
}

fn value(text: &str, bytes: &[u8], kind: Kind) -> Result<Number, String> {
    match kind {
        Kind::Char => {
            let c = unquote::character(bytes).ok_or_else(|| format!("malformed character constant: {text}"))?;
            let code = u32::from(c);
            Ok(Number {
                int: Some(i64::from(code)),
                uint: Some(u64::from(code)),
                float: Some(f64::from(code)),
                ..Number::default()
            })
        }
        Kind::Complex => {
            let parts = split_complex(text).and_then(|(real, imaginary)| Some((float(real)?, float(imaginary)?)));
            let (real, imaginary) = parts.ok_or_else(|| format!("illegal number syntax: {text:?}"))?;
            Ok(complex(real, imaginary))
        }
        _ => plain(text).ok_or_else(|| format!("illegal number syntax: {text:?}"))?,
    }
}

fn plain(text: &str) -> Option<Result<Number, String>> {
    if let Some(imaginary) = text.strip_suffix('i').and_then(float) {
        return Some(Ok(complex(0.0, imaginary)));
    }
    // What Go looks at is the beginning: behind a sign, an `e` among hexadecimal digits makes a float of them.
    let is_hex = text.len() > 2 && (text.starts_with("0x") || text.starts_with("0X")) && !text.contains(['p', 'P']);
    let has_float_sign = text.contains(['.', 'e', 'E', 'p', 'P']);
    let looks_float = has_float_sign && !is_hex;
    let mut number = Number { int: int(text), uint: uint(text), looks_float, ..Number::default() };
    if number.int == Some(0) {
        number.uint = Some(0);
    }
    number.float = match (number.int, number.uint) {
        (Some(int), _) => Some(int_to_float(int)),
        (None, Some(uint)) => Some(uint_to_float(uint)),
        (None, None) => {
            let float = float(text)?;
            if !has_float_sign {
                return Some(Err(format!("integer overflow: {text:?}")));
            }
            number.int = whole(float);
            number.uint = whole_unsigned(float);
            Some(float)
        }
    };
    Some(Ok(number))
}

fn complex(real: f64, imaginary: f64) -> Number {
    let float = (imaginary == 0.0).then_some(real);
    Number {
        int: float.and_then(whole),
        uint: float.and_then(whole_unsigned),
        float,
        complex: Some((real, imaginary)),
        ..Number::default()
    }
}

/// `1+2i` as its two numbers.
fn split_complex(text: &str) -> Option<(&str, &str)> {
    let body = text.strip_suffix('i')?;
    // The sign between the two, and not one of an exponent.
    let is_sign =
        |(at, c): &(usize, char)| matches!(c, '+' | '-') && *at > 0 && !body[..*at].ends_with(['e', 'E', 'p', 'P']);
    let (at, _) = body.char_indices().rfind(is_sign)?;
    Some((&body[..at], &body[at..]))
}

fn int(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let size = i128::from(uint(digits)?);
    i64::try_from(if is_negative { -size } else { size }).ok()
}

/// An unsigned number in Go's spellings; no sign.
fn uint(text: &str) -> Option<u64> {
    if !underscores_separate(text) {
        return None;
    }
    let lower = text.to_ascii_lowercase().replace('_', "");
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (&lower[2..], 16),
        [b'0', b'o', ..] => (&lower[2..], 8),
        [b'0', b'b', ..] => (&lower[2..], 2),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (lower.as_str(), 10),
    };
    // Rust would take a sign here.
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_plain.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

/// Whether every underscore stands between two digits or behind the prefix.
fn underscores_separate(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let prefix =
        body.get(..2).map(str::to_ascii_lowercase).filter(|start| matches!(start.as_str(), "0x" | "0o" | "0b"));
    let is_hex = prefix.as_deref() == Some("0x");
    let is_digit = |byte: u8| byte.is_ascii_digit() || (is_hex && byte.is_ascii_hexdigit());
    let digits = body.get(prefix.as_ref().map_or(0, String::len)..).unwrap_or_default();
    let mut before = if prefix.is_some() { b'0' } else { b'.' };
    for byte in digits.bytes() {
        let fits = if byte == b'_' { is_digit(before) } else { before != b'_' || is_digit(byte) };
        if !fits {
            return false;
        }
        before = byte;
    }
    before != b'_'
}

/// A finite float in Go's spellings.
fn float(text: &str) -> Option<f64> {
    if !underscores_separate(text) || text.is_empty() {
        return None;
    }
    let plain = text.replace('_', "");
    let body = plain.trim_start_matches(['+', '-']);
    let number = if body.to_ascii_lowercase().starts_with("0x") {
        let size = hex_float(&body[2..])?;
        if plain.starts_with('-') { -size } else { size }
    } else {
        // Rust also reads `inf` and `nan`, which are words here.
        let is_number = body.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        is_number.then(|| plain.parse::<f64>().ok()).flatten()?
    };
    number.is_finite().then_some(number)
}

/// `1.8p3`: hexadecimal digits and a power of two.
fn hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = !whole.is_empty() || !part.is_empty();
    let exponent_digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if !is_number || exponent_digits.is_empty() || !exponent_digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // An exponent too large to read is as good as any other that leaves nothing or too much.
    let beyond = if exponent.starts_with('-') { -i64::from(i32::MAX) } else { i64::from(i32::MAX) };
    let mut power = exponent.parse::<i32>().map_or(beyond, i64::from) - 4 * i64::try_from(part.len()).ok()?;
    let mut bits = 0_u64;
    for digit in whole.chars().chain(part.chars()) {
        let digit = u64::from(digit.to_digit(16)?);
        if bits >> (u64::BITS - 4) == 0 {
            bits = bits << 4 | digit;
        } else {
            // No room is left: the last bit only says that something follows.
            bits |= u64::from(digit != 0);
            power += 4;
        }
    }
    Some(power_of_two(bits, power))
}

/// `bits` times two to the power of `power`, rounded to the nearest float; of two, to the even one.
fn power_of_two(bits: u64, power: i64) -> f64 {
    const PLACES: i64 = 53;
    const SMALLEST: i64 = -1074;
    let length = i64::from(u64::BITS - bits.leading_zeros());
    // How many bits are too many for a float of this size.
    let drop = (length - PLACES).max(SMALLEST - power);
    if bits == 0 || drop > length + 1 {
        return 0.0;
    }
    let (kept, power) = if drop <= 0 {
        (u128::from(bits), power)
    } else {
        let wide = u128::from(bits);
        let (kept, half) = (wide >> drop, 1_u128 << (drop - 1));
        let rest = wide & ((half << 1) - 1);
        let rounds_up = rest > half || (rest == half && kept & 1 == 1);
        (kept + u128::from(rounds_up), power + drop)
    };
    let mut float = uint_to_float(u64::try_from(kept).unwrap_or(u64::MAX));
    // Step by step, since the power alone may be no float; every step is exact.
    let mut left = power.clamp(-2200, 2200);
    while left != 0 {
        let step = left.clamp(-1000, 1000);
        float *= 2.0_f64.powi(i32::try_from(step).unwrap_or_default());
        left -= step;
    }
    float
}

/// The integer that a float is, if it is one.
fn whole(float: f64) -> Option<i64> {
    let limit = 9_223_372_036_854_775_808.0;
    let is_whole = float.fract() == 0.0 && float >= -limit && float < limit;
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and lies within the bounds")]
    let int = float as i64;
    is_whole.then_some(int)
}

fn whole_unsigned(float: f64) -> Option<u64> {
    let is_whole = float.fract() == 0.0 && (0.0..18_446_744_073_709_551_616.0).contains(&float);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it lies within the bounds")]
    let uint = float as u64;
    is_whole.then_some(uint)
}

#[expect(clippy::cast_precision_loss, reason = "Go rounds to the nearest float as well")]
fn int_to_float(int: i64) -> f64 {
    int as f64
}

#[expect(clippy::cast_precision_loss, reason = "Go rounds to the nearest float as well")]
fn uint_to_float(uint: u64) -> f64 {
    uint as f64
}
