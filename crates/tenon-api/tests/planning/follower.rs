//! However often it looked before, a follower sees what one sees that looks for the first time.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use tenon_api::kube_objects::{Pod, PodSharing};
use tenon_api::objects::{Kind, Objects};
use tenon_api::plan_options::PlanOptions;
use tenon_api::planning::{Follower, Surroundings, to_snapshot};
use tenon_api::{NodeClaim, NodePool};
use tenon_model::{Catalog, Resources, Snapshot};

use crate::planning::{NOW, Plain, merged};

/// One object is there from now on, is another, or is gone.
#[derive(Debug, Clone)]
struct Change {
    kind: Kind,
    number: u8,
    /// Picks one of the forms an object of the kind can have; none if it is gone.
    form: Option<(u8, u8)>,
}

fn any_change() -> impl Strategy<Value = Change> {
    let often = [Kind::Pod, Kind::Pod, Kind::Pod, Kind::PersistentVolumeClaim, Kind::PersistentVolumeClaim];
    let others = [Kind::Node, Kind::NodeClaim, Kind::NodePool, Kind::DaemonSet, Kind::PersistentVolume];
    let rare = [Kind::StorageClass, Kind::CSINode, Kind::Namespace, Kind::Service, Kind::ReplicaSet];
    let kinds: Vec<Kind> = often.into_iter().chain(often).chain(others).chain(rare).collect();
    let form = proptest::option::weighted(0.8, (0..8_u8, 0..3_u8));
    (proptest::sample::select(kinds), 0..4_u8, form).prop_map(|(kind, number, form)| Change { kind, number, form })
}

fn object(kind: Kind, number: u8, (form, other): (u8, u8)) -> Value {
    let amounts = json!({ "cpu": form.to_string(), "memory": "1Gi", "pods": "10" });
    let meta =
        |name: &str| json!({ "metadata": { "name": format!("{name}{number}"), "uid": format!("{name}-{number}") } });
    let leaves = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let made = match kind {
        Kind::Pod => pod(number, form, other),
        Kind::Node => merged(
            meta("n"),
            &json!({
                "metadata": { "labels": {
                    "karpenter.sh/nodepool": format!("p{other}"),
                    "karpenter.sh/registered": (form > 2).to_string(),
                    "karpenter.sh/initialized": (form > 3).to_string(),
                    "node.kubernetes.io/instance-type": "s",
                } },
                "spec": { "providerID": format!("id{number}") },
                "status": { "capacity": amounts, "allocatable": amounts },
            }),
        ),
        Kind::NodeClaim => {
            let launch = if form % 2 == 0 { json!({ "tenon.dev/launch": "{}" }) } else { json!({}) };
            merged(
                // A claim need not be called like its node.
                json!({ "metadata": { "name": format!("{}{number}", if form > 5 { "c" } else { "n" }), "annotations": launch } }),
                &json!({
                    "metadata": { "labels": { "karpenter.sh/nodepool": format!("p{other}") } },
                    "spec": {
                        "requirements": [],
                        "nodeClassRef": { "group": "g", "kind": "K", "name": "c" },
                        "taints": [{ "key": "t", "effect": "NoSchedule", "value": other.to_string() }],
                    },
                    "status": if form > 1 { json!({ "providerID": format!("id{other}") }) } else { json!({}) },
                }),
            )
        }
        Kind::NodePool => merged(
            meta("p"),
            &json!({
                "spec": {
                    "weight": form + 1,
                    "template": { "spec": {
                        "requirements": [],
                        "nodeClassRef": { "group": "g", "kind": "K", "name": "c" },
                    } },
                },
            }),
        ),
        Kind::PersistentVolumeClaim | Kind::PersistentVolume | Kind::StorageClass | Kind::CSINode => {
            storage(kind, number, form, other)
        }
        Kind::Namespace | Kind::Service | Kind::ReplicaSet => belonging(kind, number, form, other),
        _ => merged(
            meta("set"),
            &json!({
                "metadata": { "namespace": "n" },
                "spec": {
                    "selector": { "matchLabels": { "app": "d" } },
                    "template": {
                        "metadata": { "labels": { "app": "d" } },
                        "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": form.to_string() } } }] },
                    },
                },
            }),
        ),
    };
    let goes = ![Kind::DaemonSet, Kind::Namespace].contains(&kind) && form == 7 && other == 2;
    if goes { merged(made, &leaves) } else { made }
}

/// By what pods belong together.
fn belonging(kind: Kind, number: u8, form: u8, other: u8) -> Value {
    let meta = |name: &str| json!({ "metadata": { "name": format!("{name}{number}"), "namespace": "n" } });
    match kind {
        Kind::Namespace => merged(meta("n"), &json!({ "metadata": { "labels": { "team": other.to_string() } } })),
        Kind::Service => {
            let selector = if form < 4 { json!({ "app": "d" }) } else { json!({ "tier": other.to_string() }) };
            merged(meta("s"), &json!({ "spec": { "selector": selector } }))
        }
        _ => merged(meta("r"), &json!({ "spec": { "selector": { "matchLabels": { "rev": form.to_string() } } } })),
    }
}

/// A claim that is bound, half bound or not, and what it may be bound to or created by; how many volumes a node takes.
fn storage(kind: Kind, number: u8, form: u8, other: u8) -> Value {
    let zone = json!({ "key": "zone", "operator": "In", "values": [form.to_string()] });
    let annotations =
        if form.is_multiple_of(2) { json!({ "pv.kubernetes.io/bind-completed": "yes" }) } else { json!({}) };
    match kind {
        Kind::PersistentVolumeClaim => json!({
            "metadata": { "name": format!("claim{number}"), "namespace": "n", "annotations": annotations },
            "spec": match form {
                0..=3 => json!({ "volumeName": format!("v{other}") }),
                4 | 5 => json!({ "storageClassName": format!("c{other}") }),
                _ => json!({}),
            },
        }),
        Kind::PersistentVolume => json!({
            "metadata": { "name": format!("v{number}") },
            "spec": { "csi": { "driver": format!("d{other}") },
                "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [zone] }] } } },
        }),
        Kind::StorageClass => json!({
            "metadata": { "name": format!("c{number}"), "annotations":
                { "storageclass.kubernetes.io/is-default-class": form.is_multiple_of(2).to_string() } },
            "provisioner": format!("d{other}"),
            "volumeBindingMode": if form < 6 { "WaitForFirstConsumer" } else { "Immediate" },
        }),
        _ => json!({
            "metadata": { "name": format!("n{number}") },
            "spec": { "drivers": [{ "name": format!("d{other}"), "allocatable": { "count": form } }] },
        }),
    }
}

/// A pod that waits, that cannot be helped, that is on a node, that is over, or that a DaemonSet made.
fn pod(number: u8, form: u8, other: u8) -> Value {
    let plain = json!({
        "metadata": { "name": format!("pod{number}"), "namespace": "n", "uid": format!("u{number}-{}", form % 2), "labels": { "app": "d" } },
        "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": other.to_string() } } }] },
        "status": { "phase": "Pending" },
    });
    let bound = json!({ "spec": { "nodeName": format!("n{other}") } });
    let unschedulable = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" });
    let waits = json!({ "status": { "conditions": [unschedulable] } });
    let volume = json!({ "spec": { "volumes": [
        { "name": "a", "persistentVolumeClaim": { "claimName": format!("claim{other}") } },
        { "name": "b", "persistentVolumeClaim": { "claimName": "claim3" } },
    ] } });
    let owned = json!({ "metadata": { "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "name": format!("r{other}"), "uid": format!("r-{other}"), "controller": true }] } });
    let more = match form {
        0 => waits,
        1 => merged(merged(waits, &volume), &owned),
        2 => merged(waits, &json!({ "spec": { "nodeSelector": { "karpenter.sh/nodepool.": "!" } } })),
        3 => merged(
            bound,
            &json!({ "spec": { "affinity": { "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                { "topologyKey": "zone", "labelSelector": { "matchLabels": { "app": other.to_string() } } },
            ],
        } } } }),
        ),
        4 => merged(bound, &json!({ "status": { "phase": "Succeeded" } })),
        5 => merged(
            bound,
            &json!({ "metadata": {
            "creationTimestamp": format!("2026-01-01T00:00:0{other}Z"),
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": format!("set{other}"), "uid": format!("set-{other}"), "controller": true }],
        } }),
        ),
        6 => merged(bound, &volume),
        _ => bound,
    };
    merged(plain, &more)
}

/// Objects as a store keeps them: what did not change stays where it is.
#[derive(Default)]
struct Store {
    sharing: PodSharing,
    objects: Objects,
}

impl Store {
    fn read(kind: Kind, value: &Value) -> Objects {
        let mut objects = Objects::default();
        objects.add(kind.read(value.clone()).unwrap().settled().unwrap());
        objects
    }

    fn apply(&mut self, change: &Change) {
        let name = |prefix: &str| format!("{prefix}{}", change.number);
        let made = change.form.map(|form| Store::read(change.kind, &object(change.kind, change.number, form)));
        let made = made.unwrap_or_default();
        let all = &mut self.objects;
        match change.kind {
            Kind::Pod => {
                // As the controllers keep them: pods that are alike share what is known of them.
                all.pods.retain(|known| known.name() != name("pod"));
                let shared = made.pods.iter().map(|pod| Arc::new(self.sharing.shared(Pod::clone(pod))));
                all.pods.extend(shared);
            }
            Kind::Node => replace(&mut all.nodes, made.nodes, &[name("n")]),
            Kind::NodeClaim => replace(&mut all.node_claims, made.node_claims, &[name("n"), name("c")]),
            Kind::NodePool => replace(&mut all.node_pools, made.node_pools, &[name("p")]),
            Kind::PersistentVolumeClaim => {
                replace(&mut all.persistent_volume_claims, made.persistent_volume_claims, &[name("claim")]);
            }
            Kind::PersistentVolume => replace(&mut all.persistent_volumes, made.persistent_volumes, &[name("v")]),
            Kind::StorageClass => replace(&mut all.storage_classes, made.storage_classes, &[name("c")]),
            Kind::CSINode => replace(&mut all.csi_nodes, made.csi_nodes, &[name("n")]),
            Kind::Namespace => replace(&mut all.namespaces, made.namespaces, &[name("n")]),
            Kind::Service => replace(&mut all.services, made.services, &[name("s")]),
            Kind::ReplicaSet => replace(&mut all.replica_sets, made.replica_sets, &[name("r")]),
            _ => replace(&mut all.daemon_sets, made.daemon_sets, &[name("set")]),
        }
    }
}

fn replace<K: kube::Resource>(list: &mut Vec<Arc<K>>, made: Vec<Arc<K>>, names: &[String]) {
    list.retain(|known| !known.meta().name.as_ref().is_some_and(|name| names.contains(name)));
    list.extend(made);
}

fn seen(snapshot: &Snapshot) -> String {
    format!("{snapshot:#?}")
}

/// Some pods are spread by the operator's own constraints.
fn options() -> PlanOptions {
    let mut options = PlanOptions::default();
    let spread =
        "{podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway}]}}";
    options.set("scheduler-config", spread).unwrap();
    options
}

/// Whoever may read everything but, at times, one kind. The rest is as plain as can be.
struct Blind(Option<Kind>);

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
        (self.0 == Some(kind)).then(|| format!("cannot list {}", kind.name()))
    }
}

proptest! {
    #[test]
    fn i8_usage_a_follower_sees_what_a_first_look_sees(
        changes in proptest::collection::vec((any_change(), any::<bool>(), 0..8_usize), 0..60),
        is_spread in any::<bool>(),
    ) {
        let (mut store, mut follower) = (Store::default(), Follower::default());
        let options = if is_spread { options() } else { PlanOptions::default() };
        let unread = [Kind::PersistentVolumeClaim, Kind::PersistentVolume, Kind::Namespace];
        for (change, looks, blind) in &changes {
            store.apply(change);
            if *looks {
                let around = Blind(unread.get(*blind).copied());
                let followed = follower.look(&store.objects, &around, &options, NOW);
                prop_assert_eq!(seen(&followed), seen(&to_snapshot(&store.objects, &around, &options, NOW)));
            }
        }
    }
}

fn change(kind: Kind, number: u8, form: (u8, u8)) -> Change {
    Change { kind, number, form: Some(form) }
}

#[test]
fn what_did_not_change_is_not_read_again() {
    let mut store = Store::default();
    for change in [change(Kind::Node, 0, (5, 0)), change(Kind::Node, 1, (5, 0)), change(Kind::Pod, 0, (0, 1))] {
        store.apply(&change);
    }
    let mut follower = Follower::default();
    let mut look = |store: &Store| follower.look(&store.objects, &Plain, &PlanOptions::default(), NOW);
    let before = look(&store);
    store.apply(&change(Kind::Pod, 1, (6, 1)));
    let after = look(&store);
    assert!(Arc::ptr_eq(&before.pods[0], &after.pods[0]) && Arc::ptr_eq(&before.nodes[0], &after.nodes[0]));
    assert!(!Arc::ptr_eq(&before.nodes[1], &after.nodes[1]), "this one got a pod");
    assert!(Arc::ptr_eq(&before.namespaces, &after.namespaces));
}

#[test]
fn a_claim_that_changes_is_read_again_for_its_own_pods_only() {
    let mut store = Store::default();
    for change in [
        change(Kind::PersistentVolume, 0, (0, 0)),
        change(Kind::PersistentVolumeClaim, 3, (0, 0)),
        change(Kind::PersistentVolumeClaim, 0, (0, 0)),
        change(Kind::PersistentVolumeClaim, 1, (0, 0)),
        change(Kind::Pod, 0, (1, 0)),
        change(Kind::Pod, 1, (1, 1)),
        change(Kind::Pod, 2, (0, 1)),
    ] {
        store.apply(&change);
    }
    let mut follower = Follower::default();
    let mut look = |store: &Store| follower.look(&store.objects, &Plain, &PlanOptions::default(), NOW);
    let before = look(&store);
    assert_eq!(before.pods.len(), 3, "{:?}", before.invalid);
    store.apply(&change(Kind::PersistentVolumeClaim, 0, (2, 0)));
    let after = look(&store);
    let same: Vec<bool> = before.pods.iter().zip(&after.pods).map(|(then, now)| Arc::ptr_eq(then, now)).collect();
    assert_eq!(same, [false, true, true]);
    store.apply(&change(Kind::PersistentVolumeClaim, 0, (1, 0)));
    let unbound = look(&store);
    assert_eq!((unbound.pods.len(), unbound.invalid.len()), (2, 1), "it waits for its own claim, the others do not");
}
