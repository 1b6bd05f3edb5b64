//! Hands the words of a template to the parser, one by one.

use crate::error::{Span, Wrong};
use crate::token::{Keyword, Kind, Token};

/// The words, and where the parser stands among them.
pub(crate) struct Words<'a> {
    pub(crate) source: &'a [u8],
    tokens: Vec<Token>,
    at: usize,
    /// Why the last word is bad.
    bad: Option<Wrong>,
}

impl<'a> Words<'a> {
    pub(crate) fn new(source: &'a [u8], (tokens, bad): (Vec<Token>, Option<Wrong>)) -> Words<'a> {
        Words { source, tokens, at: 0, bad }
    }

    pub(crate) fn peek(&self) -> Token {
        let end = Token { kind: Kind::End, span: Span::default() };
        self.tokens.get(self.at).or(self.tokens.last()).copied().unwrap_or(end)
    }

    pub(crate) fn next(&mut self) -> Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    pub(crate) fn back(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    pub(crate) fn skip_space(&mut self) {
        while self.peek().kind == Kind::Space {
            self.at += 1;
        }
    }

    pub(crate) fn next_word(&mut self) -> Token {
        self.skip_space();
        self.next()
    }

    pub(crate) fn peek_word(&mut self) -> Token {
        self.skip_space();
        self.peek()
    }

    /// The place, to come back to.
    pub(crate) fn mark(&self) -> usize {
        self.at
    }

    pub(crate) fn back_to(&mut self, mark: usize) {
        self.at = mark;
    }

    pub(crate) fn text(&self, token: Token) -> String {
        token.text(self.source)
    }

    /// That a word does not belong here.
    pub(crate) fn unexpected(&mut self, token: Token, context: &str) -> Wrong {
        if token.kind == Kind::Bad
            && let Some(wrong) = self.bad.take()
        {
            return wrong;
        }
        if matches!(token.kind, Kind::Keyword(Keyword::End | Keyword::Else)) && context == "input" {
            return Wrong::at(token.span, format!("unexpected {{{{{}}}}}", self.text(token)));
        }
        Wrong::at(token.span, format!("unexpected {} in {context}", token.shown(self.source)))
    }

    pub(crate) fn close(&mut self, context: &str) -> Result<Token, Wrong> {
        let token = self.next_word();
        if token.kind == Kind::Close { Ok(token) } else { Err(self.unexpected(token, context)) }
    }
}
