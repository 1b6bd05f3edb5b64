//! What the tests of this binary share: one control plane, a namespace each, and patience with a bound.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ServiceAccount};
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use testbed::proof::with_programs;
use testbed::{Program, Testbed};

/// What a loaded machine needs at most for anything a control plane does by itself.
const PATIENCE: Duration = Duration::from_secs(90);

/// A control plane of the test's own; `None` where there are no programs for one and none are required.
pub(crate) fn own_testbed() -> anyhow::Result<Option<Testbed>> {
    // One start at a time: four at once on two cores are slower than four in a row.
    static STARTING: Mutex<()> = Mutex::new(());
    if with_programs(&Program::CONTROL_PLANE)?.is_none() {
        return Ok(None);
    }
    let _turn = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Some(Testbed::start()?))
}

/// The control plane that tests share which do not harm it.
pub(crate) fn shared_testbed() -> anyhow::Result<Option<&'static Testbed>> {
    // Never dropped: the keeper cleans up when this process ends.
    static SHARED: OnceLock<Result<Option<Testbed>, String>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| own_testbed().map_err(|error| format!("{error:#}")));
    shared.as_ref().map(Option::as_ref).map_err(|error| anyhow!("{error}"))
}

/// Asks again and again until the answer is `Some`, and gives up with the name of what was waited for.
pub(crate) async fn eventually<T>(
    what: &str,
    mut ask: impl AsyncFnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let asking = async {
        loop {
            if let Some(answer) = ask().await? {
                return Ok(answer);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    match tokio::time::timeout(PATIENCE, asking).await {
        Ok(answer) => answer,
        Err(_) => bail!("waited {} s in vain: {what}", PATIENCE.as_secs()),
    }
}

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
