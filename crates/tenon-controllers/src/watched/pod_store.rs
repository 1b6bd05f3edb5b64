//! All pods, as the watch shows them.
//!
//! The library's store would keep a second copy of every name and uid, and wants whole metadata; a pod here has neither.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use kube::runtime::watcher::Event;
use tenon_api::kube_objects::Pod;

/// By namespace and name.
type Pods = BTreeMap<Arc<str>, BTreeSet<Named>>;

/// A pod among those of its namespace, found by the name that it has itself.
#[derive(Debug)]
struct Named(Arc<Pod>);

impl Borrow<str> for Named {
    fn borrow(&self) -> &str {
        self.0.name()
    }
}

impl Ord for Named {
    fn cmp(&self, other: &Named) -> Ordering {
        self.0.name().cmp(other.0.name())
    }
}

impl PartialOrd for Named {
    fn partial_cmp(&self, other: &Named) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Named) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Named {}

/// All pods. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct PodStore {
    pods: Arc<RwLock<Pods>>,
}

impl PodStore {
    /// All pods, in order of namespace and name.
    pub(crate) fn state(&self) -> Vec<Arc<Pod>> {
        self.state_filter(|_| true)
    }

    /// Those of which this is true.
    pub(crate) fn state_filter(&self, is_wanted: impl Fn(&Pod) -> bool) -> Vec<Arc<Pod>> {
        let pods = self.read();
        pods.values().flatten().map(|named| &named.0).filter(|pod| is_wanted(pod)).cloned().collect()
    }

    /// The pod of this name.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.read().get(namespace)?.get(name).map(|named| named.0.clone())
    }

    fn read(&self) -> RwLockReadGuard<'_, Pods> {
        self.pods.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes what the watch tells into a store.
#[derive(Debug, Default)]
pub(super) struct PodWriter {
    store: PodStore,
    /// What a list has shown so far. Who reads sees the pods of before until it is whole.
    listed: Pods,
}

impl PodWriter {
    pub(super) fn new(store: PodStore) -> PodWriter {
        PodWriter { store, listed: Pods::default() }
    }

    /// Takes note of a change.
    pub(super) fn apply(&mut self, event: &Event<Pod>) {
        match event {
            Event::Init => self.listed = Pods::default(),
            Event::InitApply(pod) => insert(&mut self.listed, pod),
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                self.change(|pods| *pods = listed);
            }
            Event::Apply(pod) => self.change(|pods| insert(pods, pod)),
            Event::Delete(pod) => self.change(|pods| remove(pods, pod)),
        }
    }

    fn change(&self, change: impl FnOnce(&mut Pods)) {
        change(&mut self.store.pods.write().unwrap_or_else(PoisonError::into_inner));
    }
}

fn insert(pods: &mut Pods, pod: &Pod) {
    let kept = Arc::new(pod.clone());
    let namespace = match pods.get_mut(pod.namespace()) {
        Some(namespace) => namespace,
        None => pods.entry(kept.metadata.key.namespace.clone()).or_default(),
    };
    namespace.replace(Named(kept));
}

fn remove(pods: &mut Pods, pod: &Pod) {
    let Some(namespace) = pods.get_mut(pod.namespace()) else { return };
    namespace.remove(pod.name());
    if namespace.is_empty() {
        pods.remove(pod.namespace());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(namespace: &str, name: &str) -> Pod {
        serde_json::from_value(json!({ "metadata": { "namespace": namespace, "name": name } })).unwrap()
    }

    fn names(store: &PodStore) -> Vec<String> {
        store.state().iter().map(|pod| format!("{}/{}", pod.namespace(), pod.name())).collect()
    }

    #[test]
    fn a_list_replaces_what_was_there_once_it_is_whole() {
        let store = PodStore::default();
        let mut writer = PodWriter::new(store.clone());
        [Event::Init, Event::InitApply(pod("b", "x")), Event::InitApply(pod("a", "y"))]
            .iter()
            .for_each(|event| writer.apply(event));
        assert!(names(&store).is_empty(), "the list is not whole yet");
        writer.apply(&Event::InitDone);
        assert_eq!(names(&store), ["a/y", "b/x"]);
        [Event::Init, Event::InitApply(pod("c", "z"))].iter().for_each(|event| writer.apply(event));
        assert_eq!(names(&store), ["a/y", "b/x"]);
        writer.apply(&Event::InitDone);
        assert_eq!(names(&store), ["c/z"]);
    }

    #[test]
    fn a_list_that_begins_anew_forgets_what_it_had_shown() {
        let store = PodStore::default();
        let mut writer = PodWriter::new(store.clone());
        [Event::Init, Event::InitApply(pod("a", "x")), Event::Init, Event::InitDone]
            .iter()
            .for_each(|event| writer.apply(event));
        assert!(names(&store).is_empty());
    }

    #[test]
    fn pods_come_change_and_go() {
        let store = PodStore::default();
        let mut writer = PodWriter::new(store.clone());
        writer.apply(&Event::Apply(pod("a", "x")));
        let first = store.get("a", "x");
        writer.apply(&Event::Apply(pod("a", "x")));
        assert!(!Arc::ptr_eq(&first.unwrap(), &store.get("a", "x").unwrap()), "another version is another object");
        assert!(store.get("a", "y").is_none() && store.get("b", "x").is_none());
        writer.apply(&Event::Delete(pod("a", "x")));
        assert!(names(&store).is_empty());
    }
}
