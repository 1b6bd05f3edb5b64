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
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("duplicate key `{key}`; keep one"),
        Error::DuplicateMappingKey { key: None, .. } => "duplicate key; keep one".to_owned(),
        Error::QuotingRequired { value, .. } => {
            format!("`{value}` is a number or a boolean, but a string is expected; put the value in quotes")
        }
        Error::InvalidBooleanStrict { .. } => "a boolean must be true or false".to_owned(),
        Error::InvalidScalar { ty, .. } => format!("the value is not {}", of_type(ty)),
        Error::SerdeInvalidType { unexpected, expected, .. } if unexpected == "unit value" => {
            format!("the value is empty, expected {expected}")
        }
        Error::NullIntoString { .. } => "the value is empty, but a string is expected".to_owned(),
        Error::NonFiniteFloat { value, .. } => format!("`{value}` is not a number, or is too large"),
        Error::Unexpected { expected, .. } => format!("expected {}", wanted(expected)),
        Error::UnknownAnchor { .. } => "unknown anchor".to_owned(),
        Error::Budget { breach, .. } => {
            let breach = format!("{breach:?}");
            let what = breach.split([' ', '{']).next().unwrap_or_default().to_lowercase();
            format!("the YAML is nested too deeply or has too many references ({what})")
        }
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => {
            "the references expand the YAML to many times its size; write the objects out".to_owned()
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
        "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, or is out of range",
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
            ("a: b\na: c", 2, "duplicate key `a`; keep one"),
            ("a: 5", 1, "`5` is a number or a boolean, but a string is expected; put the value in quotes"),
            ("a:", 1, "the value is empty, but a string is expected"),
            ("- a", 1, "expected a map of keys and values"),
            ("a: *b", 1, "unknown anchor"),
            ("a: b\n c: d", 2, "mapping values are not allowed in this context"),
        ] {
            assert_eq!(fault(text), (Some(at), said.to_owned()), "{text}");
        }
        let deep: Result<serde_json::Value, _> = serde_saphyr::from_str(&format!("{}x", "- ".repeat(100)));
        let said = words(&deep.unwrap_err());
        assert!(said.starts_with("the YAML is nested too deeply") && !said.contains('{'), "{said}");
    }
}
