//! How are strings printed?

use super::printer::Printer;
use super::quote::{can_backquote, quote_for};
use crate::{Failure, Value};

impl Printer<'_> {
    /// Prints the bytes of a string for a verb; `value` is what is named if the verb is not for strings.
    pub(super) fn string(&mut self, value: &Value, bytes: &[u8], verb: char) -> Result<(), Failure> {
        match verb {
            'v' if self.spec.source => self.quoted(bytes),
            'v' | 's' => self.text(bytes),
            'q' => self.quoted(bytes),
            'x' => self.pad(self.hexadecimal_bytes(bytes)),
            'X' => self.pad(self.hexadecimal_bytes(bytes).to_uppercase()),
            _ => self.bad_verb(value, verb),
        }
    }

    /// Prints as many characters as the precision allows.
    pub(super) fn text(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.pad(truncated(bytes, self.spec.precision))
    }

    fn quoted(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let bytes = truncated(bytes, self.spec.precision);
        if self.spec.sharp && can_backquote(bytes) {
            return self.pad([b"`", bytes, b"`"].concat());
        }
        self.pad(quote_for(bytes, self.spec.plus))
    }

    /// As many bytes as the precision allows, two digits each.
    fn hexadecimal_bytes(&self, bytes: &[u8]) -> String {
        let spec = self.spec;
        let bytes = bytes.get(..spec.precision.unwrap_or(bytes.len())).unwrap_or(bytes);
        let mut text = String::with_capacity(2 * bytes.len());
        for (at, byte) in bytes.iter().enumerate() {
            if at > 0 && spec.space {
                text.push(' ');
            }
            if spec.sharp && (at == 0 || spec.space) {
                text.push_str("0x");
            }
            text.push_str(&format!("{byte:02x}"));
        }
        text
    }
}

/// How many characters there are; a byte that is no part of one counts as one.
pub(super) fn rune_count(bytes: &[u8]) -> usize {
    bytes.utf8_chunks().map(|chunk| chunk.valid().chars().count() + chunk.invalid().len()).sum()
}

/// The first `count` characters.
fn truncated(bytes: &[u8], count: Option<usize>) -> &[u8] {
    let Some(mut left) = count else { return bytes };
    let mut end = 0;
    for chunk in bytes.utf8_chunks() {
        let lengths = chunk.valid().chars().map(char::len_utf8).chain(chunk.invalid().iter().map(|_| 1));
        for length in lengths {
            if left == 0 {
                return bytes.get(..end).unwrap_or(bytes);
            }
            left -= 1;
            end += length;
        }
    }
    bytes
}
