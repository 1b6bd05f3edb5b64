//! First-boot data for a claim's VM, from everything that is decided about it.

use std::collections::BTreeMap;

use bytes::Bytes;
use tenon_api::{KubeletConfiguration, NodeClaim};
use tenon_cloudinit::{
    Bootstrap, Identity, Interface, KubeletSettings, Network, SeedInput, Taint, TaintEffect, render,
};
use tenon_model::resources::{CPU, MEMORY, PODS};
use tenon_model::{InstanceType, LaunchRecord, ProviderId, Resources};
use tenon_pve::VmConfig;

/// What is known of a claim when its seed is rendered.
pub struct SeedFacts<'a> {
    /// The claim.
    pub claim: &'a NodeClaim,
    /// Its instance type.
    pub instance_type: &'a InstanceType,
    /// The kubelet's settings of its class.
    pub kubelet: Option<&'a KubeletConfiguration>,
    /// How it joins.
    pub bootstrap: Bootstrap,
}

/// The image a VM finds in its drive.
pub fn seed_image(facts: &SeedFacts<'_>, record: &LaunchRecord, config: &VmConfig) -> Result<Bytes, String> {
    let seed =
        render(&input(facts, record, config)).map_err(|error| format!("cannot render first-boot data: {error}"))?;
    seed.iso().map(Bytes::from).map_err(|error| format!("cannot write the seed ISO image: {error}"))
}

/// The name a VM is known by to Kubernetes.
pub fn provider_id(record: &LaunchRecord) -> String {
    ProviderId::new(&record.place.region, record.vmid).to_string()
}

fn input(facts: &SeedFacts<'_>, record: &LaunchRecord, config: &VmConfig) -> SeedInput {
    let name = facts.claim.metadata.name.clone().unwrap_or_default();
    let mut input = SeedInput::new(Identity {
        instance_uuid: record.uuid.clone().unwrap_or_default(),
        instance_type: facts.instance_type.name.clone(),
        provider_id: provider_id(record),
        region: record.place.region.clone(),
        zone: record.place.host.to_string(),
        node_class: facts.claim.spec.node_class_ref.name.clone(),
        ..Identity::new(record.vmid, name)
    });
    input.resources.cpu = u32::try_from(facts.instance_type.capacity.get(CPU).value()).unwrap_or_default();
    input.resources.memory_bytes = u64::try_from(facts.instance_type.capacity.get(MEMORY).value()).unwrap_or_default();
    input.network = Network { interfaces: interfaces(config), ..Network::default() };
    input.kubelet = kubelet(facts);
    input.bootstrap = Some(facts.bootstrap.clone());
    input
}

/// Every card with what Proxmox was told about its addresses; without a word it asks for one.
fn interfaces(config: &VmConfig) -> Vec<Interface> {
    let mut interfaces = Vec::new();
    for (key, card) in config.network_cards() {
        let Some((_, mac)) = card.network_card() else { continue };
        let number = key.trim_start_matches("net");
        let told = config.properties(&format!("ipconfig{number}")).unwrap_or_default();
        let address = |name: &str| told.get(name).filter(|value| !matches!(*value, "dhcp" | "auto")).map(str::to_owned);
        interfaces.push(Interface {
            name: format!("eth{number}"),
            mac: mac.to_owned(),
            dhcp4: told.get("ip").is_none_or(|value| value == "dhcp"),
            dhcp6: told.get("ip6") == Some("dhcp"),
            slaac: told.get("ip6") == Some("auto"),
            addresses4: address("ip").into_iter().collect(),
            addresses6: address("ip6").into_iter().collect(),
            gateway4: told.get("gw").map(str::to_owned),
            gateway6: told.get("gw6").map(str::to_owned),
            mtu: card.get("mtu").and_then(|mtu| mtu.parse().ok()).filter(|mtu| *mtu > 1).unwrap_or_default(),
            ..Interface::default()
        });
    }
    interfaces
}

fn kubelet(facts: &SeedFacts<'_>) -> KubeletSettings {
    let class = facts.kubelet.cloned().unwrap_or_default();
    let taints = facts.claim.spec.taints.iter().flatten().chain(facts.claim.spec.startup_taints.iter().flatten());
    let taint = |taint: &tenon_api::Taint| Taint {
        key: taint.key.clone(),
        value: taint.value.clone().unwrap_or_default(),
        effect: match taint.effect {
            tenon_api::TaintEffect::NoSchedule => TaintEffect::NoSchedule,
            tenon_api::TaintEffect::PreferNoSchedule => TaintEffect::PreferNoSchedule,
            tenon_api::TaintEffect::NoExecute => TaintEffect::NoExecute,
        },
    };
    let percent = |value: Option<i32>| value.and_then(|value| u32::try_from(value).ok());
    let pods = u32::try_from(facts.instance_type.capacity.get(PODS).value()).ok();
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
        // What the plan counted on is what the kubelet is told, unless the class says otherwise.
        max_pods: percent(class.max_pods).or(pods),
        fail_swap_on: class.fail_swap_on,
        system_reserved: reserved(&facts.instance_type.overhead.system_reserved),
        kube_reserved: reserved(&facts.instance_type.overhead.kube_reserved),
        eviction_hard: eviction(&facts.instance_type.overhead.eviction_threshold),
        register_with_taints: taints.map(taint).collect(),
        node_labels: facts.claim.metadata.labels.clone().unwrap_or_default(),
        ..KubeletSettings::default()
    }
}

fn reserved(resources: &Resources) -> BTreeMap<String, String> {
    let set = resources.iter().filter(|(_, amount)| !amount.is_zero());
    set.map(|(resource, amount)| (resource.to_owned(), amount.to_string())).collect()
}

fn eviction(threshold: &Resources) -> BTreeMap<String, String> {
    let memory = threshold.get(MEMORY);
    let fixed = [("nodefs.available", "10%"), ("imagefs.available", "15%")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    let memory = Some(("memory.available".to_owned(), memory.to_string())).filter(|_| !memory.is_zero());
    memory.into_iter().flat_map(|memory| fixed.clone().into_iter().chain([memory])).collect()
}
