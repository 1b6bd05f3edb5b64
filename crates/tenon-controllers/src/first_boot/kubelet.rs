//! The settings of a new node's kubelet, from its class, its size and its claim.

use std::collections::BTreeMap;

use tenon_api::{KubeletConfiguration, NodeClaim};
use tenon_cloudinit::{KubeletSettings, Taint, TaintEffect};
use tenon_model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY};
use tenon_model::{InstanceType, Resources};

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;

/// The settings; what nobody said is left to the kubelet.
pub(super) fn settings(
    class: Option<&KubeletConfiguration>,
    instance_type: &InstanceType,
    claim: &NodeClaim,
) -> KubeletSettings {
    let class = class.cloned().unwrap_or_default();
    let percent = |value: Option<i32>| value.and_then(|value| u32::try_from(value).ok());
    KubeletSettings {
        cpu_manager_policy: class.cpu_manager_policy,
        cpu_cfs_quota: class.cpu_cfs_quota,
        cpu_cfs_quota_period: class.cpu_cfs_quota_period,
        topology_manager_policy: class.topology_manager_policy,
        topology_manager_scope: class.topology_manager_scope,
        image_gc_high_threshold_percent: percent(class.image_gc_high_threshold_percent),
        image_gc_low_threshold_percent: percent(class.image_gc_low_threshold_percent),
        shutdown_grace_period: class.shutdown_grace_period,
        allowed_unsafe_sysctls: class.allowed_unsafe_sysctls.unwrap_or_default(),
        cluster_dns: class.cluster_dns.unwrap_or_default(),
        max_pods: percent(class.max_pods),
        fail_swap_on: class.fail_swap_on,
        system_reserved: reserved(&instance_type.overhead.system_reserved),
        kube_reserved: reserved(&instance_type.overhead.kube_reserved),
        eviction_hard: eviction(&instance_type.overhead.eviction_threshold),
        register_with_taints: taints(claim),
        node_labels: claim.metadata.labels.clone().unwrap_or_default(),
        ..KubeletSettings::default()
    }
}

/// The taints that pods of the NodePool are planned with, and those that something on the node removes.
fn taints(claim: &NodeClaim) -> Vec<Taint> {
    let all = claim.spec.taints.iter().flatten().chain(claim.spec.startup_taints.iter().flatten());
    all.map(|taint| Taint {
        key: taint.key.clone(),
        value: taint.value.clone().unwrap_or_default(),
        effect: match taint.effect {
            tenon_api::TaintEffect::NoSchedule => TaintEffect::NoSchedule,
            tenon_api::TaintEffect::PreferNoSchedule => TaintEffect::PreferNoSchedule,
            tenon_api::TaintEffect::NoExecute => TaintEffect::NoExecute,
        },
    })
    .collect()
}

/// Whole units, rounded down, as existing templates know them; what is zero is left out.
fn reserved(resources: &Resources) -> BTreeMap<String, String> {
    let amounts = [
        (CPU, resources.get(CPU).milli_value(), "m"),
        (MEMORY, resources.get(MEMORY).value() / MIB, "Mi"),
        (EPHEMERAL_STORAGE, resources.get(EPHEMERAL_STORAGE).value() / GIB, "Gi"),
    ];
    let set = amounts.into_iter().filter(|(_, amount, _)| *amount > 0);
    set.map(|(resource, amount, unit)| (resource.to_owned(), format!("{amount}{unit}"))).collect()
}

/// Bytes in the largest unit that holds them whole, as Kubernetes spells what was written with such a unit.
fn binary(bytes: i64) -> String {
    let mut units = ["Ti", "Gi", "Mi", "Ki"].into_iter().zip([GIB << 10, GIB, MIB, 1 << 10]);
    let whole = units.find(|(_, size)| bytes % size == 0);
    whole.map_or_else(|| bytes.to_string(), |(unit, size)| format!("{}{unit}", bytes / size))
}

fn eviction(threshold: &Resources) -> BTreeMap<String, String> {
    let memory = threshold.get(MEMORY);
    if memory.is_zero() {
        return BTreeMap::new();
    }
    let all = [("nodefs.available", "10%".to_owned()), ("imagefs.available", "15%".to_owned())];
    let all = all.into_iter().chain([("memory.available", binary(memory.value()))]);
    all.map(|(key, value)| (key.to_owned(), value)).collect()
}
