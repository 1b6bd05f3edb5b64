//! How are the parts of an object found that every kind has?

use serde_json::{Map, Value};

/// The text at a JSON pointer; nothing there reads as empty.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a JSON pointer.
pub(crate) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// The list at a JSON pointer.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub(crate) fn version(object: &Value) -> &str {
    text(object, "/metadata/resourceVersion")
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    list(object, "/metadata/finalizers").iter().filter_map(Value::as_str)
}

/// Whom the object belongs to, by uid.
pub(crate) fn owners(object: &Value) -> impl Iterator<Item = &str> {
    list(object, "/metadata/ownerReferences").iter().map(|owner| text(owner, "/uid"))
}

/// Works on a value as on a map, which it becomes if it was none.
pub(crate) fn edit<R>(value: &mut Value, act: impl FnOnce(&mut Map<String, Value>) -> R) -> R {
    let mut map = match value.take() {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    let result = act(&mut map);
    *value = Value::Object(map);
    result
}

/// Sets a key of a map, or removes it.
pub(crate) fn set(map: &mut Value, key: &str, value: Option<Value>) {
    edit(map, |map| match value {
        Some(value) => map.insert(key.to_owned(), value),
        None => map.remove(key),
    });
}

/// Sets a key of the metadata, or removes it.
pub(crate) fn set_meta(object: &mut Value, key: &str, value: Option<Value>) {
    edit(object, |map| set(map.entry("metadata").or_insert(Value::Null), key, value));
}

/// Sets a key that is not there.
pub(crate) fn default(map: &mut Value, key: &str, value: Value) {
    edit(map, |map| {
        if map.get(key).is_none_or(Value::is_null) {
            map.insert(key.to_owned(), value);
        }
    });
}

/// The value under a key, made if it is not there.
pub(crate) fn with_part<R>(object: &mut Value, key: &str, act: impl FnOnce(&mut Value) -> R) -> R {
    edit(object, |map| act(map.entry(key).or_insert_with(|| Value::Object(Map::new()))))
}

/// A field that is null is as good as none, in whatever depth.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
