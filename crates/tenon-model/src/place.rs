//! Where a VM can be made, and what is left there.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::host::HostName;
use crate::host_cpus::CpuRoom;
use crate::resources::Resources;

/// A machine in a Proxmox cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The Proxmox cluster.
    pub region: String,
    /// The machine, which is also the zone.
    pub host: HostName,
}

/// A machine and what is left of it.
#[derive(Debug, Clone)]
pub struct Host {
    /// Which.
    pub place: Place,
    /// Why it cannot be used now, if it cannot.
    pub closed: Option<String>,
    /// NodePools whose nodes are not made on it now, and why: something of theirs failed there, and others may still use it.
    pub closed_for: BTreeMap<String, String>,
    /// Cores and memory, less what its guests may use at most and what open claims hold. Less than nothing is possible.
    pub free: Resources,
    /// What is left for VMs that are bound to CPUs; unset: no VM is bound to any.
    pub cpus: Option<Arc<CpuRoom>>,
}
