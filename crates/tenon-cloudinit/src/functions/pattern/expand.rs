//! What does a replacement stand for?
//!
//! `$name` is as long as it can be, `${name}` as long as it says, `$$` is one sign, and a sign that begins none of these
//! stands for itself.

use regex::bytes::Captures;

use super::super::letters::{is_digit, is_letter};
use super::haystack::Haystack;

/// A piece of a replacement.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Text(&'a [u8]),
    Number(usize),
    Name(&'a str),
}

/// The pieces of a replacement.
pub(super) fn parts(replacement: &[u8]) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = replacement;
    while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
        let (text, sign) = rest.split_at(at);
        parts.push(Part::Text(text));
        let (part, length) = reference(sign);
        parts.push(part);
        rest = sign.get(length..).unwrap_or_default();
    }
    parts.push(Part::Text(rest));
    parts
}

/// What begins with a `$`, and how long it is.
fn reference(text: &[u8]) -> (Part<'_>, usize) {
    let sign = text.get(..1).unwrap_or_default();
    let after = text.get(1..).unwrap_or_default();
    if after.first() == Some(&b'$') {
        return (Part::Text(sign), 2);
    }
    let in_braces = after.first() == Some(&b'{');
    let name = name_in(after.get(usize::from(in_braces)..).unwrap_or_default());
    let closed = !in_braces || after.get(1 + name.len()) == Some(&b'}');
    if name.is_empty() || !closed {
        return (Part::Text(sign), 1);
    }
    (named(name), 1 + name.len() + if in_braces { 2 } else { 0 })
}

/// The letters, digits and underscores that a text begins with.
fn name_in(text: &[u8]) -> &str {
    let valid = text.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let end = valid.find(|c| c != '_' && !is_letter(c) && !is_digit(c)).unwrap_or(valid.len());
    valid.get(..end).unwrap_or_default()
}

fn named(name: &str) -> Part<'_> {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
    match name.parse() {
        Ok(number) if is_number => Part::Number(number),
        _ => Part::Name(name),
    }
}

impl Part<'_> {
    /// Its text for one match. A group that is not there or took no part has none.
    pub(super) fn text<'a>(
        &'a self,
        names: &[Option<String>],
        captures: &Captures<'_>,
        text: &'a Haystack<'_>,
    ) -> &'a [u8] {
        let found = match self {
            Part::Text(text) => return text,
            Part::Number(number) => captures.get(*number),
            // Go lets groups share a name; the first that took part counts.
            Part::Name(name) => {
                let groups = names.iter().enumerate().filter(|(_, known)| known.as_deref() == Some(*name));
                groups.map(|(group, _)| group).find_map(|group| captures.get(group))
            }
        };
        found.map_or(&[], |found| text.original(found.range()))
    }
}
