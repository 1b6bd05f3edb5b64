//! How do values compare?

use std::cmp::Ordering;

use crate::items::type_name;
use crate::{Failure, Limits, Struct, Type, Value};

/// Whether the first is equal to one of the others.
pub(super) fn eq(_: &Limits, values: &[Value]) -> Result<Value, Failure> {
    let Some((first, others)) = values.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Err(Failure::new("missing argument for comparison"));
    };
    for other in others {
        if is_equal(first, other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

pub(super) fn ne(limits: &Limits, values: &[Value]) -> Result<Value, Failure> {
    negated(&eq(limits, values)?)
}

pub(super) fn lt(_: &Limits, values: &[Value]) -> Result<Value, Failure> {
    Ok(Value::Bool(ordering(values)? == Some(Ordering::Less)))
}

pub(super) fn le(_: &Limits, values: &[Value]) -> Result<Value, Failure> {
    Ok(Value::Bool(matches!(ordering(values)?, Some(Ordering::Less | Ordering::Equal))))
}

pub(super) fn gt(limits: &Limits, values: &[Value]) -> Result<Value, Failure> {
    negated(&le(limits, values)?)
}

pub(super) fn ge(limits: &Limits, values: &[Value]) -> Result<Value, Failure> {
    negated(&lt(limits, values)?)
}

fn negated(value: &Value) -> Result<Value, Failure> {
    Ok(Value::Bool(!value.is_true()))
}

fn is_equal(one: &Value, other: &Value) -> Result<bool, Failure> {
    Ok(match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Complex(a, b), Value::Complex(c, d)) => a == c && b == d,
        (Value::Float(one), Value::Float(other)) => one == other,
        (Value::String(one), Value::String(other)) => one == other,
        (Value::Int(..) | Value::Uint(..), Value::Int(..) | Value::Uint(..)) => integer(one) == integer(other),
        (Value::Missing | Value::Nil, other) => is_nil(other),
        (one, Value::Missing | Value::Nil) => is_nil(one),
        (Value::List(_), Value::List(_)) | (Value::Map(_), Value::Map(_)) => {
            if !is_nil(one) && !is_nil(other) {
                return Err(incomparable(other));
            }
            is_nil(one) == is_nil(other)
        }
        (Value::Pointer(one), Value::Pointer(other)) => one.is_same(other),
        (Value::Struct(one), Value::Struct(other)) => structs(one, other)?,
        _ => return Err(incompatible(one, other)),
    })
}

/// Two structs are the same if all their fields are, also the hidden ones.
fn structs(one: &Struct, other: &Struct) -> Result<bool, Failure> {
    let type_ = Type::Struct(other.type_());
    if !is_comparable(type_) {
        return Err(Failure::new(format!("non-comparable type {type_}")));
    }
    is_identical(&Value::Struct(one.clone()), &Value::Struct(other.clone()))
}

fn is_comparable(type_: Type) -> bool {
    match type_ {
        Type::List(_) | Type::Map(_) => false,
        Type::Struct(struct_) => struct_.fields.iter().all(|field| is_comparable(field.type_)),
        _ => true,
    }
}

/// What `==` says in Go: values of different types are different.
fn is_identical(one: &Value, other: &Value) -> Result<bool, Failure> {
    if one.type_() != other.type_() {
        return Ok(false);
    }
    match (one, other) {
        (Value::List(_) | Value::Map(_), _) => Err(incomparable(one)),
        (Value::Struct(one), Value::Struct(other)) => {
            for (one, other) in one.all_fields().iter().zip(other.all_fields()) {
                if !is_identical(one, other)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => is_equal(one, other),
    }
}

fn is_nil(value: &Value) -> bool {
    match value {
        Value::Missing | Value::Nil => true,
        Value::List(list) => list.is_nil(),
        Value::Map(map) => map.is_nil(),
        Value::Pointer(pointer) => pointer.target().is_none(),
        _ => false,
    }
}

/// How two values are ordered; floats may not be at all.
fn ordering(values: &[Value]) -> Result<Option<Ordering>, Failure> {
    let [one, other] = values else { return Err(Failure::new("missing argument for comparison")) };
    let has_order = |value: &Value| {
        matches!(
            value,
            Value::Bool(_) | Value::Int(..) | Value::Uint(..) | Value::Float(_) | Value::Complex(..) | Value::String(_)
        )
    };
    if !has_order(one) || !has_order(other) {
        return Err(Failure::new("invalid type for comparison"));
    }
    match (one, other) {
        (Value::Bool(_), Value::Bool(_)) | (Value::Complex(..), Value::Complex(..)) => {
            Err(Failure::new("invalid type for comparison"))
        }
        (Value::Float(one), Value::Float(other)) => Ok(one.partial_cmp(other)),
        (Value::String(one), Value::String(other)) => Ok(Some(one.cmp(other))),
        (Value::Int(..) | Value::Uint(..), Value::Int(..) | Value::Uint(..)) => {
            Ok(Some(integer(one).cmp(&integer(other))))
        }
        _ => Err(incompatible(one, other)),
    }
}

/// A number of either sign, so that both compare.
fn integer(value: &Value) -> i128 {
    match value {
        Value::Int(number, _) => i128::from(*number),
        Value::Uint(number, _) => i128::from(*number),
        _ => 0,
    }
}

fn incompatible(one: &Value, other: &Value) -> Failure {
    Failure::new(format!("incompatible types for comparison: {} and {}", type_name(one), type_name(other)))
}

fn incomparable(value: &Value) -> Failure {
    Failure::new(format!("non-comparable type {}", type_name(value)))
}
