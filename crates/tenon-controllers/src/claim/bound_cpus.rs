//! A VM that is bound to CPUs and memory of its host, as options of Proxmox and as its description says it.

use tenon_model::Pinning;
use tenon_pve::VmConfig;

/// A VM has options `numa0` to `numa7`.
const NODES: usize = 8;

/// What the description of a VM says of its CPUs. The daemon on the host binds the VM's threads by it.
pub(crate) fn in_description(pinning: Option<&Pinning>) -> String {
    pinning.map(|pinning| format!(", affinity={}", pinning.affinity())).unwrap_or_default()
}

/// Options for memory. The VM's CPUs are numbered NUMA node by NUMA node; what its template has beyond that is deleted.
pub(crate) fn options(pinning: Option<&Pinning>, config: &VmConfig) -> Vec<(String, String)> {
    let Some(pinning) = pinning else { return Vec::new() };
    let mut options = vec![("numa".to_owned(), "1".to_owned())];
    let mut first = 0;
    for (number, cell) in pinning.cells.iter().enumerate() {
        let next = first + cell.cpus.count();
        let cpus = if next == first + 1 { first.to_string() } else { format!("{first}-{}", next.saturating_sub(1)) };
        let value = format!("cpus={cpus},hostnodes={},memory={},policy=bind", cell.node, cell.memory_mib);
        options.push((format!("numa{number}"), value));
        first = next;
    }
    let surplus = (pinning.cells.len()..NODES).map(|number| format!("numa{number}"));
    let surplus: Vec<String> = surplus.filter(|key| config.get(key).is_some()).collect();
    options.extend((!surplus.is_empty()).then(|| ("delete".to_owned(), surplus.join(","))));
    options
}

/// The option that binds a VM to CPUs. Only root may set it; what a token writes is the description.
pub(crate) fn affinity(pinning: Option<&Pinning>, is_root: bool) -> Option<(String, String)> {
    let pinning = pinning.filter(|_| is_root)?;
    Some(("affinity".to_owned(), pinning.affinity()))
}

/// What an operator can do about a VM whose host does not have the NUMA nodes it was planned on.
pub(crate) fn with_advice(why: String) -> String {
    if why.contains("host NUMA node") {
        return format!("{why}; correct the NUMA nodes of the host in the file given with --node-setting-file");
    }
    why
}

#[cfg(test)]
mod tests {
    use tenon_model::PinnedCell;

    use super::*;

    fn pinning(cells: &[(u32, &str, u64)]) -> Pinning {
        let cell = |(node, cpus, memory_mib): &(u32, &str, u64)| PinnedCell {
            node: *node,
            cpus: cpus.parse().unwrap(),
            memory_mib: *memory_mib,
        };
        Pinning { cells: cells.iter().map(cell).collect() }
    }

    fn written(pinning: &Pinning, config: &str) -> Vec<String> {
        let config = VmConfig::from_lines(config).unwrap();
        options(Some(pinning), &config).iter().map(|(key, value)| format!("{key}: {value}")).collect()
    }

    #[test]
    fn cpus_of_the_vm_are_numbered_numa_node_by_numa_node() {
        let two = pinning(&[(0, "0-1,8-9", 4096), (3, "7", 1024)]);
        let expected = [
            "numa: 1",
            "numa0: cpus=0-3,hostnodes=0,memory=4096,policy=bind",
            "numa1: cpus=4,hostnodes=3,memory=1024,policy=bind",
        ];
        assert_eq!(written(&two, "cores: 1"), expected);
        assert_eq!(in_description(Some(&two)), ", affinity=0-1,8-9,7");
        assert_eq!(affinity(Some(&two), true), Some(("affinity".to_owned(), "0-1,8-9,7".to_owned())));
        assert_eq!(affinity(Some(&two), false), None);
    }

    #[test]
    fn numa_nodes_of_the_template_do_not_stay() {
        let one = pinning(&[(1, "4-5", 2048)]);
        let template = "numa0: cpus=0,memory=1024\nnuma1: cpus=1,memory=1024\nnuma4: cpus=2,memory=1";
        assert_eq!(written(&one, template).last().map(String::as_str), Some("delete: numa1,numa4"));
    }

    #[test]
    fn a_vm_that_is_not_bound_has_nothing_of_it() {
        let config = VmConfig::from_lines("numa0: cpus=0").unwrap();
        assert_eq!((options(None, &config), in_description(None)), (Vec::new(), String::new()));
        assert_eq!(affinity(None, true), None);
    }
}
