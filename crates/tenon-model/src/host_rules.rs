//! How is the host of a new node chosen? What a ProxmoxNodeClass says of it, and what that depends on.

use std::collections::{BTreeMap, BTreeSet};

use crate::place::Place;
use crate::resources::Resources;

/// How the hosts of a pool's nodes are chosen, among those where the cheapest instance type costs the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostRules {
    /// Which host is preferred.
    pub strategy: HostStrategy,
    /// Cores and memory that a new VM must leave free on its host.
    pub min_available: Resources,
    /// Hosts that are never used.
    pub excluded: BTreeSet<Place>,
    /// How many VMs each host has: those of the pool, or of all pools where they are packed.
    pub vms: BTreeMap<Place, u32>,
    /// Where the newest VM of the pool is.
    pub last: Option<Place>,
    /// What nodes are moved between hosts for, if they are.
    pub goal: Option<HostGoal>,
}

/// What nodes are moved between hosts for, where nothing cheaper is left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostGoal {
    /// As few hosts as possible have VMs of ours.
    Pack,
    /// The VMs of each pool are on all hosts alike.
    Spread,
}

/// Which host is preferred. Of equal ones the one with the most free memory, then the first by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HostStrategy {
    /// The host that is used least with the new VM on it: the larger of its shares of CPU and memory counts.
    #[default]
    Balanced,
    /// The most free memory.
    MaxMemory,
    /// The most free cores.
    MaxCpu,
    /// The fewest VMs of the pool.
    Spread,
    /// The most VMs of ours; of equal hosts the one that is used most with the new VM on it.
    Pack,
    /// The lowest load, as it is measured, and with what is planned since.
    BalancedLoad,
    /// The next one by name after the host of the newest VM of the pool.
    RoundRobin,
}
