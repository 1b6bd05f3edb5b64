//! Which characters does a class in brackets have?
//!
//! Brackets, `&&`, `--` and `~~` inside a class are plain characters for Go and operators for the crate, so every
//! character is written as its number.

use super::{Refused, escape};

/// The named classes: what `[:alpha:]` stands for.
const NAMED: [(&str, &str); 14] = [
    ("alnum", "0-9A-Za-z"),
    ("alpha", "A-Za-z"),
    ("ascii", r"\x00-\x7F"),
    ("blank", r"\t\x20"),
    ("cntrl", r"\x00-\x1F\x7F"),
    ("digit", "0-9"),
    ("graph", "!-~"),
    ("lower", "a-z"),
    ("print", r"\x20-~"),
    ("punct", r"!-/:-@\[-`{-~"),
    ("space", r"\t\n\x0B\x0C\r\x20"),
    ("upper", "A-Z"),
    ("word", "0-9A-Za-z_"),
    ("xdigit", "0-9A-Fa-f"),
];

/// The class at the start of the text, written for the crate, and how long it is.
pub(super) fn read(text: &str) -> Result<(String, usize), Refused> {
    let mut reader = Reader { text, at: 1 };
    let mut class = String::from("[");
    if reader.rest().starts_with('^') {
        class.push('^');
        reader.at += 1;
    }
    let first = reader.at;
    loop {
        if reader.at > first && reader.rest().starts_with(']') {
            class.push(']');
            return Ok((class, reader.at + 1));
        }
        class.push_str(&reader.item()?);
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn item(&mut self) -> Result<String, Refused> {
        if let Some(named) = self.named()? {
            return Ok(named);
        }
        if let Some(property) = escape::property(self.rest()) {
            let (property, length) = property?;
            self.at += length;
            return Ok(property);
        }
        let letter = self.rest().strip_prefix('\\').and_then(|rest| rest.chars().next());
        if let Some(class) = letter.and_then(escape::class) {
            self.at += 2;
            return Ok(class.to_owned());
        }
        let low = self.character()?;
        if !self.rest().starts_with('-') || self.rest().starts_with("-]") || self.rest().len() < 2 {
            return Ok(number(low));
        }
        self.at += 1;
        let high = self.character()?;
        if high < low {
            return Err(Refused("invalid character class range"));
        }
        Ok(format!("{}-{}", number(low), number(high)))
    }

    /// `[:alpha:]` or `[:^alpha:]`. Without its end it is text.
    fn named(&mut self) -> Result<Option<String>, Refused> {
        let Some((name, _)) = self.rest().strip_prefix("[:").and_then(|rest| rest.split_once(":]")) else {
            return Ok(None);
        };
        self.at += name.len() + 4;
        let (name, sign) = name.strip_prefix('^').map_or((name, ""), |name| (name, "^"));
        let known = NAMED.iter().find(|(known, _)| *known == name);
        let (_, class) = known.ok_or(Refused("invalid character class range"))?;
        Ok(Some(format!("[{sign}{class}]")))
    }

    fn character(&mut self) -> Result<char, Refused> {
        let Some(first) = self.rest().chars().next() else { return Err(Refused("missing closing ]")) };
        let (character, length) =
            if first == '\\' { escape::character(self.rest())? } else { (first, first.len_utf8()) };
        self.at += length;
        Ok(character)
    }
}

/// A character by its number.
pub(super) fn number(c: char) -> String {
    format!("\\x{{{:X}}}", u32::from(c))
}
