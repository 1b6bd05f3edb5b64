//! Table: a valid object of each kind with every field that goes together, and where the kinds are served.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Where each kind is served.
pub(crate) struct Kinds(BTreeMap<String, (String, bool, String)>);

impl Kinds {
    pub(crate) fn read() -> anyhow::Result<Kinds> {
        let mut kinds = BTreeMap::new();
        for definition in tenon_api::definitions() {
            let spec = definition.spec;
            let root = format!("/apis/{}/{}", spec.group, spec.versions[0].name);
            kinds.insert(spec.names.kind, (root, spec.scope == "Namespaced", spec.names.plural));
        }
        Ok(Kinds(kinds))
    }

    /// The path of a kind, in a namespace if it has one.
    pub(crate) fn path(&self, kind: &str, namespace: &str) -> String {
        match self.0.get(kind) {
            Some((root, true, plural)) => format!("{root}/namespaces/{namespace}/{plural}"),
            Some((root, false, plural)) => format!("{root}/{plural}"),
            None => format!("/no-such-kind/{kind}"),
        }
    }

    /// The apiVersion of a kind.
    pub(crate) fn version(&self, kind: &str) -> String {
        self.0.get(kind).map(|(root, _, _)| root.trim_start_matches("/apis/").to_owned()).unwrap_or_default()
    }
}

/// A valid object for cases of this path: where fields exclude each other, the path's own are there.
pub(crate) fn sample(kind: &str, path: &str) -> Value {
    let mut object = match kind {
        "NodePool" => pool(),
        "NodeClaim" => claim(),
        "NodeOverlay" => overlay(),
        "CapacityBuffer" => buffer(),
        "ProxmoxNodeClass" => class(),
        "ProxmoxTemplate" => template(),
        _ => unmanaged(),
    };
    object["kind"] = kind.into();
    object["apiVersion"] = match kind {
        "NodePool" | "NodeClaim" => "karpenter.sh/v1",
        "NodeOverlay" => "karpenter.sh/v1alpha1",
        "CapacityBuffer" => "autoscaling.x-k8s.io/v1beta1",
        _ => "karpenter.proxmox.sinextra.dev/v1alpha1",
    }
    .into();
    let excluded: &[&str] = match (kind, path) {
        ("NodePool", "spec.replicas") => &["weight", "limits"],
        ("NodeOverlay", "spec.priceAdjustment") => &["price"],
        ("ProxmoxNodeClass", "spec.placementStrategy.goal" | "spec.placementStrategy.hosts") => {
            let other = if path.ends_with("goal") { "hosts" } else { "goal" };
            object["spec"]["placementStrategy"].as_object_mut().map(|placement| placement.remove(other));
            &[]
        }
        ("CapacityBuffer", path) if path.starts_with("spec.scalableRef") => {
            object["spec"]["scalableRef"] = json!({ "apiGroup": "apps", "kind": "Deployment", "name": "web" });
            &["podTemplateRef"]
        }
        _ => &[],
    };
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.retain(|field, _| !excluded.contains(&field.as_str()));
    }
    object
}

pub(crate) fn condition() -> Value {
    json!({
        "type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

fn node_parts() -> Value {
    json!({
        "taints": [{ "key": "a", "value": "b", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z" }],
        "startupTaints": [{ "key": "a", "value": "b", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z" }],
        "requirements": [{ "key": "kubernetes.io/arch", "operator": "NotIn", "values": ["1"], "minValues": 1 }],
        "nodeClassRef": { "group": "karpenter.proxmox.sinextra.dev", "kind": "ProxmoxNodeClass", "name": "default" },
        "terminationGracePeriod": "1h", "expireAfter": "720h",
    })
}

fn pool() -> Value {
    json!({
        "spec": {
            "template": {
                "metadata": { "labels": { "key": "value" }, "annotations": { "example.com/a": "b" } },
                "spec": node_parts(),
            },
            "disruption": {
                "consolidateAfter": "1m", "consolidationPolicy": "WhenEmpty",
                "budgets": [{ "nodes": "1", "schedule": "0 9 * * mon-fri", "duration": "8h", "reasons": ["Empty"] }],
            },
            "limits": { "key": "1" },
            "weight": 10,
        },
        "status": {
            "nodes": 1, "nodeClassObservedGeneration": 1, "resources": { "key": "1" }, "conditions": [condition()],
        },
    })
}

fn claim() -> Value {
    let mut spec = node_parts();
    spec["resources"] = json!({ "requests": { "key": "1" } });
    json!({
        "spec": spec,
        "status": {
            "nodeName": "n", "providerID": "proxmox://lab/100", "imageID": "i", "conditions": [condition()],
            "capacity": { "key": "1" }, "allocatable": { "key": "1" }, "lastPodEventTime": "2026-01-01T00:00:00Z",
        },
    })
}

fn overlay() -> Value {
    json!({
        "spec": {
            "requirements": [{ "key": "kubernetes.io/arch", "operator": "In", "values": ["1"] }],
            "price": "1.5", "capacity": { "key": "1" }, "weight": 10,
        },
        "status": { "conditions": [condition()] },
    })
}

fn buffer() -> Value {
    json!({
        "spec": {
            "provisioningStrategy": "buffer.x-k8s.io/active-capacity", "podTemplateRef": { "name": "small" },
            "replicas": 1, "percentage": 1, "limits": { "key": "1" },
        },
        "status": {
            "podTemplateRef": { "name": "small" }, "replicas": 1, "podTemplateGeneration": 1,
            "provisioningStrategy": "buffer.x-k8s.io/active-capacity", "conditions": [condition()],
        },
    })
}

fn class() -> Value {
    json!({
        "spec": {
            "region": "lab", "cloneMode": "Auto", "timeouts": { "launch": "5m", "registration": "1h30m" },
            "placementStrategy": {
                "zoneBalance": "Balanced", "hosts": "Spread", "goal": "SpreadHosts",
                "minAvailable": { "cpu": "2", "memory": "4Gi" }, "excludedHosts": ["pve9"],
            },
            "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" },
            "kubeletConfiguration": {
                "cpuManagerPolicy": "none", "cpuCFSQuota": true, "cpuCFSQuotaPeriod": "100ms",
                "topologyManagerPolicy": "none", "topologyManagerScope": "pod", "imageGCHighThresholdPercent": 85,
                "imageGCLowThresholdPercent": 80, "shutdownGracePeriod": "30s", "allowedUnsafeSysctls": ["kernel.msg*"],
                "clusterDNS": ["10.96.0.10"], "maxPods": 110, "failSwapOn": true,
            },
            "bootDevice": { "size": "30G", "storage": "fast" },
            "tags": ["k8s"],
            "metadataOptions": {
                "type": "cdrom", "templatesRef": { "name": "t", "namespace": "n" },
                "valuesRef": { "name": "v", "namespace": "n" },
            },
            "addresses": {
                "ranges": ["10.0.0.0/24"], "exclude": ["10.0.0.7"], "gateway": "10.0.0.1", "gateway6": "fd00::1",
                "dns": ["10.0.0.2"],
            },
            "securityGroups": [{ "interface": "net0", "name": "web" }],
            "resourcePool": "k8s",
        },
        "status": { "conditions": [condition()], "resources": { "key": "1" }, "selectedZones": ["lab/pve1/9000"] },
    })
}

fn template() -> Value {
    json!({
        "spec": {
            "region": "lab", "description": "d", "storageIDs": ["local"], "machine": "q35", "bios": "seabios",
            "sourceImage": {
                "url": "https://images.example.com/debian.qcow2", "imageName": "debian.qcow2",
                "checksum": "0123456789abcdef0123456789abcdef", "checksumType": "md5",
            },
            "tpm": { "version": "v2.0" },
            "agent": { "enabled": true, "type": "virtio", "fsFreezeOnBackup": true, "fsTrimClonedDisks": true },
            "cpu": { "type": "host", "flags": ["+aes"] },
            "vga": { "type": "std", "memory": 16 },
            "network": [{
                "name": "net0", "bridge": "vmbr0", "model": "virtio", "mtu": 1500, "vlan": 10, "firewall": true,
                "address4": "10.0.0.5/24", "address6": "auto", "gateway4": "10.0.0.1", "gateway6": "fe80::1",
                "dnsServers": ["10.0.0.1"],
            }],
            "pciDevices": [{ "mapping": "gpu", "mdev": "nvidia-63", "pcie": true, "xvga": false }],
            "tags": ["k8s"], "resourcePool": "k8s", "onBoot": true,
        },
        "status": template_status(),
    })
}

fn unmanaged() -> Value {
    json!({
        "spec": { "region": "lab", "templateName": "debian", "tags": ["k8s"] },
        "status": template_status(),
    })
}

fn template_status() -> Value {
    json!({
        "conditions": [condition()], "resources": { "key": "1" }, "zones": ["lab/pve1/9000"], "imageID": "1",
    })
}
