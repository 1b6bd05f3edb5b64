//! What did the server say?

use anyhow::ensure;
use serde_json::Value;

/// An answer, read as JSON where it is JSON.
#[derive(Debug)]
pub(crate) struct Reply {
    /// What it answers, for messages.
    pub(crate) what: String,
    pub(crate) code: u16,
    pub(crate) body: Value,
}

impl Reply {
    /// The body of an answer that must have this code.
    pub(crate) fn expect(self, code: u16) -> anyhow::Result<Value> {
        ensure!(self.code == code, "{} was answered {} instead of {code}: {:#}", self.what, self.code, self.body);
        Ok(self.body)
    }

    /// The Status of a refusal that must have this code and reason.
    pub(crate) fn refused(self, code: u16, reason: &str) -> anyhow::Result<Value> {
        let what = self.what.clone();
        let body = self.expect(code)?;
        let told = (text(&body, "/kind"), text(&body, "/apiVersion"), text(&body, "/status"), text(&body, "/reason"));
        ensure!(told == ("Status", "v1", "Failure", reason), "{what} was refused otherwise: {body:#}");
        ensure!(body["code"] == code, "{what}: the Status names another code: {body:#}");
        Ok(body)
    }
}

/// The text at a JSON pointer; nothing there reads as empty.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a JSON pointer; nothing there reads as -1.
pub(crate) fn number(value: &Value, pointer: &str) -> i64 {
    value.pointer(pointer).and_then(Value::as_i64).unwrap_or(-1)
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub(crate) fn version(object: &Value) -> &str {
    text(object, "/metadata/resourceVersion")
}

/// A version as a number: the order of versions of one server.
pub(crate) fn order(object: &Value) -> anyhow::Result<u64> {
    Ok(version(object).parse()?)
}

pub(crate) fn generation(object: &Value) -> i64 {
    number(object, "/metadata/generation")
}

/// The names of a list's items, in its order.
pub(crate) fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().into_iter().flatten().map(|item| text(item, "/metadata/name")).collect()
}

/// The condition of a type.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|told| text(told, "/type") == kind)
}
