//! Which value does a function get for an argument?

use crate::function::Function;
use crate::go_type::{IntKind, UintKind};
use crate::tree::{Word, WordKind};
use crate::{Type, Value};

/// Says what is wrong with the number of arguments, if anything is.
pub(crate) fn check_count(function: &Function, given: usize) -> Result<(), String> {
    let (name, wanted) = (function.name, function.parameters.len());
    match function.variadic {
        true if given + 1 < wanted => {
            Err(format!("wrong number of args for {name}: want at least {} got {given}", wanted - 1))
        }
        false if given != wanted => Err(format!("wrong number of args for {name}: want {wanted} got {given}")),
        _ => Ok(()),
    }
}

/// The type of a parameter; the last one repeats.
pub(crate) fn parameter(function: &Function, at: usize) -> Type {
    function.parameters.get(at).or(function.parameters.last()).copied().unwrap_or(Type::Any)
}

/// A constant as a value of that type.
pub(crate) fn constant(word: &Word, type_: Type) -> Result<Value, String> {
    let expected = |what: &str| Err(format!("expected {what}; found {}", describe(word)));
    match (&word.kind, type_) {
        (WordKind::Bool(value), Type::Bool | Type::Any | Type::Reflect) => Ok(Value::Bool(*value)),
        (WordKind::String(text), Type::String | Type::Any | Type::Reflect) => Ok(Value::String(text.clone())),
        (WordKind::Number(number), Type::Any | Type::Reflect) => number.ideal(),
        (WordKind::Number(number), Type::Int(kind)) if number.int.is_some() => {
            Ok(Value::Int(truncated(number.int.unwrap_or_default(), kind), kind))
        }
        (WordKind::Number(number), Type::Uint(kind)) if number.uint.is_some() => {
            Ok(Value::Uint(truncated_unsigned(number.uint.unwrap_or_default(), kind), kind))
        }
        (WordKind::Number(number), Type::Float) if number.float.is_some() => {
            Ok(Value::Float(number.float.unwrap_or_default()))
        }
        (WordKind::Number(number), Type::Complex) if number.complex.is_some() => {
            let (real, imaginary) = number.complex.unwrap_or_default();
            Ok(Value::Complex(real, imaginary))
        }
        (_, Type::Bool) => expected("bool"),
        (_, Type::String) => expected("string"),
        (_, Type::Int(_)) => expected("integer"),
        (_, Type::Uint(_)) => expected("unsigned integer"),
        (_, Type::Float) => expected("float"),
        (_, Type::Complex) => expected("complex"),
        _ => Err(format!("can't handle {} for arg of type {type_}", describe(word))),
    }
}

/// Go drops the bits that have no place, without a word.
#[expect(clippy::cast_possible_truncation, reason = "that is what Go does")]
fn truncated(number: i64, kind: IntKind) -> i64 {
    match kind {
        IntKind::Int32 => i64::from(number as i32),
        IntKind::Int | IntKind::Int64 => number,
    }
}

fn truncated_unsigned(number: u64, kind: UintKind) -> u64 {
    match kind {
        UintKind::Uint8 => number & u64::from(u8::MAX),
        UintKind::Uint32 => number & u64::from(u32::MAX),
        UintKind::Uint | UintKind::Uint64 => number,
    }
}

/// A value for a parameter of that type, if it can be one.
pub(crate) fn fit(value: Value, type_: Type) -> Result<Value, String> {
    match (&value, type_) {
        (Value::Missing, _) if type_.can_be_nil() => return Ok(Value::zero(type_)),
        (Value::Missing, _) => return Err(format!("invalid value; expected {type_}")),
        (_, Type::Any | Type::Reflect) => return Ok(value),
        _ => {}
    }
    let Some(found) = value.type_() else {
        return Err(format!("wrong type for value; expected {type_}; got interface {{}}"));
    };
    if found == type_ {
        return Ok(value);
    }
    match &value {
        Value::Pointer(pointer) if *pointer.to() == type_ => {
            pointer.target().cloned().ok_or_else(|| format!("dereference of nil pointer of type {type_}"))
        }
        _ => Err(format!("wrong type for value; expected {type_}; got {found}")),
    }
}

/// A word in an error message.
pub(crate) fn describe(word: &Word) -> String {
    match &word.kind {
        WordKind::Bool(value) => value.to_string(),
        WordKind::Number(number) => number.text.clone(),
        WordKind::String(text) => format!("{:?}", text.to_lossy()),
        WordKind::Dot => ".".to_owned(),
        WordKind::Nil => "nil".to_owned(),
        WordKind::Variable(name, _) => name.clone(),
        _ => "pipeline".to_owned(),
    }
}
