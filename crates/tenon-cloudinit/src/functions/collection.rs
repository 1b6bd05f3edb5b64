//! What do lists, maps and lists in text hold?

use std::collections::BTreeMap;

use tenon_gotemplate::{Failure, Limits, List, Map, Text, Type, Value};

use super::arguments;
use super::text;

/// `list`: its arguments.
pub(super) fn list(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    Ok(Value::List(List::new(&Type::Any, arguments.iter().map(held).collect())?))
}

/// `dict`: keys and values in turn; a key without a value has an empty string.
pub(super) fn dict(limits: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let mut entries = BTreeMap::new();
    for pair in arguments.chunks(2) {
        let key = text::shown(limits, arguments::at(pair, 0))?;
        entries.insert(Text::from(key), pair.get(1).map_or_else(|| Value::string(""), held));
    }
    Ok(Value::Map(Map::new(&Type::Any, entries)?))
}

/// A value as a list or map holds it: one that is missing is nil there.
fn held(value: &Value) -> Value {
    if matches!(value, Value::Missing) { Value::Nil } else { value.clone() }
}

/// `get`: the value under a key, or an empty string.
pub(super) fn get(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let value = string_keyed(arguments)?.get(arguments::string(arguments, 1)?);
    Ok(value.unwrap_or_else(|| Value::string("")))
}

/// `hasKey`.
pub(super) fn has_key(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    Ok(Value::Bool(string_keyed(arguments)?.get(arguments::string(arguments, 1)?).is_some()))
}

/// The map that comes first: one of strings, or one that `dict` made.
fn string_keyed(arguments: &[Value]) -> Result<Map, Failure> {
    let map = arguments::map(arguments, 0)?;
    if matches!(map.item_type(), Type::String | Type::Any) {
        return Ok(map);
    }
    Err(Failure::new(format!(
        "wrong type for argument 1; expected map[string]string; got {}",
        Type::Map(map.item_type())
    )))
}

/// `hasTag`: whether a list of strings has one. Nothing has the empty tag.
pub(super) fn has_tag(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let (tags, tag) = (arguments::strings(arguments, 0)?, arguments::string(arguments, 1)?);
    Ok(Value::Bool(!tag.is_empty() && tags.contains(&tag)))
}

/// `getValue`: the value of a key in `key=value;key=value`, or an empty string.
pub(super) fn get_value(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let (source, key) = arguments::two_strings(arguments)?;
    for part in source.split(|byte| *byte == b';') {
        let mut words = part.split(|byte| *byte == b'=');
        if words.next() == Some(key) {
            let missing = || Failure::new("the key has no value");
            return words.next().map(Value::string).ok_or_else(missing);
        }
    }
    Ok(Value::string(""))
}
