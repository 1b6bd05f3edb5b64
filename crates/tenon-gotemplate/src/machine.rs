//! How does a template run?
//!
//! What is being run is kept on a stack of our own: templates may call each other as deep as Go allows without touching
//! the program's stack.

use crate::error::{Running, Span, Stage, TemplateError, Wrong};
use crate::evaluate::Evaluator;
use crate::items::Items;
use crate::scope::{Scope, Variable};
use crate::tree::{Branch, Definitions, Node, Pipe};
use crate::{Options, Output, Rendered, Value, format};

/// A template that is running.
pub(crate) struct Machine<'t> {
    definitions: &'t Definitions,
    options: &'t Options,
    out: Output,
    evaluator: Evaluator<'t>,
    cursors: Vec<Cursor<'t>>,
    /// The names of the templates that are running, the innermost last.
    running: Vec<&'t str>,
    /// The first place without a value, and the template it is in.
    no_value: Option<(Span, &'t str)>,
}

/// A list of nodes that is being run.
struct Cursor<'t> {
    nodes: &'t [Node],
    at: usize,
    dot: Value,
    then: Then<'t>,
}

/// What happens at the end of a list.
enum Then<'t> {
    /// The variables declared inside are forgotten.
    Forget(usize),
    /// The list is run again with the next item.
    Repeat(Repeat<'t>),
    /// The template that called goes on, with its own variables.
    Return(Vec<Variable>),
}

struct Repeat<'t> {
    pipe: &'t Pipe,
    items: Items,
    /// How many variables there were before the range, and with its own.
    outside: usize,
    inside: usize,
}

impl<'t> Machine<'t> {
    pub(crate) fn new(definitions: &'t Definitions, options: &'t Options) -> Machine<'t> {
        let out = Output::new(options.limits.output);
        Machine {
            definitions,
            options,
            out,
            evaluator: Evaluator::new(options),
            cursors: Vec::new(),
            running: Vec::new(),
            no_value: None,
        }
    }

    /// Runs the template of this name.
    pub(crate) fn run(mut self, name: &'t str, source: &[u8], data: &Value) -> Result<Rendered, TemplateError> {
        let undefined = Wrong::at(Span::default(), format!("template {name:?} not defined"));
        // No data at all, rather than an interface that holds none.
        let data = if matches!(data, Value::Nil) { Value::Missing } else { data.clone() };
        let outcome = self.enter(name, data, undefined).and_then(|()| self.go());
        let error = |Wrong { span, message }: Wrong, inner: &str| {
            let (line, column) = span.position(source);
            let running = Some(Running { template: inner.to_owned(), piece: span.piece(source) });
            TemplateError { stage: Stage::Execute, template: name.to_owned(), line, column, running, message }
        };
        match outcome {
            Ok(()) => {
                let no_value = self.no_value.map(|(span, inner)| error(Wrong::at(span, "there is no value"), inner));
                Ok(Rendered { bytes: self.out.into_bytes(), no_value })
            }
            Err(wrong) => Err(error(wrong, self.running.last().unwrap_or(&name))),
        }
    }

    fn go(&mut self) -> Result<(), Wrong> {
        while let Some(cursor) = self.cursors.last_mut() {
            let (nodes, at) = (cursor.nodes, cursor.at);
            cursor.at += 1;
            match nodes.get(at) {
                Some(node) => self.node(node)?,
                None => self.end_of_list()?,
            }
        }
        Ok(())
    }

    fn dot(&self) -> Value {
        self.cursors.last().map(|cursor| cursor.dot.clone()).unwrap_or_default()
    }

    /// The innermost range that runs: where a text comes from that is too much.
    fn repeated_at(&self) -> Span {
        let spot = |cursor: &Cursor<'t>| match &cursor.then {
            Then::Repeat(repeat) => Some(repeat.pipe.spot()),
            _ => None,
        };
        self.cursors.iter().rev().find_map(spot).unwrap_or_default()
    }

    fn node(&mut self, node: &'t Node) -> Result<(), Wrong> {
        match node {
            Node::Text(text) => {
                let written = self.evaluator.step(Span::default(), 1).map_err(|wrong| wrong.message);
                let written = written.and_then(|()| self.out.push(text).map_err(|failure| failure.to_string()));
                written.map_err(|why| Wrong::at(self.repeated_at(), why))
            }
            Node::Action(pipe) => self.action(pipe),
            Node::If(branch) => self.branch(branch, false),
            Node::With(branch) => self.branch(branch, true),
            Node::Range(branch) => self.range(branch),
            Node::Template { name, argument, span } => {
                let dot = self.dot();
                let argument = match argument {
                    Some(pipe) => self.evaluator.pipeline(&dot, pipe)?,
                    None => Value::Missing,
                };
                self.enter(name, argument, Wrong::at(*span, format!("template {name:?} not defined")))
            }
            Node::Break => self.leave_range(false),
            Node::Continue => self.leave_range(true),
        }
    }

    fn action(&mut self, pipe: &'t Pipe) -> Result<(), Wrong> {
        let dot = self.dot();
        let value = self.evaluator.pipeline(&dot, pipe)?;
        if !pipe.variables.is_empty() {
            return Ok(());
        }
        if matches!(value, Value::Missing | Value::Nil) && self.no_value.is_none() {
            self.no_value = self.running.last().map(|name| (pipe.spot(), *name));
        }
        let printed = printable(&value);
        format::print(&mut self.out, &[printed]).map_err(|failure| Wrong::at(pipe.spot(), failure.to_string()))
    }

    fn branch(&mut self, branch: &'t Branch, sets_dot: bool) -> Result<(), Wrong> {
        let outside = self.evaluator.scope.mark();
        let dot = self.dot();
        let value = self.evaluator.pipeline(&dot, &branch.pipe)?;
        let is_true = value.is_true();
        let nodes = if is_true { Some(&branch.body) } else { branch.otherwise.as_ref() };
        let Some(nodes) = nodes else {
            self.evaluator.scope.forget(outside);
            return Ok(());
        };
        let dot = if is_true && sets_dot { value } else { dot };
        self.cursors.push(Cursor { nodes, at: 0, dot, then: Then::Forget(outside) });
        Ok(())
    }

    fn range(&mut self, branch: &'t Branch) -> Result<(), Wrong> {
        let outside = self.evaluator.scope.mark();
        let dot = self.dot();
        let value = self.evaluator.pipeline(&dot, &branch.pipe)?;
        let items = Items::of(&value, branch.pipe.variables.len()).map_err(|why| Wrong::at(branch.pipe.spot(), why))?;
        let inside = self.evaluator.scope.mark();
        if items.is_empty() {
            let nodes = branch.otherwise.as_deref().unwrap_or_default();
            self.cursors.push(Cursor { nodes, at: 0, dot, then: Then::Forget(outside) });
            return Ok(());
        }
        let repeat = Repeat { pipe: &branch.pipe, items, outside, inside };
        self.cursors.push(Cursor { nodes: &branch.body, at: 0, dot, then: Then::Repeat(repeat) });
        self.end_of_list()
    }

    /// Looks for the list's next turn, or goes back to what is around it.
    fn end_of_list(&mut self) -> Result<(), Wrong> {
        let Some(cursor) = self.cursors.last_mut() else { return Ok(()) };
        let repeat = match &mut cursor.then {
            Then::Repeat(repeat) => repeat,
            Then::Forget(mark) => {
                self.evaluator.scope.forget(*mark);
                self.cursors.pop();
                return Ok(());
            }
            Then::Return(variables) => {
                self.evaluator.scope = Scope::of(std::mem::take(variables));
                self.cursors.pop();
                self.running.pop();
                return Ok(());
            }
        };
        self.evaluator.scope.forget(repeat.inside);
        let Some((index, item)) = repeat.items.next() else {
            self.evaluator.scope.forget(repeat.outside);
            self.cursors.pop();
            return Ok(());
        };
        self.evaluator.step(repeat.pipe.spot(), 1)?;
        self.evaluator.scope.set_range(repeat.pipe, &index, &item)?;
        cursor.dot = item;
        cursor.at = 0;
        Ok(())
    }

    /// Ends the lists inside the innermost range, and this turn of it or the range itself.
    fn leave_range(&mut self, continues: bool) -> Result<(), Wrong> {
        while let Some(cursor) = self.cursors.last() {
            match &cursor.then {
                Then::Repeat(_) if continues => return self.end_of_list(),
                Then::Repeat(repeat) => {
                    self.evaluator.scope.forget(repeat.outside);
                    self.cursors.pop();
                    return Ok(());
                }
                _ => drop(self.cursors.pop()),
            }
        }
        Ok(())
    }

    /// Begins a template; `undefined` is what to say if there is none of that name.
    fn enter(&mut self, name: &'t str, dot: Value, undefined: Wrong) -> Result<(), Wrong> {
        self.evaluator.step(undefined.span, 1)?;
        let Some(nodes) = self.definitions.get(name) else { return Err(undefined) };
        if self.running.len() >= self.options.limits.depth {
            let message = format!("exceeded maximum template depth ({})", self.options.limits.depth);
            return Err(Wrong::at(undefined.span, message));
        }
        let root = Variable { name: "$".to_owned(), value: dot.clone() };
        let outside = std::mem::replace(&mut self.evaluator.scope, Scope::of(vec![root]));
        self.cursors.push(Cursor { nodes, at: 0, dot, then: Then::Return(outside.into_variables()) });
        self.running.push(name);
        Ok(())
    }
}

/// What is printed for a value: what a pointer points to, and words for nothing.
pub(crate) fn printable(value: &Value) -> Value {
    match value {
        Value::Missing | Value::Nil => Value::string("<no value>"),
        Value::Pointer(pointer) => match pointer.target() {
            Some(target) => printable(target),
            None => value.clone(),
        },
        value => value.clone(),
    }
}
