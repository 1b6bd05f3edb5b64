//! The functions that every template has.

mod compare;
mod escape;
mod index;

use crate::function::{Body, Function};
use crate::{Failure, Limits, Output, Type, Value, format};

const ANY: Type = Type::Any;
const REF: Type = Type::Reflect;

/// All of them. `and` and `or` are here for their number of arguments only: they do not look at all of these.
const FUNCTIONS: [Function; 19] = [
    variadic("and", &[REF, REF], last),
    variadic("call", &[REF, REF], call),
    variadic("eq", &[REF, REF], compare::eq),
    fixed("ge", &[REF, REF], compare::ge),
    fixed("gt", &[REF, REF], compare::gt),
    variadic("html", &[ANY], escape::html),
    variadic("index", &[REF, REF], index::index),
    variadic("js", &[ANY], escape::js),
    fixed("le", &[REF, REF], compare::le),
    fixed("len", &[REF], index::len),
    fixed("lt", &[REF, REF], compare::lt),
    fixed("ne", &[REF, REF], compare::ne),
    fixed("not", &[REF], |_, arguments| Ok(Value::Bool(!arguments.iter().any(Value::is_true)))),
    variadic("or", &[REF, REF], last),
    variadic("print", &[ANY], |limits, values| written(limits, |out| format::print(out, values))),
    variadic("printf", &[Type::String, ANY], printf),
    variadic("println", &[ANY], |limits, values| written(limits, |out| format::println(out, values))),
    variadic("slice", &[REF, REF], index::slice),
    variadic("urlquery", &[ANY], escape::urlquery),
];

const fn fixed(name: &'static str, parameters: &'static [Type], body: Body) -> Function {
    Function { name, parameters, variadic: false, body }
}

const fn variadic(name: &'static str, parameters: &'static [Type], body: Body) -> Function {
    Function { name, parameters, variadic: true, body }
}

/// The built-in function of that name.
pub(crate) fn find(name: &str) -> Option<Function> {
    FUNCTIONS.iter().find(|function| function.name == name).copied()
}

/// What is written, as a string.
fn written(limits: &Limits, write: impl FnOnce(&mut Output) -> Result<(), Failure>) -> Result<Value, Failure> {
    let mut out = Output::new(limits.output);
    write(&mut out)?;
    Ok(Value::string(out.into_bytes()))
}

fn printf(limits: &Limits, values: &[Value]) -> Result<Value, Failure> {
    match values {
        [Value::String(text), rest @ ..] => written(limits, |out| format::printf(out, text.as_bytes(), rest)),
        _ => Err(Failure::new("a format is needed")),
    }
}

fn last(_: &Limits, values: &[Value]) -> Result<Value, Failure> {
    Ok(values.last().cloned().unwrap_or_default())
}

/// Data holds no functions, so there is nothing to call.
fn call(_: &Limits, values: &[Value]) -> Result<Value, Failure> {
    match values.first().and_then(Value::type_) {
        None => Err(Failure::new("call of nil")),
        Some(type_) => Err(Failure::new(format!("non-function of type {type_}"))),
    }
}
