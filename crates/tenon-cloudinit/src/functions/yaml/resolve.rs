//! Would a plain string be read back as a string?
//!
//! The library asks as a reader of YAML 1.2 and adds what readers of 1.1 take for booleans and for numbers that count
//! in sixties.

use super::timestamp::is_timestamp;

const NULLS: [&str; 5] = ["", "~", "null", "Null", "NULL"];
const BOOLS: [&str; 6] = ["true", "True", "TRUE", "false", "False", "FALSE"];
const OLD_BOOLS: [&str; 16] =
    ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF"];
const NANS: [&str; 3] = [".nan", ".NaN", ".NAN"];
const INFINITIES: [&str; 3] = [".inf", ".Inf", ".INF"];

/// Whether every reader takes the plain text for a string.
pub(super) fn is_read_as_string(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_name = NULLS.contains(&text)
        || BOOLS.contains(&text)
        || OLD_BOOLS.contains(&text)
        || NANS.contains(&text)
        || INFINITIES.contains(&unsigned);
    !(is_name || is_number(text) || is_sexagesimal(unsigned) || is_timestamp(text))
}

fn is_number(text: &str) -> bool {
    if text.starts_with('.') {
        return has_digits_around_lines(text) && is_float(&text.replace('_', ""));
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '-') {
        return false;
    }
    let plain = text.replace('_', "");
    is_integer(&plain) || is_float(&plain) || is_prefixed(&plain)
}

/// Whether every underscore divides two digits.
fn has_digits_around_lines(text: &str) -> bool {
    let mut parts = text.split('_').peekable();
    let mut is_first = true;
    while let Some(part) = parts.next() {
        let starts = is_first || part.starts_with(|c: char| c.is_ascii_digit());
        let ends = parts.peek().is_none() || part.ends_with(|c: char| c.is_ascii_digit());
        if !starts || !ends {
            return false;
        }
        is_first = false;
    }
    true
}

/// What Go reads as an integer when the text names its own base.
fn is_integer(text: &str) -> bool {
    let (sign, digits) = split_sign(text);
    let (base, digits) = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, digits.get(2..).unwrap_or_default()),
        Some("0b") => (2, digits.get(2..).unwrap_or_default()),
        Some("0o") => (8, digits.get(2..).unwrap_or_default()),
        Some(_) if digits.starts_with('0') => (8, digits),
        _ => (10, digits),
    };
    let Some(number) = magnitude(digits, base) else { return false };
    match sign {
        None => number <= u128::from(u64::MAX),
        Some('-') => number <= 1 << 63,
        Some(_) => number < 1 << 63,
    }
}

/// A base in front of a number with a sign of its own, which the library reads as well.
fn is_prefixed(text: &str) -> bool {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (base, rest) = match (rest.strip_prefix("0b"), rest.strip_prefix("0o")) {
        (Some(rest), _) => (2, rest),
        (None, Some(rest)) => (8, rest),
        (None, None) => return false,
    };
    let (sign, digits) = split_sign(rest);
    if negative && sign.is_some() {
        return false;
    }
    let limit = if negative || sign == Some('-') { 1 << 63 } else { (1 << 63) - 1 };
    magnitude(digits, base).is_some_and(|number| number <= limit)
}

fn split_sign(text: &str) -> (Option<char>, &str) {
    match text.chars().next() {
        Some(sign @ ('+' | '-')) => (Some(sign), text.get(1..).unwrap_or_default()),
        _ => (None, text),
    }
}

fn magnitude(digits: &str, base: u32) -> Option<u128> {
    // A sign that is left over would be taken for part of the number.
    digits.starts_with(|c: char| c.is_ascii_hexdigit()).then(|| u128::from_str_radix(digits, base).ok()).flatten()
}

/// Digits with at most one point, perhaps an exponent, and small enough for a float.
fn is_float(text: &str) -> bool {
    let (_, unsigned) = split_sign(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(split_sign(exponent).1)),
        None => (unsigned, None),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits(whole)
        && all_digits(part)
        && !(whole.is_empty() && part.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && all_digits(exponent))
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// `12:30:45.6`: hours, minutes and seconds as one number.
fn is_sexagesimal(unsigned: &str) -> bool {
    let mut parts = unsigned.split(':');
    let first = parts.next().unwrap_or_default();
    let digits_and_lines = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    if !first.starts_with(|c: char| c.is_ascii_digit()) || !digits_and_lines(first) {
        return false;
    }
    let mut rest: Vec<&str> = parts.collect();
    let Some(last) = rest.pop() else { return false };
    let (last, part) = last.split_once('.').unwrap_or((last, ""));
    digits_and_lines(part) && rest.into_iter().chain([last]).all(is_sixtieth)
}

fn is_sixtieth(text: &str) -> bool {
    match text.as_bytes() {
        [units] => units.is_ascii_digit(),
        [tens, units] => (b'0'..=b'5').contains(tens) && units.is_ascii_digit(),
        _ => false,
    }
}
