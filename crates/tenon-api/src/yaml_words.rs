//! What is wrong with a YAML text, in the words of whoever wrote it and not of the program that reads it.

use serde_saphyr::{DefaultMessageFormatter, Error, MessageFormatter};

/// The line a fault shows on, counted from one.
pub fn line(error: &Error) -> Option<usize> {
    error.location().and_then(|place| usize::try_from(place.line()).ok()).filter(|line| *line > 0)
}

/// What is wrong, on one line and without its place.
pub fn words(error: &Error) -> String {
    match error.without_snippet() {
        Error::AliasError { error, .. } => words(error),
        Error::Eof { .. } => "the YAML ends too early".to_owned(),
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("the key `{key}` stands there twice: keep one"),
        Error::DuplicateMappingKey { key: None, .. } => "a key stands there twice: keep one".to_owned(),
        Error::QuotingRequired { value, .. } => {
            format!("`{value}` is read as a number or a truth value and a text is wanted: put it in quotes")
        }
        Error::InvalidBooleanStrict { .. } => "only true and false are truth values".to_owned(),
        Error::InvalidScalar { ty, .. } => format!("this is not {}", of_type(ty)),
        Error::SerdeInvalidType { unexpected, expected, .. } if unexpected == "unit value" => {
            format!("there is nothing here, expected {expected}")
        }
        Error::NullIntoString { .. } => "there is nothing here, and a text is wanted".to_owned(),
        Error::NonFiniteFloat { value, .. } => format!("`{value}` is too large a number, or none"),
        Error::Unexpected { expected, .. } => format!("{} is wanted here", wanted(expected)),
        Error::UnknownAnchor { .. } => "this refers to an anchor that is not there".to_owned(),
        Error::Budget { breach, .. } => {
            let breach = format!("{breach:?}");
            let what = breach.split([' ', '{']).next().unwrap_or_default().to_lowercase();
            format!("this is nested too deeply or refers to itself too often ({what}): it is no list of objects")
        }
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => {
            "its references make it many times larger than it is written: write it out".to_owned()
        }
        other => one_line(&DefaultMessageFormatter.format_message(other)),
    }
}

fn wanted(expected: &str) -> &str {
    match expected {
        "mapping start" => "a map of keys and values",
        "sequence start" => "a list",
        "string scalar" | "scalar" => "a single value",
        other => other,
    }
}

fn of_type(name: &str) -> &str {
    match name {
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "usize" => {
            "a whole number, or it is too large or too small"
        }
        "f32" | "f64" => "a number",
        other => other,
    }
}

/// A text from elsewhere without what a terminal might obey.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn nobody_is_told_of_the_reader_s_own_settings() {
        let options = serde_saphyr::options! { strict_booleans: true, no_schema: true };
        let fault = |text: &str| {
            let read: Result<BTreeMap<String, String>, _> = serde_saphyr::from_str_with_options(text, options.clone());
            let error = read.unwrap_err();
            (line(&error), words(&error))
        };
        for (text, at, said) in [
            ("a: b\na: c", 2, "the key `a` stands there twice: keep one"),
            ("a: 5", 1, "`5` is read as a number or a truth value and a text is wanted: put it in quotes"),
            ("a:", 1, "there is nothing here, and a text is wanted"),
            ("- a", 1, "a map of keys and values is wanted here"),
            ("a: *b", 1, "this refers to an anchor that is not there"),
            ("a: b\n c: d", 2, "mapping values are not allowed in this context"),
        ] {
            assert_eq!(fault(text), (Some(at), said.to_owned()), "{text}");
        }
        let deep: Result<serde_json::Value, _> = serde_saphyr::from_str(&format!("{}x", "- ".repeat(100)));
        let said = words(&deep.unwrap_err());
        assert!(said.starts_with("this is nested too deeply") && !said.contains('{'), "{said}");
    }
}
