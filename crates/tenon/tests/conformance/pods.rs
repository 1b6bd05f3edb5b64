//! What is special about pods?

use serde_json::{Value, json};

use crate::ground::Ground;
use crate::reply::{condition, number, text, uid, version};

fn path(ground: &Ground, name: &str) -> String {
    format!("{}/{name}", ground.here("pods"))
}

fn binding(pod: &str, node: &str) -> Value {
    json!({ "metadata": { "name": pod }, "target": { "kind": "Node", "name": node } })
}

pub(crate) async fn a_new_pod_is_pending_and_complete(ground: &Ground) -> anyhow::Result<()> {
    let made = ground.pod("a", json!({ "status": { "phase": "Running" } })).await?;
    assert_eq!(made["status"], json!({ "phase": "Pending", "qosClass": "BestEffort" }));
    let spec = &made["spec"];
    assert_eq!((text(spec, "/restartPolicy"), text(spec, "/dnsPolicy")), ("Always", "ClusterFirst"));
    assert_eq!((number(spec, "/terminationGracePeriodSeconds"), number(spec, "/priority")), (30, 0));
    assert_eq!((text(spec, "/schedulerName"), text(spec, "/preemptionPolicy")), ("nobody", "PreemptLowerPriority"));
    let tolerated = ["not-ready", "unreachable"].map(|what| {
        let key = format!("node.kubernetes.io/{what}");
        json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 })
    });
    assert_eq!(spec["tolerations"], json!(tolerated));
    let container = &spec["containers"][0];
    assert_eq!((text(container, "/imagePullPolicy"), &container["resources"]), ("IfNotPresent", &json!({})));
    Ok(())
}

pub(crate) async fn limits_are_requests_as_well(ground: &Ground) -> anyhow::Result<()> {
    let resources = json!({ "limits": { "cpu": "1", "memory": "1Gi" }, "requests": { "cpu": "500m" } });
    let container = json!({ "name": "c", "image": "registry.example/c:1", "resources": resources });
    let made = ground.pod("a", json!({ "spec": { "containers": [container] } })).await?;
    let requests = &made["spec"]["containers"][0]["resources"]["requests"];
    assert_eq!(*requests, json!({ "cpu": "500m", "memory": "1Gi" }));
    assert_eq!(text(&made, "/status/qosClass"), "Burstable");
    Ok(())
}

pub(crate) async fn an_unbound_pod_goes_at_once(ground: &Ground) -> anyhow::Result<()> {
    let made = ground.pod("a", json!({})).await?;
    let told = ground.delete(&path(ground, "a"), json!(null)).await?.expect(200)?;
    assert_eq!((text(&told, "/kind"), uid(&told)), ("Pod", uid(&made)), "the pod is the answer");
    ground.get(&path(ground, "a")).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_bound_pod_stays_until_its_node_lets_it_go(ground: &Ground) -> anyhow::Result<()> {
    let made = ground.running_pod("a").await?;
    let told = ground.delete(&path(ground, "a"), json!({ "preconditions": { "uid": uid(&made) } })).await?;
    assert_eq!(number(&told.expect(200)?, "/metadata/deletionGracePeriodSeconds"), 30);
    let kept = ground.get(&path(ground, "a")).await?.expect(200)?;
    assert!(!text(&kept, "/metadata/deletionTimestamp").is_empty());
    let last = json!({ "gracePeriodSeconds": 0, "preconditions": { "uid": uid(&made) } });
    ground.delete(&path(ground, "a"), last).await?.expect(200)?;
    ground.get(&path(ground, "a")).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_grace_can_be_shortened_and_not_lengthened(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    let delete = async |seconds: i64| {
        let options = json!({ "gracePeriodSeconds": seconds });
        let told = ground.delete(&path(ground, "a"), options).await?.expect(200)?;
        let at: k8s_openapi::jiff::Timestamp = text(&told, "/metadata/deletionTimestamp").parse()?;
        anyhow::Ok((number(&told, "/metadata/deletionGracePeriodSeconds"), at.as_second()))
    };
    let (first, second, third) = (delete(600).await?, delete(900).await?, delete(60).await?);
    assert_eq!((first.0, second, third.0), (600, first, 60));
    assert_eq!(first.1 - third.1, 540, "the end moves with the grace");
    Ok(())
}

pub(crate) async fn a_finished_pod_goes_at_once(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    let over = json!({ "status": { "phase": "Succeeded" } });
    ground.merge(&format!("{}/status", path(ground, "a")), over).await?.expect(200)?;
    ground.delete(&path(ground, "a"), json!(null)).await?.expect(200)?;
    ground.get(&path(ground, "a")).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_pod_with_a_finalizer_outlives_its_grace(ground: &Ground) -> anyhow::Result<()> {
    ground.pod("a", json!({ "metadata": { "finalizers": ["tenon.dev/test"] } })).await?;
    let told = ground.delete(&path(ground, "a"), json!({ "gracePeriodSeconds": 0 })).await?.expect(200)?;
    assert!(!text(&told, "/metadata/deletionTimestamp").is_empty(), "{told:#}");
    ground.merge(&path(ground, "a"), json!({ "metadata": { "finalizers": null } })).await?.expect(200)?;
    ground.get(&path(ground, "a")).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_binding_gives_a_pod_its_node(ground: &Ground) -> anyhow::Result<()> {
    let made = ground.pod("a", json!({})).await?;
    let told = ground.post(&format!("{}/binding", path(ground, "a")), binding("a", "one")).await?.expect(201)?;
    assert_eq!((text(&told, "/kind"), text(&told, "/status")), ("Status", "Success"));
    let bound = ground.get(&path(ground, "a")).await?.expect(200)?;
    assert_eq!((text(&bound, "/spec/nodeName"), text(&bound, "/status/phase")), ("one", "Pending"));
    let scheduled = condition(&bound, "PodScheduled").cloned().unwrap_or_default();
    assert_eq!(text(&scheduled, "/status"), "True", "{bound:#}");
    assert_ne!(version(&bound), version(&made));
    Ok(())
}

pub(crate) async fn a_second_binding_is_a_conflict(ground: &Ground) -> anyhow::Result<()> {
    ground.pod("a", json!({})).await?;
    let path = format!("{}/binding", path(ground, "a"));
    ground.post(&path, binding("a", "one")).await?.expect(201)?;
    let told = ground.post(&path, binding("a", "two")).await?.refused(409, "Conflict")?;
    assert_eq!(told["details"], json!({ "name": "a", "kind": "pods/binding" }));
    assert!(text(&told, "/message").ends_with("pod a is already assigned to node \"one\""), "{told:#}");
    Ok(())
}

pub(crate) async fn a_missing_pod_is_not_bound(ground: &Ground) -> anyhow::Result<()> {
    ground.post(&format!("{}/binding", path(ground, "a")), binding("a", "one")).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_pod_that_goes_is_not_bound(ground: &Ground) -> anyhow::Result<()> {
    ground.pod("a", json!({ "metadata": { "finalizers": ["tenon.dev/test"] } })).await?;
    ground.delete(&path(ground, "a"), json!(null)).await?.expect(200)?;
    let told = ground.post(&format!("{}/binding", path(ground, "a")), binding("a", "one")).await?;
    assert!(text(&told.refused(409, "Conflict")?, "/message").contains("is being deleted"));
    Ok(())
}

pub(crate) async fn the_status_of_a_namesake_is_not_written(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    let meta = json!({ "uid": "00000000-0000-0000-0000-000000000000" });
    let patch = json!({ "metadata": meta, "status": { "phase": "Failed" } });
    let path = format!("{}/status", path(ground, "a"));
    ground.merge(&path, patch).await?.refused(422, "Invalid")?;
    assert_eq!(text(&ground.get(&path).await?.expect(200)?, "/status/phase"), "Running");
    Ok(())
}

pub(crate) async fn a_pod_is_told_why_it_waits(ground: &Ground) -> anyhow::Result<()> {
    ground.pod("a", json!({})).await?;
    let why = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room" });
    let patch = json!({ "status": { "conditions": [why] } });
    let told = ground.merge(&format!("{}/status", path(ground, "a")), patch).await?.expect(200)?;
    let found = condition(&told, "PodScheduled").cloned().unwrap_or_default();
    assert_eq!((text(&found, "/reason"), text(&found, "/message")), ("Unschedulable", "no room"));
    Ok(())
}

pub(crate) async fn a_binding_ends_the_wait(ground: &Ground) -> anyhow::Result<()> {
    ground.pod("a", json!({})).await?;
    let why = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room" });
    let patch = json!({ "status": { "conditions": [why] } });
    ground.merge(&format!("{}/status", path(ground, "a")), patch).await?.expect(200)?;
    ground.post(&format!("{}/binding", path(ground, "a")), binding("a", "one")).await?.expect(201)?;
    let bound = ground.get(&path(ground, "a")).await?.expect(200)?;
    let found = condition(&bound, "PodScheduled").cloned().unwrap_or_default();
    assert_eq!((text(&found, "/status"), found.get("reason"), found.get("message")), ("True", None, None));
    Ok(())
}

pub(crate) async fn a_binding_of_another_uid_is_a_conflict(ground: &Ground) -> anyhow::Result<()> {
    ground.pod("a", json!({})).await?;
    let mut other = binding("a", "one");
    other["metadata"]["uid"] = json!("00000000-0000-0000-0000-000000000000");
    let told = ground.post(&format!("{}/binding", path(ground, "a")), other).await?.refused(409, "Conflict")?;
    assert_eq!(told["details"], json!({ "name": "a", "kind": "pods" }));
    assert!(text(&told, "/message").contains("Precondition failed: UID in precondition"), "{told:#}");
    let free = ground.get(&path(ground, "a")).await?.expect(200)?;
    assert_eq!(free["spec"].get("nodeName"), None);
    Ok(())
}

pub(crate) async fn a_pods_generation_counts_its_spec(ground: &Ground) -> anyhow::Result<()> {
    let made = ground.pod("a", json!({})).await?;
    ground.post(&format!("{}/binding", path(ground, "a")), binding("a", "one")).await?.expect(201)?;
    let bound = ground.get(&path(ground, "a")).await?.expect(200)?;
    let deleted = ground.delete(&path(ground, "a"), json!(null)).await?.expect(200)?;
    let counts = [&made, &bound, &deleted].map(crate::reply::generation);
    assert_eq!(counts[0], 1);
    assert_eq!(counts[1..].iter().map(|count| count - counts[0]).collect::<Vec<_>>(), [0, 1], "{counts:?}");
    Ok(())
}

pub(crate) async fn a_pod_may_be_made_for_a_node(ground: &Ground) -> anyhow::Result<()> {
    let made = ground.pod("a", json!({ "spec": { "nodeName": "one" } })).await?;
    assert_eq!((text(&made, "/spec/nodeName"), text(&made, "/status/phase")), ("one", "Pending"));
    assert_eq!(condition(&made, "PodScheduled"), None);
    let told = ground.delete(&path(ground, "a"), json!(null)).await?.expect(200)?;
    assert_eq!(number(&told, "/metadata/deletionGracePeriodSeconds"), 30, "its node may know it already");
    Ok(())
}

pub(crate) async fn a_negative_grace_is_one_second(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    let told = ground.delete(&path(ground, "a"), json!({ "gracePeriodSeconds": -1 })).await?.expect(200)?;
    assert_eq!(number(&told, "/metadata/deletionGracePeriodSeconds"), 1);
    Ok(())
}

pub(crate) async fn a_pod_by_limits_alone_is_guaranteed(ground: &Ground) -> anyhow::Result<()> {
    let resources = json!({ "limits": { "cpu": "1", "memory": "1Gi" } });
    let container = json!({ "name": "c", "image": "registry.example/c:1", "resources": resources });
    let made = ground.pod("a", json!({ "spec": { "containers": [container] } })).await?;
    assert_eq!(text(&made, "/status/qosClass"), "Guaranteed");
    Ok(())
}

pub(crate) async fn a_held_pod_needs_its_node_and_its_finalizer_to_go(ground: &Ground) -> anyhow::Result<()> {
    let path = path(ground, "a");
    ground.running_pod("a").await?;
    ground.merge(&path, json!({ "metadata": { "finalizers": ["tenon.dev/test"] } })).await?.expect(200)?;
    ground.delete(&path, json!(null)).await?.expect(200)?;
    ground.merge(&path, json!({ "metadata": { "finalizers": null } })).await?.expect(200)?;
    ground.get(&path).await?.expect(200)?;
    ground.delete(&path, json!({ "gracePeriodSeconds": 0 })).await?.expect(200)?;
    ground.get(&path).await?.refused(404, "NotFound")?;
    Ok(())
}
