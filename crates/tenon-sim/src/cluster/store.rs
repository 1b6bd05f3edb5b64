//! Where do objects lie, and what has changed since when?
//!
//! One counter gives every change its version, as etcd does. Each resource keeps its last changes, so that watches need
//! no queue of their own: a watch that is gone leaves nothing behind.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

use super::kinds::ShelfName;
use super::object;

/// Namespace and name; the namespace is empty for objects of the whole cluster.
pub(crate) type Key = (String, String);

/// One change of one object. It was made if there is no `before`, and is gone if there is no `after`.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) before: Option<Arc<Value>>,
    pub(crate) after: Option<Arc<Value>>,
}

/// All objects of one resource.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) objects: BTreeMap<Key, Arc<Value>>,
    history: VecDeque<Change>,
    /// The last change that is forgotten.
    forgotten: u64,
    news: watch::Sender<u64>,
}

impl Shelf {
    /// The changes after a version, or nothing if some of them are forgotten.
    pub(crate) fn changes_since(&self, version: u64) -> Option<impl Iterator<Item = &Change>> {
        let from = self.history.partition_point(|change| change.version <= version);
        (version >= self.forgotten).then(|| self.history.iter().skip(from))
    }

    /// The objects as they were at a version, or nothing if some change since then is forgotten.
    fn objects_at(&self, version: u64) -> Option<BTreeMap<Key, Arc<Value>>> {
        let later: Vec<&Change> = self.changes_since(version)?.collect();
        let mut objects = self.objects.clone();
        for change in later.into_iter().rev() {
            let Some(either) = change.before.as_ref().or(change.after.as_ref()) else { continue };
            let key = (object::namespace(either).to_owned(), object::name(either).to_owned());
            match &change.before {
                Some(before) => objects.insert(key, before.clone()),
                None => objects.remove(&key),
            };
        }
        Some(objects)
    }

    /// The oldest version a watch can still start from.
    pub(crate) fn oldest(&self) -> u64 {
        self.forgotten
    }

    #[cfg(test)]
    pub(crate) fn listeners(&self) -> usize {
        self.news.receiver_count()
    }

    /// Hears of the version of every change.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }
}

/// Everything that is stored.
#[derive(Debug)]
pub(crate) struct Store {
    shelves: BTreeMap<ShelfName, Shelf>,
    version: u64,
    history: usize,
    /// Who belongs to whom: uid of the owner to places of its dependents.
    dependents: BTreeMap<String, BTreeSet<(ShelfName, Key)>>,
    alive: BTreeSet<String>,
}

impl Store {
    pub(crate) fn new(history: usize) -> Self {
        let (shelves, dependents) = (BTreeMap::new(), BTreeMap::new());
        Self { shelves, version: 1, history: history.max(1), dependents, alive: BTreeSet::new() }
    }

    /// The version of the last change.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn shelf(&mut self, name: &ShelfName) -> &mut Shelf {
        self.shelves.entry(name.clone()).or_insert_with(|| Shelf {
            objects: BTreeMap::new(),
            history: VecDeque::new(),
            forgotten: 0,
            news: watch::Sender::new(0),
        })
    }

    pub(crate) fn get(&self, shelf: &ShelfName, key: &Key) -> Option<Arc<Value>> {
        self.shelves.get(shelf)?.objects.get(key).cloned()
    }

    pub(crate) fn objects<'a>(
        &'a self,
        shelf: &ShelfName,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> + use<'a> {
        self.shelves.get(shelf).into_iter().flat_map(|shelf| &shelf.objects)
    }

    /// The objects of a shelf as they were at a version, if that is still known.
    pub(crate) fn objects_at(&self, shelf: &ShelfName, version: u64) -> Option<BTreeMap<Key, Arc<Value>>> {
        self.shelves.get(shelf).map_or_else(|| Some(BTreeMap::new()), |shelf| shelf.objects_at(version))
    }

    /// Everything in a namespace.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<(ShelfName, Key)> {
        let inside = self.shelves.iter().flat_map(|(name, shelf)| {
            let keys = shelf.objects.keys().filter(|key| key.0 == namespace);
            keys.map(move |key| (name.clone(), key.clone()))
        });
        inside.collect()
    }

    pub(crate) fn is_alive(&self, uid: &str) -> bool {
        self.alive.contains(uid)
    }

    pub(crate) fn dependents(&self, uid: &str) -> Vec<(ShelfName, Key)> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Puts an object in its place under a new version.
    pub(crate) fn put(&mut self, shelf: &ShelfName, mut value: Value) -> Arc<Value> {
        self.version += 1;
        object::set_meta(&mut value, "resourceVersion", Some(self.version.to_string().into()));
        let key = (object::namespace(&value).to_owned(), object::name(&value).to_owned());
        let value = Arc::new(value);
        let before = self.shelf(shelf).objects.insert(key.clone(), value.clone());
        if let Some(before) = &before {
            self.unlink(shelf, &key, before);
        }
        self.alive.insert(object::uid(&value).to_owned());
        for owner in object::owners(&value) {
            self.dependents.entry(owner.to_owned()).or_default().insert((shelf.clone(), key.clone()));
        }
        self.record(shelf, Change { version: self.version, before, after: Some(value.clone()) });
        value
    }

    /// Takes an object away. What it was comes back with the version of its end.
    pub(crate) fn remove(&mut self, shelf: &ShelfName, key: &Key) -> Option<Value> {
        let before = self.shelf(shelf).objects.remove(key)?;
        self.version += 1;
        self.unlink(shelf, key, &before);
        self.alive.remove(object::uid(&before));
        let mut last = (*before).clone();
        object::set_meta(&mut last, "resourceVersion", Some(self.version.to_string().into()));
        self.record(shelf, Change { version: self.version, before: Some(before), after: None });
        Some(last)
    }

    fn unlink(&mut self, shelf: &ShelfName, key: &Key, before: &Value) {
        let place = (shelf.clone(), key.clone());
        for owner in object::owners(before) {
            if let Some(places) = self.dependents.get_mut(owner) {
                places.remove(&place);
                if places.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
    }

    fn record(&mut self, shelf: &ShelfName, change: Change) {
        let (most, version) = (self.history, change.version);
        let shelf = self.shelf(shelf);
        shelf.history.push_back(change);
        while shelf.history.len() > most {
            shelf.forgotten = shelf.history.pop_front().map_or(shelf.forgotten, |change| change.version);
        }
        // Nobody watching is no reason not to note it.
        shelf.news.send_replace(version);
    }
}
