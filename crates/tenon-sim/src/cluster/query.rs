//! What does a request say after the question mark?

use std::collections::BTreeMap;

use super::failure::ApiResult;
use super::kinds::Kind;
use super::selector::Selector;

/// The parameters of a request; of repeated ones the last counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    pub(crate) fn parse(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// A parameter that is not given reads as empty.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.0.get(key).map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn given(&self, key: &str) -> Option<String> {
        self.0.get(key).cloned()
    }

    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.text(key).parse().ok()
    }

    pub(crate) fn is_on(&self, key: &str) -> bool {
        matches!(self.text(key), "true" | "1" | "True" | "TRUE" | "t" | "T")
    }

    pub(crate) fn selector(&self, kind: &Kind) -> ApiResult<Selector> {
        Selector::parse(kind, self.text("labelSelector"), self.text("fieldSelector"))
    }
}
