//! Generates what stands inside actions: constants, fields, variables, calls and pipelines.

use crate::seeded::Seeded;
use crate::vocabulary::vocabulary;

/// How deep parentheses may nest.
const MOST_DEPTH: usize = 4;

/// What an expression is meant to give. A share of them gives something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Any,
    Int,
    Text,
    Bool,
    List,
    Map,
}

const BAD_TEXTS: &[&str] =
    &["\"\\q\"", "\"\\x4\"", "\"\\ud800\"", "\"\\'\"", "\"\\400\"", "\"open", "`open", "\"a\nb\"", "\"\\U00110000\""];
/// Writes tokens of an action; joined, they are its text.
pub(crate) struct Operands<'a> {
    pub(crate) seeded: &'a mut Seeded,
    pub(crate) tokens: &'a mut Vec<String>,
    /// Variables that can be seen.
    pub(crate) variables: &'a [String],
    /// Whether what is known to fail is left out.
    pub(crate) is_careful: bool,
    /// Whether the dot may be another one than `$`.
    pub(crate) moved: bool,
}

impl Operands<'_> {
    fn push(&mut self, token: &str) {
        self.tokens.push(token.to_owned());
    }

    fn one(&mut self, tokens: &[&str]) {
        let token = self.seeded.one_of(tokens);
        self.push(token);
    }

    /// One of a list of the vocabulary.
    fn one_of(&mut self, list: &str) {
        let token = self.seeded.one_of(&vocabulary(list));
        self.push(token);
    }

    fn space(&mut self) {
        let space = self.seeded.one_of(&[" ", " ", " ", " ", " ", " ", " ", "  ", "\t", "\n", " \r\n "]);
        self.push(space);
    }

    /// A whole pipeline.
    pub(crate) fn pipeline(&mut self, wanted: Wanted, depth: usize) {
        if self.seeded.once_in(4) {
            self.piped(wanted, depth);
        } else {
            self.command(wanted, depth);
        }
    }

    /// A value and functions behind it.
    fn piped(&mut self, wanted: Wanted, depth: usize) {
        let first = self.seeded.one_of(&[Wanted::Int, Wanted::Text, Wanted::Any, Wanted::List]);
        self.command(first, depth);
        for _ in 0..=self.seeded.below(if self.is_careful { 1 } else { 2 }) {
            self.bar();
            match first {
                Wanted::Int => self.one_of("behind_int"),
                Wanted::Text => self.one_of("behind_text"),
                Wanted::List => self.one_of("behind_list"),
                _ => self.one_of("behind_any"),
            }
        }
        if !self.is_careful && self.seeded.once_in(8) {
            self.bar();
            self.command(wanted, depth + 1);
        }
    }

    fn bar(&mut self) {
        self.one(&[" | ", " | ", " | ", "|", " |", "| "]);
    }

    /// A call or a single value.
    fn command(&mut self, wanted: Wanted, depth: usize) {
        if depth >= MOST_DEPTH || self.seeded.once_in(3) {
            return self.operand(wanted, depth);
        }
        match self.actual(wanted) {
            Wanted::Int => self.int_call(depth),
            Wanted::Text => self.text_call(depth),
            Wanted::Bool => self.bool_call(depth),
            Wanted::List => self.list_call(depth),
            Wanted::Map => self.map_call(depth),
            Wanted::Any => self.any_call(depth),
        }
    }

    /// Mostly what is wanted.
    fn actual(&mut self, wanted: Wanted) -> Wanted {
        let all = [Wanted::Any, Wanted::Int, Wanted::Text, Wanted::Bool, Wanted::List, Wanted::Map];
        let any = self.seeded.one_of(&all);
        if wanted == Wanted::Any || (!self.is_careful && self.seeded.once_in(20)) { any } else { wanted }
    }

    /// One word.
    pub(crate) fn operand(&mut self, wanted: Wanted, depth: usize) {
        let wanted = self.actual(wanted);
        match self.seeded.below(20) {
            0 | 1 if depth < MOST_DEPTH => self.parenthesized(wanted, depth),
            2 | 3 if !self.variables.is_empty() && (!self.is_careful || wanted == Wanted::Any) => self.variable(),
            4 if !self.is_careful || wanted == Wanted::Any => {
                self.one_of("lone_words");
            }
            5 if !self.is_careful => self.one_of("numbers"),
            _ => self.plain(wanted),
        }
    }

    fn plain(&mut self, wanted: Wanted) {
        let is_field = self.seeded.once_in(2);
        match wanted {
            Wanted::Int if is_field => self.field("int_fields"),
            Wanted::Int if self.is_careful && self.seeded.once_in(2) => self.one(&["0", "1", "2"]),
            Wanted::Int => self.one_of("ints"),
            Wanted::Text if is_field => self.field("text_fields"),
            Wanted::Text if !self.is_careful && self.seeded.once_in(60) => self.one(BAD_TEXTS),
            Wanted::Text => self.one_of("texts"),
            Wanted::Bool if is_field => self.field("bool_fields"),
            Wanted::Bool => self.one(&["true", "false"]),
            Wanted::List => self.field("list_fields"),
            Wanted::Map => self.field("map_fields"),
            Wanted::Any if self.is_careful => self.field("good_fields"),
            Wanted::Any => self.field("other_fields"),
        }
    }

    /// A path of fields; one with an at sign begins with a function.
    fn field(&mut self, list: &str) {
        let root = if self.is_careful && self.moved { "$." } else { self.seeded.one_of(&[".", ".", ".", "$."]) };
        let path = self.seeded.one_of(&vocabulary(list));
        // Fields are tokens of their own, so that one can be lost.
        for (at, name) in path.split('.').enumerate() {
            self.push(&match name.strip_prefix('@') {
                Some(function) => function.to_owned(),
                None if at == 0 => format!("{root}{name}"),
                None => format!(".{name}"),
            });
        }
    }

    fn variable(&mut self) {
        let name = self.variables[self.seeded.below(self.variables.len())].clone();
        self.push(&name);
        if self.seeded.once_in(if self.is_careful { 40 } else { 6 }) {
            self.one(&[".a", ".x", ".Name", ".Age", ".name", ".x.y", ".k"]);
        }
    }

    fn parenthesized(&mut self, wanted: Wanted, depth: usize) {
        self.one(&["(", "(", "(", "( "]);
        if self.seeded.once_in(25) {
            self.one(&["$v := ", "$x = ", "$v:="]);
        }
        self.pipeline(wanted, depth + 1);
        self.one(&[")", ")", ")", " )"]);
        if self.seeded.once_in(if self.is_careful { 40 } else { 8 }) {
            self.one(&[".a", ".x", ".Name", ".name", ".Inner.Age", ".k"]);
        }
    }

    fn arguments(&mut self, wanted: &[Wanted], depth: usize) {
        for wanted in wanted {
            self.space();
            self.operand(*wanted, depth + 1);
        }
        if !self.is_careful && self.seeded.once_in(40) {
            self.space();
            self.operand(Wanted::Any, depth + 1);
        }
    }

    fn call(&mut self, name: &str, wanted: &[Wanted], depth: usize) {
        self.push(name);
        self.arguments(wanted, depth);
    }

    fn several(&mut self, name: &str, wanted: Wanted, depth: usize) {
        let count = self.seeded.below(4);
        self.call(name, &[wanted; 4][..count], depth);
    }

    fn int_call(&mut self, depth: usize) {
        use Wanted::{Any, Int, List, Map, Text};
        match self.seeded.below(12) {
            0 | 1 => self.several("add", Int, depth),
            2 => self.call("dec", &[Int], depth),
            3 => self.call("len", &[List], depth),
            4 => self.call("len", &[Text], depth),
            5 => self.call("index", &[List, Int], depth),
            6 => self.call("index", &[Text, Int], depth),
            7 => self.one_of("int_calls"),
            8 => self.call("labels", &[Map], depth),
            9 => self.call("count", &[List], depth),
            10 => {
                let name = self.seeded.one_of(&["uint32", "int64", "int32", "uint8", "float", "complex", "dec"]);
                let wanted = self.seeded.one_of(&[Int, Any]);
                self.call(name, &[wanted], depth);
            }
            _ => self.call("len", &[Map], depth),
        }
    }

    fn text_call(&mut self, depth: usize) {
        use Wanted::{Any, Int, List, Map, Text};
        match self.seeded.below(14) {
            0 => self.call("upper", &[Text], depth),
            1 | 2 => {
                self.push("printf ");
                self.one_of("formats");
                let count = self.seeded.below(4);
                self.arguments(&[Any; 4][..count], depth);
            }
            3 => self.several("print", Any, depth),
            4 => self.several("println", Any, depth),
            5 => self.several("html", Any, depth),
            6 => self.several("js", Any, depth),
            7 => self.several("urlquery", Any, depth),
            8 => self.several("quote", Any, depth),
            9 => self.call("nindent", &[Int, Text], depth),
            10 => self.call("join", &[Text, List], depth),
            11 => self.call("toJson", &[Any], depth),
            12 => self.call("pick", &[Map], depth),
            _ => {
                let count = self.seeded.below(3);
                self.call("slice", &[Text, Int, Int][..=count], depth);
            }
        }
    }

    fn bool_call(&mut self, depth: usize) {
        use Wanted::{Any, Bool, Int, Map, Text};
        let same = self.seeded.one_of(&[Int, Int, Text, Text, Any, Bool]);
        match self.seeded.below(8) {
            0 => self.call("not", &[Any], depth),
            1 => self.several("and", Any, depth),
            2 => self.several("or", Any, depth),
            3 => self.call("hasKey", &[Map, Text], depth),
            4 => self.call("flip", &[Bool], depth),
            5 => {
                let count = self.seeded.below(4);
                self.call("eq", &[same; 4][..count], depth);
            }
            _ => {
                let name = self.seeded.one_of(&["eq", "ne", "lt", "le", "gt", "ge"]);
                self.call(name, &[same, same], depth);
            }
        }
    }

    fn list_call(&mut self, depth: usize) {
        use Wanted::{Any, Int, List, Text};
        match self.seeded.below(6) {
            0 | 1 => self.several("list", Any, depth),
            2 => self.several("strings", Text, depth),
            3 => self.call("index", &[List, Int], depth),
            4 => self.call("tail", &[Text, Int, Int], depth),
            _ => {
                let count = self.seeded.below(5);
                self.call("slice", &[List, Int, Int, Int, Int][..=count], depth);
            }
        }
    }

    fn map_call(&mut self, depth: usize) {
        use Wanted::{Any, Map, Text};
        match self.seeded.below(4) {
            0 => self.call("dict", &[Text, Any], depth),
            1 => self.call("dict", &[Text, Any, Any, Any], depth),
            2 => self.call("set", &[Map, Text, Any], depth),
            _ => self.call("index", &[Map, Text], depth),
        }
    }

    fn any_call(&mut self, depth: usize) {
        use Wanted::{Any, Bool, List, Map, Text};
        match self.seeded.below(10) {
            0 => self.call("default", &[Any, Any], depth),
            1 => self.call("ternary", &[Any, Any, Bool], depth),
            2 => self.call("get", &[Map, Text], depth),
            3 => self.call("index", &[Map, Text], depth),
            4 => self.several("call", Any, depth),
            5 => self.one_of("any_calls"),
            6 => self.call("older", &[Any], depth),
            7 => self.several("index", List, depth),
            8 => self.call("sameList", &[List], depth),
            _ => self.operand(Any, depth),
        }
    }
}
