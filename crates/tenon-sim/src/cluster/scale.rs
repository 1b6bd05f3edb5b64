//! How many replicas: the scale of deployments and of custom resources that have one.

use std::sync::Arc;

use serde_json::{Value, json};

use super::failure::{ApiResult, Failure};
use super::kinds::{Kind, ScalePaths};
use super::object;
use super::patch::{Patch, apply};
use super::state::State;
use super::target::Target;

impl State {
    pub(crate) fn scale(&self, target: &Target) -> ApiResult<Value> {
        let paths = paths(target)?;
        let found = self.object(target)?;
        Ok(shown(&target.kind, paths, &found))
    }

    pub(crate) fn put_scale(&mut self, target: &Target, new: &Value) -> ApiResult<Value> {
        let (paths, old) = (paths(target)?, self.object(target)?);
        let Some(replicas) = new.pointer("/spec/replicas").and_then(Value::as_i64).or(Some(0)) else {
            return Err(Failure::bad_request("spec.replicas is no number"));
        };
        let mut changed = (*old).clone();
        let version = object::version(new);
        if !version.is_empty() {
            object::set_meta(&mut changed, "resourceVersion", Some(version.into()));
        }
        write(&mut changed, &paths.spec, replicas.into());
        let whole = Target { part: None, ..target.clone() };
        let stored: Arc<Value> = self.rewrite(&whole, &old, changed)?;
        Ok(shown(&target.kind, paths, &stored))
    }

    pub(crate) fn patch_scale(&mut self, target: &Target, patch: &Patch) -> ApiResult<Value> {
        let new = apply(self.scale(target)?, patch, true)?;
        self.put_scale(target, &new)
    }
}

fn paths(target: &Target) -> ApiResult<&ScalePaths> {
    target.kind.scale.as_ref().ok_or_else(Failure::no_resource)
}

/// Writes at a JSON pointer, and makes what is on the way.
fn write(value: &mut Value, pointer: &str, new: Value) {
    match pointer.trim_start_matches('/').split_once('/') {
        Some((first, rest)) => object::with_part(value, first, |part| write(part, rest, new)),
        None => object::set(value, pointer.trim_start_matches('/'), Some(new)),
    }
}

fn shown(kind: &Kind, paths: &ScalePaths, object: &Value) -> Value {
    let count = |pointer: &str| object::number(object, pointer).unwrap_or(0);
    let mut metadata = json!({});
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.pointer(&format!("/metadata/{key}")) {
            metadata[key] = value.clone();
        }
    }
    let mut status = json!({ "replicas": count(&paths.status) });
    let selector = match &paths.selector {
        Some(pointer) => object::text(object, pointer).to_owned(),
        None if kind.custom.is_none() => selector_text(object),
        None => String::new(),
    };
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    // None wanted is not written at all.
    let spec = match count(&paths.spec) {
        0 => json!({}),
        wanted => json!({ "replicas": wanted }),
    };
    json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status })
}

fn selector_text(object: &Value) -> String {
    let labels = object.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let pairs =
        labels.into_iter().flatten().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    pairs.collect::<Vec<_>>().join(",")
}
