//! How is a refusal worded?

use std::fmt::{self, Display, Formatter};

use serde_json::Value;

/// Why a field is refused: the `reason` of a cause in the server's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldReason {
    /// The value breaks a rule.
    Invalid,
    /// A value is missing.
    Required,
    /// The value is none of those that are listed.
    NotSupported,
    /// The text is too long.
    TooLong,
    /// The list or map has too many entries.
    TooMany,
    /// The value has another type.
    TypeInvalid,
    /// The value is there twice.
    Duplicate,
    /// The value may not be set.
    Forbidden,
}

impl FieldReason {
    /// The word the API uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Required => "FieldValueRequired",
            Self::NotSupported => "FieldValueNotSupported",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
        }
    }

    /// Whether the object is too malformed for the rules to be asked at all.
    pub(super) fn blocks_rules(self) -> bool {
        matches!(self, Self::NotSupported | Self::Required | Self::TooLong | Self::TooMany | Self::TypeInvalid)
    }

    fn words(self) -> &'static str {
        match self {
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::Required => "Required value",
            Self::NotSupported => "Unsupported value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
        }
    }
}

impl Display for FieldReason {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// One thing wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The field, as in `spec.budgets[0].nodes`; `<nil>` where the server names none.
    pub field: String,
    /// The kind of the error.
    pub reason: FieldReason,
    /// What a person reads, without the field.
    pub message: String,
}

impl Display for FieldError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.message)
    }
}

/// The field of an error that the server ties to none.
pub(super) const NO_FIELD: &str = "<nil>";

impl FieldError {
    /// An error that shows the value; the path of the root has no name.
    pub(super) fn new(path: &str, reason: FieldReason, value: &Value, detail: &str) -> Self {
        Self::built(path, reason, Some(value), detail)
    }

    /// An error that does not repeat the value.
    pub(super) fn without_value(path: &str, reason: FieldReason, detail: &str) -> Self {
        Self::built(path, reason, None, detail)
    }

    /// An error of which the server knows only the words.
    pub(super) fn nowhere(detail: &str) -> Self {
        Self::new("", FieldReason::Invalid, &Value::from(""), detail)
    }

    fn built(path: &str, reason: FieldReason, value: Option<&Value>, detail: &str) -> Self {
        let trimmed = path.strip_prefix('.').unwrap_or(path);
        let mut message = reason.words().to_owned();
        let shown = !matches!(reason, FieldReason::Required | FieldReason::Forbidden | FieldReason::TooLong);
        for part in [value.filter(|_| shown).map(shown_value), Some(detail.to_owned())].into_iter().flatten() {
            if !part.is_empty() {
                message.push_str(": ");
                message.push_str(&part);
            }
        }
        let field = if trimmed.is_empty() { NO_FIELD } else { trimmed };
        Self { field: field.to_owned(), reason, message }
    }
}

fn shown_value(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) => go_number(number),
        other => other.to_string(),
    }
}

/// A number as Go prints it: whole floats without a fraction, very large and small ones with an exponent.
pub(super) fn go_number(number: &serde_json::Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    if float == 0.0 || (1e-4..1e21).contains(&float.abs()) {
        return format!("{float}");
    }
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{digits}e-{exponent:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}

/// Text in quotation marks, with what cannot be printed escaped.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
