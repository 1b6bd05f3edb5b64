//! Messages as JSON, by a table of their fields.

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
    Texts,
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
    /// A point in time.
    Moment,
    /// Only whether it is there.
    Present,
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

/// Writes a message as a JSON object.
pub(super) fn write_message(message: &[u8], schema: Schema, json: &mut Vec<u8>) -> Result<(), ProtobufFault> {
    json.push(b'{');
    write_fields(message, schema, json)?;
    json.push(b'}');
    Ok(())
}

fn write_fields(message: &[u8], schema: Schema, json: &mut Vec<u8>) -> Result<(), ProtobufFault> {
    let all = Fields(message);
    for field in schema {
        match field.kind {
            Kind::Texts => write_list(all, field, json, |value, json| write_text(value, field.number, json))?,
            Kind::Messages(schema) => {
                write_list(all, field, json, |value, json| write_message(value.bytes(), schema, json))?;
            }
            Kind::TextMap => write_map(all, field, json, |value, json| write_text(value, field.number, json))?,
            Kind::Amounts => write_map(all, field, json, |value, json| {
                let amount = Fields(value.bytes()).one(1)?.unwrap_or(Value::Bytes(&[]));
                write_text(amount, field.number, json)
            })?,
            _ => {
                if let Some(value) = all.one(field.number)? {
                    write_one(value, field, json)?;
                }
            }
        }
    }
    Ok(())
}

fn write_one(value: Value<'_>, field: &Field, json: &mut Vec<u8>) -> Result<(), ProtobufFault> {
    match field.kind {
        Kind::Inline(schema) => return write_fields(value.bytes(), schema, json),
        Kind::Text if value.bytes().is_empty() => return Ok(()),
        Kind::NumberIfAny | Kind::FlagIfTrue if value.number() == 0 => return Ok(()),
        _ => {}
    }
    write_name(field.name, json);
    match field.kind {
        Kind::Text => write_text(value, field.number, json)?,
        Kind::Number | Kind::NumberIfAny => write_json(&Json::Number(JsonNumber::from(value.number())), json),
        Kind::Flag | Kind::FlagIfTrue => write_json(&Json::Bool(value.number() != 0), json),
        Kind::Message(schema) => write_message(value.bytes(), schema, json)?,
        Kind::Moment => write_json(&moment(value.bytes())?, json),
        _ => json.extend_from_slice(b"{}"),
    }
    Ok(())
}

/// Writes every value of a field, in order; nothing if there is none.
fn write_list<'a>(
    all: Fields<'a>,
    field: &Field,
    json: &mut Vec<u8>,
    write: impl Fn(Value<'a>, &mut Vec<u8>) -> Result<(), ProtobufFault>,
) -> Result<(), ProtobufFault> {
    let mut is_begun = false;
    for value in all.all(field.number) {
        if is_begun {
            json.push(b',');
        } else {
            write_name(field.name, json);
            json.push(b'[');
            is_begun = true;
        }
        write(value?, json)?;
    }
    if is_begun {
        json.push(b']');
    }
    Ok(())
}

/// The same for a map, whose entries are messages of a key and a value.
fn write_map<'a>(
    all: Fields<'a>,
    field: &Field,
    json: &mut Vec<u8>,
    write: impl Fn(Value<'a>, &mut Vec<u8>) -> Result<(), ProtobufFault>,
) -> Result<(), ProtobufFault> {
    let mut is_begun = false;
    for entry in all.all(field.number) {
        let entry = Fields(entry?.bytes());
        if is_begun {
            json.push(b',');
        } else {
            write_name(field.name, json);
            json.push(b'{');
            is_begun = true;
        }
        write_text(entry.one(1)?.unwrap_or(Value::Bytes(&[])), field.number, json)?;
        json.push(b':');
        write(entry.one(2)?.unwrap_or(Value::Bytes(&[])), json)?;
    }
    if is_begun {
        json.push(b'}');
    }
    Ok(())
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
