//! What do the objects look like that behaviours are shown with?

use serde_json::{Value, json};
use testbed::eventually;

use crate::ground::{Ground, wide};
use crate::reply::text;

/// `base` with everything `more` says besides, as a merge patch would do it.
pub(crate) fn with(mut base: Value, more: Value) -> Value {
    match (&mut base, more) {
        (Value::Object(base), Value::Object(more)) => {
            for (key, value) in more {
                let old = base.remove(&key).unwrap_or_default();
                base.insert(key, with(old, value));
            }
        }
        (base, more) => *base = more,
    }
    base
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "data": { "key": "value" } })
}

/// A pod no scheduler takes care of.
pub(crate) fn pod(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": {
            "schedulerName": "nobody",
            "containers": [{ "name": "c", "image": "registry.example/c:1" }],
        },
    })
}

/// A deployment that makes no pods.
pub(crate) fn deployment(name: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "paused": true, "replicas": 0, "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "c", "image": "registry.example/c:1" }] },
            },
        },
    })
}

pub(crate) fn pool(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": name },
        "spec": {
            "template": { "spec": {
                "requirements": [],
                "nodeClassRef": { "group": "karpenter.proxmox.sinextra.dev", "kind": "ProxmoxNodeClass", "name": "default" },
            } },
            "disruption": { "consolidateAfter": "1s", "budgets": [{ "nodes": "100%" }] },
        },
    })
}

/// A node whose kubelet says that all is well.
pub(crate) fn node(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "spec": { "providerID": format!("proxmox://region/{name}") },
        "status": {
            "capacity": { "cpu": "4", "memory": "8Gi", "pods": "110" },
            "allocatable": { "cpu": "3", "memory": "7Gi", "pods": "110" },
            "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
        },
    })
}

pub(crate) fn lease(name: &str, holder: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z" },
    })
}

/// A reference to an owner.
pub(crate) fn owner(kind: &str, object: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": kind, "name": object.pointer("/metadata/name"),
        "uid": object.pointer("/metadata/uid"),
    })
}

impl Ground {
    /// Makes a pod; `more` is merged into it.
    pub(crate) async fn pod(&self, name: &str, more: Value) -> anyhow::Result<Value> {
        // A pod needs its namespace's account, which somebody else makes a moment later.
        let account = format!("{}/default", self.here("serviceaccounts"));
        eventually("the default account", async || Ok((self.get(&account).await?.code == 200).then_some(()))).await?;
        self.made(&self.here("pods"), with(pod(name), more)).await
    }

    /// Makes a pod that runs on a node and is ready, as its kubelet would say.
    pub(crate) async fn running_pod(&self, name: &str) -> anyhow::Result<Value> {
        self.pod(name, json!({ "spec": { "nodeName": self.name } })).await?;
        let status = json!({ "status": {
            "phase": "Running",
            "conditions": [
                { "type": "Ready", "status": "True" }, { "type": "PodScheduled", "status": "True" },
            ],
        } });
        self.merge(&format!("{}/{name}/status", self.here("pods")), status).await?.expect(200)
    }

    /// The definitions of our own kinds, made by whoever comes first.
    pub(crate) async fn define(&self) -> anyhow::Result<()> {
        for definition in tenon_api::definitions() {
            let definition = serde_json::to_value(definition)?;
            let path = wide("apiextensions.k8s.io/customresourcedefinitions");
            let reply = self.post(&path, definition.clone()).await?;
            anyhow::ensure!(matches!(reply.code, 201 | 409), "no definition: {reply:?}");
            let (group, plural) = (text(&definition, "/spec/group"), text(&definition, "/spec/names/plural"));
            let version = text(&definition, "/spec/versions/0/name");
            self.served(&format!("/apis/{group}/{version}/{plural}")).await?;
        }
        Ok(())
    }

    /// Waits until a kind is served. What is established is served a moment later.
    pub(crate) async fn served(&self, path: &str) -> anyhow::Result<()> {
        eventually(&format!("{path} is served"), async || Ok((self.get(path).await?.code == 200).then_some(()))).await
    }

    /// Makes a pool under a name of the behaviour's own and says where it is.
    pub(crate) async fn pool(&self) -> anyhow::Result<(String, Value)> {
        self.pool_with(json!({})).await
    }

    /// The same with more to it.
    pub(crate) async fn pool_with(&self, more: Value) -> anyhow::Result<(String, Value)> {
        self.define().await?;
        let pools = wide("karpenter.sh/nodepools");
        let made = self.made(&pools, with(pool(&self.name), more)).await?;
        Ok((format!("{pools}/{}", self.name), made))
    }
}
