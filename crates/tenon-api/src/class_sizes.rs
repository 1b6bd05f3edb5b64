//! What a ProxmoxNodeClass makes of an instance type: how large the disk of its VMs is, and how many pods they take.
//!
//! Plans, NodeClaims, VMs and kubelets all have these numbers from here.

use tenon_model::resources::{EPHEMERAL_STORAGE, PODS};
use tenon_model::{InstanceType, Quantity};

use crate::nodeclass::{ProxmoxNodeClass, ProxmoxNodeClassSpec};

/// What of a class changes its instance types. Classes that are equal in it have the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassSizes {
    /// The disk it asks for.
    disk_gigabytes: u64,
    /// How many pods its kubelets take, if it says so.
    max_pods: Option<u32>,
}

/// An instance type as the VMs of a class have it.
pub fn for_class(size: &InstanceType, class: &ProxmoxNodeClass) -> InstanceType {
    ClassSizes::of(&class.spec).of_type(size)
}

impl ClassSizes {
    /// What a class says.
    pub fn of(spec: &ProxmoxNodeClassSpec) -> ClassSizes {
        let kubelet = spec.kubelet_configuration.as_ref();
        let max_pods = kubelet.and_then(|kubelet| u32::try_from(kubelet.max_pods?).ok()).filter(|pods| *pods > 0);
        ClassSizes { disk_gigabytes: spec.boot_device.size_gigabytes(), max_pods }
    }

    /// An instance type as the VMs of the class have it.
    #[must_use]
    pub fn of_type(&self, size: &InstanceType) -> InstanceType {
        let mut sized = size.clone();
        let disk_gib = self.disk_gib(size);
        if disk_gib > 0 {
            let bytes = i64::try_from(disk_gib).unwrap_or(i64::MAX).saturating_mul(1 << 30);
            sized.capacity = sized.capacity.with(EPHEMERAL_STORAGE, Quantity::bytes(bytes));
        }
        if let Some(pods) = self.max_pods {
            sized.capacity = sized.capacity.with(PODS, Quantity::whole(i64::from(pods)));
        }
        sized
    }

    /// The larger of what class and instance type ask for. Both are rounded up to decimal gigabytes and then asked for as
    /// GiB, as the reference does: a disk is never smaller than was asked for, nor than it was before.
    fn disk_gib(&self, size: &InstanceType) -> u64 {
        self.disk_gigabytes.max(gigabytes(size.capacity.get(EPHEMERAL_STORAGE)))
    }
}

/// Bytes in decimal gigabytes, rounded up.
pub(crate) fn gigabytes(bytes: Quantity) -> u64 {
    u64::try_from(bytes.value()).unwrap_or_default().div_ceil(1_000_000_000)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn class(spec: Value) -> ProxmoxNodeClass {
        let mut all = json!({ "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "a" } });
        if let (Some(all), Value::Object(spec)) = (all.as_object_mut(), spec) {
            all.extend(spec);
        }
        serde_json::from_value(json!({ "metadata": { "name": "a" }, "spec": all })).unwrap()
    }

    fn small() -> InstanceType {
        InstanceType::built_in().remove(0)
    }

    fn disk(spec: Value) -> String {
        for_class(&small(), &class(spec)).capacity.get(EPHEMERAL_STORAGE).to_string()
    }

    #[test]
    fn the_disk_is_the_larger_of_what_class_and_type_ask_for_as_the_vm_gets_it() {
        assert_eq!(small().capacity.get(EPHEMERAL_STORAGE).to_string(), "30Gi");
        // 30Gi are 33 decimal gigabytes, and Proxmox is asked for as many GiB.
        assert_eq!(disk(json!({})), "33Gi");
        assert_eq!(disk(json!({ "bootDevice": { "size": "20G" } })), "33Gi");
        assert_eq!(disk(json!({ "bootDevice": { "size": "100G" } })), "100Gi");
        assert_eq!(disk(json!({ "bootDevice": { "size": "100Gi" } })), "108Gi");
        assert_eq!(disk(json!({ "bootDevice": { "size": "2T" } })), "2000Gi");
    }

    #[test]
    fn a_type_without_a_disk_has_that_of_its_class() {
        let mut bare = small();
        bare.capacity = bare.capacity.iter().filter(|(name, _)| *name != EPHEMERAL_STORAGE).collect();
        let of = |spec| for_class(&bare, &class(spec)).capacity.get(EPHEMERAL_STORAGE).to_string();
        assert_eq!(of(json!({ "bootDevice": { "size": "50G" } })), "50Gi");
        assert_eq!(of(json!({ "bootDevice": { "storage": "fast" } })), "0", "nobody says how large it is");
    }

    #[test]
    fn pods_are_as_many_as_the_kubelet_is_told() {
        let pods = |spec| for_class(&small(), &class(spec)).capacity.get(PODS).to_string();
        assert_eq!(pods(json!({})), "64");
        assert_eq!(pods(json!({ "kubeletConfiguration": {} })), "64");
        assert_eq!(pods(json!({ "kubeletConfiguration": { "maxPods": 30 } })), "30");
        assert_eq!(pods(json!({ "kubeletConfiguration": { "maxPods": 250 } })), "250");
    }

    #[test]
    fn everything_else_is_the_same_and_so_is_what_pods_can_have_of_it() {
        let of_class = for_class(
            &small(),
            &class(json!({ "bootDevice": { "size": "100G" }, "kubeletConfiguration": { "maxPods": 9 } })),
        );
        let back =
            small().capacity.iter().fold(of_class.capacity.clone(), |all, (name, amount)| all.with(name, amount));
        assert_eq!(InstanceType { capacity: back, ..of_class.clone() }, small());
        assert_eq!(of_class.allocatable().get(EPHEMERAL_STORAGE).to_string(), "100Gi");
        assert_eq!(of_class.allocatable().get(PODS).to_string(), "9");
    }

    #[test]
    fn a_size_beyond_every_disk_is_not_a_negative_one() {
        assert_eq!(disk(json!({ "bootDevice": { "size": "9000000T" } })), Quantity::bytes(i64::MAX).to_string());
    }
}
