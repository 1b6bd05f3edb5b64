//! Everything a plan is made from, at one moment. If a decision needs something, it is a field here.

use crate::host::HostName;
use crate::instance_type::InstanceType;
use crate::pod::Pod;
use crate::requirements::Requirements;
use crate::resources::Resources;
use crate::taint::Taint;

/// The world at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Pools that nodes may be made from.
    pub pools: Vec<Pool>,
    /// Sizes of VMs.
    pub types: Vec<InstanceType>,
    /// Machines and what is left of them.
    pub hosts: Vec<Host>,
    /// Nodes that are there, and nodes that are on their way.
    pub nodes: Vec<Node>,
    /// Pods that fit nowhere.
    pub pods: Vec<Pod>,
    /// One pod of each DaemonSet, as it would be on a new node.
    pub daemons: Vec<Pod>,
}

/// A pool of nodes.
#[derive(Debug, Clone)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Higher is tried first.
    pub weight: i32,
    /// Demands on its nodes, its labels among them.
    pub requirements: Requirements,
    /// Taints its nodes have for good.
    pub taints: Vec<Taint>,
    /// What its nodes may have together; a resource that is not named is not limited.
    pub limits: Resources,
    /// What its nodes have together now.
    pub used: Resources,
    /// Where VMs of its class can be made.
    pub places: Vec<Place>,
    /// Why it cannot be used, if it cannot.
    pub not_ready: Option<String>,
}

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
    /// Cores and memory, less what its guests may use at most and what open claims hold. Less than nothing is possible.
    pub free: Resources,
}

/// A node that is there or on its way.
#[derive(Debug, Clone)]
pub struct Node {
    /// The name of the Node or NodeClaim.
    pub name: String,
    /// What is known of its labels.
    pub labels: Requirements,
    /// Taints that will stay.
    pub taints: Vec<Taint>,
    /// What pods can still have.
    pub room: Resources,
}
