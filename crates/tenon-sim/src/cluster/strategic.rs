//! How do the lists of built-in kinds merge?
//!
//! A merge patch that knows the keys of the lists people patch. Order directives are ignored; lists not named here are
//! replaced whole.

use serde_json::{Map, Value};

/// Lists of objects, and by what their entries are told apart.
const KEYS: [(&str, &str); 11] = [
    ("conditions", "type"),
    ("containers", "name"),
    ("initContainers", "name"),
    ("env", "name"),
    ("volumes", "name"),
    ("volumeMounts", "mountPath"),
    ("ports", "containerPort"),
    ("imagePullSecrets", "name"),
    ("secrets", "name"),
    ("ownerReferences", "uid"),
    ("addresses", "type"),
];

/// Merges a patch into a document.
pub(crate) fn merge(document: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *document = patch.clone();
        return;
    };
    if patch.get("$patch").is_some_and(|directive| directive == "replace") {
        let rest = patch.iter().filter(|(key, _)| *key != "$patch");
        *document = Value::Object(rest.map(|(key, value)| (key.clone(), value.clone())).collect());
        return;
    }
    super::object::edit(document, |map| patch.iter().for_each(|(key, value)| merge_entry(map, key, value)));
}

fn merge_entry(map: &mut Map<String, Value>, key: &str, value: &Value) {
    if let Some(list) = key.strip_prefix("$deleteFromPrimitiveList/") {
        let gone = value.as_array().cloned().unwrap_or_default();
        if let Some(list) = map.get_mut(list).and_then(Value::as_array_mut) {
            list.retain(|entry| !gone.contains(entry));
        }
        return;
    }
    if key.starts_with('$') {
        return;
    }
    let merge_key = KEYS.iter().find(|(list, _)| *list == key).map(|(_, merge_key)| *merge_key);
    match value {
        Value::Null => drop(map.remove(key)),
        Value::Array(entries) if key == "finalizers" => merge_set(map.entry(key).or_insert_with(empty), entries),
        Value::Array(entries) if merge_key.is_some() => {
            merge_list(map.entry(key).or_insert_with(empty), entries, merge_key.unwrap_or_default());
        }
        Value::Object(_) => merge(map.entry(key).or_insert(Value::Null), value),
        other => drop(map.insert(key.to_owned(), other.clone())),
    }
}

fn empty() -> Value {
    Value::Array(Vec::new())
}

fn merge_set(list: &mut Value, entries: &[Value]) {
    let Some(list) = list.as_array_mut() else { return };
    for entry in entries {
        if !list.contains(entry) {
            list.push(entry.clone());
        }
    }
}

fn merge_list(list: &mut Value, entries: &[Value], merge_key: &str) {
    let Some(list) = list.as_array_mut() else { return };
    if entries.iter().any(|entry| entry.get("$patch").is_some_and(|directive| directive == "replace")) {
        *list = entries.iter().filter(|entry| entry.get("$patch").is_none()).cloned().collect();
        return;
    }
    let place = |entry: &Value| list.iter().position(|present| present.get(merge_key) == entry.get(merge_key));
    let is_deletion = |entry: &Value| entry.get("$patch").is_some_and(|directive| directive == "delete");
    let touched: Vec<Option<usize>> = entries.iter().map(place).collect();
    let patched = entries.iter().zip(&touched).filter(|(entry, _)| !is_deletion(entry));
    let patched: Vec<(Option<usize>, Value)> = patched
        .map(|(entry, place)| {
            let mut merged = place.and_then(|place| list.get(place)).cloned().unwrap_or_default();
            merge(&mut merged, entry);
            (*place, merged)
        })
        .collect();
    let mut kept = list.iter().enumerate().filter(|(place, _)| !touched.contains(&Some(*place))).peekable();
    // What the patch brings keeps its order and comes as early as the order of what was there allows.
    let mut result = Vec::new();
    for (place, merged) in patched {
        while let Some((_, earlier)) = kept.next_if(|(kept, _)| place.is_some_and(|place| *kept < place)) {
            result.push(earlier.clone());
        }
        result.push(merged);
    }
    result.extend(kept.map(|(_, entry)| entry.clone()));
    *list = result;
}
