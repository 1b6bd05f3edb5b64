//! What is left of a host, by the policy an operator chose? Counted only, or by CPU and NUMA node.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_engine::cpu::{Bound, Layout, Usable, room, usable};
use tenon_model::{CpuRoom, NodePolicy, NodeSettings, Place, VmId};

/// Everything that is known of CPUs.
#[derive(Debug, Clone, Default)]
pub struct CpuBook {
    /// Whether VMs are bound.
    pub policy: NodePolicy,
    /// What an operator says of hosts.
    pub settings: NodeSettings,
    /// How the CPUs of hosts lie, where VMs are bound.
    pub layouts: BTreeMap<Place, Layout>,
    /// What running guests are bound to, by region and id; nothing of those that are bound to nothing.
    pub guests: BTreeMap<(String, VmId), Bound>,
    /// Hosts on which nothing can be bound yet, and why.
    pub unread: BTreeMap<Place, String>,
}

/// What a host has, and who uses it.
pub(crate) struct HostUse<'a> {
    pub(crate) place: &'a Place,
    pub(crate) cpus: u64,
    pub(crate) memory_bytes: u64,
    /// Its guests and those that are about to be made there, where VMs are bound.
    pub(crate) guests: &'a [Bound],
}

/// What is left of a host.
pub(crate) struct HostLeft {
    /// What VMs may have of it, before anybody uses it.
    pub(crate) usable: Usable,
    /// CPUs that are left, where that is not what is usable less what guests have.
    pub(crate) cpus: Option<i64>,
    /// CPUs and memory that VMs can be bound to.
    pub(crate) room: Option<Arc<CpuRoom>>,
    /// Why nothing can be made there now.
    pub(crate) closed: Option<String>,
}

impl CpuBook {
    /// What is left of a host.
    pub(crate) fn left(&self, host: &HostUse<'_>) -> HostLeft {
        let settings = self.settings.of(host.place);
        let (cpus, memory_bytes) = (host.cpus, host.memory_bytes);
        if self.policy == NodePolicy::Simple {
            let usable = usable(Usable { cpus, memory_bytes }, &settings, self.policy);
            return HostLeft { usable, cpus: None, room: None, closed: None };
        }
        let Some(layout) = self.layouts.get(host.place) else {
            let why = "the CPU topology of the host is not known yet; retrying";
            let closed = Some(self.unread.get(host.place).map_or_else(|| why.to_owned(), Clone::clone));
            return HostLeft { usable: Usable { cpus: 0, memory_bytes: 0 }, cpus: None, room: None, closed };
        };
        // An operator may give VMs less memory than there is, and a guess may be more.
        let known = Usable { cpus: layout.cpus().count(), memory_bytes: memory_bytes.min(layout.memory_bytes()) };
        let left = room(layout, &settings, host.guests);
        HostLeft {
            usable: usable(known, &settings, self.policy),
            cpus: Some(left.cpus),
            room: Some(Arc::new(left.room)),
            closed: self.unread.get(host.place).cloned(),
        }
    }

    /// Whether VMs are bound.
    pub(crate) fn binds(&self) -> bool {
        self.policy == NodePolicy::Static
    }

    /// What a guest is bound to; counted with as many CPUs as it has, if that is nothing.
    pub(crate) fn bound(&self, region: &str, id: VmId, vcpus: u64) -> Bound {
        let known = self.guests.get(&(region.to_owned(), id)).cloned();
        known.map_or_else(|| Bound::to_nothing(vcpus), |bound| Bound { vcpus, ..bound })
    }
}
