//! What are the labels of a node? Facts, of which nodes have most in common: names and values can be held once for all nodes.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The labels of a node, sorted by name. Never changed, and cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeLabels(Arc<[(Arc<str>, Arc<str>)]>);

impl NodeLabels {
    /// The value of a label.
    pub fn get(&self, label: &str) -> Option<&str> {
        let place = self.0.binary_search_by(|(known, _)| known.as_ref().cmp(label)).ok()?;
        self.0.get(place).map(|(_, value)| value.as_ref())
    }

    /// All labels with their values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(label, value)| (label.as_ref(), value.as_ref()))
    }
}

impl<N: Into<Arc<str>>, V: Into<Arc<str>>> FromIterator<(N, V)> for NodeLabels {
    /// Of a label that is there twice, the last one counts.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(labels: I) -> NodeLabels {
        let mut sorted: Vec<(Arc<str>, Arc<str>)> =
            labels.into_iter().map(|(label, value)| (label.into(), value.into())).collect();
        sorted.reverse();
        sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
        sorted.dedup_by(|(one, _), (other, _)| one == other);
        NodeLabels(sorted.into())
    }
}

/// Names and values that were seen, and are still held by somebody.
#[derive(Debug, Default)]
pub struct LabelTexts {
    known: BTreeSet<Arc<str>>,
    /// What nobody holds any more is forgotten when there is more than this.
    limit: usize,
}

impl LabelTexts {
    /// These labels, with every text that was seen before in the same place.
    pub fn labels<'l>(&mut self, labels: impl IntoIterator<Item = (&'l String, &'l String)>) -> NodeLabels {
        if self.known.len() > self.limit {
            self.known.retain(|text| Arc::strong_count(text) > 1);
            // Twice what is needed, so that this is done rarely.
            self.limit = 2 * self.known.len() + 64;
        }
        labels.into_iter().map(|(label, value)| (self.text(label), self.text(value))).collect()
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.known.insert(new.clone());
        new
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn labels_say_what_a_map_says() {
        let labels: NodeLabels = [("b", "1"), ("a", "2"), ("b", "3")].into_iter().collect();
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "3")]);
        assert_eq!((labels.get("a"), labels.get("b"), labels.get("c")), (Some("2"), Some("3"), None));
        assert_eq!(NodeLabels::default().get("a"), None);
    }

    #[test]
    fn nodes_hold_texts_they_have_in_common_once_and_what_nobody_holds_is_forgotten() {
        let mut texts = LabelTexts::default();
        let map =
            |host: &str| BTreeMap::from([("host".to_owned(), host.to_owned()), ("zone".to_owned(), "z".to_owned())]);
        let [a, b] = ["a", "b"].map(|host| texts.labels(&map(host)));
        assert!(Arc::ptr_eq(&a.0[1].1, &b.0[1].1) && a.get("host") != b.get("host"));
        (0..10_000).for_each(|number| drop(texts.labels(&map(&number.to_string()))));
        assert!(texts.known.len() < 300, "{}", texts.known.len());
        assert_eq!(texts.labels(&map("a")), a);
    }
}
