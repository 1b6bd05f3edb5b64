//! What the tests of this binary share: a namespace each, nodes and pods made by hand.

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ServiceAccount};
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
pub(crate) use testbed::{eventually, own_testbed, shared_testbed};

/// A namespace whose default ServiceAccount is there, so that pods can be made.
pub(crate) async fn new_namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace =
        Namespace { metadata: ObjectMeta { name: Some(name.to_owned()), ..Default::default() }, ..Default::default() };
    namespaces.create(&PostParams::default(), &namespace).await.context("cannot create the namespace")?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), name);
    eventually("the default ServiceAccount exists", async || Ok(accounts.get_opt("default").await?)).await?;
    Ok(())
}

/// A Node as a kubelet would report it: Ready, four cores, labelled `pool=<name>`.
pub(crate) async fn ready_node(client: &Client, name: &str) -> anyhow::Result<Node> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = from_json(json!({ "metadata": { "name": name, "labels": { "pool": name } } }))?;
    nodes.create(&PostParams::default(), &node).await.context("cannot create the Node")?;
    let capacity = json!({ "cpu": "4", "memory": "8Gi", "pods": "110" });
    let status = json!({ "status": {
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "made by hand" }],
    }});
    let status = Patch::Merge(status);
    nodes.patch_status(name, &PatchParams::default(), &status).await.context("cannot report the Node ready")
}

/// Says what a kubelet says of a pod that runs and is ready.
pub(crate) async fn report_running(pods: &Api<Pod>, name: &str) -> anyhow::Result<()> {
    let status = json!({ "status": {
        "phase": "Running",
        "conditions": [{ "type": "Ready", "status": "True" }],
    }});
    pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await
        .context("cannot report the pod running")?;
    Ok(())
}

/// The pod once it is bound.
pub(crate) async fn bound(pods: &Api<Pod>, name: &str) -> anyhow::Result<Pod> {
    eventually(&format!("{name} is bound"), async || {
        Ok(Some(pods.get(name).await?).filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())))
    })
    .await
}

/// An object written as JSON, which reads better than nested `Some`s.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> anyhow::Result<T> {
    serde_json::from_value(value).context("the test's own object does not parse")
}

/// Makes sure an API call was refused with this code.
pub(crate) fn assert_refused<T: std::fmt::Debug>(outcome: kube::Result<T>, code: u16) {
    match outcome {
        Err(kube::Error::Api(status)) if status.code == code => {}
        other => panic!("expected a refusal with {code}, got {other:?}"),
    }
}

/// Names of a list of objects.
pub(crate) fn names<K: ResourceExt>(objects: &[K]) -> Vec<String> {
    objects.iter().map(ResourceExt::name_any).collect()
}
