//! The last lines of what a guest printed while it booted, fit to be shown: short, without control characters and secrets.

use super::hidden_words::{hide, secret_forms};

/// Where cloud-init keeps it.
pub(crate) const PATH: &str = "/var/log/cloud-init-output.log";

/// Lines that are shown.
const LINES: usize = 10;
/// Bytes that are shown, of all lines together and of each.
const BYTES: usize = 700;
const BYTES_OF_LINE: usize = 200;
/// What is shorter says nothing.
const BYTES_LEAST: usize = 8;

/// What of a log may be secret.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    /// Tokens and values that a user gave: as they are, and each word of them.
    pub(crate) values: Vec<String>,
    /// Texts of a user that mostly are not secret, such as templates: only what looks like a key or a password in them.
    pub(crate) texts: Vec<String>,
}

/// The last lines of a log, oldest first.
pub(crate) fn tail(log: &str, secrets: &Secrets) -> Vec<String> {
    let mut clear = log.to_owned();
    for secret in secret_forms(secrets) {
        if clear.contains(&secret) {
            clear = clear.replace(&secret, super::hidden_words::HIDDEN);
        }
    }
    let shown = without_keys(clear.lines().map(plain)).filter(|line| !line.is_empty());
    let shown: Vec<String> = shown.collect();
    fitting(shown.iter().rev().take(LINES).map(|line| crate::events::cut(&hide(line), BYTES_OF_LINE)), BYTES)
}

/// As many of the newest lines as fit into so many bytes, oldest first. They come newest first.
pub(crate) fn fitting(newest_first: impl Iterator<Item = String>, bytes: usize) -> Vec<String> {
    let (mut lines, mut left) = (Vec::new(), bytes);
    for line in newest_first {
        if left < BYTES_LEAST {
            break;
        }
        let line = crate::events::cut(&line, left);
        left = left.saturating_sub(line.len());
        lines.push(line);
    }
    lines.reverse();
    lines
}

/// The lines without private keys, from their first line to their last.
fn without_keys(lines: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let mut is_inside = false;
    lines.filter(move |line| {
        let was_inside = is_inside;
        let begins = line.contains("-----BEGIN") && line.contains("PRIVATE KEY");
        is_inside = (was_inside || begins) && !line.contains("-----END");
        !was_inside && !begins
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(log: &str) -> Vec<String> {
        tail(log, &Secrets::default())
    }

    #[test]
    fn only_the_last_lines_are_shown_and_not_too_much_of_them() {
        let log: String = (0..100).map(|number| format!("line {number}\n\n")).collect();
        let lines = bare(&log);
        assert_eq!((lines.len(), lines[0].as_str(), lines[9].as_str()), (10, "line 90", "line 99"));
        let long: String = (0..10).map(|number| format!("{number} {}\n", "é".repeat(500))).collect();
        let lines = bare(&long);
        assert!(lines.iter().map(String::len).sum::<usize>() <= BYTES, "{lines:?}");
        assert!(lines.last().unwrap().starts_with("9 é"));
    }

    #[test]
    fn where_there_is_little_room_the_newest_lines_stay() {
        let newest_first = ["c".repeat(20), "b".repeat(20), "a".repeat(20)];
        assert_eq!(
            fitting(newest_first.iter().cloned(), 50),
            ["aaaaaaa...".to_owned(), "b".repeat(20), "c".repeat(20)]
        );
        assert_eq!(fitting(newest_first.into_iter(), 25), ["c".repeat(20)]);
    }

    #[test]
    fn colours_and_control_characters_are_not_shown() {
        assert_eq!(bare("\u{1b}[0;31mfailed\u{1b}[0m\tto\u{7} boot\r\n10%\r20%\n"), ["failed to boot", "20%"]);
    }

    #[test]
    fn private_keys_are_not_shown_wherever_they_come_from() {
        let log =
            "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE\nAAAA\n-----END OPENSSH PRIVATE KEY-----\nz\n";
        assert_eq!(bare(log), ["a", "z"]);
        assert_eq!(bare("a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n"), ["a"], "one that the log ends in");
    }
}
