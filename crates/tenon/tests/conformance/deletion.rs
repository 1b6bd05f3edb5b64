//! How do objects go, and what goes with them?

use serde_json::{Value, json};
use testbed::eventually;

use crate::ground::{Ground, wide};
use crate::reply::{names, text, uid, version};
use crate::things::{config_map, owner, with};

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

async fn map(ground: &Ground, name: &str, owners: &[Value]) -> anyhow::Result<(String, Value)> {
    let maps = ground.here("configmaps");
    let made = ground.made(&maps, with(config_map(name), json!({ "metadata": { "ownerReferences": owners } }))).await?;
    Ok((format!("{maps}/{name}"), made))
}

pub(crate) async fn a_deletion_answers_with_what_is_gone(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = map(ground, "a", &[]).await?;
    let told = ground.delete(&path, json!(null)).await?.expect(200)?;
    assert_eq!((text(&told, "/kind"), text(&told, "/status")), ("Status", "Success"));
    assert_eq!(told["details"], json!({ "name": "a", "kind": "configmaps", "uid": uid(&made) }));
    ground.get(&path).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_deletion_of_a_missing_object_is_not_found(ground: &Ground) -> anyhow::Result<()> {
    let told = ground.delete(&format!("{}/a", ground.here("configmaps")), json!(null)).await?;
    assert_eq!(told.refused(404, "NotFound")?["details"], json!({ "name": "a", "kind": "configmaps" }));
    Ok(())
}

pub(crate) async fn a_deletion_of_another_uid_is_a_conflict(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = map(ground, "a", &[]).await?;
    let told = ground.delete(&path, json!({ "preconditions": { "uid": NOBODY } })).await?.refused(409, "Conflict")?;
    assert!(text(&told, "/message").contains("the UID in the precondition"), "{told:#}");
    assert_eq!(uid(&ground.get(&path).await?.expect(200)?), uid(&made));
    Ok(())
}

pub(crate) async fn a_deletion_of_a_stale_version_is_a_conflict(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = map(ground, "a", &[]).await?;
    ground.merge(&path, json!({ "data": { "key": "other" } })).await?.expect(200)?;
    let options = json!({ "preconditions": { "resourceVersion": version(&made) } });
    let told = ground.delete(&path, options).await?.refused(409, "Conflict")?;
    assert!(text(&told, "/message").contains("the ResourceVersion in the precondition"), "{told:#}");
    ground.get(&path).await?.expect(200)?;
    Ok(())
}

pub(crate) async fn a_deletion_of_just_this_object_is_done(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = map(ground, "a", &[]).await?;
    let options = json!({ "preconditions": { "uid": uid(&made), "resourceVersion": version(&made) } });
    ground.delete(&path, options).await?.expect(200)?;
    ground.get(&path).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_collection_is_deleted_by_selector(ground: &Ground) -> anyhow::Result<()> {
    let secrets = ground.here("secrets");
    for (name, label) in [("a", "go"), ("b", "stay"), ("c", "go")] {
        ground.made(&secrets, json!({ "metadata": { "name": name, "labels": { "l": label } } })).await?;
    }
    ground.delete(&format!("{secrets}?labelSelector=l%3Dgo"), json!(null)).await?.expect(200)?;
    assert_eq!(names(&ground.get(&secrets).await?.expect(200)?), ["b"]);
    Ok(())
}

pub(crate) async fn dependents_go_with_their_owner(ground: &Ground) -> anyhow::Result<()> {
    let (first, made) = map(ground, "owner", &[]).await?;
    let (second, made) = map(ground, "child", &[owner("ConfigMap", &made)]).await?;
    let (third, _) = map(ground, "grandchild", &[owner("ConfigMap", &made)]).await?;
    ground.delete(&first, json!({ "propagationPolicy": "Background" })).await?.expect(200)?;
    ground.gone(&second).await?;
    ground.gone(&third).await
}

pub(crate) async fn a_dependent_stays_while_another_owner_lives(ground: &Ground) -> anyhow::Result<()> {
    let (first, one) = map(ground, "one", &[]).await?;
    let (second, two) = map(ground, "two", &[]).await?;
    let (child, _) = map(ground, "child", &[owner("ConfigMap", &one), owner("ConfigMap", &two)]).await?;
    let (witness, _) = map(ground, "witness", &[owner("ConfigMap", &one)]).await?;
    ground.delete(&first, json!({ "propagationPolicy": "Background" })).await?.expect(200)?;
    ground.gone(&witness).await?;
    eventually("the dead owner is forgotten", async || {
        let left = ground.get(&child).await?.expect(200)?;
        Ok((left["metadata"]["ownerReferences"] == json!([owner("ConfigMap", &two)])).then_some(()))
    })
    .await?;
    ground.delete(&second, json!({ "propagationPolicy": "Background" })).await?.expect(200)?;
    ground.gone(&child).await
}

pub(crate) async fn a_dependent_of_nobody_goes(ground: &Ground) -> anyhow::Result<()> {
    let nobody = json!({ "metadata": { "name": "nobody", "uid": NOBODY } });
    let (path, _) = map(ground, "child", &[owner("ConfigMap", &nobody)]).await?;
    ground.gone(&path).await
}

pub(crate) async fn orphans_outlive_their_owner(ground: &Ground) -> anyhow::Result<()> {
    let (first, made) = map(ground, "owner", &[]).await?;
    let (child, _) = map(ground, "child", &[owner("ConfigMap", &made)]).await?;
    ground.delete(&first, json!({ "propagationPolicy": "Orphan" })).await?.expect(200)?;
    ground.gone(&first).await?;
    let left = ground.get(&child).await?.expect(200)?;
    assert_eq!(left["metadata"].get("ownerReferences"), None, "{left:#}");
    Ok(())
}

pub(crate) async fn a_namespace_takes_its_objects_along(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = map(ground, "a", &[]).await?;
    let namespace = format!("/api/v1/namespaces/{}", ground.name);
    let told = ground.delete(&namespace, json!(null)).await?.expect(200)?;
    assert_eq!((text(&told, "/kind"), text(&told, "/status/phase")), ("Namespace", "Terminating"));
    ground.gone(&path).await?;
    ground.gone(&namespace).await
}

pub(crate) async fn a_namespace_that_goes_takes_no_new_objects(ground: &Ground) -> anyhow::Result<()> {
    let maps = ground.here("configmaps");
    let held = json!({ "metadata": { "finalizers": ["tenon.dev/test"] } });
    ground.made(&maps, with(config_map("a"), held)).await?;
    let namespace = format!("/api/v1/namespaces/{}", ground.name);
    ground.delete(&namespace, json!(null)).await?.expect(200)?;
    let told = ground.post(&maps, config_map("b")).await?.refused(403, "Forbidden")?;
    let details = json!({
        "name": "b", "kind": "configmaps",
        "causes": [{
            "reason": "NamespaceTerminating", "field": "metadata.namespace",
            "message": format!("namespace {} is being terminated", ground.name),
        }],
    });
    assert_eq!(told["details"], details);
    ground.merge(&format!("{maps}/a"), json!({ "metadata": { "finalizers": null } })).await?;
    ground.gone(&namespace).await
}

pub(crate) async fn a_deleted_custom_object_is_answered_with_a_status(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = ground.pool().await?;
    let told = ground.delete(&path, json!({ "preconditions": { "uid": uid(&made) } })).await?.expect(200)?;
    let details = json!({ "name": ground.name, "group": "karpenter.sh", "kind": "nodepools", "uid": uid(&made) });
    assert_eq!((text(&told, "/status"), &told["details"]), ("Success", &details));
    let told = ground.delete(&path, json!({ "preconditions": { "uid": uid(&made) } })).await?;
    told.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_custom_object_of_another_uid_is_not_deleted(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = ground.pool().await?;
    let told = ground.delete(&path, json!({ "preconditions": { "uid": NOBODY } })).await?.refused(409, "Conflict")?;
    let (name, group) = (text(&told, "/details/name"), text(&told, "/details/group"));
    assert_eq!((name, group), (ground.name.as_str(), "karpenter.sh"));
    ground.get(&path).await?.expect(200)?;
    Ok(())
}

pub(crate) async fn the_options_of_a_deletion_may_stand_in_the_query(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    let path = format!("{}/a", ground.here("pods"));
    ground.delete(&format!("{path}?gracePeriodSeconds=0"), json!(null)).await?.expect(200)?;
    ground.get(&path).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_pod_of_another_uid_is_not_deleted(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    let path = format!("{}/a", ground.here("pods"));
    let options = json!({ "gracePeriodSeconds": 1, "preconditions": { "uid": NOBODY } });
    ground.delete(&path, options).await?.refused(409, "Conflict")?;
    assert_eq!(ground.get(&path).await?.expect(200)?["metadata"].get("deletionTimestamp"), None);
    Ok(())
}

pub(crate) async fn the_first_namespaces_stay(ground: &Ground) -> anyhow::Result<()> {
    for name in ["default", "kube-system", "kube-public"] {
        ground.delete(&format!("/api/v1/namespaces/{name}"), json!(null)).await?.refused(403, "Forbidden")?;
    }
    ground.get("/api/v1/namespaces/kube-node-lease").await?.expect(200)?;
    Ok(())
}

pub(crate) async fn older_kinds_are_shown_as_they_go(ground: &Ground) -> anyhow::Result<()> {
    let class = json!({ "metadata": { "name": ground.name }, "provisioner": "csi.example" });
    let seat = json!({ "metadata": { "name": ground.name }, "spec": { "drivers": [] } });
    let account = json!({ "metadata": { "name": "a" } });
    let service = json!({ "metadata": { "name": "a" }, "spec": { "ports": [{ "port": 80 }] } });
    for (path, body, kind) in [
        (wide("storage.k8s.io/storageclasses"), class, "StorageClass"),
        (wide("storage.k8s.io/csinodes"), seat, "CSINode"),
        (ground.here("serviceaccounts"), account, "ServiceAccount"),
        (ground.here("services"), service, "Service"),
    ] {
        let made = ground.made(&path, body).await?;
        let told =
            ground.delete(&format!("{path}/{}", text(&made, "/metadata/name")), json!(null)).await?.expect(200)?;
        assert_eq!((text(&told, "/kind"), uid(&told)), (kind, uid(&made)));
    }
    Ok(())
}

pub(crate) async fn younger_kinds_are_answered_with_a_status(ground: &Ground) -> anyhow::Result<()> {
    let lease = crate::things::lease("a", "one");
    let budget = json!({ "metadata": { "name": "a" }, "spec": { "selector": { "matchLabels": { "app": "a" } } } });
    let deployment = crate::things::deployment("a");
    let node = crate::things::node(&ground.name);
    for (path, body) in [
        (ground.here("coordination.k8s.io/leases"), lease),
        (ground.here("policy/poddisruptionbudgets"), budget),
        (ground.here("apps/deployments"), deployment),
        (ground.here("secrets"), json!({ "metadata": { "name": "a" } })),
        (wide("nodes"), node),
    ] {
        let made = ground.made(&path, body).await?;
        let told =
            ground.delete(&format!("{path}/{}", text(&made, "/metadata/name")), json!(null)).await?.expect(200)?;
        assert_eq!((text(&told, "/kind"), text(&told, "/details/uid")), ("Status", uid(&made)), "{path}");
    }
    Ok(())
}

pub(crate) async fn dependents_stay_while_their_owner_is_held(ground: &Ground) -> anyhow::Result<()> {
    let (held, made) = map(ground, "held", &[]).await?;
    ground.merge(&held, json!({ "metadata": { "finalizers": ["tenon.dev/test"] } })).await?.expect(200)?;
    let (child, _) = map(ground, "child", &[owner("ConfigMap", &made)]).await?;
    let (free, made) = map(ground, "free", &[]).await?;
    let (witness, _) = map(ground, "witness", &[owner("ConfigMap", &made)]).await?;
    ground.delete(&held, json!({ "propagationPolicy": "Background" })).await?.expect(200)?;
    ground.delete(&free, json!({ "propagationPolicy": "Background" })).await?.expect(200)?;
    // Whoever took this one away has heard of the other deletion before.
    ground.gone(&witness).await?;
    ground.get(&child).await?.expect(200)?;
    ground.merge(&held, json!({ "metadata": { "finalizers": null } })).await?.expect(200)?;
    ground.gone(&child).await
}
