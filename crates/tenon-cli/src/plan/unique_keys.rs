//! Whether a key is given twice in a JSON object. The readers take one of the two and say nothing.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Up to this many keys are compared one by one.
const FEW: usize = 24;

/// JSON in which every key of an object is unique; what it says is not kept.
pub(super) struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<UniqueKeys, D::Error> {
        from.deserialize_any(UniqueKeys)
    }
}

/// A key, from the text itself where that is possible.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Key<'de>, D::Error> {
        from.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Owned(text.to_owned())))
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = UniqueKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueKeys, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueKeys, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueKeys, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueKeys, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueKeys, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<UniqueKeys, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<UniqueKeys, A::Error> {
        while list.next_element::<UniqueKeys>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniqueKeys, A::Error> {
        let (mut few, mut many): (Vec<Cow<'de, str>>, BTreeSet<Cow<'de, str>>) = (Vec::new(), BTreeSet::new());
        while let Some(Key(key)) = map.next_key()? {
            if few.contains(&key) || many.contains(&key) {
                return Err(A::Error::custom(format!("duplicate key `{key}`; keep one")));
            }
            if few.len() < FEW {
                few.push(key);
            } else {
                many.insert(key);
            }
            map.next_value::<UniqueKeys>()?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_key_is_found_at_any_depth() {
        let many: String = (0..60).map(|index| format!("\"k{index}\": [1.5, null, true, -2],")).collect();
        let good = format!("{{{many} \"a\": {{\"b\": \"c\", \"d\": {{\"b\": 1}}}}}}");
        serde_json::from_str::<UniqueKeys>(&good).map(drop).unwrap();
        for bad in [
            "{\"a\": 1,\n\"a\": 2}".to_owned(),
            "[{},\n{\"x\": {\"a\": {}, \"\\u0061\": 2}}]".to_owned(),
            format!("{{{many}\n\"k59\": 1}}"),
            format!("{{{many}\n\"k0\": 1}}"),
        ] {
            let error = serde_json::from_str::<UniqueKeys>(&bad).map(drop).unwrap_err();
            assert!(error.to_string().contains("duplicate key") && error.line() == 2, "{bad}: {error}");
        }
    }
}
