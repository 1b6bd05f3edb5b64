//! How does an object written as protobuf become the JSON everything here works on?
//!
//! `kubectl create deployment …` and its like, and most clients written in Go, send built-in kinds this way. Answers
//! stay JSON, which every such client reads. Fields nobody has listed are passed over, as a real server does.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// What stands before every message.
const MAGIC: &[u8] = b"k8s\0";
const TABLE: &str = include_str!("protobuf_messages.txt");

type Fields = BTreeMap<u64, Field>;

static MESSAGES: LazyLock<BTreeMap<&'static str, Fields>> = LazyLock::new(|| TABLE.lines().filter_map(line).collect());

/// Why bytes are no object.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("the bytes end in the middle of a field")]
    CutShort,
    #[error("a text is not UTF-8")]
    NotText,
    #[error("a field is encoded in a way its message does not have")]
    WrongWire,
    #[error("no message of {0} is known")]
    UnknownKind(String),
}

#[derive(Clone, Copy, Debug)]
struct Field {
    /// Empty where the fields of the message stand in its parent.
    name: &'static str,
    shape: Shape,
    form: &'static str,
    /// Whether a client that writes JSON would leave it out when it is empty.
    is_dropped_empty: bool,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    One,
    List,
    Map,
}

fn line(line: &'static str) -> Option<(&'static str, Fields)> {
    let mut words = line.split(' ');
    let name = words.next().filter(|name| !name.starts_with('#'))?;
    Some((name, words.filter_map(field).collect()))
}

fn field(word: &'static str) -> Option<(u64, Field)> {
    let (number, rest) = word.split_once(':')?;
    let (name, form) = rest.split_once(':')?;
    let (form, is_dropped_empty) = form.strip_suffix('?').map_or((form, false), |form| (form, true));
    let (shape, form) = match (form.strip_prefix("[]"), form.strip_prefix("{}")) {
        (Some(form), _) => (Shape::List, form),
        (_, Some(form)) => (Shape::Map, form),
        _ => (Shape::One, form),
    };
    Some((number.parse().ok()?, Field { name, shape, form, is_dropped_empty }))
}

/// The object in an envelope, with its kind and version.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, Unreadable> {
    let mut envelope = Wire(bytes.strip_prefix(MAGIC).ok_or(Unreadable::WrongWire)?);
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    while let Some((number, part)) = envelope.next()? {
        match number {
            1 => {
                let mut named = Wire(part.bytes()?);
                while let Some((number, part)) = named.next()? {
                    match number {
                        1 => api_version = part.text()?,
                        2 => kind = part.text()?,
                        _ => {}
                    }
                }
            }
            2 => raw = part.bytes()?,
            _ => {}
        }
    }
    let name = message_name(&api_version, &kind);
    let fields = MESSAGES.get(name.as_str()).ok_or_else(|| Unreadable::UnknownKind(format!("{api_version} {kind}")))?;
    let mut object = Map::from_iter([("apiVersion".to_owned(), api_version.into()), ("kind".to_owned(), kind.into())]);
    fill(&mut object, fields, raw)?;
    Ok(Value::Object(object))
}

/// `Deployment` of `apps/v1` is `apps.Deployment`; options may come under any group.
fn message_name(api_version: &str, kind: &str) -> String {
    let package = match api_version.split_once('/') {
        _ if kind == "DeleteOptions" => "meta",
        Some((group, "v1")) => group.split('.').next().unwrap_or(group),
        _ if api_version == "v1" => "core",
        _ => "",
    };
    format!("{package}.{kind}")
}

fn fill(object: &mut Map<String, Value>, fields: &Fields, bytes: &[u8]) -> Result<(), Unreadable> {
    let mut wire = Wire(bytes);
    while let Some((number, part)) = wire.next()? {
        let Some(field) = fields.get(&number) else { continue };
        match field.shape {
            Shape::One if field.name.is_empty() => {
                if let Some(inner) = MESSAGES.get(field.form) {
                    fill(object, inner, part.bytes()?)?;
                }
            }
            Shape::One => {
                let value = value(field.form, part)?;
                if !(value.is_null() || field.is_dropped_empty && is_zero(&value)) {
                    object.insert(field.name.to_owned(), value);
                }
            }
            Shape::List => {
                let list = object.entry(field.name).or_insert_with(|| json!([]));
                if let Value::Array(list) = list {
                    list.push(value(field.form, part)?);
                }
            }
            Shape::Map => {
                let (key, value) = entry(field.form, part.bytes()?)?;
                let map = object.entry(field.name).or_insert_with(|| json!({}));
                if let Value::Object(map) = map {
                    map.insert(key, value);
                }
            }
        }
    }
    Ok(())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Bool(is_so) => !is_so,
        Value::Number(number) => number.as_i64() == Some(0),
        _ => false,
    }
}

fn entry(form: &'static str, bytes: &[u8]) -> Result<(String, Value), Unreadable> {
    let (mut key, mut found) = (String::new(), None);
    let mut wire = Wire(bytes);
    while let Some((number, part)) = wire.next()? {
        match number {
            1 => key = part.text()?,
            2 => found = Some(value(form, part)?),
            _ => {}
        }
    }
    // An empty value may be left out on the wire.
    let value = found.map_or_else(|| value(form, Part::Bytes(&[])), Ok)?;
    Ok((key, value))
}

fn value(form: &'static str, part: Part<'_>) -> Result<Value, Unreadable> {
    Ok(match form {
        "text" => part.text()?.into(),
        "bytes" => STANDARD.encode(part.bytes()?).into(),
        "bool" => (part.number()? != 0).into(),
        "int" => part.number()?.into(),
        "quantity" => numbered(part)?.text(1)?.into(),
        "intstr" => {
            let parts = numbered(part)?;
            if parts.number(1)? == 0 { parts.number(2)?.into() } else { parts.text(3)?.into() }
        }
        "time" | "microtime" => moment(form, &numbered(part)?)?,
        "fields" | "raw" => serde_json::from_slice(part.bytes()?).unwrap_or(Value::Null),
        "list:text" => {
            let mut list = Vec::new();
            let mut wire = Wire(part.bytes()?);
            while let Some((_, part)) = wire.next()? {
                list.push(part.text()?);
            }
            list.into()
        }
        message => {
            let mut object = Map::new();
            if let Some(fields) = MESSAGES.get(message) {
                fill(&mut object, fields, part.bytes()?)?;
            }
            Value::Object(object)
        }
    })
}

/// No time at all is written as nothing, and reads as null.
fn moment(form: &str, parts: &Parts<'_>) -> Result<Value, Unreadable> {
    let (seconds, nanos) = (parts.number(1)?, parts.number(2)?);
    if parts.0.is_empty() {
        return Ok(Value::Null);
    }
    let nanos = i32::try_from(nanos).map_err(|_| Unreadable::WrongWire)?;
    let time = Timestamp::new(seconds, nanos).map_err(|_| Unreadable::WrongWire)?;
    let text = if form == "time" { format!("{time:.0}") } else { format!("{time:.6}") };
    Ok(text.into())
}

/// The last part under each number of a small message.
struct Parts<'a>(BTreeMap<u64, Part<'a>>);

fn numbered(part: Part<'_>) -> Result<Parts<'_>, Unreadable> {
    let mut parts = BTreeMap::new();
    let mut wire = Wire(part.bytes()?);
    while let Some((number, part)) = wire.next()? {
        parts.insert(number, part);
    }
    Ok(Parts(parts))
}

impl Parts<'_> {
    fn number(&self, number: u64) -> Result<i64, Unreadable> {
        self.0.get(&number).map_or(Ok(0), |part| part.number())
    }

    fn text(&self, number: u64) -> Result<String, Unreadable> {
        self.0.get(&number).map_or_else(|| Ok(String::new()), |part| part.text())
    }
}

/// What a field holds before anyone knows its form.
#[derive(Clone, Copy, Debug)]
enum Part<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Fixed widths, which no field here has.
    Other,
}

impl<'a> Part<'a> {
    fn bytes(self) -> Result<&'a [u8], Unreadable> {
        if let Part::Bytes(bytes) = self { Ok(bytes) } else { Err(Unreadable::WrongWire) }
    }

    fn text(self) -> Result<String, Unreadable> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| Unreadable::NotText)
    }

    fn number(self) -> Result<i64, Unreadable> {
        // Negative numbers are written as their two's complement.
        if let Part::Number(number) = self { Ok(number.cast_signed()) } else { Err(Unreadable::WrongWire) }
    }
}

/// Bytes yet to be read.
struct Wire<'a>(&'a [u8]);

impl<'a> Wire<'a> {
    fn next(&mut self) -> Result<Option<(u64, Part<'a>)>, Unreadable> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let part = match tag & 7 {
            0 => Part::Number(self.varint()?),
            1 => self.take(8).map(|_| Part::Other)?,
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Unreadable::CutShort)?;
                Part::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Part::Other)?,
            _ => return Err(Unreadable::WrongWire),
        };
        Ok(Some((tag >> 3, part)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Unreadable> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Unreadable::CutShort)?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Unreadable> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = *self.take(1)? else { return Err(Unreadable::CutShort) };
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Unreadable::WrongWire)
    }
}
