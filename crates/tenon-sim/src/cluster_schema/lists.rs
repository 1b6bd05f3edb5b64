//! Are the entries of sets and of lists that are maps there only once?

use serde_json::{Map, Value};

use super::error::{FieldError, FieldReason};
use super::node::Node;

/// Everything that is there twice. The second appearance is told, further ones are not.
pub(super) fn check(schema: Node<'_>, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(node) = schema.property(name) {
                    let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    check(node, field, &below, errors);
                } else if let Some(node) = schema.additional() {
                    check(node, field, &format!("{path}[{name}]"), errors);
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type() {
                "set" => report(items, path, errors),
                "map" => check_map(&schema.map_keys(), items, path, errors),
                _ => {}
            }
            if let Some(node) = schema.items() {
                for (index, item) in items.iter().enumerate() {
                    check(node, item, &format!("{path}[{index}]"), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_map(keys: &[&str], items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::new(&format!("{path}[{index}]"), FieldReason::Invalid, &items[index], detail));
        return;
    }
    let identity = |item: &Value| {
        let pair = |key: &&str| item.get(key).map(|value| ((*key).to_owned(), value.clone()));
        Value::Object(keys.iter().filter_map(pair).collect::<Map<String, Value>>())
    };
    let identities: Vec<Value> = items.iter().map(identity).collect();
    report(&identities, path, errors);
}

fn report(items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    for (index, item) in items.iter().enumerate() {
        if items[..index].iter().filter(|earlier| *earlier == item).count() == 1 {
            errors.push(FieldError::new(&format!("{path}[{index}]"), FieldReason::Duplicate, item, ""));
        }
    }
}
