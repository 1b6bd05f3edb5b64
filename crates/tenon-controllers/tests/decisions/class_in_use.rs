//! Is a ProxmoxNodeClass kept while NodeClaims use it?

use serde_json::{Value, json};
use tenon_api::{ProxmoxNodeClass, names};
use tenon_controllers::status::finalizers;

fn class(metadata: &Value) -> ProxmoxNodeClass {
    let mut class = json!({
        "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxNodeClass", "metadata": { "name": "a" },
        "spec": { "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" } },
    });
    for (key, value) in metadata.as_object().unwrap() {
        class["metadata"][key] = value.clone();
    }
    serde_json::from_value(class).unwrap()
}

const DELETED: &str = "2026-01-01T00:00:00Z";

#[test]
fn a_class_in_use_gets_a_finalizer_and_keeps_those_of_others() {
    let others = class(&json!({ "finalizers": ["example.com/x"] }));
    assert_eq!(finalizers(&others, 2).unwrap(), ["example.com/x", names::CLASS_FINALIZER]);
    assert_eq!(finalizers(&others, 0), None);
    assert_eq!(finalizers(&class(&json!({ "finalizers": [names::CLASS_FINALIZER] })), 2), None);
}

#[test]
fn a_deleted_class_stays_until_no_claim_uses_it() {
    let kept = class(&json!({ "finalizers": [names::CLASS_FINALIZER, "x.io/y"], "deletionTimestamp": DELETED }));
    assert_eq!(finalizers(&kept, 1), None);
    assert_eq!(finalizers(&kept, 0).unwrap(), ["x.io/y"]);
    // The API server takes no new finalizer on what is being deleted.
    let going = class(&json!({ "finalizers": ["x.io/y"], "deletionTimestamp": DELETED }));
    assert_eq!(finalizers(&going, 1), None);
}

#[test]
fn a_class_that_is_not_in_use_any_more_can_be_deleted_without_a_controller() {
    assert!(finalizers(&class(&json!({ "finalizers": [names::CLASS_FINALIZER] })), 0).unwrap().is_empty());
}
