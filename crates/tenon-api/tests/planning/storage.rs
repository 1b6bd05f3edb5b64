//! What a snapshot says of storage and of namespaces.

use std::sync::Arc;

use serde_json::{Value, json};
use tenon_api::objects::Kind;
use tenon_api::plan_options::PlanOptions;
use tenon_api::planning::{Surroundings, to_snapshot};
use tenon_api::{NodeClaim, NodePool};
use tenon_model::{Catalog, CatalogType, NodeState, PodStorage, Resources};

use super::{NOW, Plain, claim, merged, node, pod, read, snapshot, waiting};

fn with_claim(name: &str) -> Value {
    json!({ "spec": { "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": name } }] } })
}

fn volume_claim(name: &str, volume: &str) -> (Kind, Value) {
    let metadata =
        json!({ "name": name, "namespace": "n", "annotations": { "pv.kubernetes.io/bind-completed": "yes" } });
    (Kind::PersistentVolumeClaim, json!({ "metadata": metadata, "spec": { "volumeName": volume } }))
}

fn volume(name: &str) -> (Kind, Value) {
    (Kind::PersistentVolume, json!({ "metadata": { "name": name }, "spec": { "csi": { "driver": "d" } } }))
}

#[test]
fn a_pod_that_waits_for_its_claim_is_refused_and_stops_no_other() {
    let seen = snapshot(&[
        volume_claim("data", "pv-1"),
        volume("pv-1"),
        waiting("bad", &with_claim("missing")),
        waiting("good", &with_claim("data")),
        waiting("plain", &json!({})),
    ]);
    let names: Vec<&str> = seen.pods.iter().map(|pod| &*pod.key.name).collect();
    assert_eq!(names, ["good", "plain"]);
    let [(key, why)] = seen.invalid.as_slice() else { panic!("{:?}", seen.invalid) };
    assert_eq!((&*key.name, why.as_str()), ("bad", "PersistentVolumeClaim n/missing does not exist; create the claim"));
    assert_eq!(seen.pods[0].storage.volumes().unwrap().attachments[0].volume, "n/data");
    assert_eq!(seen.pods[1].storage, PodStorage::default());
}

#[test]
fn a_pod_whose_node_leaves_knows_that_its_claim_is_lost() {
    let gone = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let bound = merged(with_claim("missing"), &json!({ "spec": { "nodeName": "n1" } }));
    let seen = snapshot(&[claim("c", "n1", &gone), node("n1", &json!({})), pod("moves", &bound)]);
    assert!(seen.pods[0].storage.refusal().is_some_and(|why| why.contains("n/missing does not exist")));
}

#[test]
fn volumes_of_pods_on_a_node_are_counted_once_each() {
    let bound =
        |name: &str, claim: &str| pod(name, &merged(with_claim(claim), &json!({ "spec": { "nodeName": "n1" } })));
    let over = json!({ "spec": { "nodeName": "n1" }, "status": { "phase": "Succeeded" } });
    let seen = snapshot(&[
        volume_claim("data", "pv-1"),
        volume_claim("logs", "pv-2"),
        volume_claim("done", "pv-1"),
        volume("pv-1"),
        volume("pv-2"),
        node("n1", &json!({})),
        bound("a", "data"),
        bound("b", "data"),
        bound("c", "logs"),
        bound("gone", "missing"),
        pod("over", &merged(with_claim("done"), &over)),
    ]);
    let attached: Vec<&str> = seen.nodes[0].attachments.iter().map(|it| it.volume.as_str()).collect();
    assert_eq!(attached, ["n/data", "n/logs"]);
}

/// One instance type with a limit.
struct Limited;

impl Surroundings for Limited {
    fn catalog(&self, _pool: &NodePool) -> Arc<Catalog> {
        let limits = [("d".to_owned(), 3), ("e".to_owned(), 4)].into_iter().collect();
        let size = CatalogType { name: "s".to_owned(), volume_attachment_limits: limits, ..CatalogType::default() };
        Arc::new(Catalog::new(vec![size]))
    }

    fn not_ready(&self, pool: &NodePool) -> Option<String> {
        Plain.not_ready(pool)
    }

    fn expected(&self, claim: &NodeClaim) -> Option<(Resources, Resources)> {
        Plain.expected(claim)
    }
}

fn limits(items: &[(Kind, Value)]) -> Vec<(String, u32)> {
    let pool = json!({ "metadata": { "name": "default" }, "spec": { "template": { "spec":
        { "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "c" } } } } });
    let mut objects = read(items);
    objects.add(Kind::NodePool.read(pool).unwrap().settled().unwrap());
    let seen = to_snapshot(&objects, &Limited, &PlanOptions::default(), NOW);
    let state: &NodeState = &seen.nodes[0];
    state.attach_limits.iter().map(|(driver, count)| (driver.clone(), *count)).collect()
}

fn csi_node(drivers: &Value) -> (Kind, Value) {
    (Kind::CSINode, json!({ "metadata": { "name": "n1" }, "spec": { "drivers": drivers } }))
}

#[test]
fn a_node_attaches_what_it_reports_and_else_what_its_instance_type_says() {
    let labels = json!({ "metadata": { "labels":
        { "karpenter.sh/nodepool": "default", "node.kubernetes.io/instance-type": "s" } } });
    let ours = || node("n1", &labels);
    let of =
        |list: &[(&str, u32)]| list.iter().map(|(driver, count)| ((*driver).to_owned(), *count)).collect::<Vec<_>>();
    assert_eq!(limits(&[ours()]), of(&[("d", 3), ("e", 4)]), "no CSINode yet");
    let listed =
        json!([{ "name": "d", "allocatable": { "count": 7 } }, { "name": "e" }, { "name": "f", "allocatable": {} }]);
    assert_eq!(limits(&[ours(), csi_node(&listed)]), of(&[("d", 7)]), "a driver without a count is not limited");
    let other = json!([{ "name": "x", "allocatable": { "count": 0 } }]);
    assert_eq!(limits(&[ours(), csi_node(&other)]), of(&[("d", 3), ("e", 4), ("x", 0)]), "drivers that are not listed");
    assert!(limits(&[node("n1", &json!({}))]).is_empty(), "nobody knows its instance type");
}

#[test]
fn a_node_that_is_not_there_yet_attaches_what_its_instance_type_says() {
    let labels = json!({ "metadata": { "labels": { "node.kubernetes.io/instance-type": "s" } } });
    assert_eq!(limits(&[claim("c", "n1", &labels)]).len(), 2);
}

#[test]
fn namespaces_are_known_by_their_labels() {
    let namespace =
        |name: &str, labels: Value| (Kind::Namespace, json!({ "metadata": { "name": name, "labels": labels } }));
    let seen = snapshot(&[namespace("a", json!({ "team": "red" })), namespace("b", json!({}))]);
    assert_eq!(seen.namespaces["a"]["team"], "red");
    assert!(seen.namespaces["b"].is_empty() && seen.namespaces.len() == 2);
}

/// Nobody may read namespaces.
struct Blind;

impl Surroundings for Blind {
    fn catalog(&self, pool: &NodePool) -> Arc<Catalog> {
        Plain.catalog(pool)
    }

    fn not_ready(&self, pool: &NodePool) -> Option<String> {
        Plain.not_ready(pool)
    }

    fn expected(&self, claim: &NodeClaim) -> Option<(Resources, Resources)> {
        Plain.expected(claim)
    }

    fn unreadable(&self, kind: Kind) -> Option<String> {
        Some(format!("cannot list {}", kind.name()))
    }
}

#[test]
fn where_nobody_may_read_namespaces_only_pods_that_choose_by_their_labels_are_refused() {
    let near = |selector: Value| {
        let term = json!([{ "topologyKey": "zone", "labelSelector": {}, "namespaceSelector": selector }]);
        json!({ "spec": { "affinity": { "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": term } } } })
    };
    let objects = read(&[
        waiting("all", &near(json!({}))),
        waiting("some", &near(json!({ "matchLabels": { "team": "red" } }))),
        waiting("plain", &json!({})),
        waiting("volume", &with_claim("data")),
    ]);
    let seen = to_snapshot(&objects, &Blind, &PlanOptions::default(), NOW);
    let names: Vec<&str> = seen.pods.iter().map(|pod| &*pod.key.name).collect();
    assert_eq!(names, ["all", "plain"]);
    let refused: Vec<(&str, &str)> = seen.invalid.iter().map(|(key, why)| (&*key.name, why.as_str())).collect();
    assert_eq!(refused, [("some", "cannot list Namespace"), ("volume", "cannot list PersistentVolumeClaim")]);
}
