//! How are values written for the Go program?
//!
//! Null, true, false and strings as they are; anything else as an object with one name: numbers as decimal strings,
//! floats as the number of their bits, strings that are no UTF-8 in base64, maps as lists of pairs, structs as lists of
//! their fields.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use tenon_gotemplate::{IntKind, List, Map, Pointer, Struct, StructType, Text, Type, UintKind, Value};

use super::sample::{INNER, INNER_TYPE, SAMPLE};

/// The value that is written so, for a place of that type.
pub(super) fn read(json: &Json, place: Type) -> Value {
    match json {
        Json::Null => Value::zero(place),
        Json::Bool(flag) => Value::Bool(*flag),
        Json::String(text) => Value::string(text),
        Json::Object(object) => {
            let (name, inside) = object.iter().next().unwrap();
            build(name, inside)
        }
        other => panic!("{other} is no written value"),
    }
}

fn build(name: &str, json: &Json) -> Value {
    static INT32: Type = Type::Int(IntKind::Int32);
    let text = json.as_str().unwrap_or_default();
    match name {
        "bytes" => Value::string(STANDARD.decode(text).unwrap()),
        "int" => Value::int(text.parse().unwrap()),
        "int32" => Value::Int(text.parse().unwrap(), IntKind::Int32),
        "int64" => Value::Int(text.parse().unwrap(), IntKind::Int64),
        "uint8" => Value::Uint(text.parse().unwrap(), UintKind::Uint8),
        "uint32" => Value::Uint(text.parse().unwrap(), UintKind::Uint32),
        "uint64" => Value::Uint(text.parse().unwrap(), UintKind::Uint64),
        "float" => Value::Float(f64::from_bits(text.parse().unwrap())),
        "strings" => list(&Type::String, json),
        "list" => list(&Type::Any, json),
        "inners" => list(&INNER_TYPE, json),
        "stringMap" => map(&Type::String, json),
        "map" => map(&Type::Any, json),
        "sample" => structure(&SAMPLE, json),
        "inner" => structure(&INNER, json),
        "pInner" => pointer(&INNER_TYPE, json),
        "pBool" => pointer(&Type::Bool, json),
        "pInt32" => pointer(&INT32, json),
        other => panic!("there is no `{other}`"),
    }
}

fn list(item: &'static Type, json: &Json) -> Value {
    let Some(items) = json.as_array() else { return Value::List(List::nil(item)) };
    Value::List(List::new(item, items.iter().map(|json| read(json, *item)).collect()).unwrap())
}

fn map(item: &'static Type, json: &Json) -> Value {
    let Some(pairs) = json.as_array() else { return Value::Map(Map::nil(item)) };
    let entry = |pair: &Json| match read(&pair[0], Type::String) {
        Value::String(key) => (key, read(&pair[1], *item)),
        other => panic!("{other:?} is no key"),
    };
    let entries: BTreeMap<Text, Value> = pairs.iter().map(entry).collect();
    Value::Map(Map::new(item, entries).unwrap())
}

fn structure(type_: &'static StructType, json: &Json) -> Value {
    let fields = type_.fields.iter().zip(json.as_array().unwrap());
    Value::Struct(Struct::new(type_, fields.map(|(field, json)| read(json, field.type_)).collect()))
}

fn pointer(to: &'static Type, json: &Json) -> Value {
    Value::Pointer(if json.is_null() { Pointer::nil(to) } else { Pointer::new(to, read(json, *to)) })
}

/// Bytes as they are written.
pub(super) fn bytes(bytes: &[u8]) -> Json {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "bytes": STANDARD.encode(bytes) }),
    }
}

/// A result as the Go program writes it. Errors are equal whatever they say.
pub(super) fn answer(result: &Result<Value, tenon_gotemplate::Failure>) -> Json {
    match result {
        Err(_) => json!("an error"),
        Ok(Value::Bool(flag)) => json!(flag),
        Ok(Value::String(text)) => json!({ "is": bytes(text.as_bytes()) }),
        Ok(Value::List(list)) => {
            let item = |item: &Value| match item {
                Value::String(text) => bytes(text.as_bytes()),
                other => panic!("{other:?} is not a string"),
            };
            json!({ "strings": list.items().iter().map(item).collect::<Vec<_>>() })
        }
        Ok(other) => panic!("{other:?} is no result"),
    }
}

/// The Go program's answer in the same form.
pub(super) fn expected(json: &Json) -> Json {
    match json {
        Json::Object(object) if object.contains_key("error") => json!("an error"),
        Json::String(_) => json!({ "is": json }),
        Json::Object(object) if object.contains_key("bytes") => json!({ "is": json }),
        other => other.clone(),
    }
}
