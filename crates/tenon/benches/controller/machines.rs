//! A node of the bench as it is written: its claim, its Node, and what both say of themselves.

use serde_json::{Value, json};
use tenon_api::names;

use crate::estate::{HOSTS, host, uuid, vmid};

/// Images that a kubelet lists; by default it lists up to fifty.
const IMAGES: usize = 30;

const THEN: &str = "2026-01-01T00:00:00Z";

pub(crate) fn name(number: usize) -> String {
    format!("default-{number:05}")
}

fn provider_id(number: usize) -> String {
    format!("proxmox://lab/{}", vmid(number))
}

fn labels(number: usize) -> Value {
    json!({
        names::LABEL_NODEPOOL: "default",
        names::LABEL_NODECLASS: "default",
        names::LABEL_CAPACITY_TYPE: "on-demand",
        names::LABEL_INSTANCE_TYPE: "s1.16VCPU-64GB",
        names::LABEL_INSTANCE_FAMILY: "s1",
        names::LABEL_INSTANCE_CPU_TYPE: "x86-64-v2-AES",
        names::LABEL_REGION: "lab",
        names::LABEL_ZONE: host(number % HOSTS),
        names::LABEL_HOST: host(number % HOSTS),
        names::LABEL_ARCH: "amd64",
        names::LABEL_OS: "linux",
        "team": format!("team-{}", number % 7),
    })
}

fn amounts(cpu: &str, memory: &str) -> Value {
    json!({ "cpu": cpu, "memory": memory, "pods": "110", "ephemeral-storage": "30Gi" })
}

pub(crate) fn claim(number: usize) -> Value {
    let record = json!({
        "region": "lab", "host": host(number % HOSTS), "vmid": vmid(number), "template": 9001, "step": "Launched", "attempt": 1,
        "uuid": uuid(number), "startedAt": 1_767_225_600, "lastProgressAt": 1_767_225_600,
    });
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {
            "name": name(number), "labels": labels(number), "finalizers": [names::FINALIZER],
            "annotations": { names::ANNOTATION_LAUNCH: record.to_string() },
        },
        "spec": {
            "requirements": [
                { "key": names::LABEL_NODEPOOL, "operator": "In", "values": ["default"] },
                { "key": names::LABEL_ARCH, "operator": "In", "values": ["amd64"] },
                { "key": names::LABEL_INSTANCE_TYPE, "operator": "In",
                    "values": ["s1.16VCPU-64GB", "s1.8VCPU-32GB", "c1.16VCPU-32GB", "m1.16VCPU-128GB"] },
            ],
            "resources": { "requests": { "cpu": "3100m", "memory": "6Gi", "pods": "5" } },
            "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
            "expireAfter": "Never",
        },
    })
}

pub(crate) fn claim_status(number: usize) -> Value {
    let told = |type_: &&str| {
        json!({
            "type": type_, "status": "True", "reason": type_, "message": "", "observedGeneration": 1,
            "lastTransitionTime": THEN,
        })
    };
    let parts = ["ConsistentStateFound", "Initialized", "Launched", "Registered", "Ready"];
    json!({
        "nodeName": name(number), "providerID": provider_id(number), "imageID": "debian-13",
        "capacity": amounts("16", "64Gi"), "allocatable": amounts("15890m", "62Gi"),
        "conditions": parts.iter().map(told).collect::<Vec<_>>(), "lastPodEventTime": THEN,
    })
}

pub(crate) fn node(number: usize, claim_uid: &str) -> Value {
    let mut labels = labels(number);
    labels[names::LABEL_REGISTERED] = json!("true");
    labels[names::LABEL_INITIALIZED] = json!("true");
    labels[names::LABEL_HOSTNAME] = json!(name(number));
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name(number), "labels": labels, "finalizers": [names::FINALIZER],
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/controller-managed-attach-detach": "true",
                "csi.volume.kubernetes.io/nodeid": format!("{{\"csi.proxmox.sinextra.dev\":\"{}\"}}", name(number)),
            },
            "ownerReferences": [{
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": name(number), "uid": claim_uid,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": { "providerID": provider_id(number), "podCIDR": format!("10.{}.{}.0/24", number / 256, number % 256) },
    })
}

pub(crate) fn node_status(number: usize) -> Value {
    let condition = |(type_, status, reason, message): &(&str, &str, &str, &str)| {
        json!({
            "type": type_, "status": status, "reason": reason, "message": message, "lastHeartbeatTime": THEN,
            "lastTransitionTime": THEN,
        })
    };
    let conditions = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    let image = |image: usize| {
        let name = format!("registry.example/team/service-{image}");
        json!({ "names": [format!("{name}@sha256:{image:064x}"), format!("{name}:1.{image}")], "sizeBytes": 80_000_000 + image })
    };
    json!({
        "capacity": amounts("16", "64Gi"), "allocatable": amounts("15890m", "62Gi"),
        "conditions": conditions.iter().map(condition).collect::<Vec<_>>(),
        "addresses": [
            { "type": "InternalIP", "address": format!("10.200.{}.{}", number / 250, number % 250 + 1) },
            { "type": "Hostname", "address": name(number) },
        ],
        "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
        "nodeInfo": {
            "machineID": uuid(number), "systemUUID": uuid(number), "bootID": uuid(number), "kernelVersion": "6.12.0",
            "osImage": "Debian GNU/Linux 13", "containerRuntimeVersion": "containerd://2.1.0", "kubeletVersion": "v1.36.3",
            "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
        },
        "images": (0..IMAGES).map(image).collect::<Vec<_>>(),
    })
}
