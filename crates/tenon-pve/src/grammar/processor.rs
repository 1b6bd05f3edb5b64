//! A VM's processors: their model (`cpu`), their places (`affinity`), and the memory beside them (`numaN`).

use tenon_model::CpuSet;

use super::option_type;
use super::shape::{CPU, NUMA};
use crate::properties::PropertiesError;

option_type!(
    /// The model of a VM's processors: `host`, `cputype=x86-64-v3,flags=+aes;-pcid`.
    Cpu,
    CPU
);

impl Cpu {
    /// The model's name.
    pub fn model(&self) -> Option<&str> {
        self.get("cputype")
    }

    /// Flags that are switched on (`+aes`) and off (`-pcid`).
    pub fn flags(&self) -> impl Iterator<Item = &str> {
        self.get("flags").into_iter().flat_map(|flags| flags.split(';')).filter(|flag| !flag.is_empty())
    }
}

option_type!(
    /// One node of a VM's memory: `cpus=0-3,hostnodes=0,memory=4096,policy=bind`.
    NumaNode,
    NUMA
);

impl NumaNode {
    /// The VM's processors that are near it.
    pub fn cpus(&self) -> Option<CpuSet> {
        self.get("cpus")?.parse().ok()
    }

    /// The host's nodes it is taken from.
    pub fn host_nodes(&self) -> Option<CpuSet> {
        self.get("hostnodes")?.parse().ok()
    }

    /// Its size in MiB.
    pub fn memory_mib(&self) -> Option<u64> {
        self.get("memory")?.parse().ok()
    }

    /// Sets a property where it stands, or at the end.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), PropertiesError> {
        self.0.set(name, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_and_a_memory_node_are_read() {
        let cpu: Cpu = "x86-64-v3,flags=+aes;-pcid".parse().unwrap();
        assert_eq!((cpu.model(), cpu.flags().collect::<Vec<_>>()), (Some("x86-64-v3"), vec!["+aes", "-pcid"]));
        let node: NumaNode = "cpus=0-1,hostnodes=0,memory=256,policy=bind".parse().unwrap();
        assert_eq!((node.cpus().unwrap().count(), node.memory_mib()), (2, Some(256)));
        assert_eq!(node.host_nodes(), "0".parse().ok());
    }
}
