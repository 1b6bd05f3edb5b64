//! How do words become a template?
//!
//! Blocks that are open are kept on a stack of our own, so that no depth of nesting overflows the program's.

use crate::builtin;
use crate::declared::Declared;
use crate::error::{Span, Wrong};
use crate::function::Options;
use crate::lexer::{self, Breaks};
use crate::token::{Keyword, Kind, Token};
use crate::tree::{Arm, Choice, Definitions, Node, Pipe, Range};
use crate::words::Words;

/// Blocks that hold each other; dropping them recurses.
const MAX_BLOCKS: usize = 1000;

/// Reads a template: its name, its source.
pub(crate) fn parse(name: &str, source: &[u8], options: &Options) -> Result<Definitions, Wrong> {
    let has = |name: &str| options.functions.get(name).is_some();
    let breaks = Breaks { breaks: !has("break"), continues: !has("continue") };
    let words = Words::new(source, lexer::words(source, &options.delimiters, breaks));
    let mut parser = Parser {
        words,
        options,
        definitions: Definitions::new(),
        variables: Declared::of_template(),
        ranges: 0,
        levels: vec![Level::new(Open::Root)],
    };
    parser.run(name)?;
    Ok(parser.definitions)
}

pub(crate) struct Parser<'a> {
    pub(crate) words: Words<'a>,
    options: &'a Options,
    definitions: Definitions,
    /// Names that are declared here.
    pub(crate) variables: Declared,
    /// How many ranges are open around this place.
    ranges: usize,
    levels: Vec<Level>,
}

/// A block that is open, and what stands in it so far.
struct Level {
    open: Open,
    nodes: Vec<Node>,
}

impl Level {
    fn new(open: Open) -> Level {
        Level { open, nodes: Vec::new() }
    }
}

enum Open {
    Root,
    Define { name: String, outside: Outside },
    Block { name: String, argument: Pipe, span: Span, outside: Outside },
    Control(Control),
}

struct Control {
    kind: Keyword,
    /// The condition of what is being read; none behind `else`.
    pipe: Option<Pipe>,
    /// What stood before the last `else`.
    arms: Vec<Arm>,
    /// How many variables were declared before it.
    variables: usize,
}

/// What a definition does not see of the template around it.
struct Outside {
    variables: Declared,
    ranges: usize,
}

impl Parser<'_> {
    pub(crate) fn has_function(&self, name: &str) -> bool {
        self.options.functions.get(name).is_some() || builtin::find(name).is_some()
    }

    fn run(&mut self, name: &str) -> Result<(), Wrong> {
        loop {
            let token = self.words.next();
            match token.kind {
                Kind::Text => {
                    // An error names the place of a text and does not show it: it may hold a secret.
                    let place = Span::new(token.span.start, token.span.start);
                    self.push(Node::Text(token.bytes(self.words.source).to_vec(), place));
                }
                Kind::Open => self.action(token)?,
                Kind::End if self.levels.len() > 1 => return Err(Wrong::at(token.span, "unexpected EOF")),
                Kind::End => {
                    let root = self.levels.pop().map(|level| level.nodes).unwrap_or_default();
                    return self.define(name.to_owned(), root, token.span);
                }
                _ => return Err(self.words.unexpected(token, "input")),
            }
        }
    }

    fn push(&mut self, node: Node) {
        if let Some(level) = self.levels.last_mut() {
            level.nodes.push(node);
        }
    }

    fn open(&mut self, open: Open, span: Span) -> Result<(), Wrong> {
        if self.levels.len() > MAX_BLOCKS {
            return Err(Wrong::at(span, format!("blocks nest deeper than {MAX_BLOCKS} levels")));
        }
        self.levels.push(Level::new(open));
        Ok(())
    }

    fn action(&mut self, opening: Token) -> Result<(), Wrong> {
        let token = self.words.next_word();
        let Kind::Keyword(keyword) = token.kind else {
            self.words.back();
            let pipe = self.pipeline("command")?;
            self.push(Node::Action(pipe));
            return Ok(());
        };
        match keyword {
            Keyword::If => self.control(keyword, token.span),
            Keyword::With => self.control(keyword, token.span),
            Keyword::Range => self.control(keyword, token.span),
            Keyword::Define if self.levels.len() == 1 => self.begin_define(),
            Keyword::Define => Err(self.words.unexpected(token, "command")),
            Keyword::Block => self.begin_block(opening),
            Keyword::Template => self.call(opening),
            Keyword::Break | Keyword::Continue => self.leave(token, keyword),
            Keyword::Else => self.otherwise(token),
            Keyword::End => self.end(token),
        }
    }

    fn control(&mut self, kind: Keyword, span: Span) -> Result<(), Wrong> {
        let variables = self.variables.mark();
        let pipe = Some(self.pipeline(kind.context())?);
        if kind == Keyword::Range {
            self.ranges += 1;
        }
        self.open(Open::Control(Control { kind, pipe, arms: Vec::new(), variables }), span)
    }

    fn name(&mut self, context: &str) -> Result<String, Wrong> {
        let token = self.words.next_word();
        match token.kind {
            Kind::String | Kind::RawString => Ok(String::from_utf8_lossy(&self.quoted(token)?).into_owned()),
            _ => Err(self.words.unexpected(token, context)),
        }
    }

    fn outside(&mut self) -> Outside {
        let variables = std::mem::replace(&mut self.variables, Declared::of_template());
        Outside { variables, ranges: std::mem::take(&mut self.ranges) }
    }

    fn begin_define(&mut self) -> Result<(), Wrong> {
        let context = "define clause";
        let name = self.name(context)?;
        let close = self.words.close(context)?;
        let outside = self.outside();
        self.open(Open::Define { name, outside }, close.span)
    }

    fn begin_block(&mut self, opening: Token) -> Result<(), Wrong> {
        let context = "block clause";
        let name = self.name(context)?;
        let argument = self.pipeline(context)?;
        let outside = self.outside();
        self.open(Open::Block { name, argument, span: opening.span, outside }, opening.span)
    }

    fn call(&mut self, opening: Token) -> Result<(), Wrong> {
        let context = "template clause";
        self.words.skip_space();
        let at = self.words.peek().span;
        let name = self.name(context)?;
        let argument = if self.words.peek_word().kind == Kind::Close {
            self.words.next();
            None
        } else {
            Some(self.pipeline(context)?)
        };
        let span = opening.span.to(Span::new(at.end, self.words.peek().span.start)).focused_on(at);
        self.push(Node::Template { name, argument, span });
        Ok(())
    }

    fn leave(&mut self, token: Token, keyword: Keyword) -> Result<(), Wrong> {
        let (name, node) = match keyword {
            Keyword::Break => ("{{break}}", Node::Break),
            _ => ("{{continue}}", Node::Continue),
        };
        self.words.close(name)?;
        if self.ranges == 0 {
            return Err(Wrong::at(token.span, format!("{name} outside {{{{range}}}}")));
        }
        self.push(node);
        Ok(())
    }

    fn otherwise(&mut self, token: Token) -> Result<(), Wrong> {
        let next = self.words.peek_word();
        let chain = match next.kind {
            Kind::Keyword(keyword @ (Keyword::If | Keyword::With)) => Some(keyword),
            _ => {
                self.words.close("else")?;
                None
            }
        };
        let Some(Level { open, nodes }) = self.levels.last_mut() else { return Ok(()) };
        let control = match open {
            Open::Root => return Err(Wrong::at(token.span, "unexpected {{else}}")),
            Open::Define { .. } => return Err(Wrong::at(token.span, "unexpected {{else}} in define clause")),
            Open::Block { .. } => return Err(Wrong::at(token.span, "unexpected {{else}} in block clause")),
            Open::Control(control) => control,
        };
        let Some(pipe) = control.pipe.take() else {
            return Err(Wrong::at(token.span, "expected end; found {{else}}"));
        };
        control.arms.push(Arm { pipe, body: std::mem::take(nodes) });
        let kind = control.kind;
        if kind == Keyword::Range {
            self.ranges -= 1;
        }
        match chain {
            None => Ok(()),
            Some(keyword) if keyword == kind => {
                self.words.next();
                let pipe = self.pipeline(kind.context())?;
                if let Some(Level { open: Open::Control(control), .. }) = self.levels.last_mut() {
                    control.pipe = Some(pipe);
                }
                Ok(())
            }
            Some(_) => Err(self.words.unexpected(next, "input")),
        }
    }

    fn end(&mut self, token: Token) -> Result<(), Wrong> {
        self.words.close("end")?;
        if self.levels.len() == 1 {
            return Err(Wrong::at(token.span, "unexpected {{end}}"));
        }
        let Some(Level { open, nodes }) = self.levels.pop() else { return Ok(()) };
        match open {
            Open::Control(control) => {
                self.end_control(control, nodes);
                Ok(())
            }
            Open::Define { name, outside } => {
                self.restore(outside);
                self.define(name, nodes, token.span)
            }
            Open::Block { name, argument, span, outside } => {
                self.restore(outside);
                self.push(Node::Template { name: name.clone(), argument: Some(argument), span });
                self.define(name, nodes, token.span)
            }
            Open::Root => Ok(()),
        }
    }

    fn end_control(&mut self, control: Control, nodes: Vec<Node>) {
        let Control { kind, pipe, mut arms, variables } = control;
        self.variables.forget(variables);
        if kind == Keyword::Range && pipe.is_some() {
            self.ranges -= 1;
        }
        let otherwise = match pipe {
            Some(pipe) => {
                arms.push(Arm { pipe, body: nodes });
                Vec::new()
            }
            None => nodes,
        };
        if kind != Keyword::Range {
            self.push(Node::Choice(Choice { sets_dot: kind == Keyword::With, arms, otherwise }));
        } else if let Some(Arm { pipe, body }) = arms.pop() {
            self.push(Node::Range(Box::new(Range { pipe, body, otherwise })));
        }
    }

    fn restore(&mut self, outside: Outside) {
        self.variables = outside.variables;
        self.ranges = outside.ranges;
    }

    /// Of two templates with one name only one may say something.
    fn define(&mut self, name: String, nodes: Vec<Node>, span: Span) -> Result<(), Wrong> {
        let is_blank = |nodes: &[Node]| nodes.iter().all(Node::is_blank);
        match self.definitions.get(&name) {
            Some(known) if !is_blank(known) && is_blank(&nodes) => Ok(()),
            Some(known) if !is_blank(known) => {
                Err(Wrong::at(span, format!("template: multiple definition of template {name:?}")))
            }
            _ => {
                self.definitions.insert(name, nodes);
                Ok(())
            }
        }
    }
}
