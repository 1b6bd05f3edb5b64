//! What is a template made of, once it is read?

use std::collections::BTreeMap;

use crate::Text;
use crate::error::Span;
use crate::number::Number;

/// The templates of one source by name: itself, and those that it defines.
pub(crate) type Definitions = BTreeMap<String, Vec<Node>>;

/// A piece of a template.
#[derive(Debug)]
pub(crate) enum Node {
    Text(Vec<u8>, Span),
    Action(Pipe),
    Choice(Choice),
    Range(Box<Range>),
    Template { name: String, argument: Option<Pipe>, span: Span },
    Break,
    Continue,
}

impl Node {
    /// Whether it prints nothing but white space, whatever the data.
    pub(crate) fn is_blank(&self) -> bool {
        // Go looks for Unicode's white space here.
        matches!(self, Node::Text(text, _) if String::from_utf8_lossy(text).chars().all(char::is_whitespace))
    }
}

/// An `if` or a `with`, together with every `else if` or `else with` behind it.
#[derive(Debug)]
pub(crate) struct Choice {
    /// Whether the value becomes the dot: a `with`.
    pub(crate) sets_dot: bool,
    pub(crate) arms: Vec<Arm>,
    pub(crate) otherwise: Vec<Node>,
}

/// A condition and what is run when it is the first that holds.
#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) pipe: Pipe,
    pub(crate) body: Vec<Node>,
}

/// A `range`.
#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) pipe: Pipe,
    pub(crate) body: Vec<Node>,
    pub(crate) otherwise: Vec<Node>,
}

/// Commands, each of which gets the value of the one before as its last argument.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    /// Variables that get the value.
    pub(crate) variables: Vec<String>,
    /// Whether the variables are there already.
    pub(crate) assigns: bool,
    pub(crate) commands: Vec<Command>,
    /// How many parentheses it holds inside each other.
    pub(crate) nesting: usize,
    /// All of it, without its parentheses.
    pub(crate) span: Span,
}

/// A value, or a function and its arguments.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) words: Vec<Word>,
    pub(crate) span: Span,
}

/// One word of a command.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) kind: WordKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum WordKind {
    Bool(bool),
    Dot,
    Nil,
    Number(Number),
    String(Text),
    /// `.A.B`.
    Field(Vec<String>),
    /// `$x.A`: the name with its dollar, and fields.
    Variable(String, Vec<String>),
    /// `(pipeline).A`.
    Chain(Box<Word>, Vec<String>),
    Function(String),
    Pipe(Box<Pipe>),
}

impl WordKind {
    /// Whether it is a constant or the dot, which take no value from a pipeline.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, WordKind::Bool(_) | WordKind::Dot | WordKind::Nil | WordKind::Number(_) | WordKind::String(_))
    }
}
