//! Keeps secrets out of what is printed.
//!
//! What is known to be secret is searched for byte by byte: the bootstrap token and the values, in the forms that templates
//! usually give them. A value in any other form is not found.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::subject::Subject;

/// What is shorter is no secret, and stands everywhere.
const SECRET_MIN: usize = 4;
/// What is shorter as a part of a secret stands everywhere, too.
const PART_MIN: usize = 8;

/// Texts that are not printed, by their first byte, the longest first; each with what is printed for it.
#[derive(Default)]
pub(super) struct Mask {
    secrets: BTreeMap<u8, Vec<(Vec<u8>, String)>>,
}

impl Mask {
    /// Masks nothing.
    pub(super) fn nothing() -> Mask {
        Mask::default()
    }

    /// Masks the secrets of a node.
    pub(super) fn of(subject: &Subject) -> Mask {
        let mut mask = Mask::nothing();
        let token = &subject.bootstrap.token;
        mask.add("bootstrap token", token.expose());
        if let Some((_, half)) = token.expose().split_once('.') {
            mask.add("bootstrap token", half);
        }
        for (key, value) in &subject.sources.values.text {
            mask.add(key, value);
        }
        for (key, value) in &subject.sources.values.binary {
            mask.add_forms(key, in_base64(value).into_iter().chain([value.clone()]));
        }
        mask.secrets.values_mut().for_each(|texts| texts.sort_by_key(|(text, _)| std::cmp::Reverse(text.len())));
        mask
    }

    fn add(&mut self, key: &str, value: &str) {
        self.add_forms(key, forms(value));
    }

    fn add_forms(&mut self, key: &str, forms: impl IntoIterator<Item = Vec<u8>>) {
        let shown = format!("<masked {key}>");
        for text in forms {
            let Some(first) = text.first() else { continue };
            self.secrets.entry(*first).or_default().push((text, shown.clone()));
        }
    }

    /// The content without secrets.
    pub(super) fn apply(&self, content: &[u8]) -> Vec<u8> {
        let (mut masked, mut rest) = (Vec::with_capacity(content.len()), content);
        while let Some((first, after)) = rest.split_first() {
            let found = self.secrets.get(first).into_iter().flatten().find(|(text, _)| rest.starts_with(text));
            match found {
                Some((text, shown)) => {
                    masked.extend_from_slice(shown.as_bytes());
                    rest = rest.get(text.len()..).unwrap_or_default();
                }
                None => {
                    masked.push(*first);
                    rest = after;
                }
            }
        }
        masked
    }

    /// A text without secrets.
    pub(super) fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.apply(text.as_bytes())).into_owned()
    }
}

/// A secret in all the forms that are recognized.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut texts: Vec<String> = vec![value.to_owned(), value.trim().to_owned()];
    let is_many = value.trim().contains('\n');
    // The frame of a certificate or key is no secret.
    let is_part = |line: &&str| is_many && line.len() >= PART_MIN && !line.starts_with("-----");
    texts.extend(value.lines().map(str::trim).filter(is_part).map(str::to_owned));
    let has_parts = value.contains(',');
    texts.extend(value.split(',').map(str::trim).filter(|part| has_parts && part.len() >= PART_MIN).map(str::to_owned));
    texts.retain(|text| text.len() >= SECRET_MIN);
    let mut forms: Vec<Vec<u8>> = Vec::new();
    for text in &texts {
        forms.extend(in_base64(text.as_bytes()));
        // As it stands between quotes.
        let quoted = serde_json::to_string(text).unwrap_or_default();
        forms.push(quoted.trim_matches('"').as_bytes().to_vec());
        forms.push(text.as_bytes().to_vec());
    }
    forms.sort();
    forms.dedup();
    forms
}

/// A secret as Base64, alone or somewhere inside a longer text: it may begin at any of three places of a group, and the
/// letters at its edges depend on its neighbours.
fn in_base64(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for (before, skipped) in [(0, 0), (1, 2), (2, 3)] {
        let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(secret.iter().copied()).collect();
        let whole = padded.len() * 8 / 6;
        for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            let inside = encoded.get(skipped..whole).unwrap_or_default().as_bytes().to_vec();
            if inside.len() >= PART_MIN {
                forms.push(inside);
            }
            // Alone, its last letter counts too, and the signs that fill it up.
            if before == 0 {
                let fill = "=".repeat((4 - encoded.len() % 4) % 4);
                forms.push(format!("{encoded}{fill}").into_bytes());
                forms.push(encoded.into_bytes());
            }
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(values: &[(&str, &str)]) -> Mask {
        let mut mask = Mask::nothing();
        values.iter().for_each(|(key, value)| mask.add(key, value));
        mask.secrets.values_mut().for_each(|texts| texts.sort_by_key(|(text, _)| std::cmp::Reverse(text.len())));
        mask
    }

    #[test]
    fn a_value_is_masked_wherever_it_stands_and_short_ones_are_not() {
        let mask = mask(&[("token", "s3cr3t-value"), ("port", "443")]);
        let text = "a s3cr3t-values3cr3t-value, port 443";
        assert_eq!(mask.text(text), "a <masked token><masked token>, port 443");
        assert_eq!(Mask::nothing().text("s3cr3t-value"), "s3cr3t-value");
    }

    #[test]
    fn the_longer_of_two_secrets_is_masked_as_a_whole() {
        let mask = mask(&[("short", "abcd"), ("long", "abcd-efgh")]);
        assert_eq!(mask.text("abcd-efgh abcd"), "<masked long> <masked short>");
    }

    #[test]
    fn base64_of_a_value_is_masked_alone_and_inside_a_longer_text() {
        let (secret, mask) = ("s3cr3t-value", mask(&[("token", "s3cr3t-value")]));
        assert_eq!(mask.text(&STANDARD_NO_PAD.encode(secret)), "<masked token>");
        for before in ["", "a", "ab", "abc"] {
            for after in ["", "x", "xy"] {
                let text = STANDARD_NO_PAD.encode(format!("{before}{secret}{after}"));
                assert!(mask.text(&text).contains("<masked token>"), "{before}{secret}{after}");
            }
        }
        let padded = base64::engine::general_purpose::STANDARD.encode("s3cr3t-text");
        assert_eq!(self::mask(&[("token", "s3cr3t-text")]).text(&padded), "<masked token>");
    }

    #[test]
    fn lines_and_parts_of_a_value_are_masked_where_a_template_takes_it_apart() {
        let key = "-----BEGIN KEY-----\nMIIabcdefgh\nshort\n-----END KEY-----\n";
        let mask = mask(&[("ca.key", key), ("SSHAuthorizedKeys", "ssh-ed25519 AAAA a, ssh-rsa BBBB b")]);
        assert_eq!(mask.text(key), "<masked ca.key>");
        assert_eq!(mask.text("    MIIabcdefgh\n    short\n"), "    <masked ca.key>\n    short\n");
        assert_eq!(mask.text("- ssh-rsa BBBB b\n"), "- <masked SSHAuthorizedKeys>\n");
        assert_eq!(mask.text(&serde_json::to_string(key).unwrap()), "\"<masked ca.key>\"");
    }
}
