//! However often it looked before, a follower sees what one sees that looks for the first time.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use tenon_api::kube_objects::{Pod, PodSharing};
use tenon_api::objects::{Kind, Objects};
use tenon_api::plan_options::PlanOptions;
use tenon_api::planning::{Follower, to_snapshot};
use tenon_model::Snapshot;

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
    let kinds = [Kind::Pod, Kind::Pod, Kind::Pod, Kind::Node, Kind::NodeClaim, Kind::NodePool, Kind::DaemonSet];
    let form = proptest::option::weighted(0.8, (0..8_u8, 0..3_u8));
    (proptest::sample::select(kinds.to_vec()), 0..4_u8, form).prop_map(|(kind, number, form)| Change {
        kind,
        number,
        form,
    })
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
    let goes = kind != Kind::DaemonSet && form == 7 && other == 2;
    if goes { merged(made, &leaves) } else { made }
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
    let more = match form {
        0 | 1 => waits,
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

proptest! {
    #[test]
    fn a_follower_sees_what_a_first_look_sees(changes in proptest::collection::vec((any_change(), any::<bool>()), 0..60)) {
        let (mut store, mut follower) = (Store::default(), Follower::default());
        let options = PlanOptions::default();
        for (change, looks) in &changes {
            store.apply(change);
            if *looks {
                let followed = follower.look(&store.objects, &Plain, &options, NOW);
                prop_assert_eq!(seen(&followed), seen(&to_snapshot(&store.objects, &Plain, &options, NOW)));
            }
        }
    }
}

#[test]
fn what_did_not_change_is_not_read_again() {
    let change = |kind, number, form| Change { kind, number, form: Some(form) };
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
}
