//! Which of several values counts?
//!
//! A value is empty when it is the zero value of its type: a list or map without entries that was made is not.

use tenon_gotemplate::{Failure, Limits, Value};

use super::arguments;

/// `default`: the second argument, or the first if that is empty or not there.
pub(super) fn default(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let given = arguments::at(arguments, 1);
    Ok(if given.is_zero() { arguments::at(arguments, 0) } else { given }.clone())
}

/// `coalesce`: the first argument that is not empty.
pub(super) fn coalesce(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    Ok(arguments.iter().find(|argument| !argument.is_zero()).cloned().unwrap_or(Value::Nil))
}

/// `ternary`: the first argument if the third is true, else the second.
pub(super) fn ternary(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let chosen = if arguments::bool(arguments, 2)? { 0 } else { 1 };
    Ok(arguments::at(arguments, chosen).clone())
}

/// `empty`.
pub(super) fn empty(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    Ok(Value::Bool(arguments::at(arguments, 0).is_zero()))
}
