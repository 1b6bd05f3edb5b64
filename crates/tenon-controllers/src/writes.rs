//! Writes to Kubernetes that hold only if nobody wrote in between.
//!
//! Merge patches replace lists whole, so every patch carries the version it was made from. Losing the race is no error:
//! whoever won woke us, and the next pass starts from what is true then.

use std::fmt::Debug;

use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What came of a write.
#[derive(Debug)]
pub(crate) enum Written<K> {
    /// It stands; the object as it is now.
    Done(Box<K>),
    /// Somebody was faster, or the object is gone.
    Outdated,
}

/// Patches an object if it is still the one that was read.
pub(crate) async fn merge<K>(client: &Client, object: &K, patch: Value) -> Result<Written<K>, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let api: Api<K> = Api::all(client.clone());
    written(api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(guarded(object, patch))).await)
}

/// The same for its status.
pub(crate) async fn merge_status<K>(client: &Client, object: &K, status: &Value) -> Result<Written<K>, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let patch = guarded(object, json!({ "status": status }));
    written(api.patch_status(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await)
}

/// Deletes just this object, not another that has its name by now. One that is gone already is as good.
pub(crate) async fn delete<K>(api: &Api<K>, object: &K) -> Result<(), kube::Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let preconditions = Some(Preconditions { uid: object.uid(), resource_version: None });
    match api.delete(&object.name_any(), &DeleteParams { preconditions, ..DeleteParams::default() }).await {
        Ok(_) => Ok(()),
        Err(error) if is_outdated(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether an object is gone or was written by somebody else meanwhile.
pub(crate) fn is_outdated(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(refusal) if matches!(refusal.code, 404 | 409))
}

fn guarded<K: Resource>(object: &K, mut patch: Value) -> Value {
    // The uid besides: a version is never used twice, but an object that was made anew should not even be looked at.
    let (version, uid) = (object.resource_version(), object.uid());
    if let Some(patch) = patch.as_object_mut() {
        let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
        metadata["resourceVersion"] = json!(version);
        metadata["uid"] = json!(uid);
    }
    patch
}

fn written<K>(outcome: Result<K, kube::Error>) -> Result<Written<K>, kube::Error> {
    match outcome {
        Ok(object) => Ok(Written::Done(Box::new(object))),
        Err(error) if is_outdated(&error) => Ok(Written::Outdated),
        Err(error) => Err(error),
    }
}
