//! Texts that were read before, and what they say: pods of one workload have the same text, and it is read once.

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::ProtobufFault;
use super::to_json::{Schema, Writer};

/// The room that most parts of a pod need as JSON.
const USUAL_BYTES: usize = 512;

/// Different texts that are remembered. Workloads come one after the other, so few are needed at a time.
const PLACES: u64 = 512;

/// Each text has one place. Another text with the same place takes it.
#[derive(Debug)]
pub(super) struct Known<T>(Vec<Option<Remembered<T>>>);

/// A text, and what it says.
type Remembered<T> = (Box<[u8]>, Arc<T>);

impl<T> Default for Known<T> {
    fn default() -> Known<T> {
        Known((0..PLACES).map(|_| None).collect())
    }
}

impl<T: DeserializeOwned> Known<T> {
    /// What a part of a pod says. What was not read before can be put in a better place first.
    pub(super) fn read(
        &mut self,
        message: &[u8],
        schema: Schema,
        part: &'static str,
        share: impl FnOnce(&mut Arc<T>),
    ) -> Result<Arc<T>, ProtobufFault> {
        let mut writer = Writer::with_capacity(USUAL_BYTES);
        writer.message(message, schema)?;
        let json = writer.json;
        let place = &mut self.0[place(&json)];
        if let Some((_, value)) = place.as_ref().filter(|(known, _)| **known == *json) {
            return Ok(value.clone());
        }
        let mut value = Arc::new(serde_json::from_slice(&json).map_err(|_| ProtobufFault::Part(part))?);
        share(&mut value);
        *place = Some((json.into(), value.clone()));
        Ok(value)
    }
}

fn place(text: &[u8]) -> usize {
    // The same for every run.
    let mut hasher = DefaultHasher::new();
    hasher.write(text);
    usize::try_from(hasher.finish() % PLACES).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::super::to_json::{Field, Kind, schema};
    use super::*;

    const NAMED: Schema = &schema(&[Field { number: 1, name: "name", kind: Kind::Text, only: None }]);

    #[derive(Debug, PartialEq, Deserialize)]
    struct Named {
        name: String,
    }

    /// The name in a message, and whether it was read anew.
    fn read(known: &mut Known<Named>, name: &str) -> (String, bool) {
        let message = [&[1 << 3 | 2, u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
        let mut is_new = false;
        let value = known.read(&message, NAMED, "name", |_| is_new = true).unwrap();
        (value.name.clone(), is_new)
    }

    #[test]
    fn the_same_text_is_read_once_until_another_takes_its_place() {
        let mut known = Known::default();
        assert_eq!(read(&mut known, "a"), ("a".to_owned(), true));
        assert_eq!(read(&mut known, "a"), ("a".to_owned(), false));
        let place_of = |name: &str| place(format!(r#"{{"name":"{name}"}}"#).as_bytes());
        let rival = (0..).map(|number| number.to_string()).find(|name| place_of(name) == place_of("a")).unwrap();
        assert_eq!(read(&mut known, &rival), (rival.clone(), true));
        assert_eq!(read(&mut known, &rival), (rival, false));
        assert_eq!(read(&mut known, "a"), ("a".to_owned(), true));
    }

    #[test]
    fn a_text_that_says_nothing_sensible_is_refused() {
        assert_eq!(Known::<Named>::default().read(&[], NAMED, "name", |_| ()), Err(ProtobufFault::Part("name")));
    }
}
