//! The operator's spread constraints on pods that have none: which pods they count.

use serde_json::{Value, json};
use tenon_api::objects::Kind;
use tenon_api::plan_options::PlanOptions;
use tenon_api::planning::to_snapshot;
use tenon_model::{Snapshot, Spread, WhenUnsatisfiable};

use super::{NOW, Plain, claim, merged, node, pod, read, waiting};

const ZONE: &str =
    "{maxSkew: 2, minDomains: 3, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Honor}";
const HOST: &str = "{maxSkew: 1, topologyKey: host, whenUnsatisfiable: ScheduleAnyway, nodeAffinityPolicy: Ignore}";

fn spread(items: &[(Kind, Value)], constraints: &str) -> Snapshot {
    let mut options = PlanOptions::default();
    let config = format!("{{podTopologySpread: {{defaultConstraints: [{constraints}]}}}}");
    options.set("scheduler-config", &config).unwrap();
    let mut objects = read(items);
    objects.sort();
    to_snapshot(&objects, &Plain, &options, NOW)
}

/// Which pods the first constraint of the first pod counts, as text; none if the pod has no constraint.
fn counted(items: &[(Kind, Value)]) -> Option<String> {
    let seen = spread(items, ZONE);
    let selector = seen.pods[0].spreads.first()?.selector.as_ref()?;
    let demands =
        selector.requirements.iter().map(|it| format!("{} {} {}", it.label, it.operator, it.values.join(" ")));
    Some(demands.collect::<Vec<_>>().join(", "))
}

fn owned(api_version: &str, kind: &str, is_controller: bool) -> Value {
    json!({ "metadata": { "ownerReferences": [
        { "apiVersion": api_version, "kind": kind, "name": "o", "uid": "u", "controller": is_controller },
    ] } })
}

fn of_replica_set() -> Value {
    owned("apps/v1", "ReplicaSet", true)
}

fn controller(kind: Kind, selector: &Value) -> (Kind, Value) {
    (kind, json!({ "metadata": { "name": "o", "namespace": "n" }, "spec": { "selector": selector } }))
}

fn service(name: &str, namespace: &str, selector: &Value) -> (Kind, Value) {
    (Kind::Service, json!({ "metadata": { "name": name, "namespace": namespace }, "spec": { "selector": selector } }))
}

fn labelled(labels: &Value) -> Value {
    json!({ "metadata": { "labels": labels } })
}

#[test]
fn pods_of_a_replica_set_count_what_its_selector_selects_and_not_their_other_labels() {
    let labels = merged(of_replica_set(), &labelled(&json!({ "app": "web", "pod-template-hash": "7f", "extra": "x" })));
    let selector = json!({ "matchLabels": { "app": "web", "pod-template-hash": "7f" } });
    let items = [controller(Kind::ReplicaSet, &selector), waiting("a", &labels)];
    assert_eq!(counted(&items).unwrap(), "app In web, pod-template-hash In 7f");
}

#[test]
fn expressions_of_a_replica_set_are_kept() {
    let selector = json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": ["db"] },
        { "key": "tier", "operator": "Exists" }] });
    let items = [controller(Kind::ReplicaSet, &selector), waiting("a", &of_replica_set())];
    assert_eq!(counted(&items).unwrap(), "app NotIn db, tier Exists ");
}

#[test]
fn pods_of_a_stateful_set_count_each_other_although_each_has_a_label_of_its_own() {
    let own = json!({ "app": "db", "statefulset.kubernetes.io/pod-name": "o-0" });
    let pod = merged(owned("apps/v1", "StatefulSet", true), &labelled(&own));
    let items = [controller(Kind::StatefulSet, &json!({ "matchLabels": { "app": "db" } })), waiting("o-0", &pod)];
    assert_eq!(counted(&items).unwrap(), "app In db");
}

#[test]
fn pods_of_a_replication_controller_count_what_it_selects() {
    let pod = waiting("a", &owned("v1", "ReplicationController", true));
    let items = [controller(Kind::ReplicationController, &json!({ "app": "old" })), pod];
    assert_eq!(counted(&items).unwrap(), "app In old");
}

#[test]
fn other_owners_and_owners_that_do_not_control_say_nothing() {
    let set = || controller(Kind::ReplicaSet, &json!({ "matchLabels": { "app": "web" } }));
    for owner in [
        owned("batch/v1", "Job", true),
        owned("example.com/v1", "ReplicaSet", true),
        owned("apps/v1", "ReplicaSet", false),
    ] {
        assert_eq!(counted(&[set(), waiting("a", &owner)]), None, "{owner}");
    }
}

#[test]
fn an_owner_that_no_longer_exists_says_nothing() {
    assert_eq!(counted(&[waiting("a", &of_replica_set())]), None);
    let items = [service("s", "n", &json!({ "app": "web" })), waiting("a", &of_replica_set())];
    assert_eq!(counted(&items).unwrap(), "app In web", "what Services say stays");
}

#[test]
fn services_that_select_the_pod_count_together_and_the_last_of_a_label_decides() {
    let labels = labelled(&json!({ "app": "web", "tier": "front", "rev": "1" }));
    let items = [
        service("b", "n", &json!({ "app": "web", "tier": "front" })),
        service("a", "n", &json!({ "app": "web", "rev": "1" })),
        service("c", "n", &json!({ "app": "db" })),
        waiting("p", &labels),
    ];
    assert_eq!(counted(&items).unwrap(), "app In web, rev In 1, tier In front");
}

#[test]
fn services_without_a_selector_with_an_empty_one_or_of_another_namespace_say_nothing() {
    let bare = (Kind::Service, json!({ "metadata": { "name": "bare", "namespace": "n" }, "spec": {} }));
    let items = [
        bare,
        service("all", "n", &json!({})),
        service("far", "elsewhere", &json!({ "app": "web" })),
        waiting("a", &json!({})),
    ];
    assert_eq!(counted(&items), None, "a pod that belongs to nothing is not spread");
}

#[test]
fn services_and_the_owner_are_demanded_together_and_what_both_say_is_said_once() {
    let items = [
        service("s", "n", &json!({ "app": "web" })),
        controller(Kind::ReplicaSet, &json!({ "matchLabels": { "app": "web", "rev": "1" } })),
        waiting("a", &of_replica_set()),
    ];
    assert_eq!(counted(&items).unwrap(), "app In web, rev In 1");
}

#[test]
fn a_replication_controller_overrules_services_and_a_replica_set_does_not() {
    let service = || service("s", "n", &json!({ "app": "web" }));
    let old = [
        service(),
        controller(Kind::ReplicationController, &json!({ "app": "old" })),
        waiting("a", &owned("v1", "ReplicationController", true)),
    ];
    assert_eq!(counted(&old).unwrap(), "app In old");
    let selector = json!({ "matchLabels": { "app": "other" } });
    let new = [service(), controller(Kind::ReplicaSet, &selector), waiting("a", &of_replica_set())];
    assert_eq!(counted(&new).unwrap(), "app In web, app In other", "no pod has both");
}

#[test]
fn every_constraint_keeps_what_the_operator_wrote() {
    let items = [service("s", "n", &json!({ "app": "web" })), waiting("a", &json!({}))];
    let seen = spread(&items, &format!("{ZONE}, {HOST}"));
    let [zone, host] = seen.pods[0].spreads.as_slice() else { panic!("{:?}", seen.pods[0].spreads) };
    assert_eq!((zone.label.as_str(), zone.max_skew, zone.min_domains), ("zone", 2, Some(3)));
    assert_eq!(zone.when_unsatisfiable, WhenUnsatisfiable::DoNotSchedule);
    assert!(zone.nodes.that_are_tolerated && zone.nodes.that_are_wanted);
    assert_eq!((host.label.as_str(), host.max_skew, host.min_domains), ("host", 1, None));
    assert_eq!(host.when_unsatisfiable, WhenUnsatisfiable::ScheduleAnyway);
    assert!(!host.nodes.that_are_tolerated && !host.nodes.that_are_wanted);
    assert_eq!(zone.selector, host.selector);
}

#[test]
fn a_pod_with_constraints_of_its_own_keeps_only_those() {
    let own = json!([{ "maxSkew": 5, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway" }]);
    let pod = waiting("a", &json!({ "spec": { "topologySpreadConstraints": own } }));
    let seen = spread(&[service("s", "n", &json!({ "app": "web" })), pod], ZONE);
    let labels: Vec<&str> = seen.pods[0].spreads.iter().map(|spread| spread.label.as_str()).collect();
    assert_eq!(labels, ["rack"]);
    assert_eq!(seen.pods[0].spreads[0].selector, None);
}

#[test]
fn without_constraints_of_the_operator_nothing_is_added() {
    let items = [service("s", "n", &json!({ "app": "web" })), waiting("a", &json!({}))];
    assert!(super::snapshot(&items).pods[0].spreads.is_empty());
}

#[test]
fn workloads_revisions_and_namespaces_are_spread_each_by_itself() {
    let revision = |name: &str, rev: &str, namespace: &str| {
        let set = json!({ "metadata": { "name": rev, "namespace": namespace },
            "spec": { "selector": { "matchLabels": { "app": "web", "rev": rev } } } });
        let owner =
            json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": rev, "uid": rev, "controller": true }]);
        let pod = json!({ "metadata": { "namespace": namespace, "ownerReferences": owner,
            "labels": { "app": "web", "rev": rev, "extra": "x" } } });
        [(Kind::ReplicaSet, set), waiting(name, &pod)]
    };
    let mut items: Vec<(Kind, Value)> = revision("a", "one", "n").into();
    items.extend(revision("b", "two", "n"));
    items.extend(revision("c", "one", "m"));
    items.push(service("s", "m", &json!({ "extra": "x" })));
    let seen = spread(&items, ZONE);
    let selectors: Vec<_> = seen.pods.iter().map(|pod| &pod.spreads[0].selector).collect();
    assert!(selectors[0] != selectors[1] && selectors[1] != selectors[2] && selectors[0] != selectors[2]);
}

#[test]
fn pods_of_one_owner_with_other_labels_may_be_selected_by_other_services() {
    let pod = |name: &str, tier: &str| waiting(name, &merged(of_replica_set(), &labelled(&json!({ "tier": tier }))));
    let items = [
        controller(Kind::ReplicaSet, &json!({ "matchLabels": { "app": "web" } })),
        service("s", "n", &json!({ "tier": "front" })),
        pod("a", "front"),
        pod("b", "back"),
    ];
    let seen = spread(&items, ZONE);
    let lengths: Vec<usize> =
        seen.pods.iter().map(|pod| pod.spreads[0].selector.as_ref().unwrap().requirements.len()).collect();
    assert_eq!(lengths, [2, 1]);
}

#[test]
fn pods_whose_node_leaves_are_spread_by_default_too() {
    let gone = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let seen = spread(
        &[
            claim("c", "n1", &gone),
            node("n1", &json!({})),
            pod("moves", &merged(of_replica_set(), &json!({ "spec": { "nodeName": "n1" } }))),
            controller(Kind::ReplicaSet, &json!({ "matchLabels": { "app": "web" } })),
        ],
        HOST,
    );
    let labels = |spread: &Spread| spread.label.clone();
    assert_eq!(seen.pods[0].spreads.iter().map(labels).collect::<Vec<_>>(), ["host"]);
}
