//! Which versions of objects were there at the last look.

use std::sync::Arc;

/// The versions of a kind's objects that were there at the last look. A store never changes an object in place, so the
/// place tells versions apart, and nobody has to read them.
#[derive(Debug)]
pub(super) struct VersionCache<K> {
    /// By place. Kept, so that nothing else can come to be at the same place.
    known: Vec<Arc<K>>,
}

/// What is different from the last look. An object that changed is in both.
pub(super) struct Changes<K> {
    pub(super) removed: Vec<Arc<K>>,
    pub(super) added: Vec<Arc<K>>,
}

impl<K> Default for VersionCache<K> {
    fn default() -> VersionCache<K> {
        VersionCache { known: Vec::new() }
    }
}

impl<K> VersionCache<K> {
    /// Compares with what is there now, and remembers that.
    pub(super) fn look(&mut self, now: &[Arc<K>]) -> Changes<K> {
        let mut sorted = now.to_vec();
        sorted.sort_unstable_by_key(place);
        sorted.dedup_by_key(|object| place(object));
        let before = std::mem::replace(&mut self.known, sorted);
        let is_in = |list: &[Arc<K>], object: &Arc<K>| list.binary_search_by_key(&place(object), place).is_ok();
        let added = now.iter().filter(|object| !is_in(&before, object)).cloned().collect();
        let removed = before.iter().filter(|object| !is_in(&self.known, object)).cloned().collect();
        Changes { removed, added }
    }
}

fn place<K>(object: &Arc<K>) -> usize {
    Arc::as_ptr(object).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_went_between_two_looks_is_told_once() {
        let [a, b, c] = ["a", "b", "c"].map(Arc::new);
        let mut cache = VersionCache::default();
        let mut look = |now: &[Arc<&'static str>]| {
            let Changes { removed, added } = cache.look(now);
            let names = |list: Vec<Arc<&'static str>>| list.iter().map(|name| **name).collect::<String>();
            (names(removed), names(added))
        };
        assert_eq!(look(&[a.clone(), b.clone()]), (String::new(), "ab".to_owned()));
        assert_eq!(look(&[a.clone(), b]), (String::new(), String::new()));
        assert_eq!(look(&[c.clone(), a.clone()]), ("b".to_owned(), "c".to_owned()));
        assert_eq!(look(&[Arc::new("a"), c]), ("a".to_owned(), "a".to_owned()), "another version of it");
    }
}
