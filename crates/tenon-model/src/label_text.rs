//! What may stand in a label: keys are qualified names, values are short words.

/// The longest name part of a key, and the longest value.
const NAME_LENGTH: usize = 63;
/// The longest prefix of a key, which is a DNS name.
const PREFIX_LENGTH: usize = 253;

/// What is wrong with a label's key, if anything: `[prefix/]name`, where the prefix is a DNS name of lower-case letters.
pub fn key_faults(key: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => {
            return vec!["the key has more than one slash; use [prefix/]name".to_owned()];
        }
        Some((prefix, name)) => {
            prefix_faults(prefix, &mut faults);
            name
        }
    };
    if name.is_empty() {
        faults.push("the name part is empty".to_owned());
    } else if name.len() > NAME_LENGTH {
        faults.push(format!("the name part has more than {NAME_LENGTH} characters"));
    }
    if !name.is_empty() && !is_word(name) {
        faults.push(
            "the name part must begin and end with a letter or digit and contain only letters, digits, `-`, `_` \
             and `.`"
                .to_owned(),
        );
    }
    faults
}

fn prefix_faults(prefix: &str, faults: &mut Vec<String>) {
    if prefix.is_empty() {
        faults.push("the prefix before the slash is empty".to_owned());
    } else if prefix.len() > PREFIX_LENGTH {
        faults.push(format!("the prefix has more than {PREFIX_LENGTH} characters"));
    }
    let is_label = |label: &str| {
        let edge = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let bytes = label.as_bytes();
        let inside = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
        edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inside)
    };
    if !prefix.is_empty() && !prefix.split('.').all(is_label) {
        faults.push("the prefix is not a DNS name of lower-case letters, digits, `-` and `.`".to_owned());
    }
}

/// What is wrong with a label's value, if anything. Nothing at all is a value.
pub fn value_faults(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > NAME_LENGTH {
        faults.push(format!("a value has at most {NAME_LENGTH} characters"));
    }
    if !value.is_empty() && !is_word(value) {
        let what =
            "a value must begin and end with a letter or digit and contain only letters, digits, `-`, `_` and `.`";
        faults.push(what.to_owned());
    }
    faults
}

fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_qualified_names() {
        let long = "a".repeat(63);
        let deep = vec!["a".repeat(63); 3].join(".") + "." + &"b".repeat(61);
        let good = ["a", "A", "1", "a_b.c-D", "example.com/a", "a/b", "1.2/3", long.as_str()];
        for key in good.map(str::to_owned).into_iter().chain([format!("{deep}/{long}")]) {
            assert_eq!(key_faults(&key), Vec::<String>::new(), "{key}");
        }
        let too_long = "a".repeat(64);
        for key in [
            "",
            "/",
            "a/",
            "/a",
            "a/b/c",
            "-a",
            "a-",
            ".a",
            "a b",
            "Example.com/a",
            "a..b/c",
            "a_b/c",
            "-a/b",
            "é",
            "a\n",
            too_long.as_str(),
            "a./b",
        ] {
            assert_ne!(key_faults(key), Vec::<String>::new(), "{key}");
        }
        assert_eq!(key_faults(&format!("{}/a", "a".repeat(254))).len(), 1);
        assert_eq!(key_faults(&format!("-{}", "a".repeat(70))).len(), 2, "all faults are told");
    }

    #[test]
    fn values_are_short_words_or_nothing() {
        let long = "a".repeat(63);
        for value in ["", "a", "1", "A.b_c-9", long.as_str()] {
            assert_eq!(value_faults(value), Vec::<String>::new(), "{value}");
        }
        let too_long = "a".repeat(64);
        for value in ["-", "-a", "a-", "a b", "a/b", "é", " ", too_long.as_str()] {
            assert_ne!(value_faults(value), Vec::<String>::new(), "{value}");
        }
    }
}
