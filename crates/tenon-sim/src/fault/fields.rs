//! How one entry of a fault file is read, field by field, with an error that says which and what is allowed.

use std::cell::RefCell;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Map, Value};

use super::file::FaultFileError;

/// One entry. It remembers what it was asked for, so that what nobody asks for can be refused.
pub(crate) struct Fields<'a> {
    place: String,
    map: &'a Map<String, Value>,
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Fields<'a> {
    /// An entry at a place such as `rules[2]`, told with its name when it has one.
    pub(crate) fn new(place: String, value: &'a Value) -> Result<Self, FaultFileError> {
        let Value::Object(map) = value else {
            return Err(FaultFileError::entry(&place, "must be a mapping of fields"));
        };
        let place = match map.get("name").and_then(Value::as_str) {
            Some(name) => format!("{place} ({name})"),
            None => place,
        };
        Ok(Self { place, map, known: RefCell::default() })
    }

    fn value(&self, name: &'static str) -> Option<&'a Value> {
        self.known.borrow_mut().push(name);
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn wrong(&self, name: &str, problem: impl Display) -> FaultFileError {
        FaultFileError::field(&self.place, name, problem)
    }

    fn missing<T>(&self, name: &'static str, found: Option<T>) -> Result<T, FaultFileError> {
        found.ok_or_else(|| self.wrong(name, "is required here"))
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<Option<String>, FaultFileError> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            // Some plain words are no texts in YAML, among them yes and no.
            Some(_) => Err(self.wrong(name, "must be a text; put it in quotes")),
        }
    }

    pub(crate) fn needed_text(&self, name: &'static str) -> Result<String, FaultFileError> {
        self.text(name).and_then(|found| self.missing(name, found))
    }

    /// One of a few words.
    pub(crate) fn word(&self, name: &'static str, words: &[&'static str]) -> Result<&'static str, FaultFileError> {
        let given = self.needed_text(name)?;
        let found = words.iter().find(|word| **word == given);
        found
            .copied()
            .ok_or_else(|| self.wrong(name, format_args!("cannot be `{given}`; allowed: {}", words.join(", "))))
    }

    /// A number within limits, which are told when it is not.
    pub(crate) fn number<T>(&self, name: &'static str, range: std::ops::RangeInclusive<T>) -> Found<T>
    where
        T: FromStr + PartialOrd + Display,
    {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let number = text.parse::<T>().ok().filter(|number| range.contains(number));
        let problem = || format!("cannot be `{text}`; allowed: {} to {}", range.start(), range.end());
        number.map(Some).ok_or_else(|| self.wrong(name, problem()))
    }

    pub(crate) fn needed_number<T>(
        &self,
        name: &'static str,
        range: std::ops::RangeInclusive<T>,
    ) -> Result<T, FaultFileError>
    where
        T: FromStr + PartialOrd + Display,
    {
        self.number(name, range).and_then(|found| self.missing(name, found))
    }

    pub(crate) fn duration(&self, name: &'static str) -> Found<Duration> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let read = text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
        let problem = || format!("cannot be `{text}`; allowed: durations such as 500ms, 30s, 5m or 1h30m");
        read.map(Some).ok_or_else(|| self.wrong(name, problem()))
    }

    pub(crate) fn needed_duration(&self, name: &'static str) -> Result<Duration, FaultFileError> {
        self.duration(name).and_then(|found| self.missing(name, found))
    }

    /// Refuses fields nobody has asked for.
    pub(crate) fn end(self) -> Result<(), FaultFileError> {
        let known = self.known.borrow();
        match self.map.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(self.wrong(key, format_args!("is not used here; allowed: {}", known.join(", ")))),
        }
    }
}

/// A field that may be absent.
pub(crate) type Found<T> = Result<Option<T>, FaultFileError>;
