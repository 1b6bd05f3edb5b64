//! The words of a template.

use crate::error::Span;

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text outside actions.
    Text,
    Open,
    Close,
    Space,
    Bool,
    Char,
    Complex,
    Number,
    Assign,
    Declare,
    Dot,
    Field,
    Identifier,
    Variable,
    LeftParen,
    RightParen,
    Pipe,
    RawString,
    String,
    Nil,
    Keyword(Keyword),
    /// Another printable character.
    Other,
    /// The end of the source.
    End,
    /// What is no word; the lexer says why.
    Bad,
}

/// The words with a meaning of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
}

impl Keyword {
    pub(crate) fn of(word: &str) -> Option<Keyword> {
        Some(match word {
            "block" => Keyword::Block,
            "break" => Keyword::Break,
            "continue" => Keyword::Continue,
            "define" => Keyword::Define,
            "else" => Keyword::Else,
            "end" => Keyword::End,
            "if" => Keyword::If,
            "range" => Keyword::Range,
            "template" => Keyword::Template,
            "with" => Keyword::With,
            _ => return None,
        })
    }

    /// What an error calls the pipeline behind it.
    pub(crate) fn context(self) -> &'static str {
        match self {
            Keyword::If => "if",
            Keyword::With => "with",
            Keyword::Range => "range",
            Keyword::Block => "block clause",
            Keyword::Define => "define clause",
            Keyword::Template => "template clause",
            Keyword::Break => "{{break}}",
            Keyword::Continue => "{{continue}}",
            Keyword::Else => "else",
            Keyword::End => "end",
        }
    }
}

/// A word and where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

impl Token {
    /// Its bytes in the source.
    pub(crate) fn bytes(self, source: &[u8]) -> &[u8] {
        source.get(self.span.start..self.span.end).unwrap_or_default()
    }

    /// Its text in the source.
    pub(crate) fn text(self, source: &[u8]) -> String {
        String::from_utf8_lossy(self.bytes(source)).into_owned()
    }

    /// How an error names it.
    pub(crate) fn shown(self, source: &[u8]) -> String {
        let text = self.text(source);
        match self.kind {
            Kind::End => "EOF".to_owned(),
            Kind::Keyword(_) => format!("<{text}>"),
            Kind::Dot => "<.>".to_owned(),
            Kind::Nil => "<nil>".to_owned(),
            _ => {
                let cut: String = text.chars().take(10).collect();
                let more = if cut.len() < text.len() { "..." } else { "" };
                format!("{cut:?}{more}")
            }
        }
    }
}
