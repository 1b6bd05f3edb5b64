//! Claims that stop their pod, each with a sentence that names the claim, the cause and the next step.

use std::collections::BTreeMap;

use serde_json::json;

use super::test_objects::{Storage, bound_to};
use crate::objects::Kind;

#[track_caller]
fn refused(storage: &Storage, words: &str) {
    let why = storage.refusal();
    assert!(why.contains(words), "{why}");
    assert!(why.contains("shop/") && why.contains("; "), "a claim and a next step: {why}");
    assert!(!why.ends_with('.') && !why.contains('\n'), "{why}");
}

const GONE: &str = "2026-01-01T00:00:00Z";

#[test]
fn a_claim_that_does_not_exist_stops_its_pod() {
    refused(&Storage::default().uses("data"), "PersistentVolumeClaim shop/data does not exist; create the claim");
}

#[test]
fn an_ephemeral_claim_that_was_not_created_yet_stops_its_pod() {
    let storage = Storage::default().ephemeral("scratch");
    refused(&storage, "PersistentVolumeClaim shop/web-scratch of an ephemeral volume does not exist yet");
}

#[test]
fn a_claim_that_is_being_deleted_stops_its_pod() {
    let going = json!({ "metadata": { "deletionTimestamp": GONE }, "spec": { "storageClassName": "fast" } });
    let storage = Storage::default().class("fast", &json!({})).claim("data", &going);
    refused(&storage, "PersistentVolumeClaim shop/data is being deleted");
}

#[test]
fn a_lost_claim_stops_its_pod_and_the_volume_is_named() {
    let lost = json!({ "spec": { "volumeName": "pv-1" }, "status": { "phase": "Lost" } });
    refused(&Storage::default().claim("data", &lost), "is in phase Lost: PersistentVolume pv-1 no longer exists");
}

#[test]
fn a_claim_bound_to_a_volume_that_does_not_exist_stops_its_pod() {
    let storage = Storage::default().claim("data", &bound_to("pv-1"));
    refused(&storage, "PersistentVolume pv-1 of PersistentVolumeClaim shop/data does not exist");
}

#[test]
fn a_claim_bound_to_a_volume_that_is_being_deleted_stops_its_pod() {
    let going = json!({ "metadata": { "deletionTimestamp": GONE } });
    let storage = Storage::default().volume("pv-1", &going).claim("data", &bound_to("pv-1"));
    refused(&storage, "PersistentVolume pv-1 of PersistentVolumeClaim shop/data is being deleted");
}

#[test]
fn a_claim_that_only_names_a_volume_is_not_bound() {
    let named = json!({ "spec": { "volumeName": "pv-1" } });
    let storage = Storage::default().volume("pv-1", &json!({})).claim("data", &named);
    refused(&storage, "annotation pv.kubernetes.io/bind-completed is missing");
}

#[test]
fn an_unbound_claim_without_a_storage_class_stops_its_pod() {
    let storage = Storage::default().class("fast", &json!({}));
    refused(&storage.unbound("data", ""), "shop/data is not bound and has no storage class");
    refused(&Storage::default().claim("data", &json!({ "spec": {} })), "has no storage class");
}

#[test]
fn an_unbound_claim_whose_storage_class_does_not_exist_stops_its_pod() {
    let storage = Storage::default().unbound("data", "fast");
    refused(&storage, "StorageClass fast of PersistentVolumeClaim shop/data does not exist");
}

#[test]
fn an_unbound_claim_of_a_class_that_binds_immediately_stops_its_pod() {
    let immediate = json!({ "volumeBindingMode": "Immediate" });
    let storage = Storage::default().class("fast", &immediate).unbound("data", "fast");
    refused(&storage, "StorageClass fast has volumeBindingMode Immediate: provisioner csi.example has to create");
}

#[test]
fn a_bound_claim_needs_no_storage_class() {
    for class in ["", "deleted"] {
        let mut claim = bound_to("data");
        claim["spec"]["storageClassName"] = json!(class);
        let storage = Storage::default().volume("data", &json!({})).claim("data", &claim);
        assert_eq!(storage.attached(), ["csi.example shop/data"], "class {class:?}");
    }
}

#[test]
fn a_bound_claim_may_be_of_a_class_that_binds_immediately() {
    let immediate = json!({ "volumeBindingMode": "Immediate" });
    let storage = Storage::default().class("fast", &immediate).bound("data", &json!({}));
    assert!(storage.places().is_empty());
}

#[test]
fn the_first_claim_that_stops_the_pod_is_named_and_the_others_do_not_help() {
    let storage = Storage::default().bound("logs", &json!({})).uses("data");
    refused(&storage, "PersistentVolumeClaim shop/data does not exist");
}

#[test]
fn what_nobody_may_read_stops_pods_that_depend_on_it_and_no_others() {
    let unreadable = |mut storage: Storage, kind| {
        storage.index.set_unreadable(BTreeMap::from([(kind, "cannot list this; allow it".to_owned())]));
        storage
    };
    let bound = || Storage::default().bound("data", &json!({}));
    let unbound = || Storage::default().class("fast", &json!({})).unbound("data", "fast");
    for kind in [Kind::PersistentVolumeClaim, Kind::PersistentVolume] {
        assert_eq!(unreadable(bound(), kind).refusal(), "cannot list this; allow it");
    }
    assert_eq!(unreadable(unbound(), Kind::StorageClass).refusal(), "cannot list this; allow it");
    unreadable(bound(), Kind::StorageClass).resolved();
    unreadable(unbound(), Kind::PersistentVolume).resolved();
    unreadable(Storage::default(), Kind::PersistentVolumeClaim).resolved();
}
