//! Does a single value have the type, length, size and format its schema asks for?

use serde_json::Value;

use super::check::{SchemaErrors, Subject};
use super::error::{FieldError, FieldReason, quoted};
use super::formats::Format;
use super::node::Node;
use super::number;
use super::pattern;

/// A value of another type than asked for; `found` is the type it has, or the text that does not parse.
pub(super) fn wrong_type(path: &str, wanted: &str, found: &str) -> FieldError {
    let detail = format!("{path} in body must be of type {wanted}: {}", quoted(found));
    FieldError::new(path, FieldReason::TypeInvalid, &Value::from(found), &detail)
}

/// The type of a value and the format the server takes for its own.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Number(number) if number.is_f64() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Checks the type of a value that is not null.
pub(super) fn check_type(kinds: &[&str], format: Option<Format<'_>>, subject: Subject<'_>) -> SchemaErrors {
    let (kind, own_format) = type_of(subject.value);
    let whole = subject.value.as_f64().is_some_and(number::is_whole);
    let numeric =
        (kind == "number" && whole && kinds.contains(&"integer")) || (kind == "integer" && kinds.contains(&"number"));
    let fits = kinds.contains(&kind) || numeric;
    let stringlike = matches!(kind, "string" | "array");
    let mut outcome = SchemaErrors::default();
    match format {
        Some(format) if !stringlike && !fits && own_format != format.name() => {
            outcome.add(wrong_type(subject.path, format.name(), own_format));
        }
        // With a format, the server leaves text and, oddly, lists to the check of the format.
        Some(_) if stringlike && !kinds.contains(&"number") && !kinds.contains(&"integer") => outcome.score += 1,
        _ if fits => outcome.score += 1,
        _ => outcome.add(wrong_type(subject.path, &kinds.join(","), kind)),
    }
    outcome
}

/// Checks length and pattern; only the first complaint is told.
pub(super) fn check_text(schema: Node<'_>, path: &str, text: &str, outcome: &mut SchemaErrors) {
    let length = text.chars().count();
    if let Some(most) = schema.count("maxLength").filter(|most| length > *most) {
        let bytes = if most == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {most} {bytes}");
        outcome.add(FieldError::without_value(path, FieldReason::TooLong, &detail));
    } else if let Some(least) = schema.count("minLength").filter(|least| length < *least) {
        let detail = format!("{path} in body should be at least {least} chars long");
        outcome.add(FieldError::new(path, FieldReason::Invalid, &Value::from(text), &detail));
    } else if let Some(pattern) = schema.text("pattern").filter(|pattern| !pattern.is_empty()) {
        let trouble = match pattern::matches(pattern, text) {
            Ok(true) => return,
            Ok(false) => String::new(),
            Err(error) => format!(", but pattern is invalid: {error}"),
        };
        let detail = format!("{path} in body should match '{pattern}{trouble}'");
        outcome.add(FieldError::new(path, FieldReason::Invalid, &Value::from(text), &detail));
    }
}

/// Checks the format of a text.
pub(super) fn check_format(format: Format<'_>, path: &str, text: &str, outcome: &mut SchemaErrors) {
    if !format.accepts(text) {
        outcome.add(wrong_type(path, format.name(), text));
    }
}

/// Checks that the value is one of those listed. A null never is, not even if null is listed.
pub(super) fn check_enum(schema: Node<'_>, subject: Subject<'_>, outcome: &mut SchemaErrors) {
    let allowed = schema.list("enum");
    if allowed.is_empty() || allowed.iter().any(|option| is_option(option, subject.value)) {
        return;
    }
    let name = |option: &Value| match option {
        Value::String(text) => quoted(text),
        other => quoted(&other.to_string()),
    };
    let listed: Vec<String> = allowed.iter().map(name).collect();
    let detail = format!("supported values: {}", listed.join(", "));
    outcome.add(FieldError::new(subject.path, FieldReason::NotSupported, subject.value, &detail));
}

fn is_option(option: &Value, value: &Value) -> bool {
    match (option, value) {
        (Value::Null, _) => false,
        (Value::Number(option), Value::Number(value)) => number::is_option(option, value),
        (option, value) => option == value,
    }
}
