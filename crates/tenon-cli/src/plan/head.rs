//! What an object says it is, read without the rest of it.
//!
//! `apiVersion` and `kind` nearly always come first, so reading ends as soon as both are known. The reader that is left
//! in the middle of an object calls that an error, which does not matter then.

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What an object says it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) api_version: Option<String>,
    pub(super) kind: Option<String>,
}

impl Head {
    pub(super) fn is_complete(&self) -> bool {
        self.api_version.is_some() && self.kind.is_some()
    }
}

/// Fills a head from an object, or from the only object of a list.
pub(super) struct HeadOf<'a> {
    pub(super) head: &'a mut Head,
    pub(super) is_in_list: bool,
}

impl<'de> DeserializeSeed<'de> for HeadOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        if self.is_in_list { from.deserialize_seq(self) } else { from.deserialize_map(self) }
    }
}

impl<'de> Visitor<'de> for HeadOf<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a Kubernetes object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        list.next_element_seed(HeadOf { head: self.head, is_in_list: false }).map(Option::unwrap_or_default)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "apiVersion" => self.head.api_version = map.next_value()?,
                "kind" => self.head.kind = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            if self.head.is_complete() {
                break;
            }
        }
        Ok(())
    }
}
