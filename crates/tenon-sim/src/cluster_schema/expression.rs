//! What does a CEL expression say of a value?

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use kube_cel::KubeCelExt as _;
use kube_cel::cel::extractors::This;
use kube_cel::cel::{Context, ExecutionError, Program, Value};

use super::pattern;

/// Expressions that have been parsed: a definition's rules are asked again with every object.
static PARSED: LazyLock<Mutex<BTreeMap<String, Arc<Program>>>> = LazyLock::new(Mutex::default);

/// The names of types in expressions, which are values there.
const TYPES: [&str; 8] = ["bool", "bytes", "double", "int", "list", "map", "null_type", "string"];

/// The expression, parsed; an error says what is wrong with it.
pub(super) fn parsed(source: &str) -> Result<Arc<Program>, String> {
    let mut known = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(program) = known.get(source) {
        return Ok(program.clone());
    }
    let program = Arc::new(Program::compile(source).map_err(|error| error.to_string())?);
    known.insert(source.to_owned(), program.clone());
    Ok(program)
}

/// Whether the expression looks at the old value.
pub(super) fn uses_old(program: &Program) -> bool {
    program.references().has_variable("oldSelf")
}

/// Everything an expression may call: the libraries of the server, with what kube-cel does otherwise put right.
pub(super) fn library() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("size", size);
    context.add_function("matches", matches);
    context.add_function("find", find);
    context.add_function("dyn", |This(value): This<Value>| -> Result<Value, ExecutionError> { Ok(value) });
    context.add_function("type", type_name);
    for name in TYPES {
        context.add_variable_from_value(name, name);
    }
    context
}

/// What an expression makes of a value, and of the one it replaces.
pub(super) fn evaluate(
    program: &Program,
    library: &Context<'_>,
    value: &Value,
    old: Option<&Value>,
) -> Result<Value, ExecutionError> {
    let mut scope = library.new_inner_scope();
    scope.add_variable_from_value("self", value);
    if let Some(old) = old {
        scope.add_variable_from_value("oldSelf", old);
    }
    program.execute(&scope)
}

/// An error in the server's words, where it has words of its own.
pub(super) fn trouble(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        // So ends a call on a field that is not there; which one is lost.
        ExecutionError::MissingArgumentOrTarget | ExecutionError::InvalidArgumentCount { .. } => {
            "no such key".to_owned()
        }
        ExecutionError::IndexOutOfBounds(Value::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnexpectedType { .. } => "no such overload".to_owned(),
        ExecutionError::FunctionError { function, .. } if TYPES.contains(&function.as_str()) => {
            format!("type conversion error from 'string' to '{function}'")
        }
        ExecutionError::FunctionError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// Text is measured in characters, not in bytes.
fn size(This(value): This<Value>) -> Result<i64, ExecutionError> {
    let length = match &value {
        Value::String(text) => text.chars().count(),
        Value::List(items) => items.len(),
        Value::Map(map) => map.map.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    i64::try_from(length).map_err(|error| ExecutionError::function_error("size", error))
}

#[expect(clippy::needless_pass_by_value, reason = "the library hands over its arguments")]
fn matches(This(text): This<Arc<String>>, expression: Arc<String>) -> Result<bool, ExecutionError> {
    pattern::matches(&expression, &text).map_err(|error| ExecutionError::function_error("matches", error))
}

#[expect(clippy::needless_pass_by_value, reason = "the library hands over its arguments")]
fn find(This(text): This<Arc<String>>, expression: Arc<String>) -> Result<Value, ExecutionError> {
    let regex = pattern::compiled(&expression).map_err(|error| ExecutionError::function_error("find", error))?;
    Ok(Value::from(regex.find(&text).map_or("", |found| found.as_str())))
}

fn type_name(This(value): This<Value>) -> Result<Value, ExecutionError> {
    let name = match value {
        Value::Bool(_) => "bool",
        Value::Bytes(_) => "bytes",
        Value::Float(_) => "double",
        Value::Int(_) => "int",
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Null => "null_type",
        Value::String(_) => "string",
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(Value::from(name))
}
