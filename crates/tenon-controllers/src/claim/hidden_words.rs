//! What may be a secret in a text that people are shown: hidden wherever it stands, in every form it usually has.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::boot_log::Secrets;

/// What stands where a secret stood.
pub(super) const HIDDEN: &str = "(hidden)";

/// What is shorter is no secret, and stands everywhere.
const SECRET_MIN: usize = 4;
/// What is shorter as a word of a secret stands everywhere, too.
const WORD_MIN: usize = 6;
/// What is shorter as a line of a secret, or in base64, does as well.
const PART_MIN: usize = 8;
/// A key or a password in a text is at least so long.
const KEY_MIN: usize = 12;

/// Words after which a secret is likely, whoever set it.
const TELLTALES: [&str; 8] =
    ["password", "passwd", "passphrase", "secret", "token", "private key", "api_key", "apikey"];

/// Options and schemes whose next word is likely a secret.
const BEFORE_SECRETS: [&str; 8] = ["--token", "--password", "--secret", "--pass", "-p", "-u", "bearer", "basic"];

/// Every form that may not be shown, the longest first, so that none is cut in half.
pub(super) fn secret_forms(secrets: &Secrets) -> Vec<String> {
    let Secrets { values, texts } = secrets;
    let whole = values.iter().map(|value| value.trim()).filter(|value| value.len() >= SECRET_MIN);
    let lines = values.iter().flat_map(|value| value.lines()).map(str::trim).filter(|line| line.len() >= PART_MIN);
    let words = values.iter().flat_map(|value| words(value)).filter(|word| word.len() >= WORD_MIN);
    let keys = texts.iter().flat_map(|text| words_of_text(text));
    let plain: Vec<&str> = whole.chain(lines).chain(words).chain(keys).collect();
    let mut all: Vec<String> = plain.iter().filter_map(|text| base64(text)).collect();
    all.extend(plain.into_iter().map(str::to_owned));
    all.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    all.dedup();
    all
}

/// What a value consists of: a value is often a line of a file, or `name: secret`.
fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split(|letter: char| letter.is_whitespace() || "\"'`,;:=()[]{}<>|&".contains(letter))
}

/// What looks like a key or a password in a text that is mostly none.
fn words_of_text(text: &str) -> impl Iterator<Item = &str> {
    words(text).filter(|word| word.len() >= KEY_MIN && is_mixed(word))
}

/// Letters and digits, and no path or name of a file or host.
fn is_mixed(word: &str) -> bool {
    let has = |is: fn(&char) -> bool| word.chars().any(|letter| is(&letter));
    has(char::is_ascii_alphabetic) && has(char::is_ascii_digit) && !word.contains('/')
}

fn base64(text: &str) -> Option<String> {
    match json!(ByteString(text.as_bytes().to_vec())) {
        Value::String(base64) => Some(base64.trim_end_matches('=').to_owned()).filter(|text| text.len() >= PART_MIN),
        _ => None,
    }
}

/// A line without what looks like a secret by where it stands.
pub(super) fn hide(line: &str) -> String {
    without_telltale(&without_arguments(&without_tokens(line)))
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

/// Hides the word after `--token`, `-p`, `Bearer` and the like.
fn without_arguments(line: &str) -> String {
    let mut is_next = false;
    let words = line.split(' ').map(|word| {
        if word.is_empty() {
            return word;
        }
        let is_hidden = std::mem::replace(&mut is_next, false);
        let name = word.trim_start_matches(['"', '\'', '(']).to_ascii_lowercase();
        is_next = BEFORE_SECRETS.contains(&name.as_str());
        if is_hidden && !word.starts_with('-') { HIDDEN } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Hides what follows `password:`, `token=` and the like.
fn without_telltale(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    let found = TELLTALES.iter().filter_map(|word| {
        let at = lower.find(word)? + word.len();
        let rest = lower.get(at..)?;
        // The colon of a URL begins no value.
        let mut marks = rest.match_indices([':', '=']).map(|(mark, _)| mark + 1);
        marks.find(|after| !rest.get(*after..).is_some_and(|next| next.starts_with("//"))).map(|after| at + after)
    });
    match found.min().and_then(|value| line.get(..value)) {
        Some(start) => format!("{start} {HIDDEN}"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::boot_log::tail;
    use super::*;

    #[test]
    fn secrets_are_not_shown_in_any_usual_form() {
        let values = vec!["abcdef.0123456789abcdef".to_owned(), "-----BEGIN X-----\nMIIBsecretline\n".to_owned()];
        let log = "curl -H abcdef.0123456789abcdef\njoin zzzzzz.9999999999999999 now\nMIIBsecretline\n\
                   cGFzc3dvcmQ=\nadmin Password: hunter2\nAPI_TOKEN=x y z\nfetch YWJjZGVmLjAxMjM0NTY3ODlhYmNkZWY= ok\n";
        let lines = tail(log, &Secrets { values, texts: Vec::new() });
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

    #[test]
    fn words_of_values_and_keys_of_templates_are_not_shown() {
        let values = vec!["admin: correct-horse\nproxy=http://u:hunter22@proxy:3128".to_owned()];
        let texts = vec!["#cloud-config\nruncmd:\n- setup /opt/v1.2.3-linux-amd64 AKIA1234567890EXAMPLE\n".to_owned()];
        let log =
            "login correct-horse failed\nvia hunter22@proxy\nAKIA1234567890EXAMPLE\nsetup /opt/v1.2.3-linux-amd64\n";
        let lines = tail(log, &Secrets { values, texts });
        let wanted = ["login (hidden) failed", "via (hidden)", "(hidden)", "setup /opt/v1.2.3-linux-amd64"];
        assert_eq!(lines, wanted);
    }

    #[test]
    fn what_stands_where_secrets_stand_is_not_shown() {
        assert_eq!(
            hide("k3s agent --token K10abc --server https://a"),
            "k3s agent --token (hidden) --server https://a"
        );
        assert_eq!(hide("Authorization: Bearer eyJhbGciOi"), "Authorization: Bearer (hidden)");
        assert_eq!(hide("curl -u admin:pw https://a"), "curl -u (hidden) https://a");
        assert_eq!(hide("mount -p pw"), "mount -p (hidden)");
        assert_eq!(hide("cp -p -r a b"), "cp -p -r a b", "another option is no secret");
    }
}
