//! What does a backslash mean in a pattern?

use super::Refused;

/// The character that an escape at the start of the text stands for, and how long the escape is.
pub(super) fn character(text: &str) -> Result<(char, usize), Refused> {
    let refused = Refused("invalid escape sequence");
    let Some(letter) = text.chars().nth(1) else { return Err(Refused("trailing backslash at end of expression")) };
    let simple = match letter {
        '0' => return Ok(octal(text)),
        // A single digit would be a group that was matched before; there is no such thing here.
        '1'..='7' if text.chars().nth(2).is_some_and(|c| c.is_digit(8)) => return Ok(octal(text)),
        'x' => return hexadecimal(text).ok_or(refused),
        'a' => '\u{7}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        sign if sign.is_ascii() && !sign.is_ascii_alphanumeric() => sign,
        _ => return Err(refused),
    };
    Ok((simple, 2))
}

/// Up to three digits.
fn octal(text: &str) -> (char, usize) {
    let digits = text.chars().skip(1).map_while(|c| c.to_digit(8)).take(3);
    let (code, length) = digits.fold((0, 1), |(code, length), digit| (code * 8 + digit, length + 1));
    (char::from_u32(code).unwrap_or_default(), length)
}

/// `\x41` or `\x{1F600}`.
fn hexadecimal(text: &str) -> Option<(char, usize)> {
    let rest = text.get(2..)?;
    let (digits, length) = match rest.strip_prefix('{') {
        Some(rest) => rest.split_once('}').map(|(digits, _)| (digits, digits.len() + 4))?,
        None => (rest.get(..2)?, 4),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let code = u32::from_str_radix(digits, 16).ok().filter(|code| *code <= u32::from(char::MAX))?;
    // Half of a pair matches no text; U+FFFE, which is never text either, stands for it.
    Some((char::from_u32(code).unwrap_or('\u{fffe}'), length))
}

/// A class of one letter, as `\d`, for the inside of brackets.
pub(super) fn class(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => r"[\t\n\f\r\x20]",
        'S' => r"[^\t\n\f\r\x20]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        _ => return None,
    })
}

/// A class of Unicode at the start of the text, as `\pL` or `\p{Greek}`, and how long it is.
pub(super) fn property(text: &str) -> Option<Result<(String, usize), Refused>> {
    let rest = text.strip_prefix('\\')?;
    let negated = rest.starts_with('P');
    let rest = rest.strip_prefix(['p', 'P'])?;
    Some(read_property(rest, negated).ok_or(Refused("invalid character class range")))
}

fn read_property(rest: &str, negated: bool) -> Option<(String, usize)> {
    let (name, length) = match rest.strip_prefix('{') {
        Some(rest) => rest.split_once('}').map(|(name, _)| (name, name.len() + 4))?,
        None => rest.chars().next().map(|c| (rest.get(..c.len_utf8()).unwrap_or_default(), 2 + c.len_utf8()))?,
    };
    let (name, negated) = name.strip_prefix('^').map_or((name, negated), |name| (name, !negated));
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ');
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let letter = if negated { 'P' } else { 'p' };
    // Go has categories and scripts only; the crate has more.
    let known = ["gc=", "sc=", ""].into_iter().map(|kind| format!("\\{letter}{{{kind}{name}}}"));
    let mut known = known.take(if is_general(name) { 3 } else { 2 });
    known.find(|class| regex::bytes::Regex::new(class).is_ok()).map(|class| (class, length))
}

fn is_general(name: &str) -> bool {
    ["any", "ascii", "assigned"].contains(&name.to_ascii_lowercase().as_str())
}
