//! Whether a key stands twice in an object of JSON. The readers take one of the two and say nothing.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Up to this many keys are compared one by one.
const FEW: usize = 24;

/// JSON in which no key stands twice; what it says is not kept.
pub(super) struct NoneTwice;

impl<'de> Deserialize<'de> for NoneTwice {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<NoneTwice, D::Error> {
        from.deserialize_any(NoneTwice)
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

impl<'de> Visitor<'de> for NoneTwice {
    type Value = NoneTwice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<NoneTwice, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<NoneTwice, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<NoneTwice, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<NoneTwice, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<NoneTwice, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<NoneTwice, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<NoneTwice, A::Error> {
        while list.next_element::<NoneTwice>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NoneTwice, A::Error> {
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
            map.next_value::<NoneTwice>()?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_found_at_any_depth() {
        let many: String = (0..60).map(|index| format!("\"k{index}\": [1.5, null, true, -2],")).collect();
        let good = format!("{{{many} \"a\": {{\"b\": \"c\", \"d\": {{\"b\": 1}}}}}}");
        serde_json::from_str::<NoneTwice>(&good).map(drop).unwrap();
        for bad in [
            "{\"a\": 1,\n\"a\": 2}".to_owned(),
            "[{},\n{\"x\": {\"a\": {}, \"\\u0061\": 2}}]".to_owned(),
            format!("{{{many}\n\"k59\": 1}}"),
            format!("{{{many}\n\"k0\": 1}}"),
        ] {
            let error = serde_json::from_str::<NoneTwice>(&bad).map(drop).unwrap_err();
            assert!(error.to_string().contains("duplicate key") && error.line() == 2, "{bad}: {error}");
        }
    }
}
