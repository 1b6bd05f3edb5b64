//! How are whole numbers printed?

use super::printable::is_printable;
use super::printer::Printer;
use super::quote::quote_char;
use crate::{Failure, Value};

/// The digits of a code point in `%U`, at least.
const UNICODE_DIGITS: usize = 4;

/// A number in the base that it is printed in.
struct Digits {
    is_negative: bool,
    text: String,
    prefix: Prefix,
}

/// What says which base it is.
enum Prefix {
    /// This text.
    Always(&'static str),
    /// A zero, unless there is one.
    Zero,
    /// `0o`, and behind it perhaps a zero, unless there is one.
    LetterO { with_zero: bool },
}

impl Printer<'_> {
    /// Prints a whole number for a verb.
    pub(super) fn integer(&mut self, value: &Value, verb: char) -> Result<(), Failure> {
        let (number, is_negative) = match value {
            Value::Int(number, _) => (number.unsigned_abs(), *number < 0),
            Value::Uint(number, _) => (*number, false),
            _ => return self.bad_verb(value, verb),
        };
        let sharp = self.spec.sharp;
        let (text, prefix) = match verb {
            'v' if self.spec.source && matches!(value, Value::Uint(..)) => return self.hexadecimal(number, true),
            'v' | 'd' => (number.to_string(), Prefix::Always("")),
            'b' => (format!("{number:b}"), Prefix::Always(if sharp { "0b" } else { "" })),
            'o' => (format!("{number:o}"), if sharp { Prefix::Zero } else { Prefix::Always("") }),
            'O' => (format!("{number:o}"), Prefix::LetterO { with_zero: sharp }),
            'x' => (format!("{number:x}"), Prefix::Always(if sharp { "0x" } else { "" })),
            'X' => (format!("{number:X}"), Prefix::Always(if sharp { "0X" } else { "" })),
            'c' | 'q' | 'U' => return self.code_point(if is_negative { number.wrapping_neg() } else { number }, verb),
            _ => return self.bad_verb(value, verb),
        };
        self.digits(&Digits { is_negative, text, prefix })
    }

    /// Prints a number as `%x` does, or as `%#x` does.
    pub(super) fn hexadecimal(&mut self, number: u64, with_prefix: bool) -> Result<(), Failure> {
        let prefix = Prefix::Always(if with_prefix { "0x" } else { "" });
        self.digits(&Digits { is_negative: false, text: format!("{number:x}"), prefix })
    }

    fn digits(&mut self, digits: &Digits) -> Result<(), Failure> {
        let spec = self.spec;
        let sign = match digits.is_negative {
            true => "-",
            false if spec.plus => "+",
            false if spec.space => " ",
            false => "",
        };
        if spec.precision == Some(0) && digits.text == "0" {
            return spec.without_zeros().pad(self.out, b"");
        }
        let minimum = spec.precision.or_else(|| spec.zero_width().map(|width| width.saturating_sub(sign.len())));
        let minimum = minimum.unwrap_or_default();
        self.check_room(minimum)?;
        let zeros = minimum.saturating_sub(digits.text.len());
        let has_zero = zeros > 0 || digits.text.starts_with('0');
        let prefix = match digits.prefix {
            Prefix::Always(prefix) => prefix,
            Prefix::Zero if has_zero => "",
            Prefix::Zero => "0",
            Prefix::LetterO { with_zero: true } if !has_zero => "0o0",
            Prefix::LetterO { .. } => "0o",
        };
        let text = [sign, prefix, &"0".repeat(zeros), &digits.text].concat();
        spec.without_zeros().pad(self.out, text.as_bytes())
    }

    /// Prints a number as the character that it stands for.
    fn code_point(&mut self, number: u64, verb: char) -> Result<(), Failure> {
        let char = u32::try_from(number).ok().and_then(char::from_u32);
        let shown = char.unwrap_or(char::REPLACEMENT_CHARACTER);
        match verb {
            'c' => self.pad(shown.to_string()),
            'q' => self.pad(quote_char(shown, self.spec.plus)),
            _ => {
                let minimum = self.spec.precision.unwrap_or_default().max(UNICODE_DIGITS);
                self.check_room(minimum)?;
                let digits = format!("{number:X}");
                let mut text = format!("U+{}{digits}", "0".repeat(minimum.saturating_sub(digits.len())));
                if let Some(char) = char.filter(|char| self.spec.sharp && is_printable(*char)) {
                    text.push_str(&format!(" '{char}'"));
                }
                self.spec.without_zeros().pad(self.out, text.as_bytes())
            }
        }
    }
}
