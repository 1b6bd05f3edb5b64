//! What may be said about a request for a certificate, and by which part of it?
//!
//! `approval` takes conditions and nothing else; `status` takes everything but a decision. A decision is never taken back.

use serde_json::{Value, json};

use super::failure::{ApiResult, Failure, forbidden, invalid};
use super::object::{self, list, text};
use super::state::State;
use super::target::Target;
use crate::cluster_schema::FieldError;

const CONDITIONS: &str = "status.conditions";
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

impl State {
    /// Completes and checks what a write of a part says.
    pub(crate) fn shape_request(&self, target: &Target, old: &Value, new: &mut Value) -> ApiResult<()> {
        let is_approval = target.part.as_deref() == Some("approval");
        if !target.kind.is_signing_request() || target.part.is_none() {
            return Ok(());
        }
        let mut conditions: Vec<Value> = list(new, "/status/conditions").to_vec();
        let now = self.stamp(0);
        for condition in &mut conditions {
            object::default(condition, "lastUpdateTime", json!(now));
            object::default(condition, "lastTransitionTime", json!(now));
        }
        let mut status = if is_approval { old.get("status").cloned() } else { new.get("status").cloned() };
        let status = status.get_or_insert_with(|| json!({}));
        object::set(status, "conditions", (!conditions.is_empty()).then(|| conditions.clone().into()));
        object::set(new, "status", Some(status.clone()));
        let errors = faults(list(old, "/status/conditions"), &conditions, is_approval);
        if errors.is_empty() { Ok(()) } else { Err(Failure::invalid(&target.kind, target.name(), &errors)) }
    }
}

fn faults(old: &[Value], new: &[Value], is_approval: bool) -> Vec<FieldError> {
    let count = |conditions: &[Value], kind: &str| conditions.iter().filter(|told| text(told, "/type") == kind).count();
    let mut errors = Vec::new();
    for (index, condition) in new.iter().enumerate() {
        let status = text(condition, "/status");
        if status != "True" && DECISIONS.contains(&text(condition, "/type")) {
            let told = format!("Unsupported value: {status:?}: supported values: \"True\"");
            errors.push(invalid(&format!("{CONDITIONS}[{index}].status"), told));
        }
    }
    if DECISIONS.iter().all(|kind| count(new, kind) > 0) {
        let last = new.iter().rev().map(|told| text(told, "/type")).find(|kind| DECISIONS.contains(kind));
        let told = "Approved and Denied conditions are mutually exclusive";
        errors.push(invalid(CONDITIONS, format!("Invalid value: {:?}: {told}", last.unwrap_or_default())));
    }
    for kind in ["Approved", "Denied", "Failed"].into_iter().filter(|kind| count(new, kind) < count(old, kind)) {
        errors.push(forbidden(CONDITIONS, format!("Forbidden: updates may not remove a condition of type {kind:?}")));
    }
    for kind in DECISIONS.into_iter().filter(|kind| !is_approval && count(new, kind) > count(old, kind)) {
        errors.push(forbidden(CONDITIONS, format!("Forbidden: updates may not add a condition of type {kind:?}")));
    }
    errors
}
