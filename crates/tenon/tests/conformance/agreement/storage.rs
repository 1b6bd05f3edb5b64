//! The volumes of a scenario on a real API server, and those that a driver would have made.

use kube::api::{DynamicObject, PostParams};
use serde_json::{Map, Value, json};
use testbed::eventually;

use super::bench::Bench;
use super::scenario::{Scenario, list, namespace, text};

const ZONE: &str = "topology.kubernetes.io/zone";

/// The scheduler writes to a claim which node its volume is needed on.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// What a server takes of an object: neither its status nor what only the server sets.
fn as_written(found: &Value) -> Value {
    let mut made = found.clone();
    let mut metadata = Map::new();
    for field in ["name", "namespace", "labels"] {
        metadata.insert(field.to_owned(), found["metadata"][field].clone());
    }
    // Whether a claim is bound already is for the volume controller to find out.
    let annotations = found["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    let kept: Map<String, Value> =
        annotations.into_iter().filter(|(key, _)| !key.starts_with("pv.kubernetes")).collect();
    metadata.insert("annotations".to_owned(), Value::Object(kept));
    made["metadata"] = Value::Object(metadata);
    made.as_object_mut().into_iter().for_each(|fields| drop(fields.remove("status")));
    if let Some(claim) = made["spec"]["claimRef"].as_object_mut() {
        claim.remove("uid");
    }
    made
}

/// How many volumes a planned node attaches, as the driver on it would report.
fn limits_of_planned(scenario: &Scenario) -> Vec<Value> {
    let limits = scenario.attachment_limits().into_iter().map(|(node, limits)| {
        let drivers: Vec<Value> = limits
            .into_iter()
            .map(|(driver, count)| {
                json!({ "name": driver, "nodeID": node, "topologyKeys": [ZONE], "allocatable": { "count": count } })
            })
            .collect();
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": { "name": node },
            "spec": { "drivers": drivers },
        })
    });
    limits.collect()
}

impl Bench {
    /// Makes classes, volumes and claims, and says what nodes attach.
    pub(super) async fn make_storage(&self, scenario: &Scenario) -> anyhow::Result<()> {
        for kind in ["StorageClass", "PersistentVolume", "PersistentVolumeClaim", "CSINode"] {
            for found in scenario.of_kind(kind) {
                self.create(&as_written(found)).await?;
            }
        }
        for limits in limits_of_planned(scenario) {
            self.create(&limits).await?;
        }
        for claim in scenario.of_kind("PersistentVolumeClaim").filter(|claim| claim["spec"]["volumeName"].is_string()) {
            let (api, name) =
                (self.api("PersistentVolumeClaim", Some(&namespace(claim))), text(&claim["metadata"]["name"]));
            eventually(&format!("claim {name} is bound"), async || {
                Ok((api.get(&name).await?.data["status"]["phase"] == "Bound").then_some(()))
            })
            .await?;
        }
        Ok(())
    }

    /// Makes the volumes of a pod's claims that are told their node, each in the zone of that node, as a driver does.
    pub(super) async fn provision(&self, pod: &Value) -> anyhow::Result<()> {
        let claims = self.api("PersistentVolumeClaim", Some(&namespace(pod)));
        for volume in list(&pod["spec"]["volumes"]) {
            let Some(claim) = volume["persistentVolumeClaim"]["claimName"].as_str() else { continue };
            let Some(claim) = claims.get_opt(claim).await? else { continue };
            let annotations = claim.metadata.annotations.clone().unwrap_or_default();
            if let Some(node) = annotations.get(SELECTED_NODE).filter(|_| claim.data["spec"]["volumeName"].is_null()) {
                self.make_volume(&claim, node).await?;
            }
        }
        Ok(())
    }

    async fn make_volume(&self, claim: &DynamicObject, node: &str) -> anyhow::Result<()> {
        let volumes = self.api("PersistentVolume", None);
        let uid = claim.metadata.uid.clone().unwrap_or_default();
        let name = format!("made-{uid}");
        if volumes.get_opt(&name).await?.is_some() {
            return Ok(());
        }
        let class = &claim.data["spec"]["storageClassName"];
        let class = self.api("StorageClass", None).get(class.as_str().unwrap_or_default()).await?;
        let node = self.api("Node", None).get(node).await?;
        let zone = node.metadata.labels.unwrap_or_default().remove(ZONE);
        let term = json!({ "matchExpressions": [{ "key": ZONE, "operator": "In", "values": [zone] }] });
        let volume: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
            "spec": {
                "capacity": claim.data["spec"]["resources"]["requests"], "accessModes": claim.data["spec"]["accessModes"],
                "storageClassName": claim.data["spec"]["storageClassName"], "persistentVolumeReclaimPolicy": "Retain",
                "csi": { "driver": class.data["provisioner"], "volumeHandle": name },
                "nodeAffinity": { "required": { "nodeSelectorTerms": [term] } },
                "claimRef": { "namespace": claim.metadata.namespace, "name": claim.metadata.name, "uid": uid },
            },
        }))?;
        volumes.create(&PostParams::default(), &volume).await?;
        Ok(())
    }
}
