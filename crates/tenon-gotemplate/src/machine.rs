//! How does a template run?
//!
//! What is being run is kept on a stack of our own: templates may call each other as deep as Go allows without touching
//! the program's stack.

use crate::error::{Running, Span, Stage, TemplateError, Wrong};
use crate::evaluate::Evaluator;
use crate::items::Items;
use crate::scope::Scope;
use crate::tree::{Choice, Definitions, Node, Pipe, Range};
use crate::{Options, Output, Rendered, Value, format};

/// Bytes of a template's name that may be looked for in one step.
const NAME_A_STEP: usize = 256;
/// Items that may be copied in one step.
const ITEMS_A_STEP: usize = 16;

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
    /// The same behind a range without items. A break ends it, as if it were the range.
    ForgetElse(usize),
    /// The list is run again with the next item.
    Repeat(Repeat<'t>),
    /// The template that called goes on, with its own variables.
    Return(Scope<'t>),
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
        // No data at all, rather than an interface that holds none.
        let data = if matches!(data, Value::Nil) { Value::Missing } else { data.clone() };
        self.enter(name, data);
        let outcome = self.go();
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

    fn node(&mut self, node: &'t Node) -> Result<(), Wrong> {
        match node {
            Node::Text(text, span) => {
                self.evaluator.at = *span;
                self.evaluator.step(1)?;
                self.out.push(text).map_err(|failure| self.evaluator.wrong(failure.to_string()))
            }
            Node::Action(pipe) => self.action(pipe),
            Node::Choice(choice) => self.choice(choice),
            Node::Range(range) => self.range(range),
            Node::Template { name, argument, span } => {
                self.evaluator.at = *span;
                self.evaluator.step(1 + name.len() / NAME_A_STEP)?;
                self.check(name)?;
                let dot = self.dot();
                let argument = match argument {
                    Some(pipe) => self.evaluator.pipeline(&dot, pipe)?,
                    None => Value::Missing,
                };
                self.enter(name, argument);
                Ok(())
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
        self.evaluator.at = pipe.span;
        if matches!(value, Value::Missing | Value::Nil) && self.no_value.is_none() {
            self.no_value = self.running.last().map(|name| (pipe.span, *name));
        }
        let printed = printable(&value);
        format::print(&mut self.out, &[printed]).map_err(|failure| self.evaluator.wrong(failure.to_string()))
    }

    fn choice(&mut self, choice: &'t Choice) -> Result<(), Wrong> {
        let outside = self.evaluator.scope.mark();
        let dot = self.dot();
        for arm in &choice.arms {
            let value = self.evaluator.pipeline(&dot, &arm.pipe)?;
            if value.is_true() {
                let dot = if choice.sets_dot { value } else { dot };
                self.cursors.push(Cursor { nodes: &arm.body, at: 0, dot, then: Then::Forget(outside) });
                return Ok(());
            }
        }
        self.cursors.push(Cursor { nodes: &choice.otherwise, at: 0, dot, then: Then::Forget(outside) });
        Ok(())
    }

    fn range(&mut self, range: &'t Range) -> Result<(), Wrong> {
        let outside = self.evaluator.scope.mark();
        let dot = self.dot();
        let value = self.evaluator.pipeline(&dot, &range.pipe)?;
        let items = Items::of(&value, range.pipe.variables.len()).map_err(|why| self.evaluator.wrong(why))?;
        // The items of a map are copied, even if a break leaves most of them alone.
        self.evaluator.step(items.copied() / ITEMS_A_STEP)?;
        let inside = self.evaluator.scope.mark();
        if items.is_empty() {
            self.cursors.push(Cursor { nodes: &range.otherwise, at: 0, dot, then: Then::ForgetElse(outside) });
            return Ok(());
        }
        let repeat = Repeat { pipe: &range.pipe, items, outside, inside };
        self.cursors.push(Cursor { nodes: &range.body, at: 0, dot, then: Then::Repeat(repeat) });
        self.end_of_list()
    }

    /// Looks for the list's next turn, or goes back to what is around it.
    fn end_of_list(&mut self) -> Result<(), Wrong> {
        let Some(cursor) = self.cursors.last_mut() else { return Ok(()) };
        let repeat = match &mut cursor.then {
            Then::Repeat(repeat) => repeat,
            Then::Forget(mark) | Then::ForgetElse(mark) => {
                self.evaluator.scope.forget(*mark);
                self.cursors.pop();
                return Ok(());
            }
            Then::Return(scope) => {
                self.evaluator.scope = std::mem::take(scope);
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
        self.evaluator.step(1)?;
        let set = self.evaluator.scope.set_range(repeat.pipe, &index, &item);
        self.evaluator.looked_at(set)?;
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
                Then::ForgetElse(_) if !continues => return self.end_of_list(),
                _ => drop(self.cursors.pop()),
            }
        }
        Ok(())
    }

    /// Says why a template cannot be called, if so.
    fn check(&self, name: &str) -> Result<(), Wrong> {
        if !self.definitions.contains_key(name) {
            return Err(self.evaluator.wrong(format!("template {name:?} not defined")));
        }
        let most = self.options.limits.depth;
        if self.running.len() > most {
            return Err(self.evaluator.wrong(format!("exceeded maximum template depth ({most})")));
        }
        Ok(())
    }

    /// Begins a template.
    fn enter(&mut self, name: &'t str, dot: Value) {
        let nodes = self.definitions.get(name).map(Vec::as_slice).unwrap_or_default();
        let outside = std::mem::replace(&mut self.evaluator.scope, Scope::of_template(dot.clone()));
        self.cursors.push(Cursor { nodes, at: 0, dot, then: Then::Return(outside) });
        self.running.push(name);
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
