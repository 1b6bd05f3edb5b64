//! What does Go's `encoding/json` write for a value?

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tenon_gotemplate::{Failure, Limits, List, Output, Type, UintKind, Value};

use super::digits::Digits;

/// From here up floats have an exponent.
const LARGE_EXPONENT: i32 = 21;
/// Below this they have one as well.
const SMALL_EXPONENT: i32 = -6;

/// `toJson`.
pub(super) fn to_json(limits: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    encode(limits, arguments, None)
}

/// `toPrettyJson`.
pub(super) fn to_pretty_json(limits: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    encode(limits, arguments, Some(2))
}

fn encode(limits: &Limits, arguments: &[Value], indent: Option<usize>) -> Result<Value, Failure> {
    let mut writer = Writer { out: Output::new(limits.output), indent, level: 0 };
    match writer.value(arguments.first().unwrap_or(&Value::Nil)) {
        Ok(()) => Ok(Value::string(writer.out.into_bytes())),
        // Existing templates rely on an empty text for what JSON cannot say.
        Err(Problem::NotJson) => Ok(Value::string("")),
        Err(Problem::Failure(failure)) => Err(failure),
    }
}

enum Problem {
    /// A value that JSON has no words for.
    NotJson,
    Failure(Failure),
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        Problem::Failure(failure)
    }
}

struct Writer {
    out: Output,
    /// How far each level is indented; without it all is one line.
    indent: Option<usize>,
    level: usize,
}

impl Writer {
    fn value(&mut self, value: &Value) -> Result<(), Problem> {
        match value {
            Value::Missing | Value::Nil => self.push("null"),
            Value::Bool(flag) => self.push(if *flag { "true" } else { "false" }),
            Value::Int(number, _) => self.push(number.to_string()),
            Value::Uint(number, _) => self.push(number.to_string()),
            Value::Float(number) if number.is_finite() => self.push(float(*number)),
            Value::Float(_) | Value::Complex(..) => Err(Problem::NotJson),
            Value::String(text) => self.string(text.as_bytes()),
            Value::List(list) => self.list(list),
            Value::Map(map) if map.is_nil() => self.push("null"),
            Value::Map(map) => {
                let entries = map.entries();
                self.object(entries.iter().map(|(key, value)| (key.as_bytes(), value)))
            }
            Value::Struct(struct_) => match struct_.type_().text {
                Some(text) => self.string(text(struct_).as_bytes()),
                None => self.object(struct_.fields().map(|(field, value)| (field.name.as_bytes(), value))),
            },
            Value::Pointer(pointer) => self.value(pointer.target().unwrap_or(&Value::Nil)),
        }
    }

    fn list(&mut self, list: &List) -> Result<(), Problem> {
        if list.is_nil() {
            return self.push("null");
        }
        if *list.item_type() == Type::Uint(UintKind::Uint8) {
            return self.push(format!("\"{}\"", STANDARD.encode(bytes_of(list))));
        }
        self.push("[")?;
        for (at, item) in list.items().iter().enumerate() {
            self.before_entry(at)?;
            self.value(item)?;
            self.level -= 1;
        }
        self.close(list.items().is_empty(), "]")
    }

    fn object<'a>(&mut self, entries: impl Iterator<Item = (&'a [u8], &'a Value)>) -> Result<(), Problem> {
        self.push("{")?;
        let mut is_empty = true;
        for (at, (key, value)) in entries.enumerate() {
            is_empty = false;
            self.before_entry(at)?;
            self.string(key)?;
            self.push(if self.indent.is_some() { ": " } else { ":" })?;
            self.value(value)?;
            self.level -= 1;
        }
        self.close(is_empty, "}")
    }

    /// Goes one level in, to the entry with that number.
    fn before_entry(&mut self, at: usize) -> Result<(), Problem> {
        if at > 0 {
            self.push(",")?;
        }
        self.level += 1;
        self.line()
    }

    fn close(&mut self, is_empty: bool, bracket: &str) -> Result<(), Problem> {
        if !is_empty {
            self.line()?;
        }
        self.push(bracket)
    }

    fn line(&mut self) -> Result<(), Problem> {
        let Some(indent) = self.indent else { return Ok(()) };
        self.push("\n")?;
        Ok(self.out.fill(b' ', indent * self.level)?)
    }

    fn string(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        let mut text = String::from("\"");
        for chunk in bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                push_escaped(&mut text, c);
            }
            for _ in chunk.invalid() {
                text.push_str("\\ufffd");
            }
        }
        text.push('"');
        self.push(text)
    }

    fn push(&mut self, text: impl AsRef<[u8]>) -> Result<(), Problem> {
        Ok(self.out.push(text)?)
    }
}

/// A character as JSON that may also stand in a page of HTML.
fn push_escaped(text: &mut String, c: char) {
    match c {
        '"' => text.push_str("\\\""),
        '\\' => text.push_str("\\\\"),
        '\u{8}' => text.push_str("\\b"),
        '\u{c}' => text.push_str("\\f"),
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        '\0'..=' ' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if c != ' ' => {
            let written = write!(text, "\\u{:04x}", u32::from(c));
            debug_assert!(written.is_ok(), "a string takes everything");
        }
        _ => text.push(c),
    }
}

fn float(number: f64) -> String {
    let digits = Digits::of(number);
    let has_exponent = number != 0.0 && !(SMALL_EXPONENT..LARGE_EXPONENT).contains(&digits.exponent);
    if has_exponent { digits.scientific(1) } else { digits.decimal() }
}

/// The bytes of a `[]uint8`.
pub(super) fn bytes_of(list: &List) -> Vec<u8> {
    let items = list.items().iter();
    items.filter_map(|item| if let Value::Uint(byte, _) = item { u8::try_from(*byte).ok() } else { None }).collect()
}
