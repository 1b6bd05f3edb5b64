//! What a pool shows of its nodes, pass by pass.

use std::collections::BTreeMap;

use kube::api::Api;
use serde_json::json;
use tenon_api::{NodePool, quantity_of};

use super::counter;
use crate::claim::test_stage::ClaimStage;

/// Resources as numbers or texts, and the number of nodes.
async fn counted(stage: &ClaimStage, pool: &str) -> (BTreeMap<String, String>, i64) {
    stage.settle().await;
    counter::pass(&stage.context).await;
    stage.settle().await;
    let status = Api::<NodePool>::all(stage.client.clone()).get(pool).await.unwrap().status.unwrap();
    let amounts = status.resources.unwrap_or_default().into_iter();
    let text = |(name, amount)| (name, quantity_of(&amount).unwrap().to_string());
    (amounts.map(text).collect(), status.nodes)
}

fn of(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let zero = ["cpu", "memory", "pods", "ephemeral-storage", "nodes"].map(|name| (name.to_owned(), "0".to_owned()));
    let mut all: BTreeMap<String, String> = zero.into_iter().collect();
    all.extend(pairs.iter().map(|(name, amount)| ((*name).to_owned(), (*amount).to_owned())));
    all
}

#[tokio::test(start_paused = true)]
async fn i2_counter_a_pool_without_nodes_shows_zeros_and_is_written_once() {
    let stage = ClaimStage::new().await;
    assert_eq!(counted(&stage, "default").await, (of(&[]), 0));
    let version =
        || async { Api::<NodePool>::all(stage.client.clone()).get("default").await.unwrap().metadata.resource_version };
    let before = version().await;
    counted(&stage, "default").await;
    assert_eq!(version().await, before, "what is told is not told again");
}

#[tokio::test(start_paused = true)]
async fn i2_counter_follows_a_node_from_its_launch_to_its_end() {
    let stage = ClaimStage::new().await;
    stage.add_claim("n", json!({})).await;
    assert_eq!(counted(&stage, "default").await, (of(&[]), 0), "it has no VM yet");
    stage.run("n", 30).await;
    let (claimed, nodes) = counted(&stage, "default").await;
    let promised = stage.claim("n").await.status.unwrap().capacity.unwrap();
    assert_eq!((nodes, claimed["nodes"].as_str()), (1, "1"));
    assert_eq!(claimed["memory"], quantity_of(&promised["memory"]).unwrap().to_string());
    let capacity = json!({ "cpu": "1", "memory": "1000Mi", "pods": "110", "ephemeral-storage": "30Gi" });
    stage.add_node("n", json!({ "status": { "capacity": capacity } })).await;
    stage.run("n", 30).await;
    let reported = [("cpu", "1"), ("memory", "1000Mi"), ("pods", "110"), ("ephemeral-storage", "30Gi"), ("nodes", "1")];
    assert_eq!(counted(&stage, "default").await, (of(&reported), 1), "what its node reports");
    stage.delete(stage.claims_api(), "n").await;
    assert_eq!(counted(&stage, "default").await, (of(&[]), 0), "one that is being deleted");
}

#[tokio::test(start_paused = true)]
async fn i2_counter_counts_static_pools_and_no_pools_of_others() {
    let stage = ClaimStage::new().await;
    let pools: Api<NodePool> = Api::all(stage.client.clone());
    for (name, group) in [("fixed", "karpenter.proxmox.sinextra.dev"), ("theirs", "other.example.com")] {
        let class = json!({ "group": group, "kind": "ProxmoxNodeClass", "name": "default" });
        let spec = json!({ "replicas": 2, "template": { "spec": { "requirements": [], "nodeClassRef": class } } });
        let pool = json!({ "metadata": { "name": name }, "spec": spec, "status": { "nodes": 0 } });
        stage.create(pools.clone(), pool).await;
    }
    let labels = json!({ "metadata": { "labels": { "karpenter.sh/nodepool": "fixed" } } });
    stage.add_launched("n", labels).await;
    assert_eq!(counted(&stage, "fixed").await.1, 1);
    assert_eq!(counted(&stage, "default").await.1, 0);
    assert_eq!(counted(&stage, "theirs").await, (BTreeMap::new(), 0));
}

#[tokio::test(start_paused = true)]
async fn i2_counter_what_is_not_counted_any_more_is_taken_away_and_not_written_for_ever() {
    let stage = ClaimStage::new().await;
    let pools: Api<NodePool> = Api::all(stage.client.clone());
    let gone = json!({ "status": { "resources": { "nvidia.com/gpu": "1" }, "nodes": 1 } });
    let params = kube::api::PatchParams::default();
    pools.patch_status("default", &params, &kube::api::Patch::Merge(gone)).await.unwrap();
    assert_eq!(counted(&stage, "default").await, (of(&[]), 0));
    let before = pools.get("default").await.unwrap().metadata.resource_version;
    counted(&stage, "default").await;
    assert_eq!(pools.get("default").await.unwrap().metadata.resource_version, before);
}
