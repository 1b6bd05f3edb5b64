//! Which changes change a hash, which do not, and are the numbers still those that stand in clusters?

use serde_json::{Value, json};

use crate::hash::{of_class, of_class_in_place, of_pool, of_template};
use crate::nodeclass::ProxmoxNodeClass;
use crate::nodepool::NodePool;

/// Lays the fields of `over` on `base`, objects deeply; `null` is written as it is.
fn merged(mut base: Value, over: &Value) -> Value {
    match (base.as_object_mut(), over.as_object()) {
        (Some(fields), Some(over)) => {
            for (name, value) in over {
                let field = fields.remove(name).unwrap_or(Value::Null);
                fields.insert(name.clone(), merged(field, value));
            }
            base
        }
        _ => over.clone(),
    }
}

fn pool(over: &Value) -> NodePool {
    let base = json!({
        "metadata": { "name": "default" },
        "spec": { "template": {
            "metadata": { "labels": { "team": "red", "tier": "web" }, "annotations": { "note": "x" } },
            "spec": {
                "requirements": [{ "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"] }],
                "nodeClassRef": { "group": "g", "kind": "k", "name": "default" },
                "taints": [
                    { "key": "a", "effect": "NoSchedule" },
                    { "key": "b", "value": "1", "effect": "NoExecute" },
                ],
                "startupTaints": [{ "key": "c", "effect": "NoSchedule" }],
                "terminationGracePeriod": "1h", "expireAfter": "720h",
            },
        } },
    });
    serde_json::from_value(merged(base, &json!({ "spec": over }))).unwrap()
}

fn class(over: &Value) -> ProxmoxNodeClass {
    let base = json!({
        "metadata": { "name": "default" },
        "spec": {
            "region": "lab",
            "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" },
            "bootDevice": { "size": "30G", "storage": "fast" },
            "kubeletConfiguration": {
                "maxPods": 110, "clusterDNS": ["10.0.0.10", "10.0.0.11"], "shutdownGracePeriod": "60s",
            },
            "tags": ["one", "two"], "securityGroups": [{ "name": "web" }], "resourcePool": "k8s",
        },
    });
    serde_json::from_value(merged(base, &json!({ "spec": over }))).unwrap()
}

fn template(over: &Value) -> Value {
    let base = json!({
        "sourceImage": { "url": "https://images.example/a.qcow2", "checksum": "00", "checksumType": "sha256" },
        "storageIDs": ["local", "fast"], "bios": "ovmf", "tpm": { "version": "v2.0" },
        "network": [{ "bridge": "vmbr0" }], "machine": "q35",
    });
    merged(base, over)
}

#[test]
fn the_numbers_are_those_that_stand_in_clusters() {
    // A number that changes here drifts every node of every cluster, unless its version changes with it.
    assert_eq!(of_pool(&pool(&json!({}))), "8294532527237603473");
    assert_eq!(of_class(&class(&json!({}))), "11338254711850370459");
    assert_eq!(of_class_in_place(&class(&json!({}))), "18095764214644312927");
    assert_eq!(of_template(&template(&json!({}))), "5878320622275369527");
    assert_eq!(of_template(&Value::Null), "4957409770337140475");
}

#[test]
fn i3_hash_behaviour_fields_of_a_pool_and_the_spelling_of_its_template_change_nothing() {
    let before = of_pool(&pool(&json!({})));
    for over in [
        json!({ "template": { "spec": { "requirements": [] } } }),
        json!({ "disruption": { "consolidateAfter": "Never", "budgets": [] } }),
        json!({ "disruption": { "consolidationPolicy": "WhenEmpty" } }),
        json!({ "limits": { "cpu": "10" }, "weight": 7 }),
        json!({ "replicas": 3 }),
        json!({ "template": { "spec": { "terminationGracePeriod": "60m", "expireAfter": "43200m" } } }),
        json!({ "template": { "spec": { "taints": [
            { "key": "b", "value": "1", "effect": "NoExecute" },
            { "key": "a", "value": "", "effect": "NoSchedule" },
            { "key": "a", "effect": "NoSchedule" },
        ] } } }),
    ] {
        assert_eq!(of_pool(&pool(&over)), before, "{over}");
    }
    let bare = |over: Value| {
        let base = json!({ "spec": {
            "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "default" },
        } });
        let object = json!({ "metadata": {}, "spec": { "template": merged(base, &over) } });
        of_pool(&serde_json::from_value(object).unwrap())
    };
    let silent = json!({
        "metadata": { "labels": {}, "annotations": null },
        "spec": { "taints": [], "startupTaints": null, "terminationGracePeriod": null, "expireAfter": "720h" },
    });
    assert_eq!(bare(json!({})), bare(silent));
}

#[test]
fn i3_hash_every_static_field_of_a_pool_but_its_requirements_changes_it() {
    let mut seen = vec![of_pool(&pool(&json!({})))];
    for over in [
        json!({ "metadata": { "labels": { "team": "blue" } } }),
        json!({ "metadata": { "labels": { "more": "" } } }),
        json!({ "metadata": { "annotations": { "note": "y" } } }),
        json!({ "metadata": { "annotations": { "note": "" } } }),
        json!({ "spec": { "taints": [] } }),
        json!({ "spec": { "taints": [{ "key": "a", "effect": "NoExecute" }] } }),
        json!({ "spec": { "taints": [{ "key": "a", "value": "2", "effect": "NoExecute" }] } }),
        json!({ "spec": { "startupTaints": [] } }),
        json!({ "spec": { "startupTaints": [{ "key": "d", "effect": "NoSchedule" }] } }),
        json!({ "spec": { "nodeClassRef": { "name": "other" } } }),
        json!({ "spec": { "nodeClassRef": { "kind": "other" } } }),
        json!({ "spec": { "nodeClassRef": { "group": "other" } } }),
        json!({ "spec": { "terminationGracePeriod": "2h" } }),
        json!({ "spec": { "terminationGracePeriod": "0s" } }),
        json!({ "spec": { "terminationGracePeriod": null } }),
        json!({ "spec": { "expireAfter": "Never" } }),
        json!({ "spec": { "expireAfter": "1h" } }),
        json!({ "spec": { "expireAfter": "0s" } }),
    ] {
        let hash = of_pool(&pool(&json!({ "template": over })));
        assert!(!seen.contains(&hash), "{over}");
        seen.push(hash);
    }
}

#[test]
fn i3_hash_what_a_running_vm_can_be_given_is_no_part_of_what_it_was_made_from() {
    let (made, given) = (of_class(&class(&json!({}))), of_class_in_place(&class(&json!({}))));
    for over in [
        json!({ "tags": ["one"] }),
        json!({ "tags": null }),
        json!({ "securityGroups": [{ "name": "db" }] }),
        json!({ "securityGroups": [{ "name": "web", "interface": "net1" }] }),
        json!({ "resourcePool": "other" }),
    ] {
        assert_eq!(of_class(&class(&over)), made, "{over}");
        assert_ne!(of_class_in_place(&class(&over)), given, "{over}");
    }
    for over in [
        json!({ "tags": ["two", "one", "one"] }),
        json!({ "securityGroups": [{ "name": "web", "interface": "net0" }] }),
        json!({ "timeouts": { "launch": "10m", "registration": "1h" } }),
        json!({ "placementStrategy": { "hosts": "RoundRobin", "excludedHosts": ["pve9"], "minAvailable": { "cpu": 4 } } }),
        json!({ "placementStrategy": { "minAvailable": { "cpu": "500m", "memory": "8Gi" } } }),
        json!({ "placementStrategy": { "goal": "PackHosts" } }),
        json!({ "placementStrategy": { "excludedHosts": [], "minAvailable": {} } }),
        json!({ "metadataOptions": { "type": "cdrom", "templatesRef": { "name": "x", "namespace": "y" } } }),
    ] {
        assert_eq!(of_class(&class(&over)), made, "{over}");
        assert_eq!(of_class_in_place(&class(&over)), given, "{over}");
    }
    let region = class(&json!({ "region": "other" }));
    assert_eq!(of_class_in_place(&region), given);
}

#[test]
fn i3_hash_what_a_vm_gets_only_once_changes_that_of_a_class() {
    let kubelet = |over: Value| json!({ "kubeletConfiguration": over });
    let mut seen = vec![of_class(&class(&json!({})))];
    for over in [
        json!({ "region": "other" }),
        json!({ "region": null }),
        json!({ "placementStrategy": { "zoneBalance": "AvailabilityFirst" } }),
        json!({ "instanceTemplateRef": { "kind": "ProxmoxTemplate" } }),
        json!({ "instanceTemplateRef": { "name": "other" } }),
        json!({ "bootDevice": { "size": "40G" } }),
        json!({ "bootDevice": { "size": "30Gi" } }),
        json!({ "bootDevice": { "size": null } }),
        json!({ "bootDevice": { "storage": "slow" } }),
        json!({ "bootDevice": { "storage": null } }),
        kubelet(json!({ "maxPods": 30 })),
        kubelet(json!({ "clusterDNS": ["10.0.0.10"] })),
        kubelet(json!({ "shutdownGracePeriod": "61s" })),
        kubelet(json!({ "failSwapOn": false })),
        kubelet(json!({ "failSwapOn": true })),
        kubelet(json!({ "cpuCFSQuota": false })),
        kubelet(json!({ "imageGCLowThresholdPercent": 0 })),
        json!({ "kubeletConfiguration": null }),
    ] {
        let hash = of_class(&class(&over));
        assert!(!seen.contains(&hash), "{over}");
        seen.push(hash);
    }
}

#[test]
fn a_class_s_hash_does_not_depend_on_spelling_or_written_out_defaults() {
    let before = of_class(&class(&json!({})));
    for over in [
        json!({ "placementStrategy": { "zoneBalance": "Balanced" } }),
        json!({ "bootDevice": { "size": "30000000000" } }),
        json!({ "bootDevice": { "size": "30000M" } }),
        json!({ "kubeletConfiguration": { "shutdownGracePeriod": "1m" } }),
        json!({ "kubeletConfiguration": { "shutdownGracePeriod": "1m0s", "allowedUnsafeSysctls": [] } }),
        json!({ "kubeletConfiguration": { "clusterDNS": ["10.0.0.11", "10.0.0.10"] } }),
    ] {
        assert_eq!(of_class(&class(&over)), before, "{over}");
    }
    let of = |spec: Value| of_class(&serde_json::from_value(json!({ "metadata": {}, "spec": spec })).unwrap());
    let bare = json!({ "instanceTemplateRef": { "kind": "ProxmoxTemplate", "name": "t" } });
    let full = merged(bare.clone(), &json!({ "bootDevice": { "size": "30G" }, "kubeletConfiguration": {} }));
    assert_eq!(of(bare.clone()), of(full));
    assert_ne!(of(bare.clone()), of(merged(bare, &json!({ "bootDevice": {} }))), "a disk of the template's own size");
}

#[test]
fn a_template_s_hash_is_of_what_it_has_to_be_made_anew_for() {
    let before = of_template(&template(&json!({})));
    for over in [
        json!({ "network": [{ "bridge": "vmbr1" }], "machine": "pc", "tags": ["x"], "onBoot": true }),
        json!({ "storageIDs": ["fast", "local"] }),
        json!({ "tpm": { "version": null } }),
        json!({ "description": "x", "resourcePool": "k8s", "region": "lab", "cpu": { "type": "host" } }),
    ] {
        assert_eq!(of_template(&template(&over)), before, "{over}");
    }
    let mut seen = vec![before];
    for over in [
        json!({ "sourceImage": { "url": "https://images.example/b.qcow2" } }),
        json!({ "sourceImage": { "imageName": "b.qcow2" } }),
        json!({ "sourceImage": { "checksum": "01" } }),
        json!({ "sourceImage": { "checksumType": "sha512" } }),
        json!({ "storageIDs": ["local"] }),
        json!({ "bios": "seabios" }),
        json!({ "tpm": null }),
        json!({ "tpm": { "version": "v1.2" } }),
    ] {
        let hash = of_template(&template(&over));
        assert!(!seen.contains(&hash), "{over}");
        seen.push(hash);
    }
    let plain = template(&json!({ "bios": "seabios", "tpm": null }));
    assert_eq!(of_template(&plain), of_template(&template(&json!({ "bios": null, "tpm": null }))));
}
