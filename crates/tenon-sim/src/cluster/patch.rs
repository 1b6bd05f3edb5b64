//! How is a patch applied?
//!
//! JSON merge patch, JSON patch and, for built-in kinds, strategic merge. Server-side apply is left to real servers.

use std::sync::Arc;

use serde_json::Value;

use super::failure::{ApiResult, Failure};
use super::state::State;
use super::target::Target;
use super::{events, object, strategic};

pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const JSON: &str = "application/json-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY: [&str; 2] = ["application/apply-patch+yaml", "application/apply-patch+cbor"];

/// A patch and its language.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    pub(crate) language: String,
    pub(crate) body: Value,
}

impl State {
    /// A PATCH of an object or its status.
    pub(crate) fn patch(&mut self, target: &Target, patch: &Patch) -> ApiResult<Arc<Value>> {
        let old = self.object(target)?;
        let is_event = target.kind.is_new_event();
        let seen = if is_event { events::to_new((*old).clone()) } else { (*old).clone() };
        let new = apply(seen, patch, target.kind.custom.is_some())?;
        // A patch may not turn an object into one of another kind.
        super::create::check_kind(&target.kind, &new)?;
        super::update::check_name(target, &new)?;
        let new = if is_event { events::to_old(new) } else { new };
        self.rewrite(target, &old, new)
    }
}

/// The patched document.
pub(crate) fn apply(mut document: Value, patch: &Patch, is_custom: bool) -> ApiResult<Value> {
    let language = patch.language.as_str();
    match language {
        MERGE => json_patch::merge(&mut document, &patch.body),
        JSON => apply_operations(&mut document, &patch.body)?,
        STRATEGIC if !is_custom => strategic::merge(&mut document, &patch.body),
        STRATEGIC => {
            let accepted = [JSON, MERGE, APPLY[0]].join(", ");
            let told =
                format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
            return Err(Failure::media_type(told));
        }
        _ if APPLY.contains(&language) => {
            let told = "the embedded API server does not do server-side apply: create, update, or patch instead";
            return Err(Failure::media_type(told));
        }
        _ => {
            let told = "415: Unsupported Media Type";
            return Err(Failure::media_type(told).with(serde_json::json!({})));
        }
    }
    Ok(document)
}

fn apply_operations(document: &mut Value, body: &Value) -> ApiResult<()> {
    if !body.is_array() {
        let told = "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp";
        return Err(Failure::bad_request(told));
    }
    // A test that fails and a path that is not there are told alike.
    let rejected = |told: &str| Failure::new(422, "Invalid", told).with(serde_json::json!({}));
    let general = "the server rejected our request due to an error in our request";
    let operations: json_patch::Patch = serde_json::from_value(body.clone()).map_err(|_| rejected(general))?;
    json_patch::patch(document, &operations).map_err(|_| rejected(general))?;
    // Removing the last entry of a map by its key leaves an empty map, as it should.
    object::edit(document, |_| ());
    Ok(())
}
