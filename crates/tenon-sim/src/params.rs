//! Which parameters a call may carry, and what is said about the ones it may not.
//!
//! All bad fields are reported at once, as PVE does, and then nothing was executed.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;

use crate::keys;
use crate::wire::Refusal;

/// A parameter as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Raw {
    Text(String),
    /// A repeated form key or a JSON array.
    Many(Vec<String>),
    /// A JSON object.
    Nested,
}

impl Raw {
    pub(crate) fn from_json(value: &Value) -> Self {
        match value {
            // A JSON null overwrites with nothing; it does not mean "leave it out".
            Value::Null => Self::Text(String::new()),
            Value::Bool(yes) => Self::Text(u8::from(*yes).to_string()),
            Value::Number(number) => Self::Text(number.to_string()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => {
                Self::Many(items.iter().map(|i| i.as_str().map_or(i.to_string(), str::to_owned)).collect())
            }
            Value::Object(_) => Self::Nested,
        }
    }
}

/// What a declared parameter accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Int(i64, i64),
    Bool,
    Text,
    /// Text that may be given several times.
    List,
    VmId,
    Dns,
    OneOf(&'static [&'static str]),
    /// A disk size: `+1G`, `1.5T`, bytes.
    Size,
    /// A key of a drive that can be resized.
    Disk,
}

/// One declared parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) needed: bool,
}

/// A parameter that must be there.
pub(crate) const fn need(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, needed: true }
}

/// A parameter that may be there.
pub(crate) const fn may(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, needed: false }
}

/// A file that came with an upload.
#[derive(Clone, Debug)]
pub(crate) struct UploadedFile {
    pub(crate) bytes: Bytes,
}

/// A call whose parameters were checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    /// Token id, `user@realm!name`.
    pub(crate) user: String,
    pub(crate) params: BTreeMap<String, String>,
    pub(crate) file: Option<UploadedFile>,
}

impl Call {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.params.get(name).map(String::as_str)
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.text(name) == Some("1")
    }

    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        self.text(name)?.parse().ok()
    }

    pub(crate) fn vmid(&self) -> u32 {
        self.id("vmid").unwrap_or(0)
    }

    pub(crate) fn id(&self, name: &str) -> Option<u32> {
        self.text(name)?.parse().ok()
    }

    pub(crate) fn node(&self) -> &str {
        self.text("node").unwrap_or("")
    }
}

const UNKNOWN: &str = "property is not defined in schema and the schema does not allow additional properties";
const MISSING: &str = "property is missing and it is not optional";

/// Whether undeclared parameters may be VM config keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extra {
    Refused,
    ConfigKeys,
}

/// Checks all parameters against the declaration; the result holds only good ones.
pub(crate) fn check(
    fields: &[Field],
    extra: Extra,
    given: BTreeMap<String, Raw>,
) -> Result<BTreeMap<String, String>, Refusal> {
    let mut errors = BTreeMap::new();
    let mut good = BTreeMap::new();
    for field in fields.iter().filter(|f| f.needed && !given.contains_key(f.name)) {
        errors.insert(field.name.to_string(), MISSING.to_string());
    }
    for (name, raw) in given {
        let checked = match fields.iter().find(|f| f.name == name) {
            Some(field) => one_text(raw, matches!(field.kind, Kind::List)).and_then(|t| check_kind(field.kind, t)),
            None if extra == Extra::ConfigKeys && keys::is_settable(&name) => {
                one_text(raw, name == "tags").and_then(|t| keys::check(&name, &t).map(|()| t))
            }
            None => Err(UNKNOWN.to_string()),
        };
        match checked {
            Ok(text) => drop(good.insert(name, text)),
            Err(text) => drop(errors.insert(name, text)),
        }
    }
    if errors.is_empty() { Ok(good) } else { Err(Refusal::invalid(errors)) }
}

fn one_text(raw: Raw, list: bool) -> Result<String, String> {
    match raw {
        Raw::Text(text) => Ok(text),
        Raw::Many(items) if list => Ok(items.join(",")),
        Raw::Many(_) => Err("type check ('string') failed - got ARRAY".into()),
        Raw::Nested => Err("type check ('string') failed - got HASH".into()),
    }
}

fn check_kind(kind: Kind, text: String) -> Result<String, String> {
    match kind {
        Kind::Int(min, max) => keys::check_int(&text, min, max)?,
        Kind::Bool => keys::check_bool(&text)?,
        Kind::VmId => keys::check_vmid(&text)?,
        Kind::Dns => keys::check_dns(&text)?,
        Kind::OneOf(values) if !values.contains(&text.as_str()) => {
            return Err(format!("value '{text}' does not have a value in the enumeration '{}'", values.join(", ")));
        }
        Kind::Size if keys::parse_size(text.strip_prefix('+').unwrap_or(&text)).is_none() => {
            return Err("value does not match the regex pattern".into());
        }
        Kind::Disk if !keys::is_disk_key(&text) => {
            return Err(format!("value '{text}' does not have a value in the enumeration"));
        }
        Kind::Text | Kind::List | Kind::OneOf(_) | Kind::Size | Kind::Disk => {}
    }
    Ok(text)
}
