//! The embedded API server behaves like a real one. Codes and words in these tests were taken from kube-apiserver 1.36.3.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod clock;
mod custom;
mod deletion;
mod discovery;
mod eviction;
mod identity;
mod kubelets;
mod listing;
mod objects;
mod parts;
mod patches;
mod watching;

use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Client;
use serde_json::{Value, json};
use tenon_sim::{Cluster, ClusterConfig};

pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) fn cluster() -> Cluster {
    Cluster::new(ClusterConfig::default()).unwrap()
}

/// A new cluster and somebody who may do everything in it.
pub(crate) fn admin() -> Asker {
    Asker(cluster().client())
}

/// Speaks plain HTTP with a cluster.
#[derive(Clone)]
pub(crate) struct Asker(pub(crate) Client);

impl Asker {
    pub(crate) async fn send(&self, method: &str, path: &str, typed: (&str, Value)) -> (u16, Value) {
        let (code, text) = self.text(method, path, typed).await;
        (code, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub(crate) async fn text(&self, method: &str, path: &str, (kind, body): (&str, Value)) -> (u16, String) {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        let response = self.0.send(request.body(body.into()).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(bytes.to_vec()).unwrap())
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, ("application/json", Value::Null)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send("POST", path, ("application/json", body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> (u16, Value) {
        self.send("PUT", path, ("application/json", body)).await
    }

    pub(crate) async fn patch(&self, path: &str, typed: (&str, Value)) -> (u16, Value) {
        self.send("PATCH", path, typed).await
    }

    pub(crate) async fn delete(&self, path: &str, options: Value) -> (u16, Value) {
        self.send("DELETE", path, ("application/json", options)).await
    }

    /// Makes what must be possible to make.
    pub(crate) async fn make(&self, path: &str, body: Value) -> Value {
        let (code, made) = self.post(path, body).await;
        assert_eq!(code, 201, "{made}");
        made
    }
}

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "labels": { "app": "x" } },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    })
}

pub(crate) fn pod_on(name: &str, node: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["nodeName"] = node.into();
    pod
}

pub(crate) fn typed_pod(name: &str) -> Pod {
    serde_json::from_value(pod(name)).unwrap()
}

pub(crate) fn map(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "data": { "a": "b" } })
}

pub(crate) fn typed_map(name: &str) -> ConfigMap {
    serde_json::from_value(map(name)).unwrap()
}
