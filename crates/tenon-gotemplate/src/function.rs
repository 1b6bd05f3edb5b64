//! What can a template call?

use std::collections::BTreeMap;

use crate::{Delimiters, Failure, Type, Value};

/// A function by its name in templates.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// What templates call it.
    pub name: &'static str,
    /// The types of its arguments; the last one repeats when `variadic` is set.
    pub parameters: &'static [Type],
    /// Whether the last parameter takes any number of arguments, also none.
    pub variadic: bool,
    /// What it does. Its arguments have been checked against the parameters.
    pub body: Body,
}

/// The inside of a function.
pub type Body = fn(&Limits, &[Value]) -> Result<Value, Failure>;

/// What a template may use up.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes that it may print, and bytes of any one string.
    pub output: usize,
    /// Nodes that it may visit, repetitions counted.
    pub steps: usize,
    /// How many templates may be inside each other while it runs.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { output: 1 << 20, steps: 2_000_000, depth: 100_000 }
    }
}

/// The functions of a template beside the built-in ones.
#[derive(Debug, Clone, Default)]
pub struct Functions(BTreeMap<&'static str, Function>);

impl Functions {
    /// A set of functions; of two with the same name the later one counts.
    pub fn new(functions: impl IntoIterator<Item = Function>) -> Functions {
        Functions(functions.into_iter().map(|function| (function.name, function)).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Function> {
        self.0.get(name)
    }
}

/// What a template is read and run with.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Functions beside the built-in ones.
    pub functions: Functions,
    /// What surrounds actions.
    pub delimiters: Delimiters,
    /// What a map without the key gives.
    pub missing_key: MissingKey,
    /// What a template may use up.
    pub limits: Limits,
}

/// What a map without the key gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// No value.
    #[default]
    Missing,
    /// The zero value of the map's type.
    Zero,
    /// An error.
    Error,
}
