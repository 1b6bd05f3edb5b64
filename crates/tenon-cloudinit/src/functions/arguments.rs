//! What were the arguments of a call?
//!
//! The engine has checked them against the parameters before; what is asked for here and not there is a mistake in the
//! table, and ends the template rather than the program.

use tenon_gotemplate::{Failure, List, Map, Type, Value};

/// The argument with that number, or nothing.
pub(super) fn at(arguments: &[Value], index: usize) -> &Value {
    arguments.get(index).unwrap_or(&Value::Nil)
}

/// That argument as bytes.
pub(super) fn string(arguments: &[Value], index: usize) -> Result<&[u8], Failure> {
    match at(arguments, index) {
        Value::String(text) => Ok(text.as_bytes()),
        other => Err(wrong(index, "string", other)),
    }
}

/// The two arguments of a function of two strings.
pub(super) fn two_strings(arguments: &[Value]) -> Result<(&[u8], &[u8]), Failure> {
    Ok((string(arguments, 0)?, string(arguments, 1)?))
}

/// That argument as a number.
pub(super) fn int(arguments: &[Value], index: usize) -> Result<i64, Failure> {
    match at(arguments, index) {
        Value::Int(number, _) => Ok(*number),
        other => Err(wrong(index, "int", other)),
    }
}

/// That argument as a condition.
pub(super) fn bool(arguments: &[Value], index: usize) -> Result<bool, Failure> {
    match at(arguments, index) {
        Value::Bool(flag) => Ok(*flag),
        other => Err(wrong(index, "bool", other)),
    }
}

/// That argument as a list whose items are all strings, whatever their type says.
pub(super) fn strings(arguments: &[Value], index: usize) -> Result<Vec<&[u8]>, Failure> {
    let list = match at(arguments, index) {
        Value::List(list) => list,
        // Go makes a nil list of nothing.
        Value::Nil | Value::Missing => return Ok(Vec::new()),
        other => return Err(wrong(index, "[]string", other)),
    };
    list.items().iter().map(|item| string_in(list, item, index)).collect()
}

fn string_in<'a>(list: &List, item: &'a Value, index: usize) -> Result<&'a [u8], Failure> {
    match item {
        Value::String(text) => Ok(text.as_bytes()),
        _ => Err(wrong(index, "[]string", &Value::List(list.clone()))),
    }
}

/// That argument as a map.
pub(super) fn map(arguments: &[Value], index: usize) -> Result<Map, Failure> {
    match at(arguments, index) {
        Value::Map(map) => Ok(map.clone()),
        Value::Nil | Value::Missing => Ok(Map::nil(&Type::String)),
        other => Err(wrong(index, "map[string]string", other)),
    }
}

fn wrong(index: usize, expected: &str, given: &Value) -> Failure {
    let given = given.type_().map_or("nil".to_owned(), |given| given.to_string());
    Failure::new(format!("wrong type for argument {}; expected {expected}; got {given}", index + 1))
}
