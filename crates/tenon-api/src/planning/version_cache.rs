//! Which versions of objects were there at the last look.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The versions of a kind's objects that were there at the last look. A store never changes an object in place, so the
/// place tells versions apart, and nobody has to read them.
#[derive(Debug)]
pub(super) struct VersionCache<K> {
    known: BTreeMap<usize, (Arc<K>, u64)>,
    look: u64,
}

/// What is different from the last look. An object that changed is in both.
pub(super) struct Changes<K> {
    pub(super) removed: Vec<Arc<K>>,
    pub(super) added: Vec<Arc<K>>,
}

impl<K> Default for VersionCache<K> {
    fn default() -> VersionCache<K> {
        VersionCache { known: BTreeMap::new(), look: 0 }
    }
}

impl<K> VersionCache<K> {
    /// Compares with what is there now, and remembers that.
    pub(super) fn look(&mut self, now: &[Arc<K>]) -> Changes<K> {
        self.look += 1;
        let mut added = Vec::new();
        for object in now {
            // Kept, so that nothing else can come to be at the same place.
            let known = self.known.entry(Arc::as_ptr(object).addr()).or_insert_with(|| {
                added.push(object.clone());
                (object.clone(), 0)
            });
            known.1 = self.look;
        }
        let is_gone = |_: &usize, known: &mut (Arc<K>, u64)| known.1 != self.look;
        let removed = self.known.extract_if(.., is_gone).map(|(_, (object, _))| object).collect();
        Changes { removed, added }
    }
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
