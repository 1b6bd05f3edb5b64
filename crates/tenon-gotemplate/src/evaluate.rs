//! What is the value of a pipeline?

use crate::builtin;
use crate::error::{Span, Wrong};
use crate::function::{Function, MissingKey};
use crate::scope::Scope;
use crate::tree::{Command, Pipe, Word, WordKind};
use crate::{Options, Type, Value};

/// Bytes of a value that count as one step.
const BYTES_A_STEP: usize = 256;

/// Computes values; it knows the variables and counts the steps.
pub(crate) struct Evaluator<'t> {
    options: &'t Options,
    pub(crate) scope: Scope,
    steps: usize,
}

impl<'t> Evaluator<'t> {
    pub(crate) fn new(options: &'t Options) -> Evaluator<'t> {
        Evaluator { options, scope: Scope::default(), steps: 0 }
    }

    /// Counts work, and ends it when it is too much.
    pub(crate) fn step(&mut self, span: Span, steps: usize) -> Result<(), Wrong> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.options.limits.steps {
            let message = format!("the template takes more than {} steps", self.options.limits.steps);
            return Err(Wrong::at(span, message));
        }
        Ok(())
    }

    /// The value of a pipeline; its variables get it as well.
    pub(crate) fn pipeline(&mut self, dot: &Value, pipe: &Pipe) -> Result<Value, Wrong> {
        let mut value = None;
        for command in &pipe.commands {
            self.step(command.span, 1)?;
            value = Some(match self.command(dot, command, value)? {
                // What an empty interface holds is nothing.
                Value::Nil => Value::Missing,
                value => value,
            });
        }
        let value = value.unwrap_or_default();
        self.scope.bind(pipe, &value)?;
        Ok(value)
    }

    fn command(&mut self, dot: &Value, command: &Command, last: Option<Value>) -> Result<Value, Wrong> {
        let Some(first) = command.words.first() else { return Ok(Value::Missing) };
        let has_arguments = command.words.len() > 1 || last.is_some();
        if let WordKind::Function(name) = &first.kind {
            return self.call((name, first.span), dot, (&command.words[1..], command.span), last);
        }
        let fields = match &first.kind {
            WordKind::Field(_) | WordKind::Chain(..) => true,
            WordKind::Variable(_, fields) => !fields.is_empty(),
            _ => false,
        };
        if has_arguments && !fields {
            let shown = format!("can't give argument to non-function {}", describe(first));
            return Err(Wrong::at(first.span, shown));
        }
        match &first.kind {
            WordKind::Nil => Err(Wrong::at(first.span, "nil is not a command")),
            _ => self.word(dot, first, has_arguments),
        }
    }

    /// The value of a word that stands for itself. `has_arguments`: others follow it, which only a function takes.
    fn word(&mut self, dot: &Value, word: &Word, has_arguments: bool) -> Result<Value, Wrong> {
        match &word.kind {
            WordKind::Bool(value) => Ok(Value::Bool(*value)),
            WordKind::Dot => Ok(dot.clone()),
            WordKind::Nil => Ok(Value::Nil),
            WordKind::Number(number) => number.ideal().map_err(|why| Wrong::at(word.span, why)),
            WordKind::String(text) => Ok(Value::String(text.clone())),
            WordKind::Field(names) => self.fields(dot.clone(), (names, word.span), has_arguments),
            WordKind::Variable(name, names) => {
                let value = self.scope.get(name).cloned();
                let value = value.ok_or_else(|| Wrong::at(word.span, format!("undefined variable: {name}")))?;
                self.fields(value, (names, word.span), has_arguments)
            }
            WordKind::Chain(inner, names) => {
                if matches!(inner.kind, WordKind::Nil) {
                    return Err(Wrong::at(word.span, "indirection through explicit nil"));
                }
                let value = self.word(dot, inner, false)?;
                self.fields(value, (names, word.span), has_arguments)
            }
            WordKind::Function(name) => self.call((name, word.span), dot, (&[], word.span), None),
            WordKind::Pipe(pipe) => self.pipeline(dot, pipe),
        }
    }

    fn fields(&self, mut value: Value, (names, span): (&[String], Span), has_arguments: bool) -> Result<Value, Wrong> {
        for (at, name) in names.iter().enumerate() {
            value = self.field(&value, (name, span), has_arguments && at + 1 == names.len())?;
        }
        Ok(value)
    }

    fn field(&self, value: &Value, (name, span): (&str, Span), has_arguments: bool) -> Result<Value, Wrong> {
        let fail = |message: String| Err(Wrong::at(span, message));
        let type_ = value.type_().map_or_else(|| "interface {}".to_owned(), |type_| type_.to_string());
        match value.indirect() {
            None if matches!(value, Value::Missing) => match self.options.missing_key {
                MissingKey::Error => fail(format!("nil data; no entry for key {name:?}")),
                _ => Ok(Value::Missing),
            },
            None => fail(format!("nil pointer evaluating {type_}.{name}")),
            Some(Value::Struct(struct_)) => match struct_.get(name.as_bytes()) {
                Some(_) if has_arguments => fail(format!("{name} has arguments but cannot be invoked as function")),
                Some(field) => Ok(field.clone()),
                None => fail(format!("can't evaluate field {name} in type {type_}")),
            },
            Some(Value::Map(_)) if has_arguments => fail(format!("{name} is not a method but has arguments")),
            Some(Value::Map(map)) => match (map.get(name.as_bytes()), self.options.missing_key) {
                (Some(found), _) => Ok(found),
                (None, MissingKey::Missing) => Ok(Value::Missing),
                (None, MissingKey::Zero) => Ok(Value::zero(*map.item_type())),
                (None, MissingKey::Error) => fail(format!("map has no entry for key {name:?}")),
            },
            Some(_) => fail(format!("can't evaluate field {name} in type {type_}")),
        }
    }

    fn call(
        &mut self,
        (name, span): (&str, Span),
        dot: &Value,
        (words, whole): (&[Word], Span),
        last: Option<Value>,
    ) -> Result<Value, Wrong> {
        let own = self.options.functions.get(name).copied();
        let is_builtin = own.is_none();
        let Some(function) = own.or_else(|| builtin::find(name)) else {
            return Err(Wrong::at(span, format!("{name:?} is not a defined function")));
        };
        let given = words.len() + usize::from(last.is_some());
        check_count(&function, given).map_err(|why| Wrong::at(span, why))?;
        if is_builtin && matches!(name, "and" | "or") {
            return self.until(dot, name == "or", (words, last));
        }
        let mut arguments = Vec::with_capacity(given);
        for word in words {
            let type_ = parameter(&function, arguments.len());
            arguments.push(self.argument(dot, word, type_)?);
        }
        if let Some(last) = last {
            let type_ = parameter(&function, arguments.len());
            arguments.push(fit(last, type_).map_err(|why| Wrong::at(whole, why))?);
        }
        let value = (function.body)(&self.options.limits, &arguments)
            .map_err(|failure| Wrong::at(whole, format!("error calling {name}: {failure}")))?;
        self.step(whole, size(&value) / BYTES_A_STEP)?;
        Ok(value)
    }

    /// `and` and `or` look at their arguments only until one decides.
    fn until(&mut self, dot: &Value, decides: bool, (words, last): (&[Word], Option<Value>)) -> Result<Value, Wrong> {
        let mut value = Value::Missing;
        for word in words {
            value = self.argument(dot, word, Type::Reflect)?;
            if value.is_true() == decides {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    /// An argument for a parameter of this type.
    fn argument(&mut self, dot: &Value, word: &Word, type_: Type) -> Result<Value, Wrong> {
        let fail = |message: String| Wrong::at(word.span, message);
        match &word.kind {
            WordKind::Nil if type_.can_be_nil() => Ok(Value::zero(type_)),
            WordKind::Nil => Err(fail(format!("cannot assign nil to {type_}"))),
            WordKind::Bool(_) | WordKind::Number(_) | WordKind::String(_) => constant(word, type_).map_err(fail),
            _ => {
                let value = self.word(dot, word, false)?;
                fit(value, type_).map_err(fail)
            }
        }
    }
}

fn check_count(function: &Function, given: usize) -> Result<(), String> {
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
fn parameter(function: &Function, at: usize) -> Type {
    function.parameters.get(at).or(function.parameters.last()).copied().unwrap_or(Type::Any)
}

/// A constant as a value of that type.
fn constant(word: &Word, type_: Type) -> Result<Value, String> {
    let found = describe(word);
    match (&word.kind, type_) {
        (WordKind::Bool(value), Type::Bool | Type::Any | Type::Reflect) => Ok(Value::Bool(*value)),
        (WordKind::String(text), Type::String | Type::Any | Type::Reflect) => Ok(Value::String(text.clone())),
        (WordKind::Number(number), Type::Any | Type::Reflect) => number.ideal(),
        (WordKind::Number(number), Type::Int(kind)) if number.int.is_some() => {
            Ok(Value::Int(number.int.unwrap_or_default(), kind))
        }
        (WordKind::Number(number), Type::Uint(kind)) if number.uint.is_some() => {
            Ok(Value::Uint(number.uint.unwrap_or_default(), kind))
        }
        (WordKind::Number(number), Type::Float) if number.float.is_some() => {
            Ok(Value::Float(number.float.unwrap_or_default()))
        }
        (WordKind::Number(number), Type::Complex) if number.complex.is_some() => {
            let (real, imaginary) = number.complex.unwrap_or_default();
            Ok(Value::Complex(real, imaginary))
        }
        (_, Type::Bool) => Err(format!("expected bool; found {found}")),
        (_, Type::String) => Err(format!("expected string; found {found}")),
        (_, Type::Int(_)) => Err(format!("expected integer; found {found}")),
        (_, Type::Uint(_)) => Err(format!("expected unsigned integer; found {found}")),
        (_, Type::Float) => Err(format!("expected float; found {found}")),
        (_, Type::Complex) => Err(format!("expected complex; found {found}")),
        _ => Err(format!("can't handle {found} for arg of type {type_}")),
    }
}

/// A value for a parameter of that type, if it can be one.
fn fit(value: Value, type_: Type) -> Result<Value, String> {
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
        Value::Pointer(pointer) if found == Type::Pointer(pointer.to()) && *pointer.to() == type_ => {
            pointer.target().cloned().ok_or_else(|| format!("dereference of nil pointer of type {type_}"))
        }
        _ => Err(format!("wrong type for value; expected {type_}; got {found}")),
    }
}

/// A word in an error message.
fn describe(word: &Word) -> String {
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

/// How much a value holds of its own.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.as_bytes().len(),
        Value::List(list) => list.items().len(),
        Value::Map(map) => map.len(),
        _ => 0,
    }
}
