//! What of an object does an expression see, and under which names?

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, Value as Seen};
use serde_json::{Value, json};

use super::expression::parsed;
use super::formats::loose_duration;
use super::node::Node;

/// Words of the language, which a field cannot be called by.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The schema of a resource's root as rules see it: of the metadata, only the names.
pub(super) fn resource_schema(schema: &Value) -> Value {
    let mut seen = schema.clone();
    let text = json!({ "type": "string" });
    if let Some(fields) = seen.as_object_mut() {
        let properties = fields.entry("properties").or_insert_with(|| json!({}));
        properties["apiVersion"] = text.clone();
        properties["kind"] = text.clone();
        properties["metadata"] = json!({ "type": "object", "properties": { "name": text, "generateName": text } });
    }
    seen
}

/// A value as an expression sees it; an error if its schema does not fit it.
pub(super) fn seen(schema: Node<'_>, value: &Value, library: &Context<'_>) -> Result<Seen, String> {
    if value.is_null() {
        let error = "invalid data, got null for schema with nullable=false";
        return if schema.nullable() { Ok(Seen::Null) } else { Err(error.to_owned()) };
    }
    if schema.int_or_string() {
        let seen = value.as_i64().map(Seen::Int).or_else(|| value.as_str().map(Seen::from));
        let error = "invalid data, expected XIntOrString value to be either a string or integer";
        return seen.ok_or_else(|| error.to_owned());
    }
    let (wanted, seen) = match schema.kind() {
        "object" => return Ok(object(schema, value, library)),
        "array" => {
            let (items, list) = schema.items().zip(value.as_array()).ok_or("invalid data, expected an array")?;
            let list: Result<Vec<Seen>, String> = list.iter().map(|item| seen(items, item, library)).collect();
            return Ok(Seen::List(Arc::new(list?)));
        }
        "string" => match value.as_str() {
            Some(text) => return converted(schema, text, library),
            None => ("string", None),
        },
        "number" => ("float", value.as_f64().map(Seen::Float)),
        "integer" => ("int", value.as_i64().map(Seen::Int)),
        "boolean" => ("bool", value.as_bool().map(Seen::Bool)),
        // What is kept without a schema can be compared and no more.
        _ => ("known type", schema.preserves_unknown().then(|| Seen::from(value.to_string()))),
    };
    seen.ok_or_else(|| format!("invalid data, expected {wanted}, got {}", go_type(value)))
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::Bool(_) => "bool",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        _ => "string",
    }
}

fn object(schema: Node<'_>, value: &Value, library: &Context<'_>) -> Seen {
    let mut fields = HashMap::new();
    let resource = schema.embedded().then(|| resource_schema(schema.0));
    let schema = resource.as_ref().map_or(schema, Node);
    for (name, field) in value.as_object().into_iter().flatten() {
        let entry = if schema.properties().is_some() {
            // A null field is as good as absent.
            let property = schema.property(name).filter(|_| !field.is_null());
            property.and_then(|node| seen(node, field, library).ok()).zip(escaped(name))
        } else {
            schema.additional().and_then(|node| seen(node, field, library).ok()).zip(Some(name.clone()))
        };
        if let Some((seen, name)) = entry {
            fields.insert(Key::String(Arc::new(name)), seen);
        }
    }
    Seen::Map(Map { map: Arc::new(fields) })
}

/// Text with a format is a time, a duration or bytes; the library's own functions make it so.
fn converted(schema: Node<'_>, text: &str, library: &Context<'_>) -> Result<Seen, String> {
    let format = schema.text("format").unwrap_or("");
    let (converter, argument) = match format {
        // Only the check of the format takes small letters.
        "date-time" if text.contains(['t', 'z']) => return Err(format!("Invalid date-time formatted string {text}")),
        "date-time" => ("timestamp(text)", text.to_owned()),
        "date" => ("timestamp(text)", format!("{text}T00:00:00Z")),
        "duration" => ("duration(text)", text.to_owned()),
        "byte" => ("base64.decode(text)", text.to_owned()),
        _ => return Ok(Seen::from(text)),
    };
    let convert = |argument: String| {
        let mut scope = library.new_inner_scope();
        scope.add_variable_from_value("text", argument);
        parsed(converter)?.execute(&scope).map_err(|error| format!("Invalid {format} {text}: {error}"))
    };
    match loose_duration(text) {
        Some(nanoseconds) if format == "duration" => convert(argument).or_else(|_| convert(format!("{nanoseconds}ns"))),
        _ => convert(argument),
    }
}

/// The name of a field within an expression; none if it cannot have one.
fn escaped(name: &str) -> Option<String> {
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let ordinary = |character: char| character.is_ascii_alphanumeric() || "_-./".contains(character);
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) || !name.chars().all(ordinary) {
        return None;
    }
    let mut out = name.replace("__", "__underscores__");
    for (character, word) in [('.', "__dot__"), ('-', "__dash__"), ('/', "__slash__")] {
        out = out.replace(character, word);
    }
    Some(out)
}
