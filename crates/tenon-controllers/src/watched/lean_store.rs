//! All objects of a kind of which only a part is asked for, as the watch shows them.
//!
//! A version that says nothing new is dropped: who compares versions by their place sees only what matters.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use kube::Resource;
use kube::runtime::watcher::Event;

/// Namespace and name.
type Key = (String, String);

/// All objects of a kind. Cheap to clone.
#[derive(Debug)]
pub(crate) struct LeanStore<K> {
    kept: Arc<RwLock<Kept<K>>>,
}

#[derive(Debug)]
struct Kept<K> {
    /// Each with the number of the change that brought it.
    objects: BTreeMap<Key, (Arc<K>, u64)>,
    /// How many changes there were.
    changes: u64,
    /// Why nobody may read the kind.
    unreadable: Option<String>,
}

impl<K> Clone for LeanStore<K> {
    fn clone(&self) -> LeanStore<K> {
        LeanStore { kept: self.kept.clone() }
    }
}

impl<K> Default for LeanStore<K> {
    fn default() -> LeanStore<K> {
        let kept = Kept { objects: BTreeMap::new(), changes: 0, unreadable: None };
        LeanStore { kept: Arc::new(RwLock::new(kept)) }
    }
}

impl<K> LeanStore<K> {
    /// All objects, in order of namespace and name.
    pub(crate) fn state(&self) -> Vec<Arc<K>> {
        self.read().objects.values().map(|(object, _)| object.clone()).collect()
    }

    /// The number of the change that brought an object; none if it is not there.
    pub(crate) fn version(&self, namespace: &str, name: &str) -> Option<u64> {
        self.read().objects.get(&(namespace.to_owned(), name.to_owned())).map(|(_, version)| *version)
    }

    /// How many changes there were.
    pub(crate) fn changes(&self) -> u64 {
        self.read().changes
    }

    /// Why nobody may read the kind, if that is so.
    pub(crate) fn unreadable(&self) -> Option<String> {
        self.read().unreadable.clone()
    }

    /// The kind cannot be read. Returns whether that is news.
    pub(super) fn set_unreadable(&self, why: String) -> bool {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let is_news = kept.unreadable.is_none();
        kept.unreadable = Some(why);
        is_news
    }

    fn read(&self) -> RwLockReadGuard<'_, Kept<K>> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes what the watch tells into a store.
#[derive(Debug)]
pub(super) struct LeanWriter<K> {
    store: LeanStore<K>,
    /// What a list has shown so far. Who reads sees the objects of before until it is whole.
    listed: Vec<K>,
}

impl<K: Resource + PartialEq> LeanWriter<K> {
    pub(super) fn new(store: LeanStore<K>) -> LeanWriter<K> {
        LeanWriter { store, listed: Vec::new() }
    }

    /// Takes note of a change. Returns whether anything is different now.
    pub(super) fn apply(&mut self, event: Event<K>) -> bool {
        match event {
            Event::Init => {
                self.listed.clear();
                return false;
            }
            Event::InitApply(object) => {
                self.listed.push(object);
                return false;
            }
            Event::InitDone | Event::Apply(_) | Event::Delete(_) => {}
        }
        let mut kept = self.store.kept.write().unwrap_or_else(PoisonError::into_inner);
        let before = kept.changes;
        match event {
            Event::Apply(object) => kept.set(object),
            Event::Delete(object) => kept.remove(&key(&object)),
            _ => kept.replace(std::mem::take(&mut self.listed)),
        }
        kept.changes != before
    }
}

impl<K: Resource + PartialEq> Kept<K> {
    fn set(&mut self, object: K) {
        let key = key(&object);
        if self.objects.get(&key).is_some_and(|(known, _)| **known == object) {
            return;
        }
        self.changes += 1;
        self.objects.insert(key, (Arc::new(object), self.changes));
    }

    fn remove(&mut self, key: &Key) {
        if self.objects.remove(key).is_some() {
            self.changes += 1;
        }
    }

    /// A list is whole: what is not in it is gone.
    fn replace(&mut self, listed: Vec<K>) {
        if self.unreadable.take().is_some() {
            self.changes += 1;
        }
        let keys: std::collections::BTreeSet<Key> = listed.iter().map(key).collect();
        let gone: Vec<Key> = self.objects.keys().filter(|known| !keys.contains(*known)).cloned().collect();
        gone.iter().for_each(|key| self.remove(key));
        listed.into_iter().for_each(|object| self.set(object));
    }
}

fn key<K: Resource>(object: &K) -> Key {
    let meta = object.meta();
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenon_api::kube_objects::Namespace;

    use super::*;

    fn namespace(name: &str, team: &str) -> Namespace {
        serde_json::from_value(json!({ "metadata": { "name": name, "labels": { "team": team } } })).unwrap()
    }

    fn names(store: &LeanStore<Namespace>) -> Vec<String> {
        store.state().iter().map(|it| it.metadata.name.clone().unwrap()).collect()
    }

    fn listing(writer: &mut LeanWriter<Namespace>, objects: Vec<Namespace>) -> bool {
        writer.apply(Event::Init);
        objects.into_iter().for_each(|object| assert!(!writer.apply(Event::InitApply(object))));
        writer.apply(Event::InitDone)
    }

    #[test]
    fn a_version_that_says_nothing_new_is_no_change() {
        let store = LeanStore::default();
        let mut writer = LeanWriter::new(store.clone());
        assert!(writer.apply(Event::Apply(namespace("a", "red"))));
        let (first, version) = (store.state(), store.version("", "a"));
        assert!(!writer.apply(Event::Apply(namespace("a", "red"))));
        assert!(!listing(&mut writer, vec![namespace("a", "red")]), "a list that shows the same");
        assert!(Arc::ptr_eq(&first[0], &store.state()[0]));
        assert_eq!((store.version("", "a"), store.changes()), (version, 1));
        assert!(writer.apply(Event::Apply(namespace("a", "blue"))));
        assert!(store.version("", "a") > version && store.version("", "b").is_none());
        assert!(writer.apply(Event::Delete(namespace("a", "blue"))) && names(&store).is_empty());
        assert!(!writer.apply(Event::Delete(namespace("a", "blue"))), "it was gone already");
    }

    #[test]
    fn a_list_replaces_what_was_there_once_it_is_whole() {
        let store = LeanStore::default();
        let mut writer = LeanWriter::new(store.clone());
        assert!(listing(&mut writer, vec![namespace("b", "x"), namespace("a", "x")]));
        assert_eq!(names(&store), ["a", "b"]);
        writer.apply(Event::Init);
        writer.apply(Event::InitApply(namespace("gone again", "x")));
        assert_eq!(names(&store), ["a", "b"]);
        assert!(listing(&mut writer, vec![namespace("c", "x")]), "a list that begins anew forgets what it had shown");
        assert_eq!(names(&store), ["c"]);
    }

    #[test]
    fn a_kind_that_can_be_read_again_is_a_change() {
        let store: LeanStore<Namespace> = LeanStore::default();
        let mut writer = LeanWriter::new(store.clone());
        assert!(store.set_unreadable("forbidden".to_owned()) && !store.set_unreadable("forbidden".to_owned()));
        assert_eq!(store.unreadable().as_deref(), Some("forbidden"));
        assert!(listing(&mut writer, Vec::new()) && store.unreadable().is_none());
    }
}
