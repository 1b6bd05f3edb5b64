//! How are bytes that are no text searched?
//!
//! Go takes every such byte for one U+FFFD. The search runs over a text that has them, and what it finds is cut from the
//! original bytes.

use std::borrow::Cow;
use std::ops::Range;

pub(super) struct Haystack<'a> {
    original: &'a [u8],
    text: Cow<'a, str>,
    /// For each byte of the text and its end, where that is in the original; empty when they are the same.
    places: Vec<usize>,
}

impl<'a> Haystack<'a> {
    pub(super) fn new(original: &'a [u8]) -> Haystack<'a> {
        if let Ok(text) = std::str::from_utf8(original) {
            return Haystack { original, text: Cow::Borrowed(text), places: Vec::new() };
        }
        let (mut text, mut places, mut at) = (String::new(), Vec::new(), 0);
        for chunk in original.utf8_chunks() {
            text.push_str(chunk.valid());
            places.extend(at..at + chunk.valid().len());
            at += chunk.valid().len();
            for _ in chunk.invalid() {
                text.push(char::REPLACEMENT_CHARACTER);
                places.extend([at; char::REPLACEMENT_CHARACTER.len_utf8()]);
                at += 1;
            }
        }
        places.push(at);
        Haystack { original, text: Cow::Owned(text), places }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// The original bytes of a part of the text.
    pub(super) fn original(&self, range: Range<usize>) -> &'a [u8] {
        let place = |at| if self.places.is_empty() { Some(at) } else { self.places.get(at).copied() };
        let range = place(range.start).zip(place(range.end));
        range.and_then(|(start, end)| self.original.get(start..end)).unwrap_or_default()
    }
}
