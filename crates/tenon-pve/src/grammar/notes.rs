//! What people and programs write on a VM: tags, the description, and keys for logging in.

use std::collections::BTreeSet;
use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Tags as Proxmox keeps them: lower case, each once, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags(BTreeSet<String>);

impl Tags {
    /// Reads tags that are divided by semicolons, commas or blanks.
    pub fn read(text: &str) -> Tags {
        let words = text.split([';', ',', ' ', '\t', '\n']).filter(|word| !word.is_empty());
        Tags(words.map(str::to_lowercase).collect())
    }

    /// Adds a tag; `false` if Proxmox would not take it.
    #[must_use]
    pub fn insert(&mut self, tag: &str) -> bool {
        let tag = tag.to_lowercase();
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"_+.-".contains(&byte);
        let first = tag.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let is_good = first && tag.bytes().all(inside);
        if is_good {
            self.0.insert(tag);
        }
        is_good
    }

    /// Takes a tag away.
    pub fn remove(&mut self, tag: &str) {
        self.0.remove(&tag.to_lowercase());
    }

    /// Whether a tag is there.
    pub fn has(&self, tag: &str) -> bool {
        self.0.contains(&tag.to_lowercase())
    }

    /// Every tag, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// What to send: the tags, or that there shall be none, which an empty text does not say.
    pub fn to_params(&self) -> (&'static str, String) {
        if self.0.is_empty() { ("delete", "tags".to_owned()) } else { ("tags", self.to_string()) }
    }
}

impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(String::as_str).collect::<Vec<_>>().join(";"))
    }
}

/// A description as Proxmox gives it back: one newline at the end is lost.
pub fn stored_description(sent: &str) -> &str {
    sent.strip_suffix('\n').unwrap_or(sent)
}

/// What a configuration file on a Proxmox host has as it is: printable letters but `%` and `:`. The API takes and gives
/// descriptions without any of this; it is for who reads the files.
const ENCODED_IN_FILES: AsciiSet = CONTROLS.add(b'%').add(b':');

/// A description as it stands in the file: a comment for each line.
pub fn description_to_file(description: &str) -> String {
    let line = |line: &str| format!("#{}\n", utf8_percent_encode(line, &ENCODED_IN_FILES));
    stored_description(description).split('\n').map(line).collect()
}

/// The description out of the comments of a file.
pub fn description_from_file(file: &str) -> String {
    let lines = file.lines().map_while(|line| line.strip_prefix('#'));
    let decoded: Vec<String> = lines.map(|line| percent_decode_str(line).decode_utf8_lossy().into_owned()).collect();
    decoded.join("\n")
}

/// Keys for logging in as the option `sshkeys` wants them: encoded once by us, beside the encoding of the request.
pub fn encoded_ssh_keys(keys: &str) -> String {
    utf8_percent_encode(keys.trim(), NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_kept_as_proxmox_keeps_them() {
        let mut tags = Tags::read("zeta;Alpha,beta alpha");
        assert_eq!(tags.to_string(), "alpha;beta;zeta");
        assert!(tags.insert("go-proxmox+cloud-init") && tags.insert("K8s.io") && tags.has("k8S.IO"));
        for bad in ["", "-a", "a b", "a;b", "é", "+a"] {
            assert!(!tags.insert(bad), "{bad}");
        }
        ["zeta", "alpha", "beta", "k8s.io", "go-proxmox+cloud-init"].iter().for_each(|tag| tags.remove(tag));
        assert_eq!(tags.to_params(), ("delete", "tags".to_owned()));
        // What Proxmox stores for an empty value.
        assert_eq!(Tags::read(" "), Tags::default());
    }

    #[test]
    fn a_description_survives_the_file() {
        for text in ["owner=c1\nclaim=abc", "line1: a=1\nline2 ünï %25 #x", "", "#", "\n\nlast", "tab\tend"] {
            let file = description_to_file(text);
            assert!(file.lines().all(|line| line.starts_with('#') && !line[1..].contains(':')), "{file}");
            assert_eq!(description_from_file(&format!("{file}cores: 1\n")), text, "{file}");
        }
        assert_eq!(description_to_file("a: b\nü%\n"), "#a%3A b\n#%C3%BC%25\n");
    }

    #[test]
    fn ssh_keys_are_encoded_as_recorded() {
        assert_eq!(encoded_ssh_keys("ssh-ed25519 AAAA user@host\n"), "ssh%2Ded25519%20AAAA%20user%40host");
    }
}
