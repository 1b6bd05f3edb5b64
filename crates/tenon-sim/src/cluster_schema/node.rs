//! What does one node of a structural schema say?

use serde_json::{Map, Value};

/// A node of a schema, read as it is written: nothing is compiled ahead, since a schema is small and read rarely.
#[derive(Clone, Copy)]
pub(super) struct Node<'a>(pub(super) &'a Value);

impl<'a> Node<'a> {
    pub(super) fn get(self, keyword: &str) -> Option<&'a Value> {
        self.0.get(keyword)
    }

    pub(super) fn text(self, keyword: &str) -> Option<&'a str> {
        self.get(keyword)?.as_str()
    }

    pub(super) fn flag(self, keyword: &str) -> bool {
        self.get(keyword).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn count(self, keyword: &str) -> Option<usize> {
        usize::try_from(self.get(keyword)?.as_u64()?).ok()
    }

    pub(super) fn list(self, keyword: &str) -> &'a [Value] {
        self.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn texts(self, keyword: &str) -> Vec<&'a str> {
        self.list(keyword).iter().filter_map(Value::as_str).collect()
    }

    pub(super) fn nodes(self, keyword: &str) -> impl Iterator<Item = Node<'a>> {
        self.list(keyword).iter().map(Node)
    }

    pub(super) fn node(self, keyword: &str) -> Option<Node<'a>> {
        self.get(keyword).filter(|value| value.is_object()).map(Node)
    }

    pub(super) fn nullable(self) -> bool {
        self.flag("nullable")
    }

    pub(super) fn int_or_string(self) -> bool {
        self.flag("x-kubernetes-int-or-string")
    }

    pub(super) fn preserves_unknown(self) -> bool {
        self.flag("x-kubernetes-preserve-unknown-fields")
    }

    pub(super) fn embedded(self) -> bool {
        self.flag("x-kubernetes-embedded-resource")
    }

    /// The type as written, empty where there is none.
    pub(super) fn kind(self) -> &'a str {
        self.text("type").unwrap_or("")
    }

    /// The types a value may have: an int-or-string has two, whatever else is written.
    pub(super) fn kinds(self) -> Vec<&'a str> {
        if self.int_or_string() {
            return vec!["integer", "string"];
        }
        self.text("type").into_iter().collect()
    }

    /// The default, where `null` counts as none.
    pub(super) fn default(self) -> Option<&'a Value> {
        self.get("default").filter(|value| !value.is_null())
    }

    pub(super) fn properties(self) -> Option<&'a Map<String, Value>> {
        self.get("properties")?.as_object()
    }

    pub(super) fn property(self, name: &str) -> Option<Node<'a>> {
        self.properties()?.get(name).map(Node)
    }

    /// The schema of the values of a map.
    pub(super) fn additional(self) -> Option<Node<'a>> {
        self.node("additionalProperties")
    }

    /// Whether a field that is no property may stay, whatever it holds.
    pub(super) fn allows_additional(self) -> bool {
        self.additional().is_some() || self.flag("additionalProperties")
    }

    /// The schema of a field: its own, or that of the map's values.
    pub(super) fn field(self, name: &str) -> Option<Node<'a>> {
        self.property(name).or_else(|| self.additional())
    }

    pub(super) fn items(self) -> Option<Node<'a>> {
        self.node("items")
    }

    pub(super) fn list_type(self) -> &'a str {
        self.text("x-kubernetes-list-type").unwrap_or("")
    }

    pub(super) fn map_keys(self) -> Vec<&'a str> {
        self.texts("x-kubernetes-list-map-keys")
    }
}
