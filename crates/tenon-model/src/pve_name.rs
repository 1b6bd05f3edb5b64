//! Names that Proxmox takes: of VMs, storages, pools and tags. (Hosts are in `host.rs`.)

use std::fmt;
use std::str::FromStr;

/// A text that Proxmox does not take as a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what}: {rule}")]
pub struct PveNameError {
    /// What was given.
    pub text: String,
    /// What it should have been.
    pub what: &'static str,
    /// What such a name looks like.
    pub rule: &'static str,
}

/// A newtype whose texts are checked by a rule.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $check:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The plain text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = PveNameError;

            fn from_str(text: &str) -> Result<$name, PveNameError> {
                if $check(text) {
                    Ok($name(text.to_owned()))
                } else {
                    Err(PveNameError { text: text.to_owned(), what: $what, rule: $rule })
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// The name of a VM: a DNS name. Proxmox puts no bound to its length.
    VmName,
    "VM name",
    "use letters, digits and dashes, in parts that are separated by dots and neither begin nor end with a dash",
    is_vm_name
);
name!(
    /// The name of a storage.
    StorageId,
    "storage id",
    "begin with a letter, end with a letter or digit, and use letters, digits, `-`, `_` and `.` between (two characters \
     at least)",
    is_storage_id
);
name!(
    /// The name of a resource pool, which may lie in another one, and that in a third.
    PoolId,
    "pool id",
    "use letters, digits, `-`, `_` and `.`, in at most three parts that are separated by slashes",
    is_pool_id
);
name!(
    /// A tag of a VM. It finds things, and proves nothing.
    Tag,
    "tag",
    "begin with a letter, digit or `_`, and go on with letters, digits, `_`, `-`, `+` and `.`",
    is_tag
);

fn is_vm_name(text: &str) -> bool {
    text.split('.').all(|part| {
        let bytes = part.as_bytes();
        let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let inside = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inside)
    })
}

fn is_storage_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    bytes.len() >= 2
        && bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(inside)
}

fn is_pool_id(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.split('/').count() <= 3 && text.split('/').all(|part| !part.is_empty() && part.bytes().all(inside))
}

fn is_tag(text: &str) -> bool {
    let starts = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let inside = |byte: u8| starts(byte) || matches!(byte, b'-' | b'+' | b'.');
    text.bytes().next().is_some_and(starts) && text.bytes().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<N: FromStr<Err = PveNameError> + fmt::Display>(good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(text.parse::<N>().map(|name| name.to_string()), Ok((*text).to_owned()));
        }
        for text in bad {
            let error = text.parse::<N>().err().unwrap_or_else(|| panic!("{text:?} was taken"));
            assert_eq!(error.text, *text);
        }
    }

    #[test]
    fn names_are_those_proxmox_takes() {
        let long = "a".repeat(64);
        check::<VmName>(
            &["node-a", "N1", "0", "a.b.c", "default-7f2c", &long],
            &["", "-a", "a-", "a_b", "a..b", ".a", "a.", "a b", "é", "a\n"],
        );
        check::<StorageId>(
            &["local", "local-lvm", "ab", "S3.x_y-1"],
            &["", "a", "1a", "-ab", "ab-", "a b", "a/b", "a:b", "é1"],
        );
        check::<PoolId>(&["k8s", "a/b/c", "-", "a.b_c-d"], &["", "/", "a/", "/a", "a//b", "a/b/c/d", "a b", "a:b"]);
        check::<Tag>(&["k8s", "_x", "a+b.c-d", "A"], &["", "-a", "+a", "a b", "a;b", "a,b", "é"]);
    }
}
