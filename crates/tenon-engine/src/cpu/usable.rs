//! How much of a host may VMs have? What is kept back for the host itself is decided here and nowhere else.

use tenon_model::{HostSettings, NodePolicy};

/// What the reference keeps back of every host. Where VMs are bound to memory, a host without any of its own kills them.
pub(super) const RESERVED_MEMORY: u64 = 1 << 30;

/// What a host has, or what of it VMs may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usable {
    /// CPUs.
    pub cpus: u64,
    /// Memory.
    pub memory_bytes: u64,
}

/// What VMs may have of what a host has.
pub fn usable(host: Usable, settings: &HostSettings, policy: NodePolicy) -> Usable {
    let by_default = match policy {
        NodePolicy::Simple => 0,
        NodePolicy::Static => RESERVED_MEMORY,
    };
    let reserved = settings.reserved_memory_bytes.unwrap_or(by_default);
    Usable {
        cpus: host.cpus.saturating_sub(settings.reserved_cpus.count()),
        memory_bytes: host.memory_bytes.saturating_sub(reserved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_operator_reserves_is_kept_back_and_a_gibibyte_where_vms_are_bound() {
        let host = Usable { cpus: 8, memory_bytes: 16 << 30 };
        let none = HostSettings::default();
        assert_eq!(usable(host, &none, NodePolicy::Simple), host);
        assert_eq!(usable(host, &none, NodePolicy::Static), Usable { cpus: 8, memory_bytes: 15 << 30 });
        let reserved_cpus = "0,4".parse().unwrap();
        let told = HostSettings { reserved_cpus, reserved_memory_bytes: Some(4 << 30), ..none };
        for policy in [NodePolicy::Simple, NodePolicy::Static] {
            assert_eq!(usable(host, &told, policy), Usable { cpus: 6, memory_bytes: 12 << 30 });
        }
    }
}
