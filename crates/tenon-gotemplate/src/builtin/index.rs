//! What is at a place of a value, and how long is it?

use crate::go_type::UintKind;
use crate::items::type_name;
use crate::{Failure, Limits, Value};

/// The item at an index or under a key, and in that the next.
pub(super) fn index(_: &Limits, values: &[Value]) -> Result<Value, Failure> {
    let Some((first, indexes)) = values.split_first() else { return Err(Failure::new("index of untyped nil")) };
    if matches!(first, Value::Missing | Value::Nil) {
        return Err(Failure::new("index of untyped nil"));
    }
    let mut item = first.clone();
    for index in indexes {
        let value = item.indirect().ok_or_else(|| Failure::new("index of nil pointer"))?;
        item = match value {
            Value::List(list) => {
                let at = position(index, list.items().len())?;
                list.items().get(at).cloned().ok_or_else(|| out_of_range(at))?
            }
            Value::String(text) => {
                let at = position(index, text.as_bytes().len())?;
                let byte = text.as_bytes().get(at).ok_or_else(|| out_of_range(at))?;
                Value::Uint(u64::from(*byte), UintKind::Uint8)
            }
            Value::Map(map) => map.get(key(index)?).unwrap_or_else(|| Value::zero(*map.item_type())),
            other => return Err(Failure::new(format!("can't index item of type {}", type_name(other)))),
        };
    }
    Ok(item)
}

/// A part of a list or a string.
pub(super) fn slice(_: &Limits, values: &[Value]) -> Result<Value, Failure> {
    let Some((first, indexes)) = values.split_first() else { return Err(Failure::new("slice of untyped nil")) };
    if matches!(first, Value::Missing | Value::Nil) {
        return Err(Failure::new("slice of untyped nil"));
    }
    let item = first.indirect().ok_or_else(|| Failure::new("slice of nil pointer"))?;
    if indexes.len() > 3 {
        return Err(Failure::new(format!("too many slice indexes: {}", indexes.len())));
    }
    match item {
        Value::String(_) if indexes.len() == 3 => Err(Failure::new("cannot 3-index slice a string")),
        Value::String(text) => {
            let bytes = text.as_bytes();
            let [from, to, _] = bounds(indexes, bytes.len(), bytes.len())?;
            Ok(Value::string(bytes.get(from..to).unwrap_or_default()))
        }
        Value::List(list) => {
            let [from, to, _] = bounds(indexes, list.items().len(), list.capacity())?;
            Ok(Value::List(list.part(from, to)))
        }
        other => Err(Failure::new(format!("can't slice item of type {}", type_name(other)))),
    }
}

/// Where a slice begins, ends, and how far it may grow.
fn bounds(indexes: &[Value], length: usize, capacity: usize) -> Result<[usize; 3], Failure> {
    let mut bounds = [0, length, capacity];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = position(index, capacity)?;
    }
    for pair in bounds.windows(2) {
        if pair[0] > pair[1] {
            return Err(Failure::new(format!("invalid slice index: {} > {}", pair[0], pair[1])));
        }
    }
    Ok(bounds)
}

/// How many items or bytes it has.
pub(super) fn len(_: &Limits, values: &[Value]) -> Result<Value, Failure> {
    let item = values.first().and_then(Value::indirect).ok_or_else(|| Failure::new("len of nil pointer"))?;
    let length = match item {
        Value::String(text) => text.as_bytes().len(),
        Value::List(list) => list.items().len(),
        Value::Map(map) => map.len(),
        other => return Err(Failure::new(format!("len of type {}", type_name(other)))),
    };
    i64::try_from(length).map(Value::int).map_err(|error| Failure::new(error.to_string()))
}

fn position(index: &Value, most: usize) -> Result<usize, Failure> {
    let number = match index {
        Value::Int(number, _) => i128::from(*number),
        Value::Uint(number, _) => i128::from(*number),
        Value::Missing | Value::Nil => return Err(Failure::new("cannot index slice/array with nil")),
        other => {
            return Err(Failure::new(format!("cannot index slice/array with type {}", type_name(other))));
        }
    };
    let at = usize::try_from(number).ok().filter(|at| *at <= most);
    at.ok_or_else(|| Failure::new(format!("index out of range: {number}")))
}

fn out_of_range(at: usize) -> Failure {
    Failure::new(format!("index out of range: {at}"))
}

fn key(index: &Value) -> Result<&[u8], Failure> {
    match index {
        Value::String(text) => Ok(text.as_bytes()),
        Value::Missing | Value::Nil => Err(Failure::new("value is nil; should be of type string")),
        other => Err(Failure::new(format!("value has type {}; should be string", type_name(other)))),
    }
}
