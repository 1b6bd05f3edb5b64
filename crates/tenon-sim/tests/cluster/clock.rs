//! Time comes from tokio's clock, and may be stopped.

use std::time::Duration;

use serde_json::json;
use tenon_sim::{Cluster, ClusterConfig};

use crate::cluster::{Asker, MAPS, PODS, map, pod_on};

#[tokio::test(start_paused = true)]
async fn stamps_follow_the_clock() {
    let cluster = Cluster::new(ClusterConfig { epoch_s: 1_800_000_000, ..ClusterConfig::default() }).unwrap();
    let asker = Asker(cluster.client());
    let first = asker.make(MAPS, map("first")).await;
    assert_eq!(first["metadata"]["creationTimestamp"], "2027-01-15T08:00:00Z");
    tokio::time::sleep(Duration::from_secs(90)).await;
    let second = asker.make(MAPS, map("second")).await;
    assert_eq!(second["metadata"]["creationTimestamp"], "2027-01-15T08:01:30Z");
    assert_eq!(cluster.elapsed(), Duration::from_secs(90));
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_due_when_its_grace_is_over() {
    let cluster = Cluster::new(ClusterConfig { epoch_s: 1_800_000_000, ..ClusterConfig::default() }).unwrap();
    let asker = Asker(cluster.client());
    asker.make(PODS, pod_on("a", "n1")).await;
    let (_, going) = asker.delete(&format!("{PODS}/a"), json!({ "gracePeriodSeconds": 60 })).await;
    assert_eq!(going["metadata"]["deletionTimestamp"], "2027-01-15T08:01:00Z");
}
