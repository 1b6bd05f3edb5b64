//! Admission of custom resources by their schema alone, without a server to compare with.

mod coercion;
mod refusals;
mod rules;

use serde_json::{Value, json};
use tenon_sim::cluster_schema::{FieldError, admit};

/// A schema of a resource whose spec has the given fields.
fn schema(fields: &Value) -> Value {
    json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": fields } } })
}

/// A resource with the given spec.
fn object(spec: &Value) -> Value {
    json!({ "apiVersion": "test/v1", "kind": "Test", "metadata": { "name": "n", "labels": { "a": "b" } }, "spec": spec })
}

/// The spec as it would be stored.
fn stored(fields: &Value, spec: &Value) -> Result<Value, Vec<FieldError>> {
    let mut object = object(spec);
    admit(&schema(fields), &mut object, None)?;
    Ok(object["spec"].take())
}

/// What is said against an update, without the notes on rules that were not asked.
fn said(fields: &Value, spec: &Value, old: Option<&Value>) -> Vec<String> {
    let old = old.map(object);
    let errors = admit(&schema(fields), &mut object(spec), old.as_ref()).err().unwrap_or_default();
    errors.iter().filter(|error| !error.message.contains("rules were not checked")).map(ToString::to_string).collect()
}
