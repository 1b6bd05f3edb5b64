//! Does a value have the shape its schema asks for?

use serde_json::{Map, Value};

use super::composition;
use super::correlate::Pair;
use super::error::{FieldError, FieldReason};
use super::formats::Format;
use super::node::Node;
use super::{number, scalar};

/// What came of comparing a value with a schema. The score says how much of it fitted: of several alternatives
/// that all failed, the server tells of the one that came closest.
#[derive(Default)]
pub(super) struct SchemaErrors {
    pub(super) errors: Vec<FieldError>,
    pub(super) score: usize,
}

impl SchemaErrors {
    pub(super) fn add(&mut self, error: FieldError) {
        // The server tells everything once.
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        other.errors.into_iter().for_each(|error| self.add(error));
        self.score += other.score;
    }
}

/// A value to be looked at: where it is, and what it replaces.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) value: &'a Value,
    pub(super) path: &'a str,
    pub(super) pair: Option<Pair<'a>>,
}

/// Checks a value; what was already wrong with an unchanged value is forgiven.
pub(super) fn check(schema: Node<'_>, subject: Subject<'_>) -> SchemaErrors {
    let mut outcome = check_all(schema, subject);
    if !outcome.errors.is_empty() && subject.pair.is_some_and(Pair::unchanged) {
        outcome.errors.clear();
    }
    outcome
}

/// Checks a value against a schema without regard to what it replaces.
pub(super) fn check_all(schema: Node<'_>, subject: Subject<'_>) -> SchemaErrors {
    let Subject { value, path, .. } = subject;
    let kinds = schema.kinds();
    let format = Format::of(schema);
    let mut outcome = SchemaErrors::default();
    if value.is_null() {
        outcome.merge(null_type(schema, path, &kinds));
        scalar::check_enum(schema, subject, &mut outcome);
        return outcome;
    }
    if !kinds.is_empty() || format.is_some() {
        outcome.merge(scalar::check_type(&kinds, format, subject));
        outcome.score += 1;
    }
    outcome.merge(composition::check(schema, subject));
    outcome.score += 1;
    match value {
        Value::String(text) => {
            scalar::check_text(schema, path, text, &mut outcome);
            outcome.score += 1;
            if let Some(format) = format.filter(|format| format.is_textual()) {
                scalar::check_format(format, path, text, &mut outcome);
                outcome.score += 1;
            }
        }
        Value::Number(number) => {
            number::check(schema, path, number, &mut outcome);
            outcome.score += 2;
        }
        Value::Array(items) => {
            check_items(schema, subject, items, &mut outcome);
            outcome.score += 2;
        }
        _ => {}
    }
    scalar::check_enum(schema, subject, &mut outcome);
    outcome.score += 1;
    if let Value::Object(fields) = value {
        check_fields(schema, subject, fields, &mut outcome);
        outcome.score += 1;
    }
    outcome.score += 1;
    outcome
}

fn null_type(schema: Node<'_>, path: &str, kinds: &[&str]) -> SchemaErrors {
    let mut outcome = SchemaErrors::default();
    if kinds.is_empty() || schema.nullable() {
        outcome.score += 1;
    } else {
        outcome.add(scalar::wrong_type(path, &kinds.join(","), "null"));
    }
    outcome
}

fn check_items(schema: Node<'_>, subject: Subject<'_>, items: &[Value], outcome: &mut SchemaErrors) {
    let path = subject.path;
    if let Some(node) = schema.items() {
        for (index, value) in items.iter().enumerate() {
            let pair = subject.pair.and_then(|pair| pair.index(index));
            outcome.merge(check(node, Subject { value, path: &format!("{path}[{index}]"), pair }));
        }
    }
    let size = Value::from(items.len());
    if let Some(least) = schema.count("minItems").filter(|least| items.len() < *least) {
        let detail = format!("{path} in body should have at least {least} items");
        outcome.add(FieldError::new(path, FieldReason::Invalid, &size, &detail));
    }
    if let Some(most) = schema.count("maxItems").filter(|most| items.len() > *most) {
        outcome.add(too_many(path, items.len(), most));
    }
    let repeated = |(index, item): (usize, &Value)| items[..index].contains(item);
    if schema.flag("uniqueItems") && items.iter().enumerate().any(repeated) {
        let detail = format!("{path} in body shouldn't contain duplicates");
        outcome.add(FieldError::new(path, FieldReason::Invalid, &Value::from(""), &detail));
    }
}

fn too_many(path: &str, size: usize, most: usize) -> FieldError {
    let items = if most == 1 { "item" } else { "items" };
    FieldError::new(path, FieldReason::TooMany, &Value::from(size), &format!("must have at most {most} {items}"))
}

fn check_fields(schema: Node<'_>, subject: Subject<'_>, fields: &Map<String, Value>, outcome: &mut SchemaErrors) {
    let path = subject.path;
    let size = Value::from(fields.len());
    if let Some(least) = schema.count("minProperties").filter(|least| fields.len() < *least) {
        let detail = format!("{path} in body should have at least {least} properties");
        outcome.add(FieldError::new(path, FieldReason::Invalid, &size, &detail));
    }
    if let Some(most) = schema.count("maxProperties").filter(|most| fields.len() > *most) {
        outcome.add(too_many(path, fields.len(), most));
    }
    for (name, value) in fields {
        let is_property = schema.property(name).is_some();
        if let Some(node) = schema.field(name) {
            // The root has no name, so its properties need no dot.
            let below = if path.is_empty() && is_property { name.clone() } else { format!("{path}.{name}") };
            let of_type_meta = path.is_empty() && (name == "apiVersion" || name == "kind");
            let pair = subject.pair.filter(|_| !of_type_meta).and_then(|pair| pair.key(name));
            outcome.merge(check(node, Subject { value, path: &below, pair }));
        } else if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            let detail = format!("{path}.{name} in body is a forbidden property");
            outcome.add(FieldError::new(path, FieldReason::Invalid, &Value::from(name.as_str()), &detail));
        }
    }
    for name in schema.texts("required").into_iter().filter(|name| !fields.contains_key(*name)) {
        outcome.add(FieldError::without_value(&format!("{path}.{name}"), FieldReason::Required, ""));
    }
}
