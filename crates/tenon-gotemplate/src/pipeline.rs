//! How do words become pipelines?
//!
//! Parentheses may nest as deep as a person types; they are kept on a stack of our own, and those that only surround
//! another pair are dropped.

use crate::Text;
use crate::error::{Span, Wrong};
use crate::parser::Parser;
use crate::token::{Kind, Token};
use crate::tree::{Command, Pipe, Word, WordKind};
use crate::{number, unquote};

/// Parentheses that may be open; Go has the same bound.
const MAX_OPEN: usize = 10_000;
/// Parentheses that hold each other and something else; running them recurses.
const MAX_NESTING: usize = 100;
/// What an error calls a pipeline in parentheses.
const PARENTHESES: &str = "parenthesized pipeline";

/// A pipeline that is being read.
struct Frame {
    pipe: Pipe,
    command: Option<Vec<Word>>,
    context: &'static str,
    end: Kind,
    start: Span,
}

/// The beginning of an operand.
enum Term {
    Word(Word),
    Paren(Span),
    None,
}

impl Parser<'_> {
    /// A pipeline up to the end of the action. `context` is what an error calls it.
    pub(crate) fn pipeline(&mut self, context: &'static str) -> Result<Pipe, Wrong> {
        let start = self.words.peek().span;
        let mut frames = vec![self.frame(context, Kind::Close, start)?];
        loop {
            let Some(frame) = frames.last_mut() else { return Err(Wrong::at(start, "no pipeline")) };
            let operand = match &frame.command {
                None => match self.begin_command(frame)? {
                    Some(close) => match frames.pop().map(|frame| self.finish(frame, close)).transpose()? {
                        Some(Finished::Whole(pipe)) => return Ok(pipe),
                        Some(Finished::Inner(word)) => Some(self.with_fields(word)?),
                        None => None,
                    },
                    None => continue,
                },
                Some(_) => match self.term()? {
                    Term::Paren(span) if frames.len() > MAX_OPEN => {
                        return Err(Wrong::at(span, "max expression depth exceeded"));
                    }
                    Term::Paren(span) => {
                        let inner = self.frame(PARENTHESES, Kind::RightParen, span)?;
                        frames.push(inner);
                        continue;
                    }
                    Term::Word(word) => Some(self.with_fields(word)?),
                    Term::None => None,
                },
            };
            if let Some(frame) = frames.last_mut() {
                frame.command.get_or_insert_default().extend(operand);
                self.end_operand(frame)?;
            }
        }
    }

    fn frame(&mut self, context: &'static str, end: Kind, start: Span) -> Result<Frame, Wrong> {
        let span = self.words.peek_word().span;
        let pipe = Pipe { span, ..self.declarations(context)? };
        Ok(Frame { pipe, command: None, context, end, start })
    }

    /// `$x :=`, `$x =` or, for a range, `$i, $x :=`.
    fn declarations(&mut self, context: &str) -> Result<Pipe, Wrong> {
        let mut pipe = Pipe::default();
        loop {
            let variable = self.words.peek_word();
            if variable.kind != Kind::Variable {
                return Ok(pipe);
            }
            let mark = self.words.mark();
            self.words.next();
            let next = self.words.next_word();
            let is_comma = next.kind == Kind::Other && self.words.text(next) == ",";
            if !is_comma && !matches!(next.kind, Kind::Assign | Kind::Declare) {
                self.words.back_to(mark);
                return Ok(pipe);
            }
            let name = self.words.text(variable);
            pipe.variables.push(name.clone());
            self.variables.add(name);
            if !is_comma {
                pipe.assigns = next.kind == Kind::Assign;
                return Ok(pipe);
            }
            if context != "range" || pipe.variables.len() > 1 {
                return Err(Wrong::at(next.span, format!("too many declarations in {context}")));
            }
            if !matches!(self.words.peek_word().kind, Kind::Variable | Kind::Close | Kind::RightParen) {
                return Err(Wrong::at(next.span, "range can only initialize variables"));
            }
        }
    }

    /// Begins a command, or gives the word that ends the pipeline.
    fn begin_command(&mut self, frame: &mut Frame) -> Result<Option<Token>, Wrong> {
        let token = self.words.next_word();
        match token.kind {
            kind if kind == frame.end => Ok(Some(token)),
            Kind::Bool
            | Kind::Char
            | Kind::Complex
            | Kind::Dot
            | Kind::Field
            | Kind::Identifier
            | Kind::Number
            | Kind::Nil
            | Kind::RawString
            | Kind::String
            | Kind::Variable
            | Kind::LeftParen => {
                self.words.back();
                frame.command = Some(Vec::new());
                Ok(None)
            }
            _ => Err(self.words.unexpected(token, frame.context)),
        }
    }

    /// What may follow an operand: a space and more of them, or the end of the command.
    fn end_operand(&mut self, frame: &mut Frame) -> Result<(), Wrong> {
        let token = self.words.next();
        match token.kind {
            Kind::Space => return Ok(()),
            Kind::Close | Kind::RightParen => self.words.back(),
            Kind::Pipe => {}
            _ => return Err(self.words.unexpected(token, "operand")),
        }
        let words = frame.command.take().unwrap_or_default();
        let Some((first, last)) = words.first().zip(words.last()) else {
            return Err(Wrong::at(token.span, "empty command"));
        };
        let span = first.span.to(last.span);
        frame.pipe.commands.push(Command { words, span });
        Ok(())
    }

    fn finish(&mut self, frame: Frame, close: Token) -> Result<Finished, Wrong> {
        let Frame { mut pipe, context, start, end, .. } = frame;
        pipe.span = pipe.span.to(Span::new(pipe.span.start, close.span.start));
        if pipe.commands.is_empty() {
            return Err(Wrong::at(close.span, format!("missing value for {context}")));
        }
        for (stage, command) in pipe.commands.iter().enumerate().skip(1) {
            if command.words.first().is_some_and(|word| word.kind.is_plain()) {
                let message = format!("non executable command in pipeline stage {}", stage + 1);
                return Err(Wrong::at(command.span, message));
            }
        }
        if end == Kind::Close {
            return Ok(Finished::Whole(pipe));
        }
        let span = start.to(close.span);
        if let Some(inner) = only_parentheses(&mut pipe) {
            return Ok(Finished::Inner(Word { kind: WordKind::Pipe(inner), span }));
        }
        pipe.nesting = pipe.commands.iter().flat_map(|command| &command.words).map(nesting).max().unwrap_or(0) + 1;
        if pipe.nesting > MAX_NESTING {
            return Err(Wrong::at(start, format!("parentheses nest deeper than {MAX_NESTING} levels")));
        }
        Ok(Finished::Inner(Word { kind: WordKind::Pipe(Box::new(pipe)), span }))
    }

    fn term(&mut self) -> Result<Term, Wrong> {
        let token = self.words.next_word();
        let text = self.words.text(token);
        let kind = match token.kind {
            Kind::Identifier if self.has_function(&text) => WordKind::Function(text),
            Kind::Identifier => return Err(Wrong::at(token.span, format!("function {text:?} not defined"))),
            Kind::Dot => WordKind::Dot,
            Kind::Nil => WordKind::Nil,
            Kind::Variable if self.variables.has(&text) => WordKind::Variable(text, Vec::new()),
            Kind::Variable => return Err(Wrong::at(token.span, format!("undefined variable {text:?}"))),
            Kind::Field => WordKind::Field(vec![text[1..].to_owned()]),
            Kind::Bool => WordKind::Bool(text == "true"),
            Kind::Char | Kind::Complex | Kind::Number => {
                let read = number::read(&text, token.bytes(self.words.source), token.kind);
                WordKind::Number(read.map_err(|message| Wrong::at(token.span, message))?)
            }
            Kind::LeftParen => return Ok(Term::Paren(token.span)),
            Kind::String | Kind::RawString => WordKind::String(Text::from(self.quoted(token)?)),
            _ => {
                self.words.back();
                return Ok(Term::None);
            }
        };
        Ok(Term::Word(Word { kind, span: token.span }))
    }

    /// The bytes of a quoted word.
    pub(crate) fn quoted(&self, token: Token) -> Result<Vec<u8>, Wrong> {
        unquote::string(token.bytes(self.words.source)).ok_or_else(|| Wrong::at(token.span, "invalid syntax"))
    }

    /// The fields right behind an operand.
    fn with_fields(&mut self, word: Word) -> Result<Word, Wrong> {
        let first = self.words.peek();
        if first.kind != Kind::Field {
            return Ok(word);
        }
        let (mut fields, mut last) = (Vec::new(), first);
        while self.words.peek().kind == Kind::Field {
            last = self.words.next();
            fields.push(self.words.text(last)[1..].to_owned());
        }
        let span = word.span.to(last.span).focused_on(first.span);
        let kind = match word.kind {
            WordKind::Field(mut names) => {
                names.append(&mut fields);
                WordKind::Field(names)
            }
            WordKind::Variable(name, _) => WordKind::Variable(name, fields),
            kind if kind.is_plain() => {
                let shown = word.span.piece(self.words.source);
                return Err(Wrong::at(first.span, format!("unexpected . after term {shown:?}")));
            }
            kind => WordKind::Chain(Box::new(Word { kind, span: word.span }), fields),
        };
        Ok(Word { kind, span })
    }
}

/// What a pipeline is for.
enum Finished {
    Whole(Pipe),
    Inner(Word),
}

/// The pipeline inside, if there is nothing but its parentheses.
fn only_parentheses(pipe: &mut Pipe) -> Option<Box<Pipe>> {
    let [command] = pipe.commands.as_mut_slice() else { return None };
    let is_only =
        pipe.variables.is_empty() && matches!(command.words.as_slice(), [Word { kind: WordKind::Pipe(_), .. }]);
    match command.words.pop_if(|_| is_only)?.kind {
        WordKind::Pipe(inner) => Some(inner),
        _ => None,
    }
}

fn nesting(word: &Word) -> usize {
    match &word.kind {
        WordKind::Pipe(pipe) => pipe.nesting,
        WordKind::Chain(inner, _) => nesting(inner),
        _ => 0,
    }
}
