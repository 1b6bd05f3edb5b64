//! Where pods may go because of their volumes.

use serde_json::json;
use tenon_model::PodVolumes;

use super::test_objects::{Storage, ZONE, bound_to, terms, topologies};

#[test]
fn a_pod_without_claims_may_go_anywhere() {
    assert_eq!(Storage::default().resolved(), PodVolumes::default());
}

#[test]
fn a_bound_volume_is_where_its_node_affinity_says() {
    let storage = Storage::default().bound("data", &terms(&[&[(ZONE, &["a", "b"])]]));
    assert_eq!(storage.places(), [format!("{ZONE} In [a, b]")]);
}

#[test]
fn an_old_name_of_a_label_is_its_new_one() {
    let storage = Storage::default().bound("data", &terms(&[&[("failure-domain.beta.kubernetes.io/zone", &["a"])]]));
    assert_eq!(storage.places(), [format!("{ZONE} In [a]")]);
}

#[test]
fn a_volume_without_node_affinity_is_everywhere() {
    assert!(Storage::default().bound("data", &json!({})).places().is_empty());
}

#[test]
fn terms_of_a_volume_are_alternatives_in_their_order() {
    let storage = Storage::default().bound("data", &terms(&[&[(ZONE, &["b"])], &[(ZONE, &["a"]), ("rack", &["1"])]]));
    assert_eq!(storage.places(), [format!("{ZONE} In [b]"), format!("rack In [1], {ZONE} In [a]")]);
}

#[test]
fn an_unbound_claim_goes_where_its_class_creates_volumes() {
    let class = topologies(&[(ZONE, &["a", "b"]), (ZONE, &["c"])]);
    let storage = Storage::default().class("fast", &class).unbound("data", "fast");
    assert_eq!(storage.places(), [format!("{ZONE} In [a, b]"), format!("{ZONE} In [c]")]);
    let anywhere = Storage::default().class("fast", &json!({})).unbound("data", "fast");
    assert!(anywhere.places().is_empty());
}

#[test]
fn the_class_of_a_bound_claim_says_nothing_of_where_the_volume_is() {
    let storage = Storage::default().class("fast", &topologies(&[(ZONE, &["a"])]));
    let mut claim = bound_to("data");
    claim["spec"]["storageClassName"] = json!("fast");
    let storage = storage.volume("data", &json!({ "spec": terms(&[&[(ZONE, &["b"])]]) })).claim("data", &claim);
    assert_eq!(storage.places(), [format!("{ZONE} In [b]")]);
}

#[test]
fn ephemeral_volumes_are_where_their_claim_says() {
    let class = topologies(&[(ZONE, &["a"])]);
    let claim = json!({ "spec": { "storageClassName": "fast" } });
    let unbound = Storage::default().class("fast", &class).ephemeral_claim("scratch", &claim);
    assert_eq!(unbound.places(), [format!("{ZONE} In [a]")]);
    let volume = json!({ "spec": terms(&[&[(ZONE, &["b"])]]) });
    let bound = Storage::default().volume("pv-1", &volume).ephemeral_claim("scratch", &bound_to("pv-1"));
    assert_eq!(bound.places(), [format!("{ZONE} In [b]")]);
}

#[test]
fn several_volumes_leave_the_combinations_that_can_be_met() {
    let storage = Storage::default()
        .bound("one", &terms(&[&[(ZONE, &["a"])], &[(ZONE, &["b"])], &[(ZONE, &["c"])]]))
        .bound("two", &terms(&[&[(ZONE, &["b", "c"])], &[("rack", &["1"])]]));
    let zone = |value: &str| format!("{ZONE} In [{value}]");
    let with_rack = |value: &str| format!("rack In [1], {ZONE} In [{value}]");
    assert_eq!(storage.places(), [with_rack("a"), zone("b"), with_rack("b"), zone("c"), with_rack("c")]);
}

#[test]
fn volumes_that_exclude_each_other_leave_what_no_node_can_meet() {
    let storage = Storage::default()
        .bound("one", &terms(&[&[(ZONE, &["a"])], &[(ZONE, &["b"])]]))
        .bound("two", &terms(&[&[(ZONE, &["c"])]]));
    let volumes = storage.resolved();
    assert_eq!(volumes.alternatives.len(), 1, "both combinations are equally impossible");
    assert!(volumes.alternatives.iter().all(|place| !place.can_meet(place, |_| false)), "{volumes:?}");
}

#[test]
fn equal_combinations_are_one() {
    let zones = terms(&[&[(ZONE, &["a"])], &[(ZONE, &["b"])]]);
    let all = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let storage = all.iter().fold(Storage::default(), |storage, name| storage.bound(name, &zones));
    assert_eq!(storage.places(), [format!("{ZONE} In [a]"), format!("{ZONE} In [b]")]);
}

#[test]
fn combinations_without_end_stop_the_pod() {
    let volume = |storage: Storage, number: i32| {
        let (name, label) = (number.to_string(), format!("label-{number}"));
        storage.bound(&name, &terms(&[&[(&label, &["a"])], &[(&label, &["b"])], &[(&label, &["c"])]]))
    };
    assert_eq!((0..5).fold(Storage::default(), volume).places().len(), 243);
    let why = (0..40).fold(Storage::default(), volume).refusal();
    assert!(why.contains("more than 256 ways"), "{why}");
}

#[test]
fn a_volume_of_a_node_may_be_left_behind_with_the_node() {
    let host: (&str, &[&str]) = ("kubernetes.io/hostname", &["n1"]);
    let zone: (&str, &[&str]) = (ZONE, &["a"]);
    for kind in ["local", "hostPath"] {
        let mut spec = terms(&[&[host, zone]]);
        spec[kind] = json!({ "path": "/data" });
        assert_eq!(Storage::default().bound("data", &spec).places(), [format!("{ZONE} In [a]")], "{kind}");
        let mut only_host = terms(&[&[host]]);
        only_host[kind] = json!({ "path": "/data" });
        assert!(Storage::default().bound("data", &only_host).places().is_empty(), "{kind}");
        let mut either = terms(&[&[host], &[zone]]);
        either[kind] = json!({ "path": "/data" });
        assert_eq!(Storage::default().bound("data", &either).places(), ["", &format!("{ZONE} In [a]")], "{kind}");
    }
}

#[test]
fn any_other_volume_stays_with_its_host_name() {
    let storage = Storage::default().bound("data", &terms(&[&[("kubernetes.io/hostname", &["n1"])]]));
    assert_eq!(storage.places(), ["kubernetes.io/hostname In [n1]"]);
}

#[test]
fn node_affinity_that_cannot_be_read_stops_the_pod() {
    let term = json!({ "matchExpressions": [{ "key": "rack", "operator": "Gt", "values": ["x"] }] });
    let spec = json!({ "nodeAffinity": { "required": { "nodeSelectorTerms": [term] } } });
    let why = Storage::default().bound("data", &spec).refusal();
    assert!(
        why.contains("PersistentVolume data of PersistentVolumeClaim shop/data has node affinity that cannot be met: requirement on label rack"),
        "{why}"
    );
}
