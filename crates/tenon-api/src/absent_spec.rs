//! What reads an object without a spec? The reference's schemas require none on three kinds, so such objects exist.
//!
//! Serde reads a missing field as `null`. A spec that reads `null` as its default therefore reads both, and one that
//! writes its default as `null` gives the object back as it was: the server drops nulls.

/// Lets a spec that derives its serialisation with `remote = "Self"` be absent: then it is the default.
macro_rules! may_be_absent {
    ($spec:ident) => {
        impl<'de> serde::Deserialize<'de> for $spec {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$spec, D::Error> {
                struct MaybeSpec;
                impl<'de> serde::de::Visitor<'de> for MaybeSpec {
                    type Value = $spec;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a spec")
                    }

                    fn visit_none<E>(self) -> Result<$spec, E> {
                        Ok($spec::default())
                    }

                    fn visit_some<D: serde::Deserializer<'de>>(self, present: D) -> Result<$spec, D::Error> {
                        $spec::deserialize(present)
                    }
                }
                deserializer.deserialize_option(MaybeSpec)
            }
        }

        impl serde::Serialize for $spec {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if *self == $spec::default() { serializer.serialize_none() } else { $spec::serialize(self, serializer) }
            }
        }
    };
}

pub(crate) use may_be_absent;
