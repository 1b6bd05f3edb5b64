//! When `status.lastPodEventTime` is written, on a cluster in memory.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::pod_events;
use crate::claim::test_stage::ClaimStage;
use crate::stop::{self, Stopper};

/// A writer that hears of pods on nodes by hand.
struct Writer {
    stage: ClaimStage,
    nodes: mpsc::Sender<String>,
    _stopper: Stopper,
    _writing: JoinHandle<()>,
}

impl Writer {
    async fn new() -> Writer {
        let stage = ClaimStage::new().await;
        let (nodes, heard) = mpsc::channel(4);
        let (stopper, stop) = stop::stop();
        let writing = tokio::spawn(pod_events::run(stage.context.clone(), heard, stop));
        Writer { stage, nodes, _stopper: stopper, _writing: writing }
    }

    /// A pod came to a node or left it; when the last pod did so as far as the claim says.
    async fn pod_event(&self, node: &str) -> Option<Timestamp> {
        self.nodes.send(node.to_owned()).await.unwrap();
        self.stage.settle().await;
        self.stage.claim(node).await.status?.last_pod_event_time.map(|time| time.0)
    }
}

#[tokio::test(start_paused = true)]
async fn i8_timestamp_the_time_of_a_pod_event_is_written_at_most_every_ten_seconds() {
    let writer = Writer::new().await;
    writer.stage.add_launched("n", json!({})).await;
    let first = writer.pod_event("n").await.unwrap();
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(writer.pod_event("n").await, Some(first), "written a moment ago");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let second = writer.pod_event("n").await.unwrap();
    assert!((10..=12).contains(&(second.as_second() - first.as_second())), "{first} {second}");
}

#[tokio::test(start_paused = true)]
async fn no_time_is_written_for_claims_of_others_nor_for_those_being_deleted() {
    let writer = Writer::new().await;
    let class = json!({ "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" });
    writer.stage.add_claim("other", json!({ "spec": { "nodeClassRef": class } })).await;
    assert_eq!(writer.pod_event("other").await, None);
    writer.stage.add_launched("n", json!({})).await;
    writer.stage.delete(writer.stage.claims_api(), "n").await;
    assert_eq!(writer.pod_event("n").await, None);
}
