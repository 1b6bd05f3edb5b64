//! How is an object written so that two that mean the same are the same bytes?
//!
//! What a hash is made of is its object's JSON in this form, so that neither the order of lists, nor the spelling of an
//! amount, nor a default that was written out changes it:
//!
//! | JSON | form |
//! |---|---|
//! | `null`, `""`, `[]`, `{}`, a field's default | nothing, as if it were not there |
//! | a text | `t`, its length in bytes, `:`, itself |
//! | a number; a flag | `n` and `b` with its text, likewise |
//! | a duration; an amount | `d` with its nanoseconds, `q` with its value, likewise; one that cannot be read is a text |
//! | a list | `l`, the number of its different elements, `:`, their forms in the order of their bytes |
//! | an object | `o`, the number of its fields, `:`, name (as a text) and form of each, by name |
//!
//! `false` and `0` are no silence: `failSwapOn: false` is a demand. Where they are the default, the field's rule says so.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tenon_model::{GoDuration, Quantity, QuantityFormat};

/// What is hashed of a kind, and how its fields are read. Fields are named by their path, `.` between names; an element of
/// a list has the path of its list. A field no rule speaks of counts as it stands.
pub(crate) struct Rules {
    /// Begins what is hashed, so that objects of two kinds never share a hash.
    pub(crate) name: &'static str,
    /// Fields that count.
    pub(crate) pick: Pick,
    /// Durations as Go writes them.
    pub(crate) durations: &'static [&'static str],
    /// Amounts as Kubernetes writes them.
    pub(crate) amounts: &'static [&'static str],
    /// Maps whose keys people choose: an empty value is a value.
    pub(crate) maps: &'static [&'static str],
    /// Objects that say something by being there, even empty.
    pub(crate) spoken: &'static [&'static str],
    /// What the schema fills in, as JSON. A field of ours that comes later brings its default here, and so changes no hash
    /// of an object that does not use it.
    pub(crate) defaults: &'static [(&'static str, &'static str)],
}

/// Which fields count.
pub(crate) enum Pick {
    /// All but these.
    AllBut(&'static [&'static str]),
    /// Of the first level just these.
    Only(&'static [&'static str]),
}

impl Rules {
    /// The hash of an object: the first eight bytes of a SHA-256, the highest first, as a decimal number.
    pub(crate) fn hash(&self, object: &Value) -> String {
        let mut digest = Sha256::new();
        digest.update(self.name.as_bytes());
        digest.update(b"\n");
        digest.update(self.form(object));
        let bytes = digest.finalize();
        let number = bytes.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        number.to_string()
    }

    /// The form of a whole object.
    pub(crate) fn form(&self, object: &Value) -> Vec<u8> {
        self.value(object, "").unwrap_or_default()
    }

    fn value(&self, value: &Value, path: &str) -> Option<Vec<u8>> {
        let has = |paths: &[&str]| paths.contains(&path);
        match value {
            Value::Null => None,
            Value::Bool(flag) => Some(told(b'b', &flag.to_string())),
            Value::Number(number) if has(self.amounts) => Some(amount(&number.to_string())),
            Value::Number(number) => Some(told(b'n', &number.to_string())),
            Value::String(text) if text.is_empty() => None,
            Value::String(text) if has(self.amounts) => Some(amount(text)),
            Value::String(text) if has(self.durations) => Some(duration(text)),
            Value::String(text) => Some(told(b't', text)),
            Value::Array(elements) => self.list(elements, path),
            Value::Object(fields) if has(self.maps) => chosen(fields),
            Value::Object(fields) => self.fields(fields, path),
        }
    }

    /// A set: what is there twice is there once.
    fn list(&self, elements: &[Value], path: &str) -> Option<Vec<u8>> {
        let forms: BTreeSet<Vec<u8>> =
            elements.iter().map(|element| self.value(element, path).unwrap_or_else(nothing)).collect();
        (!forms.is_empty()).then(|| counted(b'l', forms.len(), forms))
    }

    fn fields(&self, fields: &Map<String, Value>, path: &str) -> Option<Vec<u8>> {
        let mut forms = BTreeMap::new();
        for (name, value) in fields {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            if let Some(form) = self.field(value, &path) {
                forms.insert(name, form);
            }
        }
        (!forms.is_empty()).then(|| {
            let count = forms.len();
            counted(b'o', count, forms.into_iter().flat_map(|(name, form)| [told(b't', name), form]))
        })
    }

    fn field(&self, value: &Value, path: &str) -> Option<Vec<u8>> {
        let counts = match self.pick {
            Pick::AllBut(ignored) => !ignored.contains(&path),
            Pick::Only(picked) => path.contains('.') || picked.contains(&path),
        };
        if !counts {
            return None;
        }
        let default = self.defaults.iter().find(|(of, _)| *of == path);
        let default = default.map(|(_, json)| serde_json::from_str::<Value>(json).unwrap_or_default());
        let form = self.value(value, path);
        // An empty object in place of one the schema would have filled is not the filled one.
        let speaks = value.is_object() && (default.is_some() || self.spoken.contains(&path));
        match form {
            None => speaks.then(nothing),
            Some(form) if default.is_some_and(|default| self.value(&default, path).as_ref() == Some(&form)) => None,
            some => some,
        }
    }
}

/// A map whose keys people chose.
fn chosen(fields: &Map<String, Value>) -> Option<Vec<u8>> {
    let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let entries = sorted.into_iter().flat_map(|(key, value)| [told(b't', key), told(b't', &text(value))]);
    (!fields.is_empty()).then(|| counted(b'o', fields.len(), entries))
}

/// An object or element without content.
fn nothing() -> Vec<u8> {
    counted(b'o', 0, [])
}

fn told(letter: u8, text: &str) -> Vec<u8> {
    let mut form = vec![letter];
    form.extend(format!("{}:{text}", text.len()).into_bytes());
    form
}

fn counted(letter: u8, count: usize, parts: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut form = vec![letter];
    form.extend(format!("{count}:").into_bytes());
    parts.into_iter().for_each(|part| form.extend(part));
    form
}

/// By value: `1500m` and `1.5` are the same, `30G` and `30Gi` are not.
fn amount(text: &str) -> Vec<u8> {
    let value = |amount: Quantity| told(b'q', &amount.with_format(QuantityFormat::DecimalSi).to_string());
    text.parse::<Quantity>().map_or_else(|_| told(b't', text), value)
}

/// By length: `60m` and `1h` are the same.
fn duration(text: &str) -> Vec<u8> {
    text.parse::<GoDuration>().map_or_else(|_| told(b't', text), |length| told(b'd', &length.as_nanos().to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RULES: Rules = Rules {
        name: "test",
        pick: Pick::AllBut(&["ignored", "deep.ignored"]),
        durations: &["after"],
        amounts: &["size"],
        maps: &["labels"],
        spoken: &["tpm"],
        defaults: &[("mode", "\"Auto\""), ("boot", r#"{"size":"30G"}"#), ("after", "\"720h\""), ("on", "false")],
    };

    fn form(value: &Value) -> String {
        String::from_utf8(RULES.form(value)).unwrap()
    }

    #[test]
    fn the_form_is_what_the_table_says() {
        let value = json!({
            "b": [3, true, "x", "x"], "a": { "deep": "y" }, "size": "1500m", "after": "60m", "ignored": 1,
        });
        assert_eq!(form(&value), "o4:t1:ao1:t4:deept1:yt5:afterd13:3600000000000t1:bl3:b4:truen1:3t1:xt4:sizeq5:1500m");
    }

    #[test]
    fn what_says_nothing_is_not_there() {
        let silent = json!({
            "none": null, "text": "", "list": [], "object": { "inner": { "list": [] } }, "labels": {},
            "ignored": "x", "deep": { "ignored": 7 }, "mode": "Auto", "boot": { "size": "30G" }, "after": "43200m",
            "on": false, "tpm": null,
        });
        assert_eq!(form(&silent), "");
        assert_eq!(RULES.hash(&silent), RULES.hash(&json!({})));
        assert_eq!(RULES.hash(&silent), RULES.hash(&Value::Null));
    }

    #[test]
    fn what_says_something_by_being_there_is_there() {
        for value in [
            json!({ "tpm": {} }),
            json!({ "boot": {} }),
            json!({ "boot": { "size": "30Gi" } }),
            json!({ "flag": false }),
            json!({ "number": 0 }),
            json!({ "labels": { "a": "" } }),
            json!({ "list": [""] }),
            json!({ "after": "0s" }),
            json!({ "mode": "Manual" }),
        ] {
            assert_ne!(form(&value), "", "{value}");
        }
    }

    #[test]
    fn amounts_and_durations_count_by_value_and_what_is_neither_by_its_text() {
        let same = |a: Value, b: Value| assert_eq!(form(&a), form(&b), "{a} {b}");
        same(json!({ "size": "1500m" }), json!({ "size": "1.5" }));
        same(json!({ "size": 2 }), json!({ "size": "2" }));
        same(json!({ "size": "2Gi" }), json!({ "size": 2_147_483_648_u32 }));
        same(json!({ "after": "1h30m" }), json!({ "after": "90m0s" }));
        same(json!({ "after": "1.5s" }), json!({ "after": "1500ms" }));
        let differ = |a: Value, b: Value| assert_ne!(form(&a), form(&b), "{a} {b}");
        differ(json!({ "size": "30G" }), json!({ "size": "30Gi" }));
        differ(json!({ "after": "Never" }), json!({}));
        differ(json!({ "after": "" }), json!({ "after": "0s" }));
        for text in ["x", "1", "1d", "h", "1h ", "1..5s", "99999999999999999999h"] {
            assert_eq!(form(&json!({ "after": text })), format!("o1:t5:aftert{}:{text}", text.len()));
        }
    }

    #[test]
    fn a_text_cannot_pretend_to_be_two() {
        assert_ne!(form(&json!({ "list": ["at1:b"] })), form(&json!({ "list": ["a", "b"] })));
        assert_ne!(form(&json!({ "labels": { "a": "b" } })), form(&json!({ "labels": { "at1:b": "" } })));
    }

    #[test]
    fn only_what_is_picked_counts_at_the_first_level() {
        let picked = Rules { pick: Pick::Only(&["tags"]), ..RULES };
        assert_eq!(picked.form(&json!({ "other": { "tags": ["a"] } })), b"");
        assert_ne!(
            picked.form(&json!({ "tags": [{ "other": 1 }] })),
            picked.form(&json!({ "tags": [{ "other": 2 }] }))
        );
    }
}
