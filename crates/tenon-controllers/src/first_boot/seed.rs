//! First-boot data for a claim's VM, from everything that is decided about it.

use tenon_api::{NodeClaim, ProxmoxNodeClass};
use tenon_cloudinit::{Bootstrap, Identity, NetworkConfigVersion, Resources, Seed, SeedInput, render};
use tenon_model::resources::{CPU, MEMORY, PODS};
use tenon_model::{InstanceType, LaunchRecord, ProviderId, VmId};
use tenon_pve::VmConfig;

use super::sources::Sources;
use super::{kubelet, network};

/// Pages of 1 GiB that a size sets aside.
const HUGEPAGES_1GI: &str = "hugepages-1Gi";
/// Pages of 2 MiB that a size sets aside.
const HUGEPAGES_2MI: &str = "hugepages-2Mi";

/// What is known of a claim when its seed is rendered.
pub struct SeedFacts<'a> {
    /// The claim.
    pub claim: &'a NodeClaim,
    /// Its class.
    pub class: &'a ProxmoxNodeClass,
    /// Its instance type.
    pub instance_type: &'a InstanceType,
    /// How it joins.
    pub bootstrap: Bootstrap,
    /// The version of the API server.
    pub kubernetes_version: String,
    /// The user's templates and values.
    pub sources: &'a Sources,
    /// The bridges of the host that are known.
    pub bridges: &'a [tenon_pve::Interface],
}

/// Which VM it is.
#[derive(Debug, Clone)]
pub struct VmFacts {
    /// Its id.
    pub vmid: VmId,
    /// Its SMBIOS UUID.
    pub uuid: String,
    /// The Proxmox cluster.
    pub region: String,
    /// The host.
    pub host: String,
}

impl VmFacts {
    /// The VM of a launch.
    pub fn of(record: &LaunchRecord) -> VmFacts {
        VmFacts {
            vmid: record.vmid,
            uuid: record.uuid.clone().unwrap_or_default(),
            region: record.place.region.clone(),
            host: record.place.host.to_string(),
        }
    }
}

/// The files a VM finds in its drive, or why there are none: a sentence.
pub fn render_seed(facts: &SeedFacts<'_>, vm: &VmFacts, config: &VmConfig) -> Result<Seed, String> {
    render(&seed_input(facts, vm, config), &facts.sources.templates).map_err(|error| facts.sources.explain(&error))
}

/// The name a VM is known by to Kubernetes.
pub fn provider_id(record: &LaunchRecord) -> String {
    ProviderId::new(&record.place.region, record.vmid).to_string()
}

/// All that a seed is made of.
pub fn seed_input(facts: &SeedFacts<'_>, vm: &VmFacts, config: &VmConfig) -> SeedInput {
    let name = facts.claim.metadata.name.clone().unwrap_or_default();
    let spec = &facts.class.spec;
    let mut input = SeedInput::new(Identity {
        instance_uuid: vm.uuid.clone(),
        instance_type: facts.instance_type.name.clone(),
        provider_id: ProviderId::new(&vm.region, vm.vmid).to_string(),
        region: vm.region.clone(),
        zone: vm.host.clone(),
        tags: spec.tags.clone().unwrap_or_default(),
        node_class: facts.claim.spec.node_class_ref.name.clone(),
        ..Identity::new(vm.vmid, name)
    });
    input.resources = resources(facts.instance_type);
    input.network = network::network(config, facts.bridges);
    input.network_config_version = match spec.metadata_options.network_config_version {
        Some(1) => NetworkConfigVersion::One,
        _ => NetworkConfigVersion::Two,
    };
    input.kubelet = kubelet::settings(spec.kubelet_configuration.as_ref(), facts.instance_type, facts.claim);
    input.pods = u32::try_from(facts.instance_type.capacity.get(PODS).value()).ok().filter(|pods| *pods > 0);
    input.bootstrap = Some(facts.bootstrap.clone());
    input.kubernetes_version.clone_from(&facts.kubernetes_version);
    input.values = facts.sources.values.clone();
    input
}

fn resources(instance_type: &InstanceType) -> Resources {
    let amount = |resource: &str| u64::try_from(instance_type.capacity.get(resource).value()).unwrap_or_default();
    let pages = |resource: &str, bytes: u64| u32::try_from(amount(resource) / bytes).unwrap_or(u32::MAX);
    Resources {
        cpu: u32::try_from(amount(CPU)).unwrap_or(u32::MAX),
        memory_bytes: amount(MEMORY),
        hugepages_1gi: pages(HUGEPAGES_1GI, 1 << 30),
        hugepages_2mi: pages(HUGEPAGES_2MI, 2 << 20),
    }
}
