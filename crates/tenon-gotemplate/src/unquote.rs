//! What does a quoted constant stand for?

use crate::scanner::Scanner;

/// The bytes of a string in double or back quotes, quotes included in `text`. `None` if it is malformed.
pub(crate) fn string(text: &[u8]) -> Option<Vec<u8>> {
    let (quote, inner) = inner(text)?;
    if quote == b'`' {
        // A carriage return is not part of a raw string.
        return Some(inner.iter().copied().filter(|byte| *byte != b'\r').collect());
    }
    let mut out = Vec::new();
    let mut rest = inner;
    while !rest.is_empty() {
        if rest.starts_with(b"\\") {
            let (escape, after) = escape(rest, quote)?;
            match escape {
                Escape::Byte(byte) => out.push(byte),
                Escape::Char(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
            rest = after;
        } else {
            // A byte that is no text becomes the character for that.
            let mut scanner = Scanner::new(rest);
            out.extend_from_slice(scanner.next()?.encode_utf8(&mut [0; 4]).as_bytes());
            rest = scanner.rest();
        }
    }
    Some(out)
}

/// The character of a constant in single quotes, quotes included. `None` if it is malformed.
pub(crate) fn character(text: &[u8]) -> Option<char> {
    let (quote, inner) = inner(text)?;
    if inner.first() == Some(&b'\\') {
        let (escape, rest) = escape(inner, quote)?;
        let c = match escape {
            Escape::Byte(byte) => char::from(byte),
            Escape::Char(c) => c,
        };
        return rest.is_empty().then_some(c);
    }
    let mut scanner = Scanner::new(inner);
    scanner.next().filter(|_| scanner.rest().is_empty())
}

enum Escape {
    Byte(u8),
    Char(char),
}

fn inner(text: &[u8]) -> Option<(u8, &[u8])> {
    let (first, last) = (*text.first()?, *text.last()?);
    (text.len() >= 2 && first == last).then(|| (first, &text[1..text.len() - 1]))
}

/// The escape at the beginning of `text`, and what follows.
fn escape(text: &[u8], quote: u8) -> Option<(Escape, &[u8])> {
    let (kind, rest) = text.get(1..)?.split_first()?;
    let simple = |byte: u8| Some((Escape::Byte(byte), rest));
    match kind {
        b'a' => simple(0x07),
        b'b' => simple(0x08),
        b'f' => simple(0x0c),
        b'n' => simple(b'\n'),
        b'r' => simple(b'\r'),
        b't' => simple(b'\t'),
        b'v' => simple(0x0b),
        b'\\' => simple(b'\\'),
        b'\'' | b'"' => (*kind == quote).then_some((Escape::Byte(*kind), rest)),
        b'0'..=b'7' => {
            let code = number(text.get(1..4)?, 8)?;
            Some((Escape::Byte(u8::try_from(code).ok()?), &text[4..]))
        }
        b'x' => Some((Escape::Byte(u8::try_from(number(rest.get(..2)?, 16)?).ok()?), &rest[2..])),
        b'u' => Some((Escape::Char(char::from_u32(number(rest.get(..4)?, 16)?)?), &rest[4..])),
        b'U' => Some((Escape::Char(char::from_u32(number(rest.get(..8)?, 16)?)?), &rest[8..])),
        _ => None,
    }
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    digits
        .iter()
        .try_fold(0_u32, |number, digit| number.checked_mul(radix)?.checked_add(char::from(*digit).to_digit(radix)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_stand_for_bytes_and_characters() {
        assert_eq!(string(br#""a\n\x41\101\u00e9\U0001F600\"""#).unwrap(), "a\nAAé\u{1f600}\"".as_bytes());
        assert_eq!(string(br#""\xff""#).unwrap(), b"\xff");
        for malformed in [r#""\q""#, r#""\x4""#, r#""\400""#, r#""\ud800""#, r#""\'""#, r#"""#, ""] {
            assert_eq!(string(malformed.as_bytes()), None, "{malformed}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_become_the_replacement_character_unless_the_string_is_raw() {
        assert_eq!(string(b"\"a\xffb\"").unwrap(), "a\u{fffd}b".as_bytes());
        assert_eq!(string(b"`a\xff\r\n\\n`").unwrap(), b"a\xff\n\\n");
    }

    #[test]
    fn a_character_is_exactly_one() {
        assert_eq!(character("'é'".as_bytes()), Some('é'));
        assert_eq!(character(br"'\''"), Some('\''));
        assert_eq!(character(b"'\xff'"), Some(char::REPLACEMENT_CHARACTER));
        for malformed in ["''", "'ab'", r"'\q'", r#"'\"'"#, "'"] {
            assert_eq!(character(malformed.as_bytes()), None, "{malformed}");
        }
    }
}
