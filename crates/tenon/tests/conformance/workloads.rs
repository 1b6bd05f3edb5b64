//! What does the server add to the kinds our actors look after?

use serde_json::{Value, json};

use crate::ground::{Ground, wide};
use crate::reply::{generation, names, number, text, uid};

fn template() -> Value {
    json!({
        "metadata": { "labels": { "app": "a" } },
        "spec": {
            "restartPolicy": "Never", "schedulerName": "nobody", "nodeSelector": { "tenon.dev/none": "true" },
            "containers": [{ "name": "c", "image": "registry.example/c" }],
        },
    })
}

pub(crate) async fn a_namespace_is_labelled_with_its_name(ground: &Ground) -> anyhow::Result<()> {
    let found = ground.get(&format!("/api/v1/namespaces/{}", ground.name)).await?.expect(200)?;
    assert_eq!(found["metadata"]["labels"], json!({ "kubernetes.io/metadata.name": ground.name }));
    assert_eq!(found["spec"], json!({ "finalizers": ["kubernetes"] }));
    assert_eq!(found["status"], json!({ "phase": "Active" }));
    Ok(())
}

pub(crate) async fn a_job_is_completed_by_one_pod(ground: &Ground) -> anyhow::Result<()> {
    let spec = json!({ "suspend": true, "template": template() });
    let made = ground.made(&ground.here("batch/jobs"), json!({ "metadata": { "name": "a" }, "spec": spec })).await?;
    let counts = ["parallelism", "completions", "backoffLimit"].map(|key| number(&made, &format!("/spec/{key}")));
    assert_eq!((counts, generation(&made)), ([1, 1, 6], 1));
    assert_eq!((text(&made, "/spec/template/spec/dnsPolicy"), &made["status"]), ("ClusterFirst", &json!({})));
    Ok(())
}

pub(crate) async fn a_replica_set_wants_one_replica(ground: &Ground) -> anyhow::Result<()> {
    let mut pods = template();
    pods["spec"]["restartPolicy"] = json!("Always");
    let spec = json!({ "selector": { "matchLabels": { "app": "a" } }, "template": pods, "minReadySeconds": 1 });
    let body = json!({ "metadata": { "name": "a" }, "spec": spec });
    let made = ground.made(&ground.here("apps/replicasets"), body).await?;
    assert_eq!((number(&made, "/spec/replicas"), generation(&made)), (1, 1));
    assert_eq!(made["status"], json!({ "replicas": 0 }));
    assert_eq!(text(&made, "/spec/template/spec/containers/0/imagePullPolicy"), "Always", "it has no tag");
    Ok(())
}

pub(crate) async fn a_daemon_set_wants_no_number(ground: &Ground) -> anyhow::Result<()> {
    let mut pods = template();
    pods["spec"]["restartPolicy"] = json!("Always");
    let spec = json!({ "selector": { "matchLabels": { "app": "a" } }, "template": pods });
    let body = json!({ "metadata": { "name": "a" }, "spec": spec });
    let made = ground.made(&ground.here("apps/daemonsets"), body).await?;
    assert_eq!((made["spec"].get("replicas"), number(&made, "/spec/revisionHistoryLimit")), (None, 10));
    let counts = ["currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"];
    assert_eq!(counts.map(|key| number(&made, &format!("/status/{key}"))), [0; 4]);
    assert_eq!(generation(&made), 1);
    Ok(())
}

pub(crate) async fn a_new_budget_allows_nothing(ground: &Ground) -> anyhow::Result<()> {
    let spec = json!({ "minAvailable": 1, "selector": { "matchLabels": { "app": "a" } } });
    let body =
        json!({ "metadata": { "name": "a" }, "spec": spec, "status": { "disruptionsAllowed": 5, "expectedPods": 5 } });
    let made = ground.made(&ground.here("policy/poddisruptionbudgets"), body).await?;
    let zeros = json!({ "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0 });
    assert_eq!((&made["status"], generation(&made)), (&zeros, 1));
    Ok(())
}

pub(crate) async fn a_new_claim_of_a_volume_is_pending(ground: &Ground) -> anyhow::Result<()> {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": { "requests": { "storage": "1Gi" } },
    });
    let body = json!({ "metadata": { "name": "a" }, "spec": spec, "status": { "phase": "Bound" } });
    let made = ground.made(&ground.here("persistentvolumeclaims"), body).await?;
    assert_eq!(text(&made, "/status/phase"), "Pending");
    Ok(())
}

pub(crate) async fn a_volume_is_attached_when_somebody_says_so(ground: &Ground) -> anyhow::Result<()> {
    let attachments = wide("storage.k8s.io/volumeattachments");
    let spec = json!({
        "attacher": "csi.example", "nodeName": ground.name, "source": { "persistentVolumeName": ground.name },
    });
    let body = json!({ "metadata": { "name": ground.name }, "spec": spec, "status": { "attached": true } });
    let made = ground.made(&attachments, body).await?;
    assert_eq!(made["status"], json!({ "attached": false }));
    let path = format!("{attachments}/{}", ground.name);
    let told = ground.merge(&format!("{path}/status"), json!({ "status": { "attached": true } })).await?.expect(200)?;
    assert_eq!(told["status"]["attached"], json!(true));
    assert!(names(&ground.get(&attachments).await?.expect(200)?).contains(&ground.name.as_str()));
    ground.delete(&path, json!(null)).await?.expect(200)?;
    Ok(())
}

pub(crate) async fn a_storage_class_binds_and_deletes_at_once(ground: &Ground) -> anyhow::Result<()> {
    let body = json!({ "metadata": { "name": ground.name }, "provisioner": "csi.example" });
    let made = ground.made(&wide("storage.k8s.io/storageclasses"), body).await?;
    assert_eq!((text(&made, "/reclaimPolicy"), text(&made, "/volumeBindingMode")), ("Delete", "Immediate"));
    Ok(())
}

pub(crate) async fn a_priority_class_has_a_generation(ground: &Ground) -> anyhow::Result<()> {
    let body = json!({ "metadata": { "name": ground.name }, "value": 7 });
    let made = ground.made(&wide("scheduling.k8s.io/priorityclasses"), body).await?;
    assert_eq!((number(&made, "/value"), generation(&made)), (7, 1));
    Ok(())
}

pub(crate) async fn a_role_may_have_a_colon_in_its_name(ground: &Ground) -> anyhow::Result<()> {
    let name = format!("tenon:{}", ground.name);
    let body = json!({ "metadata": { "name": name }, "rules": [] });
    let made = ground.made(&wide("rbac.authorization.k8s.io/clusterroles"), body).await?;
    let path = format!("{}/{name}", wide("rbac.authorization.k8s.io/clusterroles"));
    assert_eq!(uid(&ground.get(&path).await?.expect(200)?), uid(&made));
    Ok(())
}

pub(crate) async fn a_lease_is_renewed_by_a_patch(ground: &Ground) -> anyhow::Result<()> {
    let leases = ground.here("coordination.k8s.io/leases");
    ground.made(&leases, crate::things::lease("a", "one")).await?;
    let renewed = json!({ "spec": { "renewTime": "2026-01-01T00:00:10.000000Z" } });
    let told = ground.merge(&format!("{leases}/a"), renewed).await?.expect(200)?;
    assert_eq!(text(&told, "/spec/renewTime"), "2026-01-01T00:00:10.000000Z");
    assert_eq!((text(&told, "/spec/holderIdentity"), told["metadata"].get("generation")), ("one", None));
    Ok(())
}
