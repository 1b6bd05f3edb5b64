//! What a call carries: parameters as they came in, and the call once they were checked.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;

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

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Many(_) | Self::Nested => "",
        }
    }
}

/// A file that came with an upload.
#[derive(Clone, Debug)]
pub(crate) struct UploadedFile {
    pub(crate) bytes: Bytes,
}

/// A call whose parameters were checked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    /// `user@realm`, or `user@realm!name` when a token calls.
    pub(crate) user: String,
    pub(crate) params: BTreeMap<String, String>,
    pub(crate) file: Option<UploadedFile>,
}

impl Call {
    /// Only root itself is root: a token of root is not.
    pub(crate) fn is_root(&self) -> bool {
        self.user == "root@pam"
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.params.get(name).map(String::as_str)
    }

    /// The parameter, or nothing at all.
    pub(crate) fn word(&self, name: &str) -> &str {
        self.text(name).unwrap_or("")
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
        self.word("node")
    }
}
