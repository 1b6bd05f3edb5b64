//! What does the server make of an object before it looks at it: pruned, without stray nulls, with defaults?

use serde_json::{Map, Number, Value};

use super::node::Node;

/// Fields every resource has, which no schema needs to list.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Reads numbers as the server does: a whole number that does not fit 64 signed bits is a float.
pub(super) fn read_numbers(value: &mut Value) {
    each_number(value, &|number| match number.as_u64() {
        Some(large) if i64::try_from(large).is_err() => number.as_f64().and_then(Number::from_f64),
        _ => None,
    });
}

/// Writes numbers as the server does: a float without a fraction looks like a whole number afterwards.
pub(super) fn write_numbers(value: &mut Value) {
    each_number(value, &|number| {
        let float = number.as_f64().filter(|_| number.is_f64())?;
        // Beyond this, a float no longer has every whole number.
        let exact = float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0;
        exact.then(|| format!("{float:.0}").parse::<i64>().ok().map(Number::from)).flatten()
    });
}

fn each_number(value: &mut Value, change: &dyn Fn(&Number) -> Option<Number>) {
    match value {
        Value::Number(number) => {
            if let Some(other) = change(number) {
                *number = other;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_number(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_number(field, change)),
        _ => {}
    }
}

/// Removes the fields the schema does not know from a whole resource.
pub(super) fn prune_resource(object: &mut Value, schema: Node<'_>) {
    prune_object(object, Some(schema), true);
}

fn prune(value: &mut Value, schema: Option<Node<'_>>) {
    prune_object(value, schema, schema.is_some_and(Node::embedded));
}

fn prune_object(value: &mut Value, schema: Option<Node<'_>>, is_resource: bool) {
    let preserves = schema.is_some_and(Node::preserves_unknown);
    match value {
        Value::Object(fields) => {
            let Some(schema) = schema else {
                fields.clear();
                return;
            };
            fields.retain(|name, field| {
                if is_resource && META.contains(&name.as_str()) {
                    return true;
                }
                if let Some(known) = schema.field(name) {
                    prune(field, Some(known));
                    return true;
                }
                // A map that allows anything keeps its keys, but nothing is known of what is below them.
                if schema.allows_additional() {
                    prune(field, None);
                }
                preserves || schema.allows_additional()
            });
        }
        Value::Array(items) => {
            let known = schema.and_then(Node::items);
            for item in items {
                match known {
                    None if preserves => {}
                    Some(node) if preserves => prune_preserved_item(item, node),
                    _ => prune(item, known),
                }
            }
        }
        _ => {}
    }
}

/// An item of a list that preserves what is unknown preserves it too, one level further down.
fn prune_preserved_item(item: &mut Value, node: Node<'_>) {
    match item {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if let Some(known) = node.field(name)
                    && !(node.embedded() && META.contains(&name.as_str()))
                {
                    prune(field, Some(known));
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = node.items() {
                items.iter_mut().for_each(|item| prune_preserved_item(item, inner));
            }
        }
        _ => {}
    }
}

/// Removes fields that are null, may not be, and have no default to take the place.
pub(super) fn drop_nulls(value: &mut Value, schema: Option<Node<'_>>) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let known = schema.and_then(|schema| schema.field(name));
            if field.is_null() && known.is_some_and(|node| !node.nullable() && node.default().is_none()) {
                return false;
            }
            drop_nulls(field, known);
            true
        }),
        Value::Array(items) => {
            let known = schema.and_then(Node::items);
            items.iter_mut().for_each(|item| drop_nulls(item, known));
        }
        _ => {}
    }
}

/// Puts defaults where nothing is, or a null that may not be.
pub(super) fn fill_defaults(value: &mut Value, schema: Node<'_>) {
    match value {
        Value::Object(fields) => {
            for (name, property) in schema.properties().into_iter().flatten() {
                let property = Node(property);
                let wanting = fields.get(name).is_none_or(|field| field.is_null() && !property.nullable());
                if wanting {
                    insert_default(fields, name, property);
                }
            }
            for (name, field) in fields.iter_mut() {
                if let Some(property) = schema.property(name) {
                    fill_defaults(field, property);
                } else if let Some(known) = schema.additional() {
                    replace_null(field, known);
                    fill_defaults(field, known);
                }
            }
        }
        Value::Array(items) => {
            if let Some(known) = schema.items() {
                for item in items {
                    replace_null(item, known);
                    fill_defaults(item, known);
                }
            }
        }
        _ => {}
    }
}

fn insert_default(fields: &mut Map<String, Value>, name: &str, property: Node<'_>) {
    if let Some(default) = pruned_default(property) {
        fields.insert(name.to_owned(), default);
    }
}

fn replace_null(value: &mut Value, schema: Node<'_>) {
    if value.is_null()
        && !schema.nullable()
        && let Some(default) = pruned_default(schema)
    {
        *value = default;
    }
}

/// The server prunes a default like any other value, once, when it reads the definition.
fn pruned_default(schema: Node<'_>) -> Option<Value> {
    let mut default = schema.default()?.clone();
    prune(&mut default, Some(schema));
    Some(default)
}
