//! Whoever creates pods, as the API server tells of it: the pod template is passed on as it stands.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};
use tenon_api::kube_objects::WirePod as Pod;

/// A Deployment, ReplicaSet, DaemonSet, Job or PodDisruptionBudget.
pub(crate) struct Owner {
    resource: ApiResource,
    pub(crate) object: DynamicObject,
}

/// All objects of a kind.
pub(crate) async fn list<K: Resource<DynamicType = ()>>(client: &Client) -> Result<Vec<Owner>, kube::Error> {
    let resource = ApiResource::erase::<K>(&());
    let found = Api::<DynamicObject>::all_with(client.clone(), &resource).list(&ListParams::default()).await?;
    Ok(found.items.into_iter().map(|object| Owner { resource: resource.clone(), object }).collect())
}

/// Creates an object of a kind.
pub(crate) async fn create<K: Resource<DynamicType = ()>>(client: &Client, object: Value) -> Result<(), kube::Error> {
    let resource = ApiResource::erase::<K>(&());
    let object: DynamicObject = read(object)?;
    let namespace = object.namespace().unwrap_or_default();
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &resource);
    api.create(&PostParams::default(), &object).await.map(drop)
}

impl Owner {
    pub(crate) fn is_deleted(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    pub(crate) fn uid(&self) -> String {
        self.object.uid().unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> String {
        self.object.namespace().unwrap_or_default()
    }

    /// A number of its spec.
    pub(crate) fn number(&self, field: &str) -> Option<usize> {
        self.object.data["spec"][field].as_u64().and_then(|number| usize::try_from(number).ok())
    }

    /// What its pods are created from.
    pub(crate) fn template(&self) -> &Value {
        &self.object.data["spec"]["template"]
    }

    /// Whether it owns an object.
    pub(crate) fn owns(&self, object: &impl Resource) -> bool {
        let uid = self.uid();
        object.owner_references().iter().any(|owner| owner.uid == uid)
    }

    /// How its dependents name it.
    pub(crate) fn reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.resource.api_version.clone(),
            kind: self.resource.kind.clone(),
            name: self.object.name_any(),
            uid: self.uid(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    /// One of its pods.
    pub(crate) fn pod(&self) -> Value {
        let template = self.template();
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "generateName": format!("{}-", self.object.name_any()), "namespace": self.namespace(),
                "labels": template["metadata"]["labels"], "annotations": template["metadata"]["annotations"],
                "ownerReferences": [self.reference()],
            },
            "spec": template["spec"],
        })
    }

    /// Creates one of its pods.
    pub(crate) async fn create_pod(&self, client: &Client) -> Result<(), kube::Error> {
        create::<Pod>(client, self.pod()).await
    }

    /// Whether its status says all of this already. Numbers that are nothing may be left out.
    pub(crate) fn says(&self, wanted: &Value) -> bool {
        let is_nothing = |value: &Value| value.is_null() || *value == json!(0);
        wanted.as_object().into_iter().flatten().all(|(key, value)| {
            let present = &self.object.data["status"][key];
            present == value || (is_nothing(present) && is_nothing(value))
        })
    }

    /// Writes its status, unless it says all of this already.
    pub(crate) async fn report(&self, client: &Client, status: Value) -> Result<(), kube::Error> {
        if self.says(&status) {
            return Ok(());
        }
        let patch = Patch::Merge(json!({ "status": status }));
        self.api(client).patch_status(&self.object.name_any(), &PatchParams::default(), &patch).await.map(drop)
    }

    /// Asks for another number of pods, unless it asks for it already.
    pub(crate) async fn scale(&self, client: &Client, replicas: usize) -> Result<(), kube::Error> {
        if self.number("replicas") == Some(replicas) {
            return Ok(());
        }
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        self.api(client).patch(&self.object.name_any(), &PatchParams::default(), &patch).await.map(drop)
    }

    fn api(&self, client: &Client) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), &self.namespace(), &self.resource)
    }
}

/// An object of our own making.
pub(crate) fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, kube::Error> {
    serde_json::from_value(value).map_err(kube::Error::SerdeError)
}
