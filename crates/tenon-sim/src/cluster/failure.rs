//! How does the API say no?
//!
//! Words, reasons and details are those of a real API server, because clients decide by them.

use serde_json::{Value, json};

use super::kinds::Kind;
use crate::cluster_schema::{FieldError, FieldReason};

/// A refusal, before it is bytes.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: u16,
    reason: &'static str,
    message: String,
    details: Option<Value>,
    /// Some paths are answered in plain text, before anything that speaks JSON is reached.
    pub(crate) is_plain: bool,
}

pub(crate) type ApiResult<T> = Result<T, Failure>;

/// What another write in between is answered with.
pub(crate) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

impl Failure {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, is_plain: false }
    }

    pub(crate) fn with(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    pub(crate) fn page_not_found() -> Self {
        Self { is_plain: true, ..Self::new(404, "NotFound", "404 page not found\n") }
    }

    pub(crate) fn no_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").with(json!({}))
    }

    pub(crate) fn method() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).with(json!({}))
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// What this server does not do, though a real one might.
    pub(crate) fn not_implemented(verb: &str, what: &str) -> Self {
        Self::new(501, "NotImplemented", format!("the embedded API server does not {verb} {what}"))
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", kind.qualified())).with(kind.details(name))
    }

    pub(crate) fn exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", kind.qualified());
        Self::new(409, "AlreadyExists", message).with(kind.details(name))
    }

    /// The same for a name the server has drawn, or might have.
    pub(crate) fn not_unique(kind: &Kind, name: &str) -> Self {
        let why = "already exists, the server was not able to generate a unique name for the object";
        let mut details = kind.details(name);
        details["retryAfterSeconds"] = 1.into();
        Self::new(409, "AlreadyExists", format!("{} {name:?} {why}", kind.qualified())).with(details)
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", kind.qualified());
        Self::new(409, "Conflict", message).with(kind.details(name))
    }

    /// A conflict that names the kind where others name the resource, as preconditions of deletions do.
    pub(crate) fn stale(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", kind.qualified_kind());
        Self::new(409, "Conflict", message).with(kind.kind_details(name))
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", kind.qualified());
        Self::new(403, "Forbidden", message).with(kind.details(name))
    }

    /// An object that breaks rules, named by its kind.
    pub(crate) fn invalid(kind: &Kind, name: &str, errors: &[FieldError]) -> Self {
        Self::unprocessable(&kind.qualified_kind(), kind.kind_details(name), errors)
    }

    /// The one rule whose breach is told by the resource instead.
    pub(crate) fn version_required(kind: &Kind, name: &str) -> Self {
        let error = invalid("metadata.resourceVersion", "Invalid value: 0: must be specified for an update");
        Self::unprocessable(&kind.qualified(), kind.details(name), &[error])
    }

    pub(crate) fn unprocessable(what: &str, mut details: Value, errors: &[FieldError]) -> Self {
        let mut told: Vec<String> = Vec::new();
        for error in errors {
            let line = format!("{}: {}", error.field, error.message);
            if !told.contains(&line) {
                told.push(line);
            }
        }
        let told = if told.len() == 1 { told.concat() } else { format!("[{}]", told.join(", ")) };
        details["causes"] = errors
            .iter()
            .map(|error| json!({ "reason": error.reason.as_str(), "message": error.message, "field": error.field }))
            .collect();
        let name = details["name"].as_str().unwrap_or_default().to_owned();
        if name.is_empty()
            && let Some(details) = details.as_object_mut()
        {
            details.remove("name");
        }
        Self::new(422, "Invalid", format!("{what} {name:?} is invalid: {told}")).with(details)
    }

    /// The Status object.
    pub(crate) fn body(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

/// A field with a value that cannot be.
pub(crate) fn invalid(field: &str, message: impl Into<String>) -> FieldError {
    FieldError { field: field.into(), reason: FieldReason::Invalid, message: message.into() }
}

/// A field that must be there.
pub(crate) fn required(field: &str, message: impl Into<String>) -> FieldError {
    FieldError { field: field.into(), reason: FieldReason::Required, message: message.into() }
}

/// A field that may not be like that now.
pub(crate) fn forbidden(field: &str, message: impl Into<String>) -> FieldError {
    FieldError { field: field.into(), reason: FieldReason::Forbidden, message: message.into() }
}
