//! What is written on pods over time, on a cluster in memory.

use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use serde_json::{Value, json};
use tenon_api::plan_options::{FeatureGates, PlanOptions};
use tenon_sim::ClusterConfig;
use tokio::task::JoinHandle;

use super::run;
use crate::claim::test_stage::{ClaimStage, merge};
use crate::settings::Settings;
use crate::stop::{self, Stopper};

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const MARK: &str = "tenon.dev/pod-deletion-cost";

fn settings(is_on: bool) -> Settings {
    let feature_gates = FeatureGates { pod_deletion_cost_management: is_on, ..FeatureGates::default() };
    Settings { planning: PlanOptions { feature_gates, ..PlanOptions::default() }, ..Settings::default() }
}

/// Two nodes that take pods, and the loop.
struct Site {
    stage: ClaimStage,
    /// The uid of the ReplicaSet.
    owner: String,
    running: Option<(Stopper, JoinHandle<()>)>,
}

impl Site {
    async fn new(is_on: bool) -> Site {
        let (stage, _) = ClaimStage::on(ClusterConfig::default(), settings(is_on)).await;
        let anything = json!({ "spec": { "disruption": { "budgets": [{ "nodes": "100%" }] } } });
        let pools = kube::Api::<tenon_api::NodePool>::all(stage.client.clone());
        stage.patch(pools, "default", anything).await;
        for name in ["a", "b"] {
            stage.add_initialized(name, json!({})).await;
        }
        let template = json!({ "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "c", "image": "x" }] } });
        let set = json!({ "metadata": { "name": "web" },
            "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": template } });
        let sets = kube::Api::<ReplicaSet>::namespaced(stage.client.clone(), "default");
        stage.create(sets.clone(), set).await;
        let owner = sets.get("web").await.unwrap().metadata.uid.unwrap();
        Site { stage, owner, running: None }
    }

    fn begin(&mut self) {
        let (stopper, stop) = stop::stop();
        self.running = Some((stopper, tokio::spawn(run(self.stage.context.clone(), stop))));
    }

    async fn end(&mut self) {
        let (stopper, running) = self.running.take().unwrap();
        stopper.tell();
        running.await.unwrap();
    }

    async fn replica(&self, (node, name): (&str, &str), more: Value) {
        let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": self.owner, "controller": true });
        let mut pod = json!({ "metadata": { "ownerReferences": [owner] } });
        merge(&mut pod, more);
        self.stage.add_pod((node, name), pod).await;
    }

    /// What Kubernetes reads, and what Tenon says that it wrote.
    async fn written(&self, pod: &str) -> (Option<String>, Option<String>) {
        let pod = self.stage.pod(pod).await.unwrap();
        let annotations = pod.metadata.annotations.unwrap_or_default();
        (annotations.get(COST).cloned(), annotations.get(MARK).cloned())
    }

    fn counted(&self, result: &str) -> u64 {
        let label = format!("result=\"{result}\"");
        self.stage.counted("karpenter_pod_deletion_cost_pod_annotation_writes_total", &[&label])
    }
}

fn both(cost: &str) -> (Option<String>, Option<String>) {
    (Some(cost.to_owned()), Some(cost.to_owned()))
}

fn annotated(name: &str, value: &str) -> Value {
    json!({ "metadata": { "annotations": { name: value } } })
}

async fn minutes(count: u64) {
    tokio::time::sleep(Duration::from_secs(count * 60 + 1)).await;
}

#[tokio::test(start_paused = true)]
async fn j7_pods_bear_the_place_of_their_node_and_a_quiet_cluster_is_written_once() {
    let mut site = Site::new(true).await;
    site.replica(("a", "one"), json!({})).await;
    site.replica(("a", "two"), annotated(COST, "99")).await;
    site.replica(("b", "three"), json!({})).await;
    minutes(1).await;
    site.begin();
    minutes(1).await;
    assert_eq!(site.written("one").await, both("-1"), "two pods cost more to move than one");
    assert_eq!(site.written("two").await, both("-1"), "what the user wrote is overwritten");
    assert_eq!(site.written("three").await, both("-2"));
    assert_eq!(site.counted("updated"), 3);
    minutes(20).await;
    assert_eq!(site.counted("updated"), 3);
    assert_eq!(site.counted("error") + site.counted("skipped_conflict"), 0);
    site.end().await;
}

#[tokio::test(start_paused = true)]
async fn j7_pods_of_a_node_that_goes_are_first_and_those_of_one_that_stays_lose_what_is_on_them() {
    let mut site = Site::new(true).await;
    site.replica(("a", "one"), json!({})).await;
    site.replica(("b", "two"), annotated(COST, "7")).await;
    let taint = json!({ "spec": { "taints": [{ "key": "karpenter.sh/disrupted", "effect": "NoSchedule" }] } });
    site.stage.patch(site.stage.nodes_api(), "a", taint).await;
    let keep = annotated("karpenter.sh/do-not-disrupt", "true");
    site.stage.patch(site.stage.nodes_api(), "b", keep).await;
    minutes(1).await;
    site.begin();
    minutes(1).await;
    assert_eq!(site.written("one").await, both("-2147483648"));
    assert_eq!(site.written("two").await, (None, None));
    site.end().await;
}

#[tokio::test(start_paused = true)]
async fn j7_once_the_gate_is_off_what_tenon_wrote_goes_and_what_the_user_wrote_stays() {
    let mut site = Site::new(false).await;
    let ours = json!({ "metadata": { "annotations": { COST: "-5", MARK: "-5" } } });
    site.replica(("a", "ours"), ours.clone()).await;
    site.replica(("a", "changed"), json!({ "metadata": { "annotations": { COST: "8", MARK: "-5" } } })).await;
    site.replica(("a", "theirs"), annotated(COST, "-5")).await;
    site.begin();
    minutes(2).await;
    assert_eq!(site.written("ours").await, (None, None));
    assert_eq!(site.written("changed").await, (Some("8".to_owned()), None));
    assert_eq!(site.written("theirs").await, (Some("-5".to_owned()), None));
    assert_eq!(site.counted("updated"), 2);
    site.end().await;
}

#[tokio::test(start_paused = true)]
async fn j7_without_the_right_to_write_or_to_list_budgets_nothing_is_written_and_nobody_is_flooded() {
    for forbidden in ["pods/one", "poddisruptionbudgets"] {
        let mut site = Site::new(true).await;
        site.replica(("a", "one"), json!({})).await;
        minutes(1).await;
        let is_forbidden: fn(&str, &str) -> bool = match forbidden {
            "pods/one" => |method, path| method == "PATCH" && path.ends_with("pods/one"),
            _ => |_, path| path.ends_with("poddisruptionbudgets"),
        };
        site.stage.forbid(is_forbidden);
        site.begin();
        minutes(20).await;
        assert_eq!(site.written("one").await, (None, None), "{forbidden}");
        let writes = site.counted("error");
        assert!(
            if forbidden == "pods/one" { (1..=20).contains(&writes) } else { writes == 0 },
            "{forbidden}: {writes}"
        );
        site.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn j7_an_error_of_the_server_is_retried_with_pauses_until_it_is_over() {
    let mut site = Site::new(true).await;
    site.replica(("a", "one"), json!({})).await;
    minutes(1).await;
    site.stage.refuse(429, |method, path| method == "PATCH" && path.ends_with("pods/one"));
    site.begin();
    minutes(1).await;
    let errors = site.counted("error");
    assert!((8..=20).contains(&errors), "100 ms, twice as long each time, up to 10 s: {errors}");
    site.end().await;
}
