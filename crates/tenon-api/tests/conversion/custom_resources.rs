//! Custom resources as servers store them, read and written by our types.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};
use tenon_api::{
    BootDevice, Condition, NodeClaim, NodePool, ProxmoxNodeClass, ProxmoxTemplate, ProxmoxUnmanagedTemplate,
};

fn again<T: serde::de::DeserializeOwned + serde::Serialize>(value: &Value) -> Value {
    serde_json::to_value(serde_json::from_value::<T>(value.clone()).unwrap()).unwrap()
}

#[test]
fn an_object_without_a_spec_is_read_and_written_without_one() {
    for spec in [json!({ "metadata": { "name": "bare" } }), json!({ "metadata": { "name": "bare" }, "spec": null })] {
        assert_eq!(again::<ProxmoxNodeClass>(&spec)["spec"], Value::Null);
        assert_eq!(again::<ProxmoxTemplate>(&spec)["spec"], Value::Null);
        assert_eq!(again::<ProxmoxUnmanagedTemplate>(&spec)["spec"], Value::Null);
    }
    let bare: ProxmoxNodeClass = serde_json::from_value(json!({ "metadata": { "name": "bare" } })).unwrap();
    assert!(bare.spec.is_absent());
    let spec = json!({ "instanceTemplateRef": { "kind": "ProxmoxTemplate", "name": "x" } });
    let class: ProxmoxNodeClass = serde_json::from_value(json!({ "metadata": {}, "spec": spec })).unwrap();
    assert!(!class.spec.is_absent());
    assert!(serde_json::from_value::<NodePool>(json!({ "metadata": {} })).is_err(), "a pool always has a spec");
}

#[test]
fn what_is_stored_is_written_back_as_it_was() {
    let class = json!({
        "instanceTemplateRef": { "kind": "ProxmoxTemplate", "name": "x" }, "cloneMode": "Full",
        "placementStrategy": { "zoneBalance": "AvailabilityFirst", "hosts": "MaxCPU" }, "bootDevice": {},
        "metadataOptions": { "type": "cdrom", "templatesRef": { "name": "t", "namespace": "n" } },
        "kubeletConfiguration": { "cpuCFSQuota": true, "clusterDNS": ["10.0.0.1"], "imageGCLowThresholdPercent": 5 },
        "securityGroups": [{ "interface": "net0", "name": "web" }],
    });
    assert_eq!(again::<ProxmoxNodeClass>(&json!({ "metadata": {}, "spec": class }))["spec"], class);
    let template = json!({
        "sourceImage": { "url": "https://a.io/x", "checksumType": "sha256" }, "storageIDs": ["local"],
        "machine": "pc", "bios": "ovmf", "cpu": { "type": "x86-64-v2-AES" }, "tpm": { "version": "v1.2" },
        "agent": { "enabled": false, "type": "isa", "fsTrimClonedDisks": true }, "vga": { "type": "serial0" },
        "network": [{ "bridge": "vmbr0", "model": "e1000e", "mtu": 1, "address4": "dhcp", "dnsServers": ["10.0.0.1"] }],
        "pciDevices": [{ "mapping": "gpu", "xvga": false }], "onBoot": true,
    });
    assert_eq!(again::<ProxmoxTemplate>(&json!({ "metadata": {}, "spec": template }))["spec"], template);
}

#[test]
fn amounts_are_read_whatever_their_size_and_form() {
    let requests = json!({ "cpu": 2, "memory": 8_589_934_592_i64, "a": "1500m", "b": 100_000_000_000_000_000_000_f64 });
    let claim = json!({ "metadata": {}, "spec": {
        "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "n" },
        "resources": { "requests": requests },
    } });
    let claim: NodeClaim = serde_json::from_value(claim).unwrap();
    let read = claim.spec.resources.and_then(|resources| resources.requests).unwrap();
    assert_eq!(read["cpu"], IntOrString::Int(2));
    assert_eq!(read["memory"], IntOrString::String("8589934592".to_owned()));
    assert_eq!(read["a"], IntOrString::String("1500m".to_owned()));
    assert_eq!(read["b"], IntOrString::String("100000000000000000000".to_owned()));
    let disk = |size: Value| serde_json::from_value::<BootDevice>(json!({ "size": size })).unwrap().size_gigabytes();
    assert_eq!((disk(json!(32_000_000_000_i64)), disk(json!("30G")), disk(json!(null))), (32, 30, 0));
}

#[test]
fn a_condition_may_lack_words_when_it_is_read_and_has_them_when_it_is_written() {
    let least = json!({ "type": "Launched", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let written = again::<Condition>(&least);
    assert_eq!((&written["reason"], &written["message"]), (&json!(""), &json!("")));
}

#[test]
fn no_definition_lets_a_null_stand() {
    for definition in tenon_api::definitions() {
        let text = serde_json::to_string(&definition).unwrap();
        assert!(!text.contains("nullable") && !text.contains("null"), "{}", definition.spec.names.kind);
    }
}

#[test]
fn definitions_have_the_files_of_the_reference() {
    let files: Vec<String> = tenon_api::definitions().iter().map(tenon_api::file_name).collect();
    assert_eq!(
        files,
        [
            "karpenter.sh_nodepools.yaml",
            "karpenter.sh_nodeclaims.yaml",
            "karpenter.sh_nodeoverlays.yaml",
            "autoscaling.x-k8s.io_capacitybuffers.yaml",
            "karpenter.proxmox.sinextra.dev_proxmoxnodeclasses.yaml",
            "karpenter.proxmox.sinextra.dev_proxmoxtemplates.yaml",
            "karpenter.proxmox.sinextra.dev_proxmoxunmanagedtemplates.yaml",
        ]
    );
}
