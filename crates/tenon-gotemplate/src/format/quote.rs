//! How does Go write strings and characters in quotes?

use super::printable::is_printable;

/// `strconv.Quote`: the string as Go source.
pub fn quote(bytes: &[u8]) -> Vec<u8> {
    quote_for(bytes, false)
}

/// The string in double quotes, perhaps with nothing but ASCII in them.
pub(super) fn quote_for(bytes: &[u8], is_ascii: bool) -> Vec<u8> {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            push_escaped(&mut text, char, Quotes { mark: '"', is_ascii });
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text.push('"');
    text.into_bytes()
}

/// The character in single quotes, perhaps with nothing but ASCII in them.
pub(super) fn quote_char(char: char, is_ascii: bool) -> Vec<u8> {
    let mut text = String::from("'");
    push_escaped(&mut text, char, Quotes { mark: '\'', is_ascii });
    text.push('\'');
    text.into_bytes()
}

/// Whether a string can stand between backquotes, on one line.
pub(super) fn can_backquote(bytes: &[u8]) -> bool {
    let is_plain = |char: char| match char {
        '\t' => true,
        '`' | '\u{7f}' | '\u{feff}' => false,
        _ => char >= ' ',
    };
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_plain))
}

#[derive(Clone, Copy)]
struct Quotes {
    mark: char,
    is_ascii: bool,
}

fn push_escaped(text: &mut String, char: char, quotes: Quotes) {
    if char == quotes.mark || char == '\\' {
        text.push('\\');
        text.push(char);
        return;
    }
    if is_printable(char) && (char.is_ascii() || !quotes.is_ascii) {
        text.push(char);
        return;
    }
    match char {
        '\u{7}' => text.push_str("\\a"),
        '\u{8}' => text.push_str("\\b"),
        '\u{c}' => text.push_str("\\f"),
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        '\u{b}' => text.push_str("\\v"),
        '\0'..' ' | '\u{7f}' => text.push_str(&format!("\\x{:02x}", u32::from(char))),
        '\u{80}'..='\u{ffff}' => text.push_str(&format!("\\u{:04x}", u32::from(char))),
        _ => text.push_str(&format!("\\U{:08x}", u32::from(char))),
    }
}
