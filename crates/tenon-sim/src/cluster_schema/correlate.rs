//! Which old value stands behind a new one, and are they the same?

use serde_json::Value;

use super::node::Node;

/// A value and the one it replaces.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) new: &'a Value,
    pub(super) old: &'a Value,
    pub(super) schema: Node<'a>,
}

impl<'a> Pair<'a> {
    /// The pair of a field, if both objects have it and the schema knows it.
    pub(super) fn key(self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.as_object()?.get(name)?, self.old.as_object()?.get(name)?);
        Some(Self { new, old, schema: self.schema.field(name)? })
    }

    /// The pair of an item, if the list is a map in disguise.
    pub(super) fn index(self, index: usize) -> Option<Self> {
        let new = self.new.as_array()?.get(index)?;
        let old = same_item(self.schema, new, self.old)?;
        Some(Self { new, old, schema: self.schema.items()? })
    }

    /// Whether nothing changed, so that what was wrong before may stay wrong.
    pub(super) fn unchanged(self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                if self.schema.list_type() != "map" {
                    return new == old;
                }
                let kept = |index| self.index(index).is_some_and(Self::unchanged);
                new.len() == old.len() && (0..new.len()).all(kept)
            }
            (Value::Object(new), Value::Object(old)) => {
                let kept = |name: &String| self.key(name).is_some_and(Self::unchanged);
                new.len() == old.len() && new.keys().all(kept)
            }
            (new, old) => new == old,
        }
    }
}

/// The item of the old list that has the keys of a new item.
pub(super) fn same_item<'a>(schema: Node<'_>, new: &Value, old: &'a Value) -> Option<&'a Value> {
    let keys = schema.map_keys();
    if schema.list_type() != "map" || keys.is_empty() {
        return None;
    }
    let wanted = identity(new, &keys)?;
    old.as_array()?.iter().find(|item| identity(item, &keys).is_some_and(|found| found == wanted))
}

/// The values of an item's keys, if it has them all and all are scalars.
fn identity<'a>(item: &'a Value, keys: &[&str]) -> Option<Vec<&'a Value>> {
    let scalar = |value: &&Value| !value.is_null() && !value.is_object() && !value.is_array();
    keys.iter().map(|key| item.get(key).filter(scalar)).collect()
}

/// The old value with its sets and maps in the order of the new one, so that equality does not see the order.
pub(super) fn aligned(schema: Node<'_>, new: &Value, old: &Value) -> Value {
    match (new, old) {
        (Value::Object(new_fields), Value::Object(old_fields)) => {
            let field = |(name, value): (&String, &Value)| {
                let twin = schema.field(name).zip(new_fields.get(name));
                (name.clone(), twin.map_or_else(|| value.clone(), |(node, twin)| aligned(node, twin, value)))
            };
            Value::Object(old_fields.iter().map(field).collect())
        }
        (Value::Array(new_items), Value::Array(old_items)) => aligned_list(schema, new_items, old_items),
        _ => old.clone(),
    }
}

fn aligned_list(schema: Node<'_>, new: &[Value], old: &[Value]) -> Value {
    let mut rest: Vec<&Value> = old.iter().collect();
    let mut ordered = Vec::new();
    let keys = schema.map_keys();
    for item in new {
        let place = match schema.list_type() {
            "set" => rest.iter().position(|candidate| *candidate == item),
            "map" => identity(item, &keys).and_then(|wanted| {
                rest.iter().position(|candidate| identity(candidate, &keys) == Some(wanted.clone()))
            }),
            _ => (!rest.is_empty()).then_some(0),
        };
        if let Some(place) = place {
            let found = rest.remove(place);
            ordered.push(schema.items().map_or_else(|| found.clone(), |node| aligned(node, item, found)));
        }
    }
    ordered.extend(rest.into_iter().cloned());
    Value::Array(ordered)
}
