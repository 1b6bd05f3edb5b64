//! What all objects have in common: how the API server names their kind, and what a missing value means.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer};

/// Says under which group, version and plural name the API server serves a kind.
macro_rules! resource {
    ($kind:ident, $scope:ident, $group:literal, $version:literal, $plural:literal) => {
        impl k8s_openapi::Resource for $kind {
            const API_VERSION: &'static str = if $group.is_empty() { $version } else { concat!($group, "/", $version) };
            const GROUP: &'static str = $group;
            const KIND: &'static str = stringify!($kind);
            const VERSION: &'static str = $version;
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = k8s_openapi::$scope;
        }

        impl k8s_openapi::Metadata for $kind {
            type Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

            fn metadata(&self) -> &Self::Ty {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.metadata
            }
        }
    };
}

pub(super) use resource;

/// Writers in Go send `null` for an empty list, and mean nothing by it.
pub(super) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Metadata without `managedFields`. Who set which field when is often half of an object; as a tree of values it takes more time
/// and memory to read than all the rest, and nobody asks.
pub(crate) fn metadata<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    let sent: SentMeta = or_default(from)?;
    Ok(ObjectMeta {
        annotations: sent.annotations,
        creation_timestamp: sent.creation_timestamp,
        deletion_grace_period_seconds: sent.deletion_grace_period_seconds,
        deletion_timestamp: sent.deletion_timestamp,
        finalizers: sent.finalizers,
        generate_name: sent.generate_name,
        generation: sent.generation,
        labels: sent.labels,
        managed_fields: None,
        name: sent.name,
        namespace: sent.namespace,
        owner_references: sent.owner_references,
        resource_version: sent.resource_version,
        self_link: None,
        uid: sent.uid,
    })
}

/// Everything of `ObjectMeta` that is read.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SentMeta {
    annotations: Option<BTreeMap<String, String>>,
    creation_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    deletion_timestamp: Option<Time>,
    finalizers: Option<Vec<String>>,
    generate_name: Option<String>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    name: Option<String>,
    namespace: Option<String>,
    owner_references: Option<Vec<OwnerReference>>,
    resource_version: Option<String>,
    uid: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Everything that a server may say.
    fn whole() -> Value {
        json!({
            "annotations": { "a": "b" }, "creationTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30,
            "deletionTimestamp": "2026-01-01T00:00:30Z", "finalizers": ["f"], "generateName": "web-", "generation": 2,
            "labels": { "app": "web", "empty": "" }, "name": "web-1", "namespace": "shop",
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": true }],
            "resourceVersion": "7", "uid": "u-1",
        })
    }

    #[test]
    fn metadata_says_what_the_library_reads_but_for_managers() {
        let mut sent = whole();
        let expected: ObjectMeta = serde_json::from_value(sent.clone()).unwrap();
        assert_eq!(serde_json::to_value(&expected).unwrap(), sent, "a field is missing above");
        sent["managedFields"] = json!([{ "manager": "kubelet", "operation": "Update", "fieldsV1": { "f:spec": {} } }]);
        assert_eq!(metadata(sent).unwrap(), expected);
    }

    #[test]
    fn no_metadata_is_empty_metadata() {
        let nulls: serde_json::Map<String, Value> =
            whole().as_object().unwrap().keys().map(|field| (field.clone(), Value::Null)).collect();
        for sent in [Value::Null, json!({}), nulls.into()] {
            assert_eq!(metadata(sent).unwrap(), ObjectMeta::default());
        }
    }
}
