//! Where is a template wrong, and why?

use std::fmt;

/// At which stage a template failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The text is not a template.
    Parse,
    /// The template could not be run with this data.
    Execute,
}

/// A template that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// When it was found.
    pub stage: Stage,
    /// The name of the template as a whole.
    pub template: String,
    /// The line, counted from one.
    pub line: usize,
    /// The byte in that line, counted from one.
    pub column: usize,
    /// What was being run: the template inside (`define`), and the piece of it. Empty while parsing.
    pub running: Option<Running>,
    /// What is wrong.
    pub message: String,
}

/// What was being run when it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The name of the template that was running, which a `define` may have given.
    pub template: String,
    /// The piece of its text.
    pub piece: String,
}

impl fmt::Display for TemplateError {
    /// Go's form, which people search for: columns are counted from zero there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "template: {}:{}:{}: ", self.template, self.line, self.column - 1)?;
        if let Some(running) = &self.running {
            write!(f, "executing {:?} at <{}>: ", running.template, running.piece)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for TemplateError {}

/// A place in the source: a range of bytes, and the byte that counts as its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    focus: usize,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Span {
        Span { start, end, focus: start }
    }

    /// From the beginning of one to the end of another.
    pub(crate) fn to(self, end: Span) -> Span {
        Span { end: end.end.max(self.start), ..self }
    }

    /// The same text, with its position at the beginning of another.
    pub(crate) fn focused_on(self, other: Span) -> Span {
        Span { focus: other.start, ..self }
    }

    /// How many bytes it has.
    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }

    /// Line and column, both counted from one.
    pub(crate) fn position(self, source: &[u8]) -> (usize, usize) {
        let before = source.get(..self.focus).unwrap_or(source);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        (line, column)
    }

    /// Its text, cut after a few characters.
    pub(crate) fn piece(self, source: &[u8]) -> String {
        const SHOWN: usize = 40;
        let text = String::from_utf8_lossy(source.get(self.start..self.end).unwrap_or_default().trim_ascii());
        match text.char_indices().nth(SHOWN) {
            Some((at, _)) => format!("{}...", &text[..at]),
            None => text.into_owned(),
        }
    }
}

/// What is wrong, and at which place; the template's name is added outside.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) span: Span,
    pub(crate) message: String,
}

impl Wrong {
    pub(crate) fn at(span: Span, message: impl Into<String>) -> Wrong {
        Wrong { span, message: message.into() }
    }
}
