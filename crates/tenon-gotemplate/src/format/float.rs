//! How are floating-point and complex numbers printed?

use super::hex_float::{hexadecimal, with_binary_exponent};
use super::printer::Printer;
use crate::{Failure, Value};

/// No `float64` has more decimal places than this that are not zero.
const MAX_PLACES: usize = 1100;
/// Unless something else is asked for: the decimal places of `%e` and `%f`, the digits of `%#g`, and those before the point
/// from which on `%g` goes over to exponents.
const DEFAULT_PRECISION: usize = 6;

/// `strconv.FormatFloat(number, 'g', -1, 64)`: the fewest digits that mean this number and no other.
pub fn float(number: f64) -> String {
    let sign = if number.is_sign_negative() && !number.is_nan() { "-" } else { "" };
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return format!("{}Inf", if sign.is_empty() { "+" } else { sign });
    }
    format!("{sign}{}", general(number.abs(), None))
}

impl Printer<'_> {
    /// Prints a floating-point or complex number for a verb.
    pub(super) fn floats(&mut self, value: &Value, verb: char) -> Result<(), Failure> {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
            return self.bad_verb(value, verb);
        }
        let verb = match verb {
            'v' => 'g',
            'F' => 'f',
            verb => verb,
        };
        match value {
            Value::Float(number) => self.float(*number, verb),
            Value::Complex(real, imaginary) => {
                let plus = self.spec.plus;
                self.out.push("(")?;
                self.float(*real, verb)?;
                self.spec.plus = true;
                self.float(*imaginary, verb)?;
                self.spec.plus = plus;
                self.out.push("i)")
            }
            _ => Ok(()),
        }
    }

    fn float(&mut self, number: f64, verb: char) -> Result<(), Failure> {
        let spec = self.spec;
        let sign = match number.is_sign_negative() && !number.is_nan() {
            true => "-",
            false if spec.plus => "+",
            false if spec.space => " ",
            false => "",
        };
        if !number.is_finite() {
            let (sign, name) =
                if number.is_nan() { (sign, "NaN") } else { (if sign.is_empty() { "+" } else { sign }, "Inf") };
            return spec.without_zeros().pad(self.out, [sign, name].concat().as_bytes());
        }
        if spec.sharp || !matches!(verb, 'g' | 'G' | 'b') {
            self.check_room(spec.precision.unwrap_or_default())?;
        }
        let mut text = magnitude(number.abs(), verb, spec.precision);
        if spec.sharp && verb != 'b' {
            text = with_point(&text, verb, spec.precision);
        }
        match spec.zero_width() {
            // The sign stands before the zeros.
            Some(width) if !sign.is_empty() && width > sign.len() + text.len() => {
                self.out.push(sign)?;
                self.out.fill(b'0', width - sign.len() - text.len())?;
                self.out.push(text)
            }
            _ => self.pad([sign, &text].concat()),
        }
    }
}

/// A number that is not negative.
fn magnitude(number: f64, verb: char, precision: Option<usize>) -> String {
    match verb {
        'b' => with_binary_exponent(number),
        'x' => hexadecimal(number, precision),
        'X' => hexadecimal(number, precision).to_uppercase(),
        'f' => fixed(number, precision.unwrap_or(DEFAULT_PRECISION)),
        'e' => scientific(number, precision.unwrap_or(DEFAULT_PRECISION)),
        'E' => scientific(number, precision.unwrap_or(DEFAULT_PRECISION)).to_uppercase(),
        'G' => general(number, precision).to_uppercase(),
        _ => general(number, precision),
    }
}

fn fixed(number: f64, places: usize) -> String {
    let known = places.min(MAX_PLACES);
    format!("{number:.known$}{}", "0".repeat(places - known))
}

fn scientific(number: f64, places: usize) -> String {
    let known = places.min(MAX_PLACES);
    let text = format!("{number:.known$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    with_exponent(&format!("{digits}{}", "0".repeat(places - known)), exponent.parse().unwrap_or_default())
}

fn with_exponent(digits: &str, exponent: i32) -> String {
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs())
}

/// As few or as many digits as asked for, without zeros at the end, with an exponent if the number is very large or small.
fn general(number: f64, digits: Option<usize>) -> String {
    let places = digits.map(|digits| digits.clamp(1, MAX_PLACES) - 1);
    let text = places.map_or_else(|| shortest(number), |places| format!("{number:.places$e}"));
    let (digits_text, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let mut shown: String = digits_text.chars().filter(char::is_ascii_digit).collect();
    shown.truncate(shown.trim_end_matches('0').len().max(1));
    let limit = digits.unwrap_or(DEFAULT_PRECISION).max(1);
    let Ok(before_point) = usize::try_from(exponent) else {
        if exponent < -4 {
            return with_exponent(&point_after(&shown, 1), exponent);
        }
        return format!("0.{}{shown}", "0".repeat(exponent.unsigned_abs() as usize - 1));
    };
    if before_point >= limit {
        return with_exponent(&point_after(&shown, 1), exponent);
    }
    let zeros = (before_point + 1).saturating_sub(shown.len());
    point_after(&format!("{shown}{}", "0".repeat(zeros)), before_point + 1)
}

/// The fewest digits that mean this number. In the middle between two, Rust takes the upper one and Go the even one.
fn shortest(number: f64) -> String {
    let text = format!("{number:e}");
    let places = text.find('e').unwrap_or_default().saturating_sub("1.".len());
    let even = format!("{number:.places$e}");
    if even.parse() == Ok(number) { even } else { text }
}

/// Sets a point behind that many digits, if more digits follow.
fn point_after(digits: &str, count: usize) -> String {
    match digits.split_at_checked(count) {
        Some((before, after)) if !after.is_empty() => format!("{before}.{after}"),
        _ => digits.to_owned(),
    }
}

/// The same number with a point, and with the zeros that `%g` leaves out.
fn with_point(text: &str, verb: char, precision: Option<usize>) -> String {
    let tail = text.find(if matches!(verb, 'x' | 'X') { ['p', 'P'] } else { ['e', 'E'] }).unwrap_or(text.len());
    let (digits, tail) = text.split_at(tail);
    let point = if digits.contains('.') { "" } else { "." };
    let wanted = match verb {
        'g' | 'G' | 'x' => precision.unwrap_or(DEFAULT_PRECISION),
        _ => 0,
    };
    // Zeros at the start are no digits, but a lone zero is one. Of `0x`, Go counts the letter.
    let counted = match digits {
        "0" => 1,
        _ => digits.trim_start_matches(['0', '.']).chars().filter(|char| *char != '.').count(),
    };
    format!("{digits}{point}{}{tail}", "0".repeat(wanted.saturating_sub(counted)))
}
