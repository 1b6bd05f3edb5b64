//! How does the text of a template fall into words?

use crate::error::{Span, Wrong};
use crate::scanner::{Scanner, is_space, is_word};
use crate::token::{Keyword, Kind, Token};

/// What opens and closes an action.
#[derive(Debug, Clone)]
pub struct Delimiters {
    /// What opens it; `{{` if it is empty.
    pub left: String,
    /// What closes it; `}}` if it is empty.
    pub right: String,
}

impl Default for Delimiters {
    fn default() -> Delimiters {
        Delimiters { left: "{{".to_owned(), right: "}}".to_owned() }
    }
}

/// Removes the white space around an action, beside a space.
const TRIM: u8 = b'-';
/// The length of the trim mark with its space.
const TRIM_LENGTH: usize = 2;

/// Begins a comment; its end is as long.
const COMMENT: &[u8] = b"/*";

/// The words of a template up to its end, or up to the first place that is none: then the last word is bad, and the
/// reason stands beside the words.
pub(crate) fn words<'a>(source: &'a [u8], delimiters: &'a Delimiters, breaks: Breaks) -> (Vec<Token>, Option<Wrong>) {
    let or = |given: &'a str, usual: &'a str| if given.is_empty() { usual.as_bytes() } else { given.as_bytes() };
    let (left, right) = (or(&delimiters.left, "{{"), or(&delimiters.right, "}}"));
    let mut lexer = Lexer { scanner: Scanner::new(source), left, right, breaks, tokens: Vec::new(), parens: 0 };
    let wrong = lexer.run().err();
    let span = wrong.as_ref().map_or_else(|| lexer.scanner.span(lexer.scanner.at()), |wrong| wrong.span);
    let kind = if wrong.is_some() { Kind::Bad } else { Kind::End };
    lexer.tokens.push(Token { kind, span });
    (lexer.tokens, wrong)
}

/// Which of these are words of the language; functions of their names make them ordinary ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Breaks {
    pub(crate) breaks: bool,
    pub(crate) continues: bool,
}

struct Lexer<'a> {
    scanner: Scanner<'a>,
    left: &'a [u8],
    right: &'a [u8],
    breaks: Breaks,
    tokens: Vec<Token>,
    /// How many parentheses are open.
    parens: usize,
}

/// What follows a piece of text.
enum After {
    Action,
    Comment,
    End,
}

impl Lexer<'_> {
    fn run(&mut self) -> Result<(), Wrong> {
        loop {
            match self.text()? {
                After::Action => while self.word()? {},
                After::Comment => {}
                After::End => return Ok(()),
            }
        }
    }

    fn push(&mut self, kind: Kind, start: usize) {
        self.tokens.push(Token { kind, span: self.scanner.span(start) });
    }

    fn fail<T>(&self, start: usize, message: impl Into<String>) -> Result<T, Wrong> {
        Err(Wrong::at(self.scanner.span(start), message))
    }

    /// Text up to the next action, and what opens that.
    fn text(&mut self) -> Result<After, Wrong> {
        let start = self.scanner.at();
        let rest = self.scanner.rest();
        let Some(length) = find(rest, self.left) else {
            self.scanner.skip(rest.len());
            if !rest.is_empty() {
                self.push(Kind::Text, start);
            }
            return Ok(After::End);
        };
        let after = &rest[length + self.left.len()..];
        let trims = after.first() == Some(&TRIM) && after.get(1).is_some_and(|byte| is_space(*byte));
        let kept = if trims { trimmed_end(&rest[..length]) } else { length };
        if kept > 0 {
            self.scanner.skip(kept);
            self.push(Kind::Text, start);
        }
        self.scanner.skip(length - kept);
        self.open(trims)
    }

    fn open(&mut self, trims: bool) -> Result<After, Wrong> {
        let start = self.scanner.at();
        let marker = if trims { TRIM_LENGTH } else { 0 };
        if self.scanner.rest()[self.left.len() + marker..].starts_with(COMMENT) {
            self.scanner.skip(self.left.len() + marker);
            return self.comment();
        }
        self.scanner.skip(self.left.len());
        self.push(Kind::Open, start);
        self.scanner.skip(marker);
        self.parens = 0;
        Ok(After::Action)
    }

    fn comment(&mut self) -> Result<After, Wrong> {
        let start = self.scanner.at();
        self.scanner.skip(COMMENT.len());
        let Some(length) = find(self.scanner.rest(), b"*/") else { return self.fail(start, "unclosed comment") };
        self.scanner.skip(length + COMMENT.len());
        let Some(trims) = self.closing() else { return self.fail(start, "comment ends before closing delimiter") };
        self.close(trims);
        Ok(After::Comment)
    }

    /// Whether an action is closed here, and whether with a trim mark.
    fn closing(&self) -> Option<bool> {
        let rest = self.scanner.rest();
        let marked = rest.first().is_some_and(|byte| is_space(*byte)) && rest.get(1) == Some(&TRIM);
        if marked && rest[TRIM_LENGTH..].starts_with(self.right) {
            return Some(true);
        }
        rest.starts_with(self.right).then_some(false)
    }

    fn close(&mut self, trims: bool) {
        if trims {
            self.scanner.skip(TRIM_LENGTH);
        }
        self.scanner.skip(self.right.len());
        if trims {
            let rest = self.scanner.rest();
            self.scanner.skip(rest.iter().take_while(|byte| is_space(**byte)).count());
        }
    }

    /// One word inside an action. False when that was its end.
    fn word(&mut self) -> Result<bool, Wrong> {
        let start = self.scanner.at();
        if let Some(trims) = self.closing() {
            if self.parens > 0 {
                return self.fail(start, "unclosed left paren");
            }
            let mark = if trims { TRIM_LENGTH } else { 0 };
            let span = Span::new(start + mark, start + mark + self.right.len());
            self.tokens.push(Token { kind: Kind::Close, span });
            self.close(trims);
            return Ok(false);
        }
        let Some(first) = self.scanner.next() else { return self.fail(start, "unclosed action") };
        match first {
            ' ' | '\t' | '\r' | '\n' => self.space(start),
            '=' => self.push(Kind::Assign, start),
            ':' if self.scanner.accept(b"=") => self.push(Kind::Declare, start),
            ':' => return self.fail(start, "expected :="),
            '|' => self.push(Kind::Pipe, start),
            '"' => self.quoted(start)?,
            '\'' => self.character(start)?,
            '`' => self.raw(start)?,
            '$' => self.name(start, Kind::Variable)?,
            '.' if !self.scanner.peek().is_some_and(|c| c.is_ascii_digit()) => self.name(start, Kind::Field)?,
            '.' | '+' | '-' | '0'..='9' => self.number(start)?,
            '(' => self.paren(start, Kind::LeftParen)?,
            ')' => self.paren(start, Kind::RightParen)?,
            c if is_word(c) => self.identifier(start)?,
            c if c.is_ascii_graphic() => self.push(Kind::Other, start),
            c => return self.fail(start, format!("unrecognized character in action: {}", shown(c))),
        }
        Ok(true)
    }

    /// White space; its last character may belong to a trim mark.
    fn space(&mut self, start: usize) {
        self.scanner.back_to(start);
        while self.scanner.rest().first().is_some_and(|byte| is_space(*byte)) && self.closing() != Some(true) {
            self.scanner.skip(1);
        }
        if self.scanner.at() > start {
            self.push(Kind::Space, start);
        }
    }

    fn paren(&mut self, start: usize, kind: Kind) -> Result<(), Wrong> {
        self.parens = match kind {
            Kind::LeftParen => self.parens + 1,
            _ => match self.parens.checked_sub(1) {
                Some(parens) => parens,
                None => return self.fail(start, "unexpected right paren"),
            },
        };
        self.push(kind, start);
        Ok(())
    }

    fn identifier(&mut self, start: usize) -> Result<(), Wrong> {
        self.scanner.skip_while(is_word);
        self.terminated()?;
        let text = self.scanner.text(start);
        let kind = match (Keyword::of(&text), text.as_str()) {
            (Some(Keyword::Break), _) if !self.breaks.breaks => Kind::Identifier,
            (Some(Keyword::Continue), _) if !self.breaks.continues => Kind::Identifier,
            (Some(keyword), _) => Kind::Keyword(keyword),
            (None, "nil") => Kind::Nil,
            (None, "true" | "false") => Kind::Bool,
            (None, _) => Kind::Identifier,
        };
        self.push(kind, start);
        Ok(())
    }

    /// A field or a variable; a lone dot or dollar is one as well.
    fn name(&mut self, start: usize, kind: Kind) -> Result<(), Wrong> {
        if self.at_terminator() {
            self.push(if kind == Kind::Field { Kind::Dot } else { kind }, start);
            return Ok(());
        }
        self.scanner.skip_while(is_word);
        self.terminated()?;
        self.push(kind, start);
        Ok(())
    }

    fn at_terminator(&self) -> bool {
        let ends = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '|' | ':' | ')' | '(');
        self.scanner.peek().is_none_or(ends) || self.scanner.rest().starts_with(self.right)
    }

    fn terminated(&self) -> Result<(), Wrong> {
        match self.scanner.peek() {
            Some(c) if !self.at_terminator() => self.fail(self.scanner.at(), format!("bad character {}", shown(c))),
            _ => Ok(()),
        }
    }

    fn number(&mut self, start: usize) -> Result<(), Wrong> {
        self.scanner.back_to(start);
        let is_good = self.scanner.number();
        let is_complex = is_good && matches!(self.scanner.peek(), Some('+' | '-'));
        let is_good = is_good && (!is_complex || (self.scanner.number() && self.scanner.text(start).ends_with('i')));
        if !is_good {
            return self.fail(start, format!("bad number syntax: {:?}", self.scanner.text(start)));
        }
        self.push(if is_complex { Kind::Complex } else { Kind::Number }, start);
        Ok(())
    }

    fn quoted(&mut self, start: usize) -> Result<(), Wrong> {
        if !self.scanner.skip_quoted('"') {
            return self.fail(start, "unterminated quoted string");
        }
        self.push(Kind::String, start);
        Ok(())
    }

    fn character(&mut self, start: usize) -> Result<(), Wrong> {
        if !self.scanner.skip_quoted('\'') {
            return self.fail(start, "unterminated character constant");
        }
        self.push(Kind::Char, start);
        Ok(())
    }

    fn raw(&mut self, start: usize) -> Result<(), Wrong> {
        let Some(length) = find(self.scanner.rest(), b"`") else {
            return self.fail(start, "unterminated raw quoted string");
        };
        self.scanner.skip(length + 1);
        self.push(Kind::RawString, start);
        Ok(())
    }
}

/// A character as Go's errors show it.
fn shown(c: char) -> String {
    let code = u32::from(c);
    if c.is_control() { format!("U+{code:04X}") } else { format!("U+{code:04X} '{c}'") }
}

/// Where `part` begins.
fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

fn trimmed_end(bytes: &[u8]) -> usize {
    bytes.len() - bytes.iter().rev().take_while(|byte| is_space(**byte)).count()
}
