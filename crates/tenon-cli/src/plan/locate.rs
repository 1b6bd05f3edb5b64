//! On which line of an object a field stands, for whoever wrote it and has to find it again.
//!
//! Objects are read without places, for that is fast. Where one is at fault it is read again, along the way to the field
//! only, and the reader's own complaint about what stands there tells the line.

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The way to a field, such as `spec.containers[0].resources.requests.cpu`. Names may have dots in them too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way<'a>(pub(super) &'a str);

impl<'a> Way<'a> {
    /// What is left of the way once a key is passed, if the way leads there.
    fn past(self, key: &str) -> Option<Way<'a>> {
        let rest = self.0.strip_prefix(key)?;
        match rest.strip_prefix('.') {
            Some(rest) => Some(Way(rest)),
            None => (rest.is_empty() || rest.starts_with('[')).then_some(Way(rest)),
        }
    }

    /// Which member of a list comes next, and what is left after it.
    fn member(self) -> Option<(usize, Way<'a>)> {
        let (index, rest) = self.0.strip_prefix('[')?.split_once(']')?;
        Some((index.parse().ok()?, Way(rest.strip_prefix('.').unwrap_or(rest))))
    }
}

impl<'de> DeserializeSeed<'de> for Way<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        if self.0.is_empty() { from.deserialize_any(Complaint) } else { from.deserialize_any(self) }
    }
}

impl<'de> Visitor<'de> for Way<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a map or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match self.past(&key) {
                Some(rest) => map.next_value_seed(rest)?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Some((index, rest)) = self.member() else { return Ok(()) };
        for _ in 0..index {
            list.next_element::<IgnoredAny>()?;
        }
        list.next_element_seed(rest)?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Nothing is right for it, so that the reader says where it stands.
struct Complaint;

impl Visitor<'_> for Complaint {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nothing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\"spec\": {\n \"containers\": [\n  {},\n  {\"requests\":\n   {\"example.com/x\": 1,\n    \"cpu\": \
                        \"-1\"}}]}}";

    fn json_line(way: &str) -> Option<usize> {
        let mut from = serde_json::Deserializer::from_str(TEXT);
        Way(way).deserialize(&mut from).err().map(|error| error.line())
    }

    #[test]
    fn the_way_to_a_field_is_found() {
        assert_eq!(json_line("spec.containers[1].requests.cpu"), Some(6));
        assert_eq!(json_line("spec.containers[1].requests.example.com/x"), Some(5));
        assert_eq!(json_line("spec.containers[0]"), Some(3));
        for nowhere in ["spec.containers[1].requests.memory", "spec.containers[7].requests", "status", "spec.con"] {
            assert_eq!(json_line(nowhere), None, "{nowhere}");
        }
    }
}
