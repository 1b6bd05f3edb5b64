//! Which way is a value printed for a verb?

use super::spec::Spec;
use crate::{Failure, Output, Type, Value};

/// Values hold each other no deeper than this. A map that was set into itself would never end.
const MAX_DEPTH: usize = 200;

/// Prints one argument.
pub(super) struct Printer<'a> {
    pub(super) out: &'a mut Output,
    pub(super) spec: Spec,
    /// How many values hold the one that is printed.
    pub(super) depth: usize,
    /// Whether it is printed to say what is wrong with the verb: then as it is, not by its own text.
    is_reporting: bool,
}

impl<'a> Printer<'a> {
    pub(super) fn new(out: &'a mut Output, spec: Spec) -> Printer<'a> {
        Printer { out, spec, depth: 0, is_reporting: false }
    }

    /// Prints an argument of a call.
    pub(super) fn argument(&mut self, value: &Value, verb: char) -> Result<(), Failure> {
        let Some(type_) = value.type_() else {
            return if matches!(verb, 'v' | 'T') { self.pad("<nil>") } else { self.bad_verb(value, verb) };
        };
        match verb {
            'T' => self.text(type_.to_string().as_bytes()),
            'p' => self.pointer(value, verb),
            _ => self.value(value, verb),
        }
    }

    /// Prints a value that another one holds.
    pub(super) fn held(&mut self, value: &Value, verb: char) -> Result<(), Failure> {
        if self.depth >= MAX_DEPTH {
            return Err(Failure::new(format!("values nest deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        self.value(value, verb)?;
        self.depth -= 1;
        Ok(())
    }

    fn value(&mut self, value: &Value, verb: char) -> Result<(), Failure> {
        match value {
            Value::Missing | Value::Nil if self.spec.source => self.out.push("interface {}(nil)"),
            Value::Missing | Value::Nil => self.out.push("<nil>"),
            Value::Bool(bool) if matches!(verb, 't' | 'v') => self.pad(if *bool { "true" } else { "false" }),
            Value::Bool(_) => self.bad_verb(value, verb),
            Value::Int(..) | Value::Uint(..) => self.integer(value, verb),
            Value::Float(_) | Value::Complex(..) => self.floats(value, verb),
            Value::String(text) => self.string(value, text.as_bytes(), verb),
            Value::List(list) if self.depth == 0 && *list.item_type() == BYTE => self.list(list, verb),
            _ if self.method(value, verb)? => Ok(()),
            Value::List(list) => self.list(list, verb),
            Value::Map(map) => self.map(map, verb),
            Value::Struct(struct_) => self.struct_(struct_, verb),
            Value::Pointer(pointer) => match pointer.target() {
                Some(target @ (Value::List(_) | Value::Map(_) | Value::Struct(_))) if self.depth == 0 => {
                    self.out.push("&")?;
                    self.held(target, verb)
                }
                _ => self.pointer(value, verb),
            },
        }
    }

    /// Prints a value by its own text, if it has one and the verb is for texts.
    fn method(&mut self, value: &Value, verb: char) -> Result<bool, Failure> {
        if self.is_reporting {
            return Ok(false);
        }
        if verb == 'w' {
            // Only `fmt.Errorf` knows it.
            self.bad_verb(value, verb)?;
            return Ok(true);
        }
        if self.spec.source || !matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') {
            return Ok(false);
        }
        match own_text(value) {
            OwnText::Text(text) => self.string(value, text.as_bytes(), verb)?,
            OwnText::OfNil => self.out.push("<nil>")?,
            OwnText::None => return Ok(false),
        }
        Ok(true)
    }

    /// Says that the verb is not for such a value.
    pub(super) fn bad_verb(&mut self, value: &Value, verb: char) -> Result<(), Failure> {
        self.out.push(format!("%!{verb}("))?;
        match value.type_() {
            None => self.out.push("<nil>")?,
            Some(type_) => {
                self.out.push(format!("{type_}="))?;
                let depth = std::mem::take(&mut self.depth);
                self.is_reporting = true;
                self.argument(value, 'v')?;
                self.is_reporting = false;
                self.depth = depth;
            }
        }
        self.out.push(")")
    }

    /// Writes a text, filled up to the width.
    pub(super) fn pad(&mut self, text: impl AsRef<[u8]>) -> Result<(), Failure> {
        self.spec.pad(self.out, text.as_ref())
    }

    /// Fails now if so many characters could never be written, before anything is made of them.
    pub(super) fn check_room(&mut self, count: usize) -> Result<(), Failure> {
        if count > self.out.limit() { self.out.fill(b'0', count) } else { Ok(()) }
    }
}

/// The type of a byte.
pub(super) const BYTE: Type = Type::Uint(crate::UintKind::Uint8);

enum OwnText {
    None,
    /// A nil pointer to something that has a text: Go calls the method, which panics, and prints this.
    OfNil,
    Text(String),
}

fn own_text(value: &Value) -> OwnText {
    let struct_ = match value {
        Value::Struct(struct_) => struct_,
        Value::Pointer(pointer) => match (pointer.target(), value.type_()) {
            (Some(Value::Struct(struct_)), _) => struct_,
            (None, Some(Type::Pointer(Type::Struct(type_)))) if type_.text.is_some() => return OwnText::OfNil,
            _ => return OwnText::None,
        },
        _ => return OwnText::None,
    };
    struct_.type_().text.map_or(OwnText::None, |text| OwnText::Text(text(struct_)))
}
