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
    /// Cores and memory that VMs may be given at all.
    pub capacity: Resources,
    /// What is left of that without what its guests may use at most and what open claims hold. Less than nothing is possible.
    pub free: Resources,
    /// What is left for VMs that are bound to CPUs; unset: no VM is bound to any.
    pub cpus: Option<Arc<CpuRoom>>,
    /// How busy it is, if that is known.
    pub load: Option<HostLoad>,
}

/// How busy a machine is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostLoad {
    /// The share of its CPU time that is used, in millionths.
    pub cpu: u32,
    /// The share of its memory that is used, in millionths.
    pub memory: u32,
    /// What VMs take that do not show in this yet, because they are being created.
    pub rising: Resources,
}
