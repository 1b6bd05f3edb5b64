//! What goes when something else has gone?
//!
//! The garbage collector and the end of namespaces, run at once instead of a moment later. Foreground deletion is
//! treated as background deletion.

use std::sync::Arc;

use serde_json::{Value, json};

use super::object;
use super::state::State;

impl State {
    /// Deletes what belonged to an object that is gone and to nobody else.
    pub(crate) fn collect(&mut self, uid: &str) {
        for (shelf, key) in self.store.dependents(uid) {
            let Some(dependent) = self.store.get(&shelf, &key) else { continue };
            if object::owners(&dependent).any(|owner| self.store.is_alive(owner)) {
                let alive = |owner: &Value| self.store.is_alive(object::text(owner, "/uid"));
                let new = with_owners(&dependent, alive);
                self.store.put(&shelf, new);
            } else {
                self.end(&shelf, &key);
            }
        }
    }

    /// Lets the dependents of an object outlive it.
    pub(crate) fn orphan(&mut self, uid: &str) {
        for (shelf, key) in self.store.dependents(uid) {
            let Some(dependent) = self.store.get(&shelf, &key) else { continue };
            let new = with_owners(&dependent, |owner| object::text(owner, "/uid") != uid);
            self.store.put(&shelf, new);
        }
    }

    /// Begins the end of a namespace: it goes when everything in it is gone.
    pub(crate) fn end_namespace(&mut self, old: &Arc<Value>) -> Arc<Value> {
        let mut latest = old.clone();
        if !object::is_deleting(old) {
            let (mut new, now) = ((**old).clone(), self.stamp(0));
            object::set_meta(&mut new, "deletionTimestamp", Some(now));
            object::set(&mut new, "status", Some(json!({ "phase": "Terminating" })));
            latest = self.store.put(&self.built_in("", "namespaces").shelf(), new);
        }
        for (shelf, key) in self.store.in_namespace(object::name(old)) {
            self.end(&shelf, &key);
        }
        self.finish_namespace(object::name(old));
        latest
    }

    /// Removes a namespace that is being deleted and empty.
    pub(crate) fn finish_namespace(&mut self, name: &str) {
        let namespaces = self.built_in("", "namespaces").shelf();
        let key = (String::new(), name.to_owned());
        let found = self.store.get(&namespaces, &key).filter(|found| object::is_deleting(found));
        let is_held = found.as_ref().is_some_and(|found| object::finalizers(found).next().is_some());
        if !name.is_empty() && found.is_some() && !is_held && self.store.in_namespace(name).is_empty() {
            self.take_away(&namespaces, &key);
        }
    }
}

fn with_owners(dependent: &Arc<Value>, stays: impl Fn(&Value) -> bool) -> Value {
    let mut new = (**dependent).clone();
    let owners: Vec<Value> =
        object::list(dependent, "/metadata/ownerReferences").iter().filter(|o| stays(o)).cloned().collect();
    object::set_meta(&mut new, "ownerReferences", (!owners.is_empty()).then(|| owners.into()));
    new
}
