//! How wide, how exact and in which form is one value printed?

use super::text::rune_count;
use crate::{Failure, Output};

/// What stands between `%` and the verb.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spec {
    /// Characters to fill up to.
    pub(super) width: Option<usize>,
    /// Digits, or characters of a string.
    pub(super) precision: Option<usize>,
    /// `+`: a sign before every number; only ASCII in quotes.
    pub(super) plus: bool,
    /// `-`: fill up on the right.
    pub(super) minus: bool,
    /// `#`: another form, such as `0x` before hexadecimal numbers.
    pub(super) sharp: bool,
    /// A space: where a plus sign would stand, and between the bytes of `% x`.
    pub(super) space: bool,
    /// `0`: fill up with zeros.
    pub(super) zero: bool,
    /// `%+v`: structs with the names of their fields. `plus` is then off.
    pub(super) names: bool,
    /// `%#v`: as Go source. `sharp` is then off.
    pub(super) source: bool,
}

impl Spec {
    /// Sets a flag, if the byte stands for one.
    pub(super) fn set_flag(&mut self, byte: u8) -> bool {
        match byte {
            b'+' => self.plus = true,
            b'-' => self.minus = true,
            b'#' => self.sharp = true,
            b' ' => self.space = true,
            b'0' => self.zero = true,
            _ => return false,
        }
        true
    }

    /// The verb `v` has its own meaning for two flags.
    pub(super) fn for_default_verb(self) -> Spec {
        Spec { names: self.plus, source: self.sharp, plus: false, sharp: false, ..self }
    }

    /// The same without zeros to fill up.
    pub(super) fn without_zeros(self) -> Spec {
        Spec { zero: false, ..self }
    }

    /// How many zeros' worth of width there is: zeros are only ever added on the left.
    pub(super) fn zero_width(&self) -> Option<usize> {
        self.width.filter(|_| self.zero && !self.minus)
    }

    /// Writes a text and fills it up to the width.
    pub(super) fn pad(&self, out: &mut Output, text: &[u8]) -> Result<(), Failure> {
        let missing = self.width.unwrap_or_default().saturating_sub(rune_count(text));
        if !self.minus {
            self.fill(out, missing)?;
        }
        out.push(text)?;
        if self.minus {
            self.fill(out, missing)?;
        }
        Ok(())
    }

    /// Writes what a text is filled up with.
    pub(super) fn fill(&self, out: &mut Output, count: usize) -> Result<(), Failure> {
        out.fill(if self.zero && !self.minus { b'0' } else { b' ' }, count)
    }
}
