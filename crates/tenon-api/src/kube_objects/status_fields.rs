//! Which fields of a status say anything, for objects of which nothing else is asked.
//!
//! Clients write an empty status, or zeros, into manifests that were never applied.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The fields of a status that say something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusFields(BTreeSet<String>);

impl StatusFields {
    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this one does.
    pub fn contains(&self, field: &str) -> bool {
        self.0.contains(field)
    }
}

impl<'de> Deserialize<'de> for StatusFields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<StatusFields, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = StatusFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a status")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StatusFields, A::Error> {
                let mut fields = BTreeSet::new();
                while let Some((field, Says(something))) = map.next_entry::<String, Says>()? {
                    if something {
                        fields.insert(field);
                    }
                }
                Ok(StatusFields(fields))
            }
        }

        from.deserialize_map(Fields)
    }
}

/// Whether a value says something: nothing, zero and no text do not, nor does an object of such values.
struct Says(bool);

impl<'de> Deserialize<'de> for Says {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Says, D::Error> {
        from.deserialize_any(SaysVisitor)
    }
}

struct SaysVisitor;

impl<'de> Visitor<'de> for SaysVisitor {
    type Value = Says;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Says, E> {
        Ok(Says(false))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Says, E> {
        Ok(Says(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Says, E> {
        Ok(Says(value != 0))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Says, E> {
        Ok(Says(value != 0))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Says, E> {
        Ok(Says(value != 0.0))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Says, E> {
        Ok(Says(!value.is_empty()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Says, A::Error> {
        let mut says = false;
        while list.next_element::<IgnoredAny>()?.is_some() {
            says = true;
        }
        Ok(Says(says))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Says, A::Error> {
        let mut says = false;
        while let Some((_, Says(something))) = map.next_entry::<IgnoredAny, Says>()? {
            says |= something;
        }
        Ok(Says(says))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(status: Value) -> Vec<String> {
        serde_json::from_value::<StatusFields>(status).unwrap().0.into_iter().collect()
    }

    #[test]
    fn empty_values_and_zeros_say_nothing() {
        let empty = json!({
            "replicas": 0, "share": 0.0, "note": "", "ready": false, "none": null, "conditions": [], "loadBalancer": {"a": {"b": 0}}
        });
        assert!(fields(empty).is_empty());
        assert!(fields(json!({})).is_empty());
    }

    #[test]
    fn anything_else_is_named() {
        let status = json!({"replicas": -1, "share": 0.5, "note": "x", "ready": true, "conditions": [null], "deep": {"a": {"b": 7}}});
        assert_eq!(fields(status), ["conditions", "deep", "note", "ready", "replicas", "share"]);
    }

    #[test]
    fn a_status_that_is_no_object_is_refused() {
        assert!(serde_json::from_value::<StatusFields>(json!([1])).is_err());
    }
}
