//! Of which words are templates generated?

use std::collections::BTreeMap;
use std::sync::LazyLock;

static LISTS: LazyLock<BTreeMap<String, Vec<String>>> =
    LazyLock::new(|| serde_json::from_str(include_str!("vocabulary.json")).unwrap());

/// A list of words by its name.
pub(crate) fn vocabulary(list: &str) -> Vec<&'static str> {
    LISTS[list].iter().map(String::as_str).collect()
}
