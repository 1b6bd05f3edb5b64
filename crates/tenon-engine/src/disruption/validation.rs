//! For how long must a node be empty before its claim is deleted, and when is a taint left behind?

use std::collections::BTreeMap;
use std::time::Duration;

use tenon_model::Timestamp;

/// An empty node must still be empty after this long: a pod that ends is often followed by another.
const EMPTY_FOR: Duration = Duration::from_secs(15);

/// The taint of a node that was chosen is not mistaken for a stale one while caches are behind.
const SETTLES_WITHIN: Duration = Duration::from_secs(60);

/// What is remembered of candidates from one pass to the next.
#[derive(Debug, Clone, Default)]
pub struct Validation {
    /// Since when each candidate has been empty.
    empty_since: BTreeMap<String, Timestamp>,
    /// When each node was chosen.
    chosen_at: BTreeMap<String, Timestamp>,
}

impl Validation {
    /// Forgets what has settled and candidates that are not empty any more.
    pub fn begin_pass(&mut self, candidates: &[String], now: Timestamp) {
        self.chosen_at.retain(|_, at| at.after(SETTLES_WITHIN) > now);
        self.empty_since.retain(|name, _| candidates.contains(name));
    }

    /// Whether a candidate has been empty for long enough. It is remembered as chosen if so.
    pub fn choose(&mut self, candidate: &str, now: Timestamp) -> bool {
        let since = *self.empty_since.entry(candidate.to_owned()).or_insert(now);
        let is_due = since.after(EMPTY_FOR) <= now;
        if is_due {
            self.chosen_at.insert(candidate.to_owned(), now);
        }
        is_due
    }

    /// Whether a node was chosen so short a time ago that its taint may still lead to a deletion.
    pub fn is_settling(&self, node: &str) -> bool {
        self.chosen_at.contains_key(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_model::Seconds;

    fn at(second: i64) -> Timestamp {
        Timestamp::from(Seconds(second))
    }

    fn pass(validation: &mut Validation, candidates: &[&str], second: i64) -> Vec<String> {
        let candidates: Vec<String> = candidates.iter().map(ToString::to_string).collect();
        validation.begin_pass(&candidates, at(second));
        candidates.into_iter().filter(|name| validation.choose(name, at(second))).collect()
    }

    #[test]
    fn a_node_is_chosen_only_after_it_was_empty_for_a_while_without_a_break() {
        let mut validation = Validation::default();
        assert_eq!(pass(&mut validation, &["a", "b"], 0), Vec::<String>::new());
        assert_eq!(pass(&mut validation, &["a"], 10), Vec::<String>::new());
        assert_eq!(pass(&mut validation, &["a", "b"], 15), ["a"], "b was busy in between");
        assert_eq!(pass(&mut validation, &["a", "b"], 30), ["a", "b"]);
    }

    #[test]
    fn the_taint_of_a_chosen_node_is_stale_only_after_a_minute() {
        let mut validation = Validation::default();
        pass(&mut validation, &["a"], 0);
        assert!(!validation.is_settling("a"));
        pass(&mut validation, &["a"], 15);
        pass(&mut validation, &[], 74);
        assert!(validation.is_settling("a"));
        pass(&mut validation, &[], 75);
        assert!(!validation.is_settling("a"));
    }
}
