//! What can be asked for at all?

use anyhow::Context as _;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use crate::ground::Ground;
use crate::reply::text;

/// A resource of a list of resources.
fn resource<'a>(list: &'a Value, name: &str) -> anyhow::Result<&'a Value> {
    let mut all = list["resources"].as_array().into_iter().flatten();
    all.find(|row| text(row, "/name") == name).with_context(|| format!("no {name} in {list:#}"))
}

fn has_verbs(row: &Value, verbs: &[&str]) -> bool {
    verbs.iter().all(|verb| row["verbs"].as_array().is_some_and(|all| all.contains(&json!(verb))))
}

const ALL: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const CHANGE: [&str; 3] = ["get", "patch", "update"];

pub(crate) async fn the_core_group_names_its_resources(ground: &Ground) -> anyhow::Result<()> {
    let list = ground.get("/api/v1").await?.expect(200)?;
    assert_eq!((text(&list, "/kind"), text(&list, "/groupVersion")), ("APIResourceList", "v1"));
    for (name, kind, is_namespaced) in [
        ("pods", "Pod", true),
        ("nodes", "Node", false),
        ("namespaces", "Namespace", false),
        ("secrets", "Secret", true),
        ("configmaps", "ConfigMap", true),
        ("events", "Event", true),
        ("serviceaccounts", "ServiceAccount", true),
        ("persistentvolumeclaims", "PersistentVolumeClaim", true),
        ("persistentvolumes", "PersistentVolume", false),
        ("replicationcontrollers", "ReplicationController", true),
    ] {
        let row = resource(&list, name)?;
        assert_eq!((text(row, "/kind"), &row["namespaced"]), (kind, &json!(is_namespaced)));
        let verbs: &[&str] =
            if name == "namespaces" { &["create", "delete", "get", "list", "patch", "update", "watch"] } else { &ALL };
        assert!(has_verbs(row, verbs), "{row:#}");
    }
    assert!(has_verbs(resource(&list, "nodes/status")?, &CHANGE));
    assert!(has_verbs(resource(&list, "pods/status")?, &CHANGE));
    Ok(())
}

pub(crate) async fn pods_can_be_bound_and_evicted(ground: &Ground) -> anyhow::Result<()> {
    let list = ground.get("/api/v1").await?.expect(200)?;
    let eviction = resource(&list, "pods/eviction")?;
    assert_eq!((text(eviction, "/kind"), text(eviction, "/group")), ("Eviction", "policy"));
    assert_eq!((text(eviction, "/version"), &eviction["verbs"]), ("v1", &json!(["create"])));
    let binding = resource(&list, "pods/binding")?;
    assert_eq!((text(binding, "/kind"), &binding["verbs"]), ("Binding", &json!(["create"])));
    Ok(())
}

pub(crate) async fn the_groups_we_use_are_served(ground: &Ground) -> anyhow::Result<()> {
    let groups = ground.get("/apis").await?.expect(200)?;
    assert_eq!(text(&groups, "/kind"), "APIGroupList");
    let served: Vec<&str> = groups["groups"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|group| text(group, "/preferredVersion/groupVersion"))
        .collect();
    for wanted in [
        "apps/v1",
        "batch/v1",
        "policy/v1",
        "coordination.k8s.io/v1",
        "storage.k8s.io/v1",
        "certificates.k8s.io/v1",
        "rbac.authorization.k8s.io/v1",
        "scheduling.k8s.io/v1",
        "apiextensions.k8s.io/v1",
        "events.k8s.io/v1",
    ] {
        assert!(served.contains(&wanted), "{wanted} is not among {served:?}");
    }
    Ok(())
}

pub(crate) async fn resources_of_groups_are_listed(ground: &Ground) -> anyhow::Result<()> {
    for (group, name) in [
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "daemonsets"),
        ("apps", "statefulsets"),
        ("batch", "jobs"),
        ("policy", "poddisruptionbudgets"),
        ("coordination.k8s.io", "leases"),
        ("storage.k8s.io", "volumeattachments"),
        ("storage.k8s.io", "csinodes"),
        ("storage.k8s.io", "storageclasses"),
        ("certificates.k8s.io", "certificatesigningrequests"),
        ("events.k8s.io", "events"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
    ] {
        let list = ground.get(&format!("/apis/{group}/v1")).await?.expect(200)?;
        assert!(has_verbs(resource(&list, name)?, &ALL), "{group} {name}");
    }
    let apps = ground.get("/apis/apps/v1").await?.expect(200)?;
    let scale = resource(&apps, "deployments/scale")?;
    assert_eq!((text(scale, "/kind"), text(scale, "/group")), ("Scale", "autoscaling"));
    Ok(())
}

pub(crate) async fn our_kinds_are_discovered(ground: &Ground) -> anyhow::Result<()> {
    ground.define().await?;
    let list = ground.get("/apis/karpenter.sh/v1").await?.expect(200)?;
    for (name, kind) in [("nodepools", "NodePool"), ("nodeclaims", "NodeClaim")] {
        let row = resource(&list, name)?;
        assert_eq!((text(row, "/kind"), &row["namespaced"]), (kind, &json!(false)));
        assert!(has_verbs(row, &ALL), "{row:#}");
        assert!(has_verbs(resource(&list, &format!("{name}/status"))?, &CHANGE));
    }
    assert_eq!(text(resource(&list, "nodepools/scale")?, "/kind"), "Scale");
    assert_eq!(text(resource(&list, "nodepools")?, "/singularName"), "nodepool");
    let (found, what) =
        kube::discovery::pinned_kind(&ground.client, &GroupVersionKind::gvk("karpenter.sh", "v1", "NodePool")).await?;
    assert_eq!((found.plural.as_str(), what.scope), ("nodepools", kube::discovery::Scope::Cluster));
    Ok(())
}

pub(crate) async fn a_group_that_is_not_served_is_not_found(ground: &Ground) -> anyhow::Result<()> {
    for path in ["/apis/none.example", "/apis/none.example/v1", "/apis/apps/v7", "/none"] {
        assert_eq!(ground.get(path).await?.code, 404, "{path}");
    }
    Ok(())
}

pub(crate) async fn the_server_tells_its_version(ground: &Ground) -> anyhow::Result<()> {
    let told = ground.client.apiserver_version().await?;
    assert_eq!((told.major.as_str(), told.minor.as_str()), ("1", "36"));
    assert!(told.git_version.starts_with("v1.36."), "{}", told.git_version);
    Ok(())
}

pub(crate) async fn the_server_tells_that_it_lives(ground: &Ground) -> anyhow::Result<()> {
    for path in ["/livez", "/readyz", "/healthz"] {
        let reply = ground.get(path).await?;
        assert_eq!((reply.code, reply.body), (200, json!("ok")), "{path}");
    }
    Ok(())
}
