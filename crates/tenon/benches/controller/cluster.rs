//! Writes the objects of the bench: many at a time, each as its writers in a real cluster do.

use std::time::Duration;

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Method, Request};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tenon_api::{NodeClaim, names};
use testbed::eventually;

use crate::estate::Lab;
use crate::workloads::{COUNT, DAEMONS, NAMESPACES, Spot, daemon_set, namespace};
use crate::{Sizes, machines};

/// Requests at a time. More do not make an API server on the same two cores faster.
const AT_ONCE: usize = 32;

const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
const NODES: &str = "/api/v1/nodes";

pub(crate) struct Cluster {
    admin: Client,
}

impl Cluster {
    pub(crate) fn new(admin: Client) -> Cluster {
        Cluster { admin }
    }

    /// Definitions, namespaces, a class, and a pool that may not grow: pods that wait are judged, and no node comes.
    pub(crate) async fn install(&self) -> anyhow::Result<()> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.admin.clone());
        for definition in tenon_api::definitions() {
            definitions.create(&PostParams::default(), &definition).await?;
            let name = definition.name_any();
            let served = await_condition(definitions.clone(), &name, conditions::is_crd_established());
            tokio::time::timeout(Duration::from_secs(30), served).await??;
        }
        let claims: Api<NodeClaim> = Api::all(self.admin.clone());
        eventually("claims are served", async || Ok(claims.list(&ListParams::default()).await.ok())).await?;
        let account = json!({ "metadata": { "name": "default" } });
        // The controller manager may have made this one before it ended.
        let _ = self.create("/api/v1/namespaces/kube-system/serviceaccounts", &account).await;
        for number in 0..NAMESPACES {
            let name = namespace(number);
            self.create("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?;
            self.create(&format!("/api/v1/namespaces/{name}/serviceaccounts"), &account).await?;
        }
        self.add_rules().await
    }

    async fn add_rules(&self) -> anyhow::Result<()> {
        let group = format!("{}/v1alpha1", names::PROXMOX);
        let template = json!({
            "apiVersion": group, "kind": "ProxmoxUnmanagedTemplate", "metadata": { "name": "debian" },
            "spec": { "templateName": "debian-13" },
        });
        self.create(&format!("/apis/{group}/proxmoxunmanagedtemplates"), &template).await?;
        let class = json!({
            "apiVersion": group, "kind": "ProxmoxNodeClass", "metadata": { "name": "default" },
            "spec": {
                "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" },
                "metadataOptions": { "type": "cdrom" },
            },
        });
        self.create(&format!("/apis/{group}/proxmoxnodeclasses"), &class).await?;
        let pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "default" },
            "spec": {
                "template": { "spec": {
                    "requirements": [],
                    "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
                } },
                "limits": { "cpu": "1" },
                "disruption": { "consolidateAfter": "Never", "budgets": [{ "nodes": "0" }] },
            },
        });
        self.create("/apis/karpenter.sh/v1/nodepools", &pool).await.map(drop)
    }

    /// Claims, their VMs and their Nodes.
    pub(crate) async fn add_machines(&self, count: usize, lab: &Lab) -> anyhow::Result<()> {
        let written = stream::iter(0..count).map(async |number| {
            let name = machines::name(number);
            let claim = self.create(CLAIMS, &machines::claim(number)).await?;
            let uid = claim["metadata"]["uid"].as_str().context("a claim has no uid")?.to_owned();
            self.set_status(&format!("{CLAIMS}/{name}"), claim, machines::claim_status(number)).await?;
            lab.add_vm(number, &name, &uid)?;
            let mut node = self.create(NODES, &machines::node(number, &uid)).await?;
            // A new Node is kept free of pods until something else finds it ready.
            node["spec"]["taints"] = json!([]);
            let node = self.send(Method::PUT, &format!("{NODES}/{name}"), "kubelet", &node).await?;
            self.set_status(&format!("{NODES}/{name}"), serde_json::from_str(&node)?, machines::node_status(number))
                .await?;
            anyhow::Ok(())
        });
        written.buffer_unordered(AT_ONCE).try_collect().await
    }

    /// All pods. Returns how many bytes one of them has in a list, on average.
    pub(crate) async fn add_workloads(&self, sizes: &Sizes) -> anyhow::Result<usize> {
        for workload in COUNT..COUNT + DAEMONS {
            self.create("/apis/apps/v1/namespaces/kube-system/daemonsets", &daemon_set(workload)).await?;
        }
        let written = stream::iter(spots(sizes)).map(async |spot| {
            let pods = format!("/api/v1/namespaces/{}/pods", spot.namespace());
            let made = self.create(&pods, &spot.pod()).await?;
            self.set_status(&format!("{pods}/{}", spot.name()), made, spot.status()).await
        });
        let bytes: Vec<usize> = written.buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(bytes.iter().sum::<usize>() / bytes.len().max(1))
    }

    async fn create(&self, path: &str, object: &Value) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.send(Method::POST, path, "kube-controller-manager", object).await?)?)
    }

    /// Returns how many bytes the object has then.
    async fn set_status(&self, path: &str, mut object: Value, status: Value) -> anyhow::Result<usize> {
        object["status"] = status;
        Ok(self.send(Method::PUT, &format!("{path}/status"), "kubelet", &object).await?.len())
    }

    async fn send(&self, method: Method, path: &str, manager: &str, object: &Value) -> anyhow::Result<String> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}?fieldManager={manager}"))
            .header("content-type", "application/json")
            .body(serde_json::to_vec(object)?)?;
        self.admin.request_text(request).await.with_context(|| format!("cannot write {path}"))
    }
}

/// Every node has a pod of each DaemonSet; the others go round.
fn spots(sizes: &Sizes) -> impl Iterator<Item = Spot> {
    let nodes = sizes.nodes;
    let daemons = (0..DAEMONS * nodes).map(move |number| Spot {
        workload: COUNT + number % DAEMONS,
        index: number / DAEMONS,
        node: Some(number / DAEMONS),
    });
    let others = (0..sizes.pods.saturating_sub(DAEMONS * nodes)).map(move |number| Spot {
        workload: number % COUNT,
        index: number / COUNT,
        node: Some(number % nodes),
    });
    let pending =
        (0..sizes.pending).map(|number| Spot { workload: number % COUNT, index: 90_000 + number / COUNT, node: None });
    daemons.take(sizes.pods).chain(others).chain(pending)
}
