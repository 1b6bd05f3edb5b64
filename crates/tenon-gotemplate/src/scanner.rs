//! Steps through the characters of a template.

use crate::error::Span;
use crate::letter::is_letter_or_digit;

/// White space between words.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// What names are made of.
pub(crate) fn is_word(c: char) -> bool {
    c == '_' || is_letter_or_digit(c)
}

/// A place in a text.
pub(crate) struct Scanner<'a> {
    source: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(source: &'a [u8]) -> Scanner<'a> {
        Scanner { source, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.source.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn span(&self, start: usize) -> Span {
        Span::new(start, self.at.max(start))
    }

    /// What was read since `start`.
    pub(crate) fn text(&self, start: usize) -> String {
        String::from_utf8_lossy(self.source.get(start..self.at).unwrap_or_default()).into_owned()
    }

    pub(crate) fn skip(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.source.len());
    }

    pub(crate) fn back_to(&mut self, at: usize) {
        self.at = at;
    }

    /// The next character; bytes that are no UTF-8 count as U+FFFD, one by one.
    pub(crate) fn peek(&self) -> Option<char> {
        let rest = self.rest();
        let chunk = &rest[..rest.len().min(4)];
        let valid = match std::str::from_utf8(chunk) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&chunk[..error.valid_up_to()]).unwrap_or_default(),
        };
        valid.chars().next().or(if rest.is_empty() { None } else { Some(char::REPLACEMENT_CHARACTER) })
    }

    /// Takes the next character.
    pub(crate) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        let is_invalid = next == char::REPLACEMENT_CHARACTER && !self.rest().starts_with("\u{fffd}".as_bytes());
        self.at += if is_invalid { 1 } else { next.len_utf8() };
        Some(next)
    }

    /// Takes one byte if it is one of these.
    pub(crate) fn accept(&mut self, bytes: &[u8]) -> bool {
        let accepted = self.rest().first().is_some_and(|byte| bytes.contains(byte));
        self.at += usize::from(accepted);
        accepted
    }

    fn accept_run(&mut self, bytes: &[u8]) {
        while self.accept(bytes) {}
    }

    pub(crate) fn skip_while(&mut self, is_part: fn(char) -> bool) {
        while self.peek().is_some_and(is_part) {
            self.next();
        }
    }

    /// Up to the closing quote, if there is one in this line.
    pub(crate) fn skip_quoted(&mut self, quote: char) -> bool {
        loop {
            match self.next() {
                Some('\\') if !matches!(self.peek(), None | Some('\n')) => drop(self.next()),
                None | Some('\\' | '\n') => return false,
                Some(c) if c == quote => return true,
                Some(_) => {}
            }
        }
    }

    /// A number, as far as its characters tell. False if a letter follows it.
    pub(crate) fn number(&mut self) -> bool {
        self.accept(b"+-");
        let (mut digits, mut is_decimal, mut is_hex): (&[u8], bool, bool) = (b"0123456789_", true, false);
        if self.accept(b"0") {
            if self.accept(b"xX") {
                (digits, is_decimal, is_hex) = (b"0123456789abcdefABCDEF_", false, true);
            } else if self.accept(b"oO") {
                (digits, is_decimal) = (b"01234567_", false);
            } else if self.accept(b"bB") {
                (digits, is_decimal) = (b"01_", false);
            }
        }
        self.accept_run(digits);
        if self.accept(b".") {
            self.accept_run(digits);
        }
        if (is_decimal && self.accept(b"eE")) || (is_hex && self.accept(b"pP")) {
            self.accept(b"+-");
            self.accept_run(b"0123456789_");
        }
        self.accept(b"i");
        if self.peek().is_some_and(is_word) {
            self.next();
            return false;
        }
        true
    }
}
