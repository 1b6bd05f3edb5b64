//! How does a kubelet describe its node?

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::boot::Kubelet;
use super::capacity;
use super::machine::Machine;

/// Healthy conditions: type, status, reason, message.
const CONDITIONS: [(&str, &str, &str, &str); 4] = [
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
];

/// The labels every kubelet sets.
pub(crate) fn usual_labels(kubelet: &Kubelet) -> Value {
    json!({
        "kubernetes.io/hostname": kubelet.node_name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    })
}

/// The Node as it is registered.
pub(crate) fn object(machine: &Machine, kubelet: &Kubelet, since: &Time) -> Value {
    let mut labels = json!(kubelet.command.node_labels);
    if let (Value::Object(labels), Value::Object(usual)) = (&mut labels, usual_labels(kubelet)) {
        labels.extend(usual);
    }
    let mut spec = json!({});
    if let Some(id) = &kubelet.config.provider_id {
        spec["providerID"] = json!(id);
    }
    if !kubelet.config.taints.is_empty() {
        spec["taints"] = json!(kubelet.config.taints);
    }
    let mut status = status(machine, kubelet);
    status["conditions"] = conditions(machine, since);
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": kubelet.node_name, "labels": labels },
        "spec": spec,
        "status": status,
    })
}

/// All of the status but the conditions.
pub(crate) fn status(machine: &Machine, kubelet: &Kubelet) -> Value {
    let (capacity, allocatable) = capacity::of(machine.hardware(), &kubelet.config);
    json!({
        "capacity": capacity,
        "allocatable": allocatable,
        "addresses": addresses(machine, kubelet),
        "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
        "nodeInfo": {
            "machineID": machine.derived_id("machine"),
            "systemUUID": machine.uuid().unwrap_or_default(),
            "bootID": dashed(&machine.derived_id(&format!("boot {}", kubelet.boot))),
            "kernelVersion": "6.12.0-sim",
            "osImage": "Simulated Linux",
            "containerRuntimeVersion": "containerd://2.1.0",
            "kubeletVersion": machine.config.kubelet_version,
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
    })
}

/// Its first address of each family, or the one a DHCP server would give.
fn addresses(machine: &Machine, kubelet: &Kubelet) -> Vec<Value> {
    let own = machine.disk(|disk| disk.addresses.clone());
    let of_family = |is_ipv4| own.iter().find(|address| address.is_ipv4() == is_ipv4).map(ToString::to_string);
    let mut addresses: Vec<String> = [of_family(true), of_family(false)].into_iter().flatten().collect();
    if addresses.is_empty() {
        addresses.push(address(machine));
    }
    let internal = addresses.iter().map(|address| json!({ "type": "InternalIP", "address": address }));
    internal.chain([json!({ "type": "Hostname", "address": kubelet.node_name })]).collect()
}

/// The conditions of a healthy node that is so since then.
pub(crate) fn conditions(machine: &Machine, since: &Time) -> Value {
    let now = Time(machine.journal.now());
    let condition = |(kind, status, reason, message)| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": since,
        })
    };
    CONDITIONS.map(condition).into_iter().collect()
}

/// Whether a condition is one of the kubelet's own.
pub(crate) fn is_own_condition(kind: &str) -> bool {
    CONDITIONS.iter().any(|(own, ..)| *own == kind)
}

/// The address of the guest: its first static one, or what a DHCP server would give it.
pub(crate) fn address(machine: &Machine) -> String {
    let own = machine.disk(|disk| disk.addresses.first().map(ToString::to_string));
    own.unwrap_or_else(|| crate::agent::first_address(&machine.vm))
}

/// An address for a pod: 254 for each of some 32,000 nodes.
pub(crate) fn pod_address(vmid: u32, number: u32) -> String {
    let [_, _, c, d] = vmid.to_be_bytes();
    format!("10.{}.{d}.{}", c | 0x80, number % 254 + 1)
}

fn dashed(hex: &str) -> String {
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_have_addresses_in_a_range_of_their_own() {
        assert_eq!(pod_address(20_001, 0), "10.206.33.1");
        assert_eq!(pod_address(20_001, 254), "10.206.33.1");
    }

    #[test]
    fn an_id_is_dashed_as_a_uuid() {
        assert_eq!(dashed("00112233445566778899aabbccddeeff"), "00112233-4455-6677-8899-aabbccddeeff");
    }
}
