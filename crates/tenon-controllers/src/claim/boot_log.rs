//! The last lines of what a guest printed while it booted, fit to be shown: short, without control characters and secrets.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

/// Where cloud-init keeps it.
pub(crate) const PATH: &str = "/var/log/cloud-init-output.log";

/// Lines that are shown.
const LINES: usize = 10;
/// Bytes that are shown, of all lines together and of each.
const BYTES: usize = 700;
const BYTES_OF_LINE: usize = 200;

/// What stands where a secret stood.
const HIDDEN: &str = "(hidden)";
/// What is shorter is no secret, and stands everywhere.
const SECRET_MIN: usize = 4;
/// What is shorter as a line of a secret stands everywhere, too.
const PART_MIN: usize = 8;

/// Words after which a secret is likely, whoever set it.
const TELLTALES: [&str; 5] = ["password", "passwd", "secret", "token", "private key"];

/// The last lines of a log, oldest first.
pub(crate) fn tail(log: &str, secrets: &[String]) -> Vec<String> {
    let mut clear = log.to_owned();
    for secret in forms(secrets) {
        if clear.contains(&secret) {
            clear = clear.replace(&secret, HIDDEN);
        }
    }
    let (mut lines, mut left) = (Vec::new(), BYTES);
    for line in clear.lines().rev().map(plain).filter(|line| !line.is_empty()).take(LINES) {
        let line = crate::events::cut(&without_telltale(&without_tokens(&line)), BYTES_OF_LINE.min(left));
        left = left.saturating_sub(line.len());
        lines.push(line);
        if left < PART_MIN {
            break;
        }
    }
    lines.reverse();
    lines
}

/// A secret as it is, its longer lines, and each of these in base64; the longest first, so that none is cut in half.
fn forms(secrets: &[String]) -> Vec<String> {
    let lines = secrets.iter().flat_map(|secret| secret.lines().filter(|line| line.trim().len() >= PART_MIN));
    let whole = secrets.iter().map(|secret| secret.trim()).filter(|secret| secret.len() >= SECRET_MIN);
    let plain: Vec<&str> = whole.chain(lines.map(str::trim)).collect();
    let encoded = plain.iter().filter_map(|text| match json!(ByteString(text.as_bytes().to_vec())) {
        Value::String(base64) => Some(base64.trim_end_matches('=').to_owned()),
        _ => None,
    });
    let mut all: Vec<String> = encoded.filter(|text| text.len() >= PART_MIN).collect();
    all.extend(plain.into_iter().map(str::to_owned));
    all.sort_by_key(|text| std::cmp::Reverse(text.len()));
    all.dedup();
    all
}

/// A line without colours, control characters, and what a carriage return has overwritten.
fn plain(line: &str) -> String {
    let shown = line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    let (mut text, mut letters) = (String::new(), shown.chars());
    while let Some(letter) = letters.next() {
        match letter {
            // An escape sequence ends with a letter.
            '\u{1b}' => {
                let _ = letters.find(char::is_ascii_alphabetic);
            }
            '\t' => text.push(' '),
            letter if letter.is_control() => {}
            letter => text.push(letter),
        }
    }
    text.trim().to_owned()
}

/// Hides everything that looks like a bootstrap token.
fn without_tokens(line: &str) -> String {
    let is_token = |word: &str| {
        let is_part = |part: &str, length| {
            part.len() == length && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        word.split_once('.').is_some_and(|(id, half)| is_part(id, 6) && is_part(half, 16))
    };
    let is_edge = |letter: char| !(letter.is_ascii_alphanumeric() || letter == '.');
    let mut text = line.to_owned();
    for word in line.split(is_edge).filter(|word| is_token(word)) {
        text = text.replace(word, HIDDEN);
    }
    text
}

/// Hides what follows `password:`, `token=` and the like.
fn without_telltale(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    let found = TELLTALES.iter().filter_map(|word| {
        let at = lower.find(word)? + word.len();
        let value = lower.get(at..)?.find([':', '='])? + at + 1;
        Some(value)
    });
    match found.min().and_then(|value| line.get(..value)) {
        Some(start) => format!("{start} {HIDDEN}"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_shown_and_not_too_much_of_them() {
        let log: String = (0..100).map(|number| format!("line {number}\n\n")).collect();
        let lines = tail(&log, &[]);
        assert_eq!((lines.len(), lines[0].as_str(), lines[9].as_str()), (10, "line 90", "line 99"));
        let long: String = (0..10).map(|number| format!("{number} {}\n", "é".repeat(500))).collect();
        let lines = tail(&long, &[]);
        assert!(lines.iter().map(String::len).sum::<usize>() <= BYTES, "{lines:?}");
        assert!(lines.last().unwrap().starts_with("9 é"));
    }

    #[test]
    fn colours_and_control_characters_are_not_shown() {
        assert_eq!(tail("\u{1b}[0;31mfailed\u{1b}[0m\tto\u{7} boot\r\n10%\r20%\n", &[]), ["failed to boot", "20%"]);
    }

    #[test]
    fn secrets_are_not_shown_in_any_usual_form() {
        let secrets = ["abcdef.0123456789abcdef".to_owned(), "-----BEGIN X-----\nMIIBsecretline\n".to_owned()];
        let log = "curl -H abcdef.0123456789abcdef\njoin zzzzzz.9999999999999999 now\nMIIBsecretline\n\
                   cGFzc3dvcmQ=\nadmin Password: hunter2\nAPI_TOKEN=x y z\nfetch YWJjZGVmLjAxMjM0NTY3ODlhYmNkZWY= ok\n";
        let lines = tail(log, &secrets);
        let wanted = [
            "curl -H (hidden)",
            "join (hidden) now",
            "(hidden)",
            "cGFzc3dvcmQ=",
            "admin Password: (hidden)",
            "API_TOKEN= (hidden)",
            "fetch (hidden)= ok",
        ];
        assert_eq!(lines, wanted);
    }
}
