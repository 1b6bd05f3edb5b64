//! How does an object go, and what keeps it?

use std::sync::Arc;

use serde_json::{Value, json};

use super::failure::{ApiResult, Failure};
use super::kinds::{Kind, ShelfName};
use super::object;
use super::selector::Selector;
use super::state::State;
use super::store::Key;
use super::target::Target;

/// What a caller wants of a deletion.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_s: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) orphans: bool,
}

impl DeleteOptions {
    /// From the body, or else from the query.
    pub(crate) fn read(body: Option<&Value>, query: impl Fn(&str) -> Option<String>) -> Self {
        let body = body.cloned().unwrap_or_default();
        let owned = |pointer: &str| Some(object::text(&body, pointer).to_owned()).filter(|text| !text.is_empty());
        let asked = owned("/propagationPolicy").or_else(|| query("propagationPolicy"));
        let old_way = body.get("orphanDependents").and_then(Value::as_bool).unwrap_or(false);
        let grace_s = object::number(&body, "/gracePeriodSeconds");
        Self {
            grace_s: grace_s.or_else(|| query("gracePeriodSeconds")?.parse().ok()),
            uid: owned("/preconditions/uid"),
            version: owned("/preconditions/resourceVersion"),
            orphans: old_way || asked.as_deref() == Some("Orphan"),
        }
    }

    pub(crate) fn check(&self, kind: &Kind, object: &Value) -> ApiResult<()> {
        let stale = |why: String| Err(Failure::stale(kind, object::name(object), &why));
        if let Some(uid) = self.uid.as_deref().filter(|uid| *uid != object::uid(object)) {
            return stale(format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). \
                 The object might have been deleted and then recreated",
                object::uid(object)
            ));
        }
        if let Some(version) = self.version.as_deref().filter(|version| *version != object::version(object)) {
            return stale(format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). \
                 The object might have been modified",
                object::version(object)
            ));
        }
        Ok(())
    }
}

/// What came of a deletion.
enum Ended {
    Gone(Value),
    Stays(Arc<Value>),
}

impl State {
    /// A DELETE of one object; what comes back is the answer's body.
    pub(crate) fn delete(&mut self, target: &Target, options: &DeleteOptions) -> ApiResult<Value> {
        let (kind, old) = (&target.kind, self.object(target)?);
        options.check(kind, &old)?;
        if kind.is("", "namespaces") && matches!(target.name(), "default" | "kube-system" | "kube-public") {
            return Err(Failure::forbidden(kind, target.name(), "this namespace may not be deleted"));
        }
        if options.orphans {
            self.orphan(object::uid(&old));
        }
        let is_shown = is_shown(kind);
        Ok(match self.begin_end(kind, &old, options.grace_s) {
            Ended::Stays(object) => (*object).clone(),
            Ended::Gone(last) if is_shown => last,
            Ended::Gone(last) => {
                let mut details = kind.details(target.name());
                details["uid"] = object::uid(&last).into();
                json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
            }
        })
    }

    /// A DELETE of all objects that match; what they were comes back.
    pub(crate) fn delete_all(
        &mut self,
        target: &Target,
        selector: &Selector,
        options: &DeleteOptions,
    ) -> Vec<Arc<Value>> {
        let (kind, shelf) = (&target.kind, target.kind.shelf());
        let is_meant = |key: &Key| target.namespace.is_empty() || key.0 == target.namespace;
        let meant = self.store.objects(&shelf).filter(|(key, object)| is_meant(key) && selector.matches(object));
        let meant: Vec<Arc<Value>> = meant.map(|(_, object)| object.clone()).collect();
        for object in &meant {
            if options.orphans {
                self.orphan(object::uid(object));
            }
            self.begin_end(kind, object, options.grace_s);
        }
        meant
    }

    /// Ends an object in the way that is usual for its kind.
    pub(crate) fn end(&mut self, shelf: &ShelfName, key: &Key) {
        if let (Some(kind), Some(old)) = (self.kinds.of_shelf(shelf), self.store.get(shelf, key)) {
            self.begin_end(&kind, &old, None);
        }
    }

    fn begin_end(&mut self, kind: &Kind, old: &Arc<Value>, grace_s: Option<i64>) -> Ended {
        let key = (object::namespace(old).to_owned(), object::name(old).to_owned());
        if kind.is("", "namespaces") {
            return Ended::Stays(self.end_namespace(old));
        }
        if kind.is_definition() {
            return Ended::Stays(self.end_definition(old));
        }
        let is_held = object::finalizers(old).next().is_some();
        let period = if kind.is_pod() { pod_grace(old, grace_s) } else { 0 };
        let marked = object::number(old, "/metadata/deletionGracePeriodSeconds");
        // Pods are marked even when they go at once; so is whatever has to wait for its finalizers.
        let marking = match marked.filter(|_| object::is_deleting(old)) {
            None if object::is_deleting(old) => None,
            None => (kind.is_pod() || is_held).then(|| self.stamp(period)),
            Some(_) if !kind.is_pod() || grace_s.is_none() => None,
            Some(left) if period >= left => None,
            Some(left) => Some(shifted(object::text(old, "/metadata/deletionTimestamp"), period - left)),
        };
        let is_marked = marking.is_some() || !object::is_deleting(old);
        let left = if is_marked { period } else { marked.unwrap_or(0) };
        let latest = marking.map_or_else(|| old.clone(), |at| self.mark(kind, old, (at, period)));
        if is_held || left > 0 {
            return Ended::Stays(latest);
        }
        self.take_away(&kind.shelf(), &key).map_or(Ended::Stays(latest), Ended::Gone)
    }

    /// Writes down when an object goes.
    fn mark(&mut self, kind: &Kind, old: &Value, (at, period): (Value, i64)) -> Arc<Value> {
        let mut new = old.clone();
        object::set_meta(&mut new, "deletionTimestamp", Some(at));
        object::set_meta(&mut new, "deletionGracePeriodSeconds", Some(period.into()));
        if let Some(generation) = object::number(old, "/metadata/generation").filter(|_| !object::is_deleting(old)) {
            object::set_meta(&mut new, "generation", Some((generation + 1).into()));
        }
        self.store.put(&kind.shelf(), new)
    }

    /// Takes an object away for good, and lets follow what follows.
    pub(crate) fn take_away(&mut self, shelf: &ShelfName, key: &Key) -> Option<Value> {
        let last = self.store.remove(shelf, key)?;
        self.collect(object::uid(&last));
        self.finish_namespace(&key.0);
        self.finish_definition(shelf);
        Some(last)
    }
}

/// Whether a deletion is answered with what is gone instead of a Status: a habit of the older kinds.
fn is_shown(kind: &Kind) -> bool {
    const SHOWN: [&str; 6] =
        ["namespaces", "persistentvolumeclaims", "persistentvolumes", "pods", "serviceaccounts", "services"];
    (kind.group.is_empty() && SHOWN.contains(&kind.resource.as_str())) || kind.group == "storage.k8s.io"
}

/// How long a pod has to end.
fn pod_grace(pod: &Value, asked: Option<i64>) -> i64 {
    let is_over = matches!(object::text(pod, "/status/phase"), "Failed" | "Succeeded");
    if object::text(pod, "/spec/nodeName").is_empty() || is_over {
        return 0;
    }
    let wanted = asked.or_else(|| object::number(pod, "/spec/terminationGracePeriodSeconds")).unwrap_or(0);
    if wanted < 0 { 1 } else { wanted }
}

fn shifted(time: &str, seconds: i64) -> Value {
    let parsed: Option<jiff::Timestamp> = time.parse().ok();
    let moved = parsed.and_then(|time| time.checked_add(jiff::SignedDuration::from_secs(seconds)).ok());
    moved.map_or_else(|| time.into(), |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into())
}
