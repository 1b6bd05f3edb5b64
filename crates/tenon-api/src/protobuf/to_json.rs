//! Messages as JSON, by a table of their fields.

use std::ops::Range;

use serde_json::{Number as JsonNumber, Value as Json};
use tenon_model::Timestamp;

use super::ProtobufFault;
use super::fields::{Fields, Value};

/// The fields of a message that are read.
pub(super) type Schema = &'static [Field];

/// A field that is read.
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

/// What a field holds. A message has every text, number and flag that is not optional in Go, also where it says nothing; JSON
/// has those only where it says so here.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    /// A text that is optional: none is not the same as an empty one.
    OptionalText,
    Texts,
    /// A number that is optional, or always in JSON.
    Number,
    NumberIfAny,
    /// A flag that is optional.
    Flag,
    FlagIfTrue,
    Message(Schema),
    Messages(Schema),
    /// The objects of a list: JSON has the field also where there is none.
    Objects(Schema),
    /// A message whose fields are fields of the one it is in.
    Inline(Schema),
    TextMap,
    /// Quantities by the names of resources.
    Amounts,
    /// A point in time.
    Moment,
}

/// What is inside of the message around every object, and of which kind that is.
pub(super) fn unwrapped(wrapped: &[u8]) -> Result<(&[u8], &[u8]), ProtobufFault> {
    let types = bytes_of(wrapped, 1)?;
    Ok((bytes_of(types, 2)?, bytes_of(wrapped, 2)?))
}

/// A message without them was cut off: an empty list is not one that is missing.
fn bytes_of(message: &[u8], number: u32) -> Result<&[u8], ProtobufFault> {
    Fields(message).one(number)?.map(Value::bytes).ok_or(ProtobufFault::TooShort)
}

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
        Writer { json: Vec::with_capacity(bytes), fields: Vec::new() }
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
        let mut all = Fields(message);
        while let Some(field) = all.next()? {
            self.fields.push(field);
        }
        let end = self.fields.len();
        for field in schema {
            match field.kind {
                Kind::Texts | Kind::Messages(_) | Kind::Objects(_) => self.list(begin..end, field)?,
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
            Kind::Text if value.bytes().is_empty() => return Ok(()),
            Kind::NumberIfAny | Kind::FlagIfTrue if value.number() == 0 => return Ok(()),
            _ => write_name(field.name, &mut self.json),
        }
        self.value(value, field)
    }

    /// Writes every value of a field, in order; nothing if there is none, unless JSON has the field always.
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
        let is_of_field = |(number, _): &(u32, Value<'a>)| *number == field.number;
        let is_always = matches!(field.kind, Kind::Objects(_));
        if !is_always && !self.fields[among.clone()].iter().any(is_of_field) {
            return Ok(());
        }
        write_name(field.name, &mut self.json);
        self.json.push(*open);
        let mut is_first = true;
        for index in among {
            let (number, value) = self.fields[index];
            if number != field.number {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                self.json.push(b',');
            }
            write(self, value)?;
        }
        self.json.push(*close);
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
            Kind::Number | Kind::NumberIfAny => write_json(&Json::Number(JsonNumber::from(value.number())), json),
            Kind::Flag | Kind::FlagIfTrue => write_json(&Json::Bool(value.number() != 0), json),
            Kind::Moment => write_json(&moment(value.bytes())?, json),
            Kind::Message(schema) | Kind::Messages(schema) | Kind::Objects(schema) | Kind::Inline(schema) => {
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
        write_json(&Json::String(text.to_owned()), json);
    }
    Ok(())
}

fn write_json(value: &Json, json: &mut Vec<u8>) {
    json.extend_from_slice(value.to_string().as_bytes());
}

/// Seconds and nanoseconds since 1970, of which JSON has only the seconds. Zero is no time at all.
fn moment(message: &[u8]) -> Result<Json, ProtobufFault> {
    let part = |number: u32| Ok(Fields(message).one(number)?.map_or(0, Value::number));
    let (seconds, nanos) = (part(1)?, part(2)?);
    let text = || Timestamp::from_nanos(i128::from(seconds) * 1_000_000_000).to_string();
    Ok(if seconds == 0 && nanos == 0 { Json::Null } else { Json::String(text()) })
}
