//! What is a guest bound to on its host? As its options say, or its description, where a controller could not set the option.

use tenon_engine::cpu::{Bound, CapacityVm, CapacityVmError};
use tenon_model::CpuSet;
use tenon_pve::{GuestKind, GuestRow, NumaNode, Tags, VmConfig};

/// The VM by which the daemon of a host describes it. It never runs.
const CAPACITY_VM: &str = "node-capacity";
/// The tag it has.
const CAPACITY_TAG: &str = "karpenter";

/// How descriptions of VMs begin that this controller or the reference created.
const OURS: &str = "Karpenter managed instance,";

/// A VM has options `numa0` to `numa7`.
const NODES: u32 = 8;

/// Whether a guest is no guest, but the description of its host.
pub(crate) fn is_capacity_vm(guest: &GuestRow) -> bool {
    let is_tagged = || Tags::read(guest.tags.as_deref().unwrap_or_default()).has(CAPACITY_TAG);
    guest.kind == GuestKind::Qemu && !guest.template && guest.name.as_deref() == Some(CAPACITY_VM) && is_tagged()
}

/// What a VM is bound to.
pub fn binding(config: &VmConfig, vcpus: u64) -> Bound {
    let mut bound = Bound { vcpus, cpus: cpus(config).unwrap_or_default(), ..Bound::default() };
    for node in nodes(config) {
        let (hosts, memory) = (node.host_nodes().unwrap_or_default(), node.memory_mib().unwrap_or_default());
        // Memory of several NUMA nodes of the host lies somewhere on them.
        let share = memory.div_ceil(hosts.count().max(1));
        for host in hosts.of_machine().unwrap_or_default().iter() {
            let held = bound.memory_mib.entry(host).or_default();
            *held = held.saturating_add(share);
        }
    }
    bound
}

/// What a host says of itself.
pub fn capacity_vm(config: &VmConfig) -> Result<CapacityVm, CapacityVmError> {
    let nodes: Vec<(String, String, u64)> = nodes(config)
        .map(|node| {
            let text = |name: &str| node.get(name).unwrap_or_default().to_owned();
            (text("cpus"), text("hostnodes"), node.memory_mib().unwrap_or_default())
        })
        .collect();
    let nodes: Vec<(&str, &str, u64)> =
        nodes.iter().map(|(cpus, host, memory)| (cpus.as_str(), host.as_str(), *memory)).collect();
    CapacityVm::read(config.get("affinity").unwrap_or_default(), &nodes)
}

/// NUMA nodes of a VM, if it has any.
fn nodes(config: &VmConfig) -> impl Iterator<Item = NumaNode> {
    let is_on = config.get("numa").is_some_and(|value| value == "1");
    (0..NODES).filter(move |_| is_on).filter_map(|number| config.option(&format!("numa{number}")))
}

/// The option, or what stands at the end of the first line of our descriptions. Commas there are those of the list.
fn cpus(config: &VmConfig) -> Option<CpuSet> {
    if let Some(affinity) = config.get("affinity") {
        return affinity.parse().ok();
    }
    let line = config.description().lines().next().filter(|line| line.starts_with(OURS))?;
    line.split_once(", affinity=")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(lines: &str) -> VmConfig {
        VmConfig::from_lines(lines).unwrap()
    }

    #[test]
    fn options_bind_a_vm_to_cpus_and_memory() {
        let bound = binding(
            &config(
                "affinity: 0-1,8\nnuma: 1\nnuma0: cpus=0-1,hostnodes=0,memory=1024,policy=bind\nnuma1: cpus=2,hostnodes=1-2,memory=1001",
            ),
            3,
        );
        assert_eq!((bound.vcpus, bound.cpus.to_string()), (3, "0-1,8".to_owned()));
        assert_eq!(bound.memory_mib, [(0, 1024), (1, 501), (2, 501)].into());
    }

    #[test]
    fn a_description_of_ours_binds_where_the_option_could_not_be_set() {
        let of = |line: &str| binding(&config(&format!("description: {line}")), 2).cpus.to_string();
        assert_eq!(
            of("Karpenter managed instance, class=default, capacity-type=on-demand, affinity=0-3,8-11"),
            "0-3,8-11"
        );
        assert_eq!(of("Karpenter managed instance, class=default, capacity-type=on-demand"), "");
        assert_eq!(of("somebody's, affinity=0-3"), "");
    }

    #[test]
    fn without_numa_its_nodes_say_nothing() {
        assert_eq!(binding(&config("numa: 0\nnuma0: cpus=0,hostnodes=0,memory=1"), 1), Bound::to_nothing(1));
    }

    #[test]
    fn a_host_describes_itself_by_a_vm() {
        let lines = "affinity: 0-1,4-5,2-3,6-7\nnuma: 1\nnuma0: cpus=0-3,hostnodes=0,memory=1024\nnuma1: cpus=4-7,hostnodes=1,memory=2048";
        assert!(capacity_vm(&config(lines)).is_ok());
        let said = capacity_vm(&config("affinity: 0-1\nnuma: 1\nnuma0: cpus=0-3,hostnodes=0,memory=1024")).unwrap_err();
        assert_eq!(said.to_string(), "option affinity has no CPU for CPU 2 of the VM");
    }
}
