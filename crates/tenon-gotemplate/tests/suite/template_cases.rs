//! Generates whole templates, good and broken ones.

use crate::damage::{damage, damage_bytes};
use crate::operands::{Operands, Wanted};
use crate::seeded::Seeded;
use crate::vocabulary::vocabulary;

/// Actions that hold each other.
const MOST_BLOCKS: usize = 4;

/// A template and what it is run with.
pub(crate) struct Case {
    pub(crate) source: Vec<u8>,
    pub(crate) option: &'static str,
    pub(crate) delimiters: (&'static str, &'static str),
    /// Which of the dots.
    pub(crate) data: usize,
}

struct Generator<'a> {
    seeded: &'a mut Seeded,
    tokens: Vec<String>,
    variables: Vec<String>,
    delimiters: (&'static str, &'static str),
    ranges: usize,
    is_careful: bool,
    /// Whether the dot may be another one here than at the beginning.
    moved: bool,
    /// How many templates have been defined.
    definitions: usize,
}

/// Any case.
pub(crate) fn case(seeded: &mut Seeded, dots: usize) -> Case {
    let delimiters = if seeded.once_in(12) {
        seeded.one_of(&[
            ("<<", ">>"),
            ("[[", "]]"),
            ("{%", "%}"),
            ("<", ">"),
            ("${", "}"),
            ("(", "."),
            ("--", "--"),
            ("é", "☃"),
            ("$", "|"),
        ])
    } else {
        ("{{", "}}")
    };
    let option = seeded.one_of(&[
        "missingkey=default",
        "missingkey=default",
        "missingkey=zero",
        "missingkey=error",
        "missingkey=invalid",
    ]);
    let data = if seeded.once_in(8) { seeded.below(dots) } else { 0 };
    let is_careful = !seeded.once_in(3);
    let mut generator = Generator {
        seeded,
        tokens: Vec::new(),
        variables: Vec::new(),
        delimiters,
        ranges: 0,
        is_careful,
        moved: false,
        definitions: 0,
    };
    generator.whole();
    let mut tokens = generator.tokens;
    if seeded.once_in(if is_careful { 6 } else { 2 }) {
        for _ in 0..=seeded.below(3) {
            damage(seeded, &mut tokens);
        }
    }
    let mut source = tokens.concat().into_bytes();
    if seeded.once_in(12) {
        damage_bytes(seeded, &mut source);
    }
    Case { source, option, delimiters, data }
}

impl Generator<'_> {
    fn push(&mut self, token: &str) {
        self.tokens.push(token.to_owned());
    }

    fn one(&mut self, tokens: &[&str]) {
        let token = self.seeded.one_of(tokens);
        self.push(token);
    }

    fn whole(&mut self) {
        for _ in 0..self.seeded.below(4) {
            if self.seeded.once_in(4) && !self.tokens.iter().any(|token| token.contains("\"r\"")) {
                self.recursive();
            } else if self.seeded.once_in(2) {
                self.define();
            }
        }
        self.list(0);
        if self.seeded.once_in(12) {
            self.define();
        }
    }

    fn open(&mut self) {
        self.push(self.delimiters.0);
        self.one(&["", "", "", "", "", " ", "- ", "-\n"]);
    }

    fn close(&mut self) {
        self.one(&["", "", "", "", "", " ", " -", "\n-"]);
        self.push(self.delimiters.1);
    }

    fn word(&mut self, word: &str) {
        self.open();
        self.push(word);
        self.close();
    }

    fn pipeline(&mut self, wanted: Wanted) {
        let mut operands = Operands {
            seeded: self.seeded,
            tokens: &mut self.tokens,
            variables: &self.variables,
            is_careful: self.is_careful,
            moved: self.moved,
        };
        operands.pipeline(wanted, 0);
    }

    fn list(&mut self, depth: usize) {
        for _ in 0..=self.seeded.below(if depth == 0 { 4 } else { 2 }) {
            self.node(depth);
        }
    }

    fn node(&mut self, depth: usize) {
        match self.seeded.below(22) {
            0..5 => self.one(&vocabulary("text")),
            5 => self.comment(),
            6..8 => self.declare(),
            8 => self.assign(),
            9 if self.ranges > 0 || self.seeded.once_in(20) => {
                let word = self.seeded.one_of(&["break", "continue"]);
                self.word(word);
            }
            10..12 if depth < MOST_BLOCKS => self.control("if", depth),
            12..14 if depth < MOST_BLOCKS => self.control("with", depth),
            14..17 if depth < MOST_BLOCKS => self.range(depth),
            17 if !self.is_careful || self.definitions > 0 => self.template(),
            18 if depth < MOST_BLOCKS => self.block(depth),
            _ => {
                self.open();
                self.pipeline(Wanted::Any);
                self.close();
            }
        }
    }

    fn comment(&mut self) {
        self.push(self.delimiters.0);
        let good = 4;
        let all = ["/* c */", "- /* c */", "/**/ -", "/* a\nb */", " /* c */", "/* c */ "];
        self.one(if self.is_careful { &all[..good] } else { &all });
        self.push(self.delimiters.1);
    }

    fn declare(&mut self) {
        self.open();
        let name = self.seeded.one_of(&["$x", "$y", "$v", "$é", "$_1"]);
        self.push(name);
        self.one(&[" := ", ":=", " :=", ":= "]);
        self.pipeline(Wanted::Any);
        self.close();
        self.variables.push(name.to_owned());
    }

    fn assign(&mut self) {
        let name = match self.variables.len() {
            0 if self.is_careful => return self.declare(),
            0 => self.seeded.one_of(&["$", "$x"]).to_owned(),
            count => self.variables[self.seeded.below(count)].clone(),
        };
        self.open();
        self.push(&name);
        self.equals();
        self.pipeline(Wanted::Any);
        self.close();
    }

    fn equals(&mut self) {
        let all = [" = ", " =", "=", "= "];
        self.one(if self.is_careful { &all[..2] } else { &all });
    }

    fn body(&mut self, depth: usize) {
        let outside = self.variables.len();
        let moved = std::mem::replace(&mut self.moved, true);
        self.list(depth + 1);
        self.moved = moved;
        self.variables.truncate(outside);
    }

    fn control(&mut self, keyword: &str, depth: usize) {
        let outside = self.variables.len();
        self.open();
        self.push(keyword);
        self.condition();
        self.close();
        self.body(depth);
        while self.seeded.once_in(4) {
            self.open();
            self.one(&["else ", "else  "]);
            self.push(keyword);
            self.condition();
            self.close();
            self.body(depth);
        }
        if self.seeded.once_in(2) {
            self.word("else");
            self.body(depth);
        }
        self.word("end");
        self.variables.truncate(outside);
    }

    fn condition(&mut self) {
        self.push(" ");
        if self.seeded.once_in(5) {
            self.push("$x");
            self.one(&[" := ", ":="]);
            self.pipeline(Wanted::Any);
            self.variables.push("$x".to_owned());
            return;
        }
        let wanted = self.seeded.one_of(&[Wanted::Bool, Wanted::Any, Wanted::Text]);
        self.pipeline(wanted);
    }

    fn range(&mut self, depth: usize) {
        let outside = self.variables.len();
        self.open();
        self.push("range ");
        match self.seeded.below(8) {
            0..3 => {}
            3 | 4 => self.range_variables(&["$x"]),
            5 if self.seeded.once_in(2) => {
                self.one(&["$x, ", "$x = ", "$x, $y, $v := ", "$x, 1 := ", "$x,$y = ", "$i,:="]);
            }
            _ => self.range_variables(&["$i", "$x"]),
        }
        let wanted = self.seeded.one_of(&[Wanted::List, Wanted::List, Wanted::Map, Wanted::Int, Wanted::Any]);
        self.pipeline(wanted);
        self.close();
        self.ranges += 1;
        self.body(depth);
        self.ranges -= 1;
        if self.seeded.once_in(3) {
            self.word("else");
            self.body(depth);
        }
        self.word("end");
        self.variables.truncate(outside);
    }

    fn range_variables(&mut self, names: &[&str]) {
        for (at, name) in names.iter().enumerate() {
            if at > 0 {
                self.one(&[", ", ",", " , "]);
            }
            self.push(name);
            self.variables.push((*name).to_owned());
        }
        match self.seeded.below(8) {
            0 if !self.is_careful => self.push(" = "),
            1 => self.push(":="),
            _ => self.push(" := "),
        }
    }

    fn template(&mut self) {
        self.open();
        self.push("template ");
        self.name();
        if self.is_careful {
            self.one(&[" .", " $", " .", ""]);
        } else if self.seeded.once_in(2) {
            self.push(" ");
            if self.seeded.once_in(8) {
                self.push("$v := ");
            }
            self.pipeline(Wanted::Any);
        }
        self.close();
    }

    /// A definition sees no variables of the template around it.
    fn defined(&mut self, depth: usize) {
        let (variables, ranges) = (std::mem::take(&mut self.variables), std::mem::take(&mut self.ranges));
        self.list(depth + 1);
        (self.variables, self.ranges) = (variables, ranges);
        self.word("end");
    }

    fn define(&mut self) {
        self.open();
        self.push("define ");
        self.new_name();
        self.close();
        self.defined(2);
    }

    fn block(&mut self, depth: usize) {
        self.open();
        self.push("block ");
        self.new_name();
        self.push(" ");
        self.pipeline(Wanted::Any);
        self.close();
        self.defined(depth);
    }

    /// The name of a template that is called.
    fn name(&mut self) {
        let names = vocabulary("names");
        let known = self.definitions.min(names.len());
        self.one(if self.is_careful && known > 0 { &names[..known] } else { &names });
    }

    /// The name of a template that is defined: a new one, mostly.
    fn new_name(&mut self) {
        if self.is_careful || self.seeded.once_in(2) {
            let names = vocabulary("names");
            self.push(names[self.definitions % names.len()]);
        } else {
            self.one(&vocabulary("names"));
        }
        self.definitions += 1;
    }

    /// A template that calls itself until a counter is zero.
    fn recursive(&mut self) {
        let (left, right) = self.delimiters;
        self.push(&format!("{left}define \"r\"{right}{left}if gt . 0{right}{left}.{right},"));
        self.push(&format!("{left}template \"r\" dec .{right}"));
        self.push(&format!("{left}end{right}{left}end{right}"));
        let count = self.seeded.below(30);
        self.push(&format!("{left}template \"r\" {count}{right}"));
    }
}
