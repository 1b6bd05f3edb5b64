//! How does an object become another?
//!
//! Every update comes through here: what clients may not change is put back, what they may is checked, counted and
//! stored. A write that changes nothing is no change.

use std::sync::Arc;

use serde_json::{Value, json};

use super::create::{check_kind, check_place, unqualified};
use super::failure::{ApiResult, Failure, MODIFIED, forbidden, invalid};
use super::kinds::Kind;
use super::state::State;
use super::target::Target;
use super::{defaults, events, object};
use crate::cluster_schema::FieldError;

impl State {
    /// A PUT of an object or its status.
    pub(crate) fn put(&mut self, target: &Target, mut new: Value) -> ApiResult<Arc<Value>> {
        let kind = &target.kind;
        check_kind(kind, &new)?;
        check_name(target, &new)?;
        if kind.is_new_event() {
            new = events::to_old(new);
        }
        let old = self.object(target)?;
        let (given, real) = (object::uid(&new), object::uid(&old));
        if !given.is_empty() && given != real {
            return Err(Failure::conflict(kind, target.name(), &wrong_uid(target, given, real)));
        }
        if object::version(&new).is_empty() && kind.needs_version {
            return Err(Failure::version_required(kind, target.name()));
        }
        self.rewrite(target, &old, new)
    }

    /// Replaces an object, or the part of it the target names.
    pub(crate) fn rewrite(&mut self, target: &Target, old: &Arc<Value>, mut new: Value) -> ApiResult<Arc<Value>> {
        let kind = &target.kind;
        check_name(target, &new)?;
        check_place(target, &new)?;
        let version = object::version(&new);
        if !version.is_empty() && version.parse::<u64>().is_err() {
            return Err(Failure::internal(format!("strconv.ParseUint: parsing {version:?}: invalid syntax")));
        }
        if !version.is_empty() && version != object::version(old) {
            return Err(Failure::conflict(kind, target.name(), MODIFIED));
        }
        keep_other_part(target, old, &mut new);
        self.shape_request(target, old, &mut new)?;
        check_metadata(kind, old, &new)?;
        keep_metadata(kind, old, &mut new);
        if let Some(custom) = &kind.custom {
            let admit = self.config.admit;
            let outcome = admit(&custom.schema, &mut new, Some(old));
            outcome.map_err(|errors| Failure::invalid(kind, target.name(), &errors))?;
        } else {
            defaults::on_write(kind, &mut new);
        }
        if kind.has_generation && wanted(kind, old) != wanted(kind, &new) {
            let generation = object::number(old, "/metadata/generation").unwrap_or(0) + 1;
            object::set_meta(&mut new, "generation", Some(generation.into()));
        }
        if kind.is_definition() {
            self.define(&mut new)?;
        }
        if new == **old {
            return Ok(old.clone());
        }
        Ok(self.settle(target, old, new))
    }

    /// Stores what an update made, unless it was the last thing that kept the object.
    fn settle(&mut self, target: &Target, old: &Value, new: Value) -> Arc<Value> {
        let shelf = target.kind.shelf();
        let is_free = object::finalizers(&new).next().is_none() && object::finalizers(old).next().is_some();
        let is_waiting = object::number(&new, "/metadata/deletionGracePeriodSeconds").unwrap_or(0) > 0;
        if object::is_deleting(&new) && is_free && !is_waiting && !target.kind.is("", "namespaces") {
            self.take_away(&shelf, &target.key());
            return Arc::new(new);
        }
        let stored = self.store.put(&shelf, new);
        if target.kind.is_signing_request() {
            self.answer_request(&stored);
        }
        stored
    }
}

/// The name stands in the path, and an object cannot say another.
pub(crate) fn check_name(target: &Target, new: &Value) -> ApiResult<()> {
    let (given, wanted) = (object::name(new), target.name());
    if given == wanted {
        return Ok(());
    }
    if given.is_empty() {
        let told = format!("the name of the object ({wanted} based on URL) was undeterminable: name must be provided");
        return Err(Failure::bad_request(told));
    }
    let told = format!("the name of the object ({given}) does not match the name on the URL ({wanted})");
    Err(Failure::bad_request(told))
}

/// All that counts as wanted: everything but metadata and, where it is a part of its own, the status.
fn wanted<'a>(kind: &Kind, object: &'a Value) -> Vec<(&'a String, &'a Value)> {
    let parts = object.as_object().into_iter().flatten();
    let is_wanted = |key: &str| match key {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => !kind.has_status,
        _ => true,
    };
    parts.filter(|(key, _)| is_wanted(key)).collect()
}

/// A write of the status leaves the rest alone, and the other way round.
fn keep_other_part(target: &Target, old: &Value, new: &mut Value) {
    let kind = &target.kind;
    match target.part.as_deref() {
        Some("status" | "approval") => {
            let (status, metadata) = (new.get("status").cloned(), new.get("metadata").cloned());
            *new = old.clone();
            object::set(new, "status", status);
            // Of a built-in kind, labels and the like may come with the status; of a custom one nothing does.
            if kind.custom.is_none() {
                object::set(new, "metadata", metadata);
            }
        }
        _ if kind.has_status => object::set(new, "status", old.get("status").cloned()),
        _ => {}
    }
}

fn check_metadata(kind: &Kind, old: &Value, new: &Value) -> ApiResult<()> {
    let mut errors: Vec<FieldError> = Vec::new();
    let uid = object::uid(new);
    if !uid.is_empty() && uid != object::uid(old) {
        errors.push(invalid("metadata.uid", format!("Invalid value: {uid:?}: field is immutable")));
    }
    let added: Vec<&str> =
        object::finalizers(new).filter(|new| object::finalizers(old).all(|old| old != *new)).collect();
    if object::is_deleting(old) && !added.is_empty() {
        let list: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
        let told = format!(
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            list.join(", ")
        );
        errors.push(forbidden("metadata.finalizers", told));
    }
    errors.extend(unqualified(kind, new));
    if errors.is_empty() {
        return Ok(());
    }
    // A real server checks metadata twice, and tells its causes twice.
    Err(Failure::invalid(kind, object::name(old), &[errors.clone(), errors].concat()))
}

/// What only the server sets stays as it was.
fn keep_metadata(kind: &Kind, old: &Value, new: &mut Value) {
    const KEPT: [&str; 8] = [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "generation",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    let metadata = old.get("metadata").cloned().unwrap_or_else(|| json!({}));
    for key in KEPT {
        object::set_meta(new, key, metadata.get(key).cloned());
    }
    drop_empty(new);
    object::set_meta(new, "managedFields", None);
    object::set_meta(new, "selfLink", None);
    let api_version = if kind.is_new_event() { "v1".to_owned() } else { kind.api_version() };
    object::set(new, "apiVersion", Some(api_version.into()));
    object::set(new, "kind", Some(kind.kind.clone().into()));
}

/// Empty lists and maps are not stored, so that removing the last entry and the list are the same.
pub(crate) fn drop_empty(new: &mut Value) {
    for key in ["finalizers", "ownerReferences", "labels", "annotations"] {
        let is_empty = new["metadata"].get(key).is_some_and(|value| {
            value.is_null()
                || value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(serde_json::Map::is_empty)
        });
        if is_empty {
            object::set_meta(new, key, None);
        }
    }
}

/// How the store says that an object is another one than was meant.
pub(crate) fn wrong_uid(target: &Target, given: &str, real: &str) -> String {
    let key = storage_key(target);
    format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {given}, UID in object meta: {real}"
    )
}

/// Where etcd would keep it, as one message tells.
fn storage_key(target: &Target) -> String {
    let kind = &target.kind;
    let shelf = match (kind.custom.is_some(), kind.resource.as_str()) {
        (true, resource) => format!("{}/{resource}", kind.group),
        (false, "nodes") => "minions".into(),
        (false, resource) => resource.into(),
    };
    let place = [shelf.as_str(), &target.namespace, target.name()];
    format!("/registry/{}", place.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/"))
}
