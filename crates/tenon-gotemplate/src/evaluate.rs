//! What is the value of a pipeline?

use crate::arguments::{check_count, constant, describe, fit, parameter};
use crate::builtin;
use crate::error::{Span, Wrong};
use crate::function::{Function, MissingKey};
use crate::scope::Scope;
use crate::tree::{Command, Pipe, Word, WordKind};
use crate::{Map, Options, Struct, Type, Value};

/// Bytes of source, in one command, that count as one step.
const SOURCE_A_STEP: usize = 32;
/// Bytes of a new value that count as one step: all values that a template makes have a bound together.
const MADE_A_STEP: usize = 32;
/// Bytes of strings that a function may look at in one step.
const READ_A_STEP: usize = 64;
/// Variables that may be looked at in one step.
const VARIABLES_A_STEP: usize = 64;

/// Computes values; it knows the variables and counts the steps.
pub(crate) struct Evaluator<'t> {
    options: &'t Options,
    pub(crate) scope: Scope<'t>,
    steps: usize,
    /// What is being evaluated, and shown if that fails. Go moves on to every word that it evaluates, and not back.
    pub(crate) at: Span,
}

impl<'t> Evaluator<'t> {
    pub(crate) fn new(options: &'t Options) -> Evaluator<'t> {
        Evaluator { options, scope: Scope::default(), steps: 0, at: Span::default() }
    }

    /// Something wrong with what is being evaluated.
    pub(crate) fn wrong(&self, message: impl Into<String>) -> Wrong {
        Wrong::at(self.at, message)
    }

    /// Counts work, and ends it when it is too much.
    pub(crate) fn step(&mut self, steps: usize) -> Result<(), Wrong> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.options.limits.steps {
            return Err(self.wrong(format!("the template takes more than {} steps", self.options.limits.steps)));
        }
        Ok(())
    }

    /// The value of a pipeline; its variables get it as well.
    pub(crate) fn pipeline(&mut self, dot: &Value, pipe: &'t Pipe) -> Result<Value, Wrong> {
        self.at = pipe.span;
        let mut value = None;
        for command in &pipe.commands {
            self.step(1 + command.span.len() / SOURCE_A_STEP)?;
            value = Some(match self.command(dot, command, value)? {
                // What an empty interface holds is nothing.
                Value::Nil => Value::Missing,
                value => value,
            });
        }
        let value = value.unwrap_or_default();
        let bound = self.scope.bind(pipe, &value);
        self.looked_at(bound)?;
        Ok(value)
    }

    /// Counts the variables that were looked at, or says which one is not there.
    pub(crate) fn looked_at(&mut self, variables: Result<usize, &str>) -> Result<(), Wrong> {
        match variables {
            Ok(count) => self.step(count / VARIABLES_A_STEP),
            Err(name) => Err(self.wrong(format!("undefined variable: {name}"))),
        }
    }

    fn command(&mut self, dot: &Value, command: &'t Command, last: Option<Value>) -> Result<Value, Wrong> {
        let Some(first) = command.words.first() else { return Ok(Value::Missing) };
        let has_arguments = command.words.len() > 1 || last.is_some();
        match &first.kind {
            WordKind::Function(name) => {
                self.at = first.span;
                self.call(name, dot, command, last)
            }
            WordKind::Field(_) | WordKind::Chain(..) => self.word(dot, first, has_arguments),
            WordKind::Variable(_, fields) if !fields.is_empty() => self.word(dot, first, has_arguments),
            kind => {
                if !matches!(kind, WordKind::Pipe(_)) {
                    self.at = first.span;
                }
                if has_arguments {
                    return Err(self.wrong(format!("can't give argument to non-function {}", describe(first))));
                }
                if matches!(kind, WordKind::Nil) {
                    return Err(self.wrong("nil is not a command"));
                }
                self.word(dot, first, false)
            }
        }
    }

    /// The value of a word that stands for itself. `has_arguments`: others follow it, which only a function takes.
    fn word(&mut self, dot: &Value, word: &'t Word, has_arguments: bool) -> Result<Value, Wrong> {
        self.at = word.span;
        match &word.kind {
            WordKind::Bool(value) => Ok(Value::Bool(*value)),
            WordKind::Dot => Ok(dot.clone()),
            WordKind::Nil => Ok(Value::Nil),
            WordKind::Number(number) => number.ideal().map_err(|why| self.wrong(why)),
            WordKind::String(text) => Ok(Value::String(text.clone())),
            WordKind::Field(names) => self.fields(dot.clone(), names, has_arguments),
            WordKind::Variable(name, names) => {
                let found = self.scope.get(name);
                self.looked_at(found.as_ref().map(|found| found.distance).ok_or(name))?;
                self.fields(found.map(|found| found.value).unwrap_or_default(), names, has_arguments)
            }
            WordKind::Chain(inner, names) => {
                if matches!(inner.kind, WordKind::Nil) {
                    return Err(self.wrong("indirection through explicit nil"));
                }
                let value = self.word(dot, inner, false)?;
                self.fields(value, names, has_arguments)
            }
            WordKind::Function(name) => self.call_without_arguments(name),
            WordKind::Pipe(pipe) => self.pipeline(dot, pipe),
        }
    }

    fn fields(&self, mut value: Value, names: &[String], has_arguments: bool) -> Result<Value, Wrong> {
        for (at, name) in names.iter().enumerate() {
            value = self.field(&value, name, has_arguments && at + 1 == names.len())?;
        }
        Ok(value)
    }

    fn field(&self, value: &Value, name: &str, has_arguments: bool) -> Result<Value, Wrong> {
        let found = match value.indirect() {
            None if matches!(value, Value::Missing) => match self.options.missing_key {
                MissingKey::Error => Err(format!("nil data; no entry for key {name:?}")),
                _ => Ok(Value::Missing),
            },
            None => Err(format!("nil pointer evaluating {}.{name}", type_name(value))),
            Some(Value::Struct(struct_)) => field_of_struct(struct_, name, has_arguments),
            Some(Value::Map(_)) if has_arguments => Err(format!("{name} is not a method but has arguments")),
            Some(Value::Map(map)) => field_of_map(map, name, self.options.missing_key),
            Some(_) => Err(format!("can't evaluate field {name} in type {}", type_name(value))),
        };
        found.map_err(|why| self.wrong(why))
    }

    fn function(&self, name: &str) -> Result<(Function, bool), Wrong> {
        let own = self.options.functions.get(name).copied();
        let is_builtin = own.is_none();
        let function = own.or_else(|| builtin::find(name));
        let function = function.ok_or_else(|| self.wrong(format!("{name:?} is not a defined function")))?;
        Ok((function, is_builtin))
    }

    fn call_without_arguments(&mut self, name: &str) -> Result<Value, Wrong> {
        let (function, _) = self.function(name)?;
        check_count(&function, 0).map_err(|why| self.wrong(why))?;
        self.run(&function, &[])
    }

    fn call(&mut self, name: &str, dot: &Value, command: &'t Command, last: Option<Value>) -> Result<Value, Wrong> {
        let words = command.words.get(1..).unwrap_or_default();
        let (function, is_builtin) = self.function(name)?;
        let given = words.len() + usize::from(last.is_some());
        check_count(&function, given).map_err(|why| self.wrong(why))?;
        if is_builtin && matches!(name, "and" | "or") {
            return self.until(dot, name == "or", words, last);
        }
        let mut arguments = Vec::with_capacity(given);
        for word in words {
            let type_ = parameter(&function, arguments.len());
            arguments.push(self.argument(dot, word, type_)?);
        }
        if let Some(last) = last {
            let type_ = parameter(&function, arguments.len());
            arguments.push(fit(last, type_).map_err(|why| self.wrong(why))?);
        }
        let before = std::mem::replace(&mut self.at, command.span);
        let value = self.run(&function, &arguments)?;
        self.at = before;
        Ok(value)
    }

    fn run(&mut self, function: &Function, arguments: &[Value]) -> Result<Value, Wrong> {
        let read: usize = arguments.iter().map(text_length).sum();
        self.step(read / READ_A_STEP)?;
        let value = (function.body)(&self.options.limits, arguments)
            .map_err(|failure| self.wrong(format!("error calling {}: {failure}", function.name)))?;
        self.step(value.own_bytes() / MADE_A_STEP)?;
        Ok(value)
    }

    /// `and` and `or` look at their arguments only until one decides.
    fn until(&mut self, dot: &Value, decides: bool, words: &'t [Word], last: Option<Value>) -> Result<Value, Wrong> {
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
    fn argument(&mut self, dot: &Value, word: &'t Word, type_: Type) -> Result<Value, Wrong> {
        let value = match &word.kind {
            WordKind::Nil | WordKind::Bool(_) | WordKind::Number(_) | WordKind::String(_) => {
                self.at = word.span;
                match &word.kind {
                    WordKind::Nil if type_.can_be_nil() => Ok(Value::zero(type_)),
                    WordKind::Nil => Err(format!("cannot assign nil to {type_}")),
                    _ => constant(word, type_),
                }
            }
            _ => fit(self.word(dot, word, false)?, type_),
        };
        value.map_err(|why| self.wrong(why))
    }
}

fn field_of_struct(struct_: &Struct, name: &str, has_arguments: bool) -> Result<Value, String> {
    match (struct_.get(name.as_bytes()), struct_.type_().text) {
        // Go knows the text by its method.
        (_, Some(_)) if name == "String" && has_arguments => Err("wrong number of args for String".to_owned()),
        (_, Some(text)) if name == "String" => Ok(Value::string(text(struct_))),
        (Some(_), _) if has_arguments => Err(format!("{name} has arguments but cannot be invoked as function")),
        (Some(field), _) => Ok(field.clone()),
        (None, _) => Err(format!("can't evaluate field {name} in type {}", struct_.type_().name)),
    }
}

fn field_of_map(map: &Map, name: &str, missing_key: MissingKey) -> Result<Value, String> {
    match (map.get(name.as_bytes()), missing_key) {
        (Some(found), _) => Ok(found),
        (None, MissingKey::Missing) => Ok(Value::Missing),
        (None, MissingKey::Zero) => Ok(Value::zero(*map.item_type())),
        (None, MissingKey::Error) => Err(format!("map has no entry for key {name:?}")),
    }
}

/// The type of a value of which a field is wanted.
fn type_name(value: &Value) -> String {
    value.type_().map_or_else(|| "interface {}".to_owned(), |type_| type_.to_string())
}

fn text_length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.as_bytes().len(),
        _ => 0,
    }
}
