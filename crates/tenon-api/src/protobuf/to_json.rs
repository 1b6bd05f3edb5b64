//! Messages as JSON, by a table of their fields.

use std::fmt::Display;
use std::io::Write as _;
use std::ops::Range;

use serde_json::Value as Json;

use super::ProtobufFault;
use super::fields::{Fields, Value};

/// The fields of a message that are read.
pub(super) type Schema = &'static Table;

/// Fields, in the order in which they are written.
pub(super) struct Table {
    pub(super) fields: &'static [Field],
    /// The bits of their numbers.
    numbers: u64,
}

/// A table of these fields. Their numbers are below 64.
pub(super) const fn schema(fields: &'static [Field]) -> Table {
    let (mut numbers, mut index) = (0, 0);
    while index < fields.len() {
        numbers |= 1 << fields[index].number;
        index += 1;
    }
    Table { fields, numbers }
}

/// The bit of a number; none if no table can have it.
fn bit(number: u32) -> u64 {
    1_u64.checked_shl(number).unwrap_or_default()
}

/// A field that is read.
#[derive(Clone, Copy)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Of a list or a map, what is written of it.
    pub(super) only: Option<fn(&[u8]) -> bool>,
}

impl Field {
    fn is_written(&self, number: u32, value: Value<'_>) -> bool {
        number == self.number && self.only.is_none_or(|is_wanted| is_wanted(value.bytes()))
    }
}

/// What a field holds. A message has every text, number and flag that is not optional in Go, also where it says nothing; JSON
/// has those only where it says so here.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    /// A text that is optional: none is not the same as an empty one.
    OptionalText,
    Texts,
    /// A text of which only is asked whether there is one.
    Mark,
    /// A number that is optional, or always in JSON.
    Number,
    NumberIfAny,
    /// A flag that is optional.
    Flag,
    FlagIfTrue,
    Message(Schema),
    Messages(Schema),
    /// A message whose fields are fields of the one it is in.
    Inline(Schema),
    TextMap,
    /// Quantities by the names of resources.
    Amounts,
}

/// Few messages have more, with all messages around them.
const USUAL_FIELDS: usize = 64;

/// JSON that is being written.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    pub(super) json: Vec<u8>,
    /// The fields of all messages that are being written, outermost first: each message is gone through once, and the room is
    /// used again for the next one.
    fields: Vec<(u32, Value<'a>)>,
}

impl<'a> Writer<'a> {
    pub(super) fn with_capacity(bytes: usize) -> Writer<'a> {
        Writer { json: Vec::with_capacity(bytes), fields: Vec::with_capacity(USUAL_FIELDS) }
    }

    /// Writes a message as a JSON object.
    pub(super) fn message(&mut self, message: &'a [u8], schema: Schema) -> Result<(), ProtobufFault> {
        self.json.push(b'{');
        self.fields_of(message, schema)?;
        self.json.push(b'}');
        Ok(())
    }

    fn fields_of(&mut self, message: &'a [u8], schema: Schema) -> Result<(), ProtobufFault> {
        let begin = self.fields.len();
        let (mut all, mut found) = (Fields(message), 0);
        while let Some((number, value)) = all.next()? {
            if schema.numbers & bit(number) != 0 {
                found |= bit(number);
                self.fields.push((number, value));
            }
        }
        let end = self.fields.len();
        for field in schema.fields.iter().filter(|field| found & bit(field.number) != 0) {
            match field.kind {
                Kind::Texts | Kind::Messages(_) => self.list(begin..end, field)?,
                Kind::TextMap | Kind::Amounts => self.map(begin..end, field)?,
                _ => {
                    // If it is there more often, the last one counts.
                    let found = self.fields[begin..end].iter().rfind(|(number, _)| *number == field.number);
                    if let Some((_, value)) = found.copied() {
                        self.one(value, field)?;
                    }
                }
            }
        }
        self.fields.truncate(begin);
        Ok(())
    }

    fn one(&mut self, value: Value<'a>, field: &Field) -> Result<(), ProtobufFault> {
        match field.kind {
            Kind::Inline(schema) => return self.fields_of(value.bytes(), schema),
            Kind::Text | Kind::Mark if value.bytes().is_empty() => return Ok(()),
            Kind::NumberIfAny | Kind::FlagIfTrue if value.number() == 0 => return Ok(()),
            _ => write_name(field.name, &mut self.json),
        }
        self.value(value, field)
    }

    /// Writes every value of a field, in order; nothing if there is none.
    fn list(&mut self, among: Range<usize>, field: &Field) -> Result<(), ProtobufFault> {
        self.each(among, field, b"[]", |writer, value| writer.value(value, field))
    }

    /// The same for a map, whose entries are messages of a key and a value.
    fn map(&mut self, among: Range<usize>, field: &Field) -> Result<(), ProtobufFault> {
        self.each(among, field, b"{}", |writer, entry| {
            let part = |number| Ok(Fields(entry.bytes()).one(number)?.unwrap_or(Value::Bytes(&[])));
            write_text(part(1)?, field.number, &mut writer.json)?;
            writer.json.push(b':');
            writer.value(part(2)?, field)
        })
    }

    fn each(
        &mut self,
        among: Range<usize>,
        field: &Field,
        [open, close]: &[u8; 2],
        write: impl Fn(&mut Writer<'a>, Value<'a>) -> Result<(), ProtobufFault>,
    ) -> Result<(), ProtobufFault> {
        let mut is_first = true;
        for index in among {
            let (number, value) = self.fields[index];
            if !field.is_written(number, value) {
                continue;
            }
            if std::mem::take(&mut is_first) {
                write_name(field.name, &mut self.json);
                self.json.push(*open);
            } else {
                self.json.push(b',');
            }
            write(self, value)?;
        }
        if !is_first {
            self.json.push(*close);
        }
        Ok(())
    }

    /// One value; of a list or a map, one of its values.
    fn value(&mut self, value: Value<'a>, field: &Field) -> Result<(), ProtobufFault> {
        let json = &mut self.json;
        match field.kind {
            Kind::Text | Kind::OptionalText | Kind::Texts | Kind::TextMap => write_text(value, field.number, json)?,
            Kind::Amounts => {
                let amount = Fields(value.bytes()).one(1)?.unwrap_or(Value::Bytes(&[]));
                write_text(amount, field.number, json)?;
            }
            Kind::Number | Kind::NumberIfAny => write_json(value.number(), json),
            Kind::Flag | Kind::FlagIfTrue => write_json(value.number() != 0, json),
            Kind::Mark => json.extend_from_slice(b"true"),
            Kind::Message(schema) | Kind::Messages(schema) | Kind::Inline(schema) => {
                self.message(value.bytes(), schema)?;
            }
        }
        Ok(())
    }
}

/// A name and a colon, after a comma unless it is the first in its object.
fn write_name(name: &str, json: &mut Vec<u8>) {
    if json.last() != Some(&b'{') {
        json.push(b',');
    }
    json.push(b'"');
    json.extend_from_slice(name.as_bytes());
    json.extend_from_slice(b"\":");
}

fn write_text(value: Value<'_>, number: u32, json: &mut Vec<u8>) -> Result<(), ProtobufFault> {
    let text = std::str::from_utf8(value.bytes()).map_err(|_| ProtobufFault::NoText(number))?;
    let is_plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        json.push(b'"');
        json.extend_from_slice(text.as_bytes());
        json.push(b'"');
    } else {
        write_json(Json::String(text.to_owned()), json);
    }
    Ok(())
}

fn write_json(value: impl Display, json: &mut Vec<u8>) {
    // Memory takes whatever is written to it.
    let _ = write!(json, "{value}");
}
