//! Which characters does Go take for letters and digits?

use std::sync::LazyLock;

use regex::Regex;

static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{L}").ok());
/// The version of Unicode that Go has.
static KNOWN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{age=15.0}").ok());
static DIGIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{Nd}").ok());

/// A letter of any script.
pub(super) fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { matches(&LETTER, c) }
}

/// A decimal digit of any script.
pub(super) fn is_digit(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_digit() } else { matches(&DIGIT, c) }
}

/// A character that Go knows.
pub(super) fn is_known(c: char) -> bool {
    c.is_ascii() || matches(&KNOWN, c)
}

fn matches(class: &LazyLock<Option<Regex>>, c: char) -> bool {
    class.as_ref().is_some_and(|class| class.is_match(c.encode_utf8(&mut [0; 4])))
}
