//! Which volumes take a place of which driver.

use serde_json::json;

use super::test_objects::{Storage, bound_to};

#[test]
fn a_volume_counts_for_the_driver_that_provides_it() {
    let storage = Storage::default().bound("data", &json!({ "csi": { "driver": "csi.other" } }));
    assert_eq!(storage.attached(), ["csi.other shop/data"]);
}

#[test]
fn a_claim_is_counted_once_however_often_it_is_mounted() {
    let storage = Storage::default().bound("data", &json!({})).uses("data").bound("logs", &json!({}));
    assert_eq!(storage.attached(), ["csi.example shop/data", "csi.example shop/logs"]);
}

#[test]
fn a_volume_without_a_driver_takes_no_place() {
    let storage = Storage::default().bound("data", &json!({ "csi": null, "nfs": { "server": "s", "path": "/" } }));
    assert!(storage.attached().is_empty());
}

#[test]
fn a_volume_that_is_still_to_be_created_counts_for_the_provisioner() {
    let storage = Storage::default().class("fast", &json!({})).unbound("data", "fast");
    assert_eq!(storage.attached(), ["csi.example shop/data"]);
}

#[test]
fn volumes_and_classes_of_before_csi_count_for_the_driver_that_took_over() {
    let old = json!({ "csi": null, "awsElasticBlockStore": { "volumeID": "v" } });
    assert_eq!(Storage::default().bound("data", &old).attached(), ["ebs.csi.aws.com shop/data"]);
    for (provisioner, driver) in [
        ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
        ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
        ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
        ("example.com/own", "example.com/own"),
    ] {
        let class = json!({ "provisioner": provisioner });
        let storage = Storage::default().class("fast", &class).unbound("data", "fast");
        assert_eq!(storage.attached(), [format!("{driver} shop/data")]);
        let ephemeral = Storage::default().class("fast", &class);
        let ephemeral = ephemeral.ephemeral_claim("tmp", &json!({ "spec": { "storageClassName": "fast" } }));
        assert_eq!(ephemeral.attached(), [format!("{driver} shop/web-tmp")]);
    }
}

#[test]
fn a_claim_that_names_no_class_gets_the_newest_default() {
    let class = |default: &str, created: &str, driver: &str| {
        json!({ "metadata": { "creationTimestamp": created,
            "annotations": { "storageclass.kubernetes.io/is-default-class": default } }, "provisioner": driver })
    };
    let unnamed = json!({ "spec": {} });
    let one = Storage::default()
        .class("other", &json!({ "provisioner": "other" }))
        .class("usual", &class("true", "2026-01-01T00:00:00Z", "usual"));
    assert_eq!(one.ephemeral_claim("tmp", &unnamed).attached(), ["usual shop/web-tmp"]);
    let several = || {
        Storage::default()
            .class("a", &class("true", "2026-01-01T00:00:00Z", "older"))
            .class("b", &class("true", "2026-01-02T00:00:00Z", "newest"))
            .class("c", &class("true", "2026-01-02T00:00:00Z", "as new, but later by name"))
            .class("d", &class("false", "2026-01-03T00:00:00Z", "no default"))
    };
    assert_eq!(several().claim("data", &unnamed).attached(), ["newest shop/data"]);
    let named = json!({ "spec": { "storageClassName": "a" } });
    assert_eq!(several().ephemeral_claim("tmp", &named).attached(), ["older shop/web-tmp"]);
    let old_spelling = json!({ "metadata": { "annotations":
        { "storageclass.beta.kubernetes.io/is-default-class": "true" } } });
    assert_eq!(Storage::default().class("x", &old_spelling).claim("data", &unnamed).attached().len(), 1);
}

#[test]
fn on_a_node_only_what_is_known_of_a_claim_counts() {
    let attached = |storage: Storage| storage.index.attachments_of(&storage.pod()).len();
    assert_eq!(attached(Storage::default().bound("data", &json!({}))), 1);
    let going = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let leaving = Storage::default().volume("pv-1", &going).claim("data", &bound_to("pv-1"));
    assert_eq!(attached(leaving), 1, "it is attached as long as the pod runs");
    assert_eq!(attached(Storage::default().uses("data")), 0, "the claim was deleted");
    assert_eq!(attached(Storage::default().claim("data", &bound_to("pv-1"))), 0, "the volume was deleted");
    assert_eq!(attached(Storage::default().unbound("data", "fast")), 0, "the class was deleted");
    assert_eq!(attached(Storage::default().unbound("data", "")), 0, "there is no class");
}
