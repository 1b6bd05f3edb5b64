//! How is a string written so that it is read back as the same string?

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::resolve::is_read_as_string;

/// Bytes that are no text are written in lines of this length.
const BINARY_LINE: usize = 70;
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A string and how it is written.
pub(super) struct Scalar<'a> {
    text: Cow<'a, str>,
    style: Style,
    binary: bool,
}

/// The four ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    /// A block after `|`.
    Literal,
}

impl<'a> Scalar<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Scalar<'a> {
        let Ok(text) = std::str::from_utf8(bytes) else { return Scalar::binary(bytes) };
        Scalar { style: style_of(text), text: Cow::Borrowed(text), binary: false }
    }

    fn binary(bytes: &[u8]) -> Scalar<'a> {
        let mut text = STANDARD.encode(bytes);
        let mut style = Style::Plain;
        if text.len() > BINARY_LINE {
            let lines: Vec<&[u8]> = text.as_bytes().chunks(BINARY_LINE).collect();
            text = lines.iter().map(|line| format!("{}\n", String::from_utf8_lossy(line))).collect();
            style = Style::Literal;
        }
        Scalar { text: Cow::Owned(text), style, binary: true }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn style(&self) -> Style {
        self.style
    }

    pub(super) fn is_binary(&self) -> bool {
        self.binary
    }

    pub(super) fn is_one_line(&self) -> bool {
        !self.text.contains(is_break)
    }

    /// The line before a block: whether its first line begins with spaces of its own, and what its end means.
    pub(super) fn header(&self, indent: usize) -> String {
        let mut header = String::from("|");
        if self.text.starts_with(|c| c == ' ' || is_break(c)) {
            header.push_str(&indent.to_string());
        }
        let mut last = self.text.chars().rev();
        match (last.next().is_some_and(is_break), last.next().is_none_or(is_break)) {
            (false, _) => header.push('-'),
            (true, true) => header.push('+'),
            (true, false) => {}
        }
        header
    }

    /// The text in double quotes.
    pub(super) fn escaped(&self) -> String {
        // The library takes every character of such a text for another mark.
        let escape_all = self.text.starts_with(BYTE_ORDER_MARK);
        let mut out = String::from("\"");
        for c in self.text.chars() {
            match short_escape(c) {
                Some(short) if escape_all || !is_printable(c) || is_break(c) || short == '"' || short == '\\' => {
                    out.extend(['\\', short]);
                }
                _ if is_printable(c) && !is_break(c) && !escape_all => out.push(c),
                _ => push_hex(&mut out, c),
            }
        }
        out.push('"');
        out
    }
}

/// What ends a line for YAML 1.1.
pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn style_of(text: &str) -> Style {
    let traits = Traits::of(text);
    if text.contains('\n') {
        return if traits.can_be_literal() { Style::Literal } else { Style::Double };
    }
    if !is_read_as_string(text) {
        return Style::Double;
    }
    match (traits.can_be_plain(text), traits.can_be_single()) {
        (true, _) => Style::Plain,
        (false, true) => Style::Single,
        (false, false) => Style::Double,
    }
}

/// What a string has in it that not every style can carry.
#[derive(Default)]
struct Traits {
    unprintable: bool,
    tab: bool,
    line_end: bool,
    space_before_line_end: bool,
    space_after_line_end: bool,
    space_at_end: bool,
}

impl Traits {
    fn of(text: &str) -> Traits {
        let mut traits = Traits { space_at_end: text.ends_with(' '), ..Traits::default() };
        let mut before = None;
        for c in text.chars() {
            traits.tab |= c == '\t';
            traits.unprintable |= c != '\t' && !is_printable(c);
            traits.line_end |= is_break(c);
            traits.space_before_line_end |= before == Some(' ') && is_break(c);
            traits.space_after_line_end |= before.is_some_and(is_break) && c == ' ';
            before = Some(c);
        }
        traits
    }

    fn can_be_literal(&self) -> bool {
        !(self.unprintable || self.space_before_line_end || self.space_at_end)
    }

    fn can_be_single(&self) -> bool {
        !(self.unprintable || self.tab || self.space_before_line_end || self.space_after_line_end)
    }

    fn can_be_plain(&self, text: &str) -> bool {
        let is_hard = self.unprintable || self.tab || self.line_end || self.space_at_end;
        !(is_hard || text.starts_with(' ') || has_indicator(text))
    }
}

/// Whether a reader would take a part of a plain string for syntax.
fn has_indicator(text: &str) -> bool {
    let lone = |sign| text.strip_prefix(sign).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    text.starts_with(|c| "#,[]{}&*!|>'\"%@`".contains(c))
        || text.starts_with("---")
        || text.starts_with("...")
        || lone('-')
        || lone('?')
        || text.ends_with(':')
        || text.contains(": ")
        || text.contains(" #")
}

/// What the library prints as it is: nothing beyond the basic plane.
fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{fffd}') && c != BYTE_ORDER_MARK
}

fn short_escape(c: char) -> Option<char> {
    Some(match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => return None,
    })
}

fn push_hex(out: &mut String, c: char) {
    let code = u32::from(c);
    let written = match code {
        0..=0xff => write!(out, "\\x{code:02X}"),
        0x100..=0xffff => write!(out, "\\u{code:04X}"),
        _ => write!(out, "\\U{code:08X}"),
    };
    debug_assert!(written.is_ok(), "a string takes everything");
}
