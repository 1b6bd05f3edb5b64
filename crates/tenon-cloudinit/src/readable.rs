//! Can a guest read what was rendered?
//!
//! Only what is surely YAML is looked at: meta-data, network-config and user-data that says so. A script or a MIME message
//! is none of our business.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;

use crate::Error;
use crate::templates::SeedFileName;

const CLOUD_CONFIG: &[u8] = b"#cloud-config";

/// Refuses a file that its reader could not parse.
pub(crate) fn check(name: SeedFileName, content: &[u8]) -> Result<(), Error> {
    let first_line = content.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    let is_yaml = match name {
        SeedFileName::UserData | SeedFileName::VendorData => first_line == CLOUD_CONFIG || is_machine_config(content),
        SeedFileName::MetaData | SeedFileName::NetworkConfig => !content.is_empty(),
    };
    if !is_yaml {
        return Ok(());
    }
    let refused = |line, column, why: String| Err(Error::Unreadable { file: name, line, column, why });
    let Ok(text) = std::str::from_utf8(content) else { return refused(1, 1, "it is not UTF-8".to_owned()) };
    let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
    match serde_saphyr::from_multiple_with_options::<Option<BTreeMap<String, IgnoredAny>>>(text, options) {
        Ok(_) => Ok(()),
        Err(error) => {
            let place = error.location().map(|place| (place.line(), place.column()));
            let (line, column) = place.unwrap_or((1, 1));
            refused(usize::try_from(line).unwrap_or(1), usize::try_from(column).unwrap_or(1), reason(&error))
        }
    }
}

/// With what files of other kinds begin.
const OTHERS: [&[u8]; 7] = [b"#!", b"##", b"#include", b"#cloud-", b"#part-", b"Content-Type:", b"MIME-Version:"];

/// Talos reads its machine configuration from user-data.
fn is_machine_config(content: &[u8]) -> bool {
    let begins_otherwise = OTHERS.iter().any(|other| content.trim_ascii_start().starts_with(other));
    let mut lines = content.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    !begins_otherwise && lines.any(|line| line == b"version: v1alpha1" || line == b"version: \"v1alpha1\"")
}

/// What the parser says, without the lines it shows, which may hold secrets, and without the place, which is told already.
fn reason(error: &serde_saphyr::Error) -> String {
    let whole = error.without_snippet().to_string();
    let first = whole.lines().next().unwrap_or_default();
    let words = first.rsplit_once(" at line ").map_or(first, |(words, _)| words);
    match words {
        _ if words.contains("expected mapping") || words.contains("deserialize") || words.contains("invalid type") => {
            "it is not a map of keys and values".to_owned()
        }
        _ if words.contains("budget") => "it is too large, or nested too deep".to_owned(),
        _ => words.to_owned(),
    }
}
