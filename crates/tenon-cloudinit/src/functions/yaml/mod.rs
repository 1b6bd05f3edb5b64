//! What does Go's `yaml.v3` write for a value?
//!
//! The bytes are the same, also where that library is odd: a block whose first line begins with a space is marked with
//! the indentation of the document even inside a list, and text beyond the basic plane is escaped. `scalar` chooses how
//! a string is written, `resolve` knows which plain strings would be read back as something else.

mod number;
pub(super) mod order;
mod resolve;
mod scalar;
mod timestamp;

use std::borrow::Cow;

use tenon_gotemplate::{Failure, Limits, Output, Struct, Type, Value};

use scalar::{Scalar, Style};

/// The longest key that is written without a question mark.
const SIMPLE_KEY_BYTES: usize = 128;

/// `value` as a document of that indentation, without its last line end.
pub(super) fn to_yaml(limits: &Limits, value: &Value, indent: usize) -> Result<Value, Failure> {
    let mut writer = Writer { out: Output::new(limits.output), indent, fresh: true };
    writer.node(value, Place { column: 0, text: indent, lead: Lead::Here })?;
    let bytes = writer.out.as_bytes();
    // Only a block that ends with a line end has one here; the library ends every document with one, which is cut.
    Ok(Value::string(if writer.fresh { bytes.strip_suffix(b"\n").unwrap_or(bytes) } else { bytes }))
}

/// Where a value goes.
#[derive(Clone, Copy)]
struct Place {
    /// The column in which the entries of a list or a map begin.
    column: usize,
    /// The column of the second and later lines of a string.
    text: usize,
    /// What comes before it.
    lead: Lead,
}

/// What divides a value from what is before it.
#[derive(Clone, Copy)]
enum Lead {
    /// Nothing: the place is reached.
    Here,
    /// A list or map begins on a line of its own, anything else after a space.
    Line,
    /// A list or map begins after that many spaces, anything else after one.
    Gap(usize),
}

struct Writer {
    out: Output,
    indent: usize,
    /// Whether the last thing written ended a line.
    fresh: bool,
}

type Entries<'a> = Vec<(Cow<'a, [u8]>, Cow<'a, Value>)>;

impl Writer {
    fn node(&mut self, value: &Value, place: Place) -> Result<(), Failure> {
        match value {
            Value::Missing | Value::Nil => self.word("null", place),
            Value::Bool(flag) => self.word(if *flag { "true" } else { "false" }, place),
            Value::Int(number, _) => self.word(&number.to_string(), place),
            Value::Uint(number, _) => self.word(&number.to_string(), place),
            Value::Float(number) => self.word(&number::float(*number), place),
            Value::Complex(..) => Err(Failure::new("cannot marshal type: complex128")),
            Value::String(text) => self.string(text.as_bytes(), place),
            Value::List(list) => self.list(list.items(), place),
            Value::Map(map) => {
                let entries = map.entries().into_iter();
                let mut entries: Entries<'_> =
                    entries.map(|(key, value)| (Cow::Owned(key.as_bytes().to_vec()), Cow::Owned(value))).collect();
                entries = order::sorted(entries);
                self.map(&entries, place)
            }
            Value::Struct(struct_) => self.fields(struct_, place),
            Value::Pointer(pointer) => self.node(pointer.target().unwrap_or(&Value::Nil), place),
        }
    }

    fn fields(&mut self, struct_: &Struct, place: Place) -> Result<(), Failure> {
        if let Some(text) = struct_.type_().text {
            return self.string(text(struct_).as_bytes(), place);
        }
        let shown = struct_.fields().filter(|(field, value)| !(field.omit_empty && is_empty(value, field.type_)));
        let entries: Entries<'_> =
            shown.map(|(field, value)| (Cow::Borrowed(field.yaml.as_bytes()), Cow::Borrowed(value))).collect();
        self.map(&entries, place)
    }

    fn list(&mut self, items: &[Value], place: Place) -> Result<(), Failure> {
        if items.is_empty() {
            return self.word("[]", place);
        }
        self.lead_block(place)?;
        let inside = place.column + 2;
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.start_line(place.column)?;
            }
            self.push("- ")?;
            self.node(item, Place { column: inside, text: inside, lead: Lead::Here })?;
        }
        Ok(())
    }

    fn map(&mut self, entries: &Entries<'_>, place: Place) -> Result<(), Failure> {
        if entries.is_empty() {
            return self.word("{}", place);
        }
        self.lead_block(place)?;
        // Entries of a list stand two columns in; what is below their keys goes back to the grid of the document.
        let inside = (place.column / self.indent + 1) * self.indent;
        for (at, (key, value)) in entries.iter().enumerate() {
            if at > 0 {
                self.start_line(place.column)?;
            }
            let key = Scalar::new(key);
            let mut place_inside = Place { column: inside, text: inside, lead: Lead::Line };
            if key.is_one_line() && key.text().len() <= SIMPLE_KEY_BYTES {
                self.scalar(&key, inside)?;
            } else {
                self.push("? ")?;
                self.scalar(&key, inside)?;
                self.start_line(place.column)?;
                place_inside.lead = Lead::Gap(inside - place.column - 1);
            }
            self.push(":")?;
            self.node(value, place_inside)?;
        }
        Ok(())
    }

    /// Something that fits on the line.
    fn word(&mut self, word: &str, place: Place) -> Result<(), Failure> {
        self.lead_word(place.lead)?;
        self.push(word)
    }

    fn string(&mut self, bytes: &[u8], place: Place) -> Result<(), Failure> {
        self.lead_word(place.lead)?;
        self.scalar(&Scalar::new(bytes), place.text)
    }

    fn scalar(&mut self, scalar: &Scalar<'_>, column: usize) -> Result<(), Failure> {
        if scalar.is_binary() {
            self.push("!!binary ")?;
        }
        match scalar.style() {
            Style::Plain => self.push(scalar.text()),
            Style::Single => {
                self.push("'")?;
                self.lines(&scalar.text().replace('\'', "''"), column)?;
                self.push("'")
            }
            Style::Double => self.push(scalar.escaped()),
            Style::Literal => {
                self.push(scalar.header(self.indent))?;
                self.start_line(0)?;
                self.lines(scalar.text(), column)
            }
        }
    }

    /// Text with its own line ends; each line but the empty ones begins in that column.
    fn lines(&mut self, text: &str, column: usize) -> Result<(), Failure> {
        for line in text.split_inclusive(scalar::is_break) {
            let ends = line.ends_with(scalar::is_break);
            if self.fresh && !line.starts_with(scalar::is_break) {
                self.out.fill(b' ', column)?;
            }
            self.push(line)?;
            self.fresh = ends;
        }
        Ok(())
    }

    fn lead_word(&mut self, lead: Lead) -> Result<(), Failure> {
        if matches!(lead, Lead::Here) { Ok(()) } else { self.push(" ") }
    }

    fn lead_block(&mut self, place: Place) -> Result<(), Failure> {
        match place.lead {
            Lead::Here => Ok(()),
            Lead::Line => self.start_line(place.column),
            Lead::Gap(spaces) => self.out.fill(b' ', spaces),
        }
    }

    fn start_line(&mut self, column: usize) -> Result<(), Failure> {
        if !self.fresh {
            self.push("\n")?;
        }
        self.out.fill(b' ', column)?;
        self.fresh = column == 0;
        Ok(())
    }

    fn push(&mut self, text: impl AsRef<[u8]>) -> Result<(), Failure> {
        self.out.push(text)?;
        self.fresh = false;
        Ok(())
    }
}

/// Whether a field of that type is left out if it has `omitempty`. What an interface holds may be anything but nothing.
fn is_empty(value: &Value, type_: Type) -> bool {
    match value {
        Value::Missing | Value::Nil => true,
        _ if type_ == Type::Any => false,
        Value::List(list) => list.items().is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Struct(struct_) => struct_.fields().all(|(field, value)| is_empty(value, field.type_)),
        Value::Float(number) => *number == 0.0,
        other => other.is_zero(),
    }
}
