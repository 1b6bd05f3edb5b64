//! What is to be done, and why everything else is not. A plan leaves no choices. How reasons read is in `reason_message.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::host_cpus::Pinning;
use crate::min_values::TooFewValues;
use crate::place::Place;
use crate::pod::PodKey;
use crate::price::Price;
use crate::quantity::Quantity;
use crate::requirements::{Incompatible, Requirements};
use crate::resources::{Resources, Shortage};
use crate::skipped_hosts::SkippedHosts;
use crate::taint::Taint;
use crate::topology_refusal::TopologyRefusal;
use crate::volume_refusal::VolumeRefusal;

/// The outcome of planning.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Nodes to be made.
    pub new_nodes: Vec<NewNode>,
    /// Pods that fit on a node that is there or on its way.
    pub placements: Vec<Placement>,
    /// Pods that wait, and why.
    pub unplaced: Vec<Unplaced>,
}

/// A node to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewNode {
    /// The pool it belongs to.
    pub pool: String,
    /// Sizes that would do, the cheapest first.
    pub instance_types: Arc<[String]>,
    /// What is made.
    pub chosen: Chosen,
    /// What its labels must be like; the list of sizes is not among it.
    pub requirements: Requirements,
    /// What its pods need together, and the least its daemons do.
    pub requests: Resources,
    /// The pods it is made for, by key.
    pub pods: Vec<Arc<PodKey>>,
    /// Whether it makes do with fewer values of a label than its pool asks for.
    pub min_values_relaxed: bool,
    /// What it is bound to on its host, where VMs are bound to CPUs.
    pub pinning: Option<Arc<Pinning>>,
}

/// What a new node is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// Its size.
    pub instance_type: String,
    /// What tells the offering from others: zone, capacity type.
    pub requirements: Requirements,
    /// Labels its node is born with, because its size and offering leave just one value.
    pub labels: BTreeMap<String, String>,
    /// What it counts as.
    pub price: Price,
    /// The machine it is made on, where that is limited.
    pub place: Option<Place>,
}

/// A pod and the node it fits on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The pod.
    pub pod: Arc<PodKey>,
    /// The Node or NodeClaim.
    pub node: String,
}

/// A pod that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Unplaced {
    /// The pod.
    pub pod: Arc<PodKey>,
    /// Why.
    pub reason: Reason,
}

/// Why a pod waits.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// It asks for something that no node of ours can ever be.
    Invalid(String),
    /// It asks for devices by claim, which are ignored.
    ResourceClaims,
    /// There is no pool that makes nodes for pods.
    NoPools,
    /// Pools are there, but what they demand leaves nothing to make nodes of.
    NothingOffered,
    /// Every pool said no.
    Refused(Vec<(String, PoolRefusal)>),
    /// Capacity that was set aside serves it, but others take that in the same plan.
    Reserved {
        /// The pool.
        pool: String,
        /// What is in the way.
        why: ReservedTrouble,
    },
    /// Too many sizes would do, and those a claim may list have too few values of a label.
    Truncated(TooFewValues),
    /// The planner itself is wrong: this was not found under an index of its own.
    Internal(&'static str),
    /// What was planned for it broke this rule and was dropped, which is a bug of ours.
    CheckFailed(String),
}

/// What is in the way of using capacity that was set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReservedTrouble {
    /// Others in the same plan take all that is left.
    Taken,
    /// It is used up, and nothing else would do.
    Full,
    /// The pod would drive the node out of what it has.
    WouldLose,
}

/// Why a pool makes no node for a pod.
#[derive(Debug, Clone, PartialEq)]
pub enum PoolRefusal {
    /// The pool or its class is not ready.
    NotReady(String),
    /// It has a fixed number of nodes.
    Static,
    /// What it demands leaves nothing to make nodes of.
    NothingOffered,
    /// The pod does not tolerate a taint of the pool.
    Taint(Taint),
    /// The pod asks for other labels.
    Labels(Incompatible),
    /// Because of other pods, no domain is left.
    Topology(Box<TopologyRefusal>),
    /// Volumes of the pod are in the way.
    Volumes(Box<VolumeRefusal>),
    /// No size will do.
    NoType(Box<NoType>),
    /// Too few values of a label stay possible.
    MinValues(TooFewValues),
    /// The pool has what it may have.
    Limit {
        /// Of what.
        resource: String,
        /// How much it may have.
        limit: Quantity,
    },
    /// Only capacity that was set aside would do, and it is used up.
    Reserved(ReservedTrouble),
    /// No host holds a VM of the smallest size that would do.
    NoHost(Box<NoHost>),
    /// A host would do that its ProxmoxNodeClass excludes.
    HostExcluded {
        /// That host.
        place: Place,
        /// What is in the way of the others.
        others: Box<PoolRefusal>,
    },
    /// Only hosts would do that the pool has nothing to make nodes from on.
    HostsSkipped {
        /// Those hosts, and what they lack.
        skipped: Vec<SkippedHosts>,
        /// What is in the way of the others.
        others: Box<PoolRefusal>,
    },
}

/// Why no host holds a VM.
#[derive(Debug, Clone, PartialEq)]
pub struct NoHost {
    /// The smallest size that would do.
    pub instance_type: String,
    /// What is short, and the largest gap there is.
    pub shortage: Shortage,
    /// Where that gap is, if any host can be used.
    pub largest_on: Option<Place>,
    /// How much must stay free there, where the VM would fit but for that.
    pub kept_free: Option<Quantity>,
    /// Hosts that cannot be used at all, and why.
    pub skipped: Vec<SkippedHosts>,
}

/// What the sizes of a pool have, and never all at once.
#[derive(Debug, Clone, PartialEq)]
pub struct NoType {
    /// Which of the three are met by some size, alone and in pairs.
    pub met: Met,
    /// What the node would have to be.
    pub requirements: Requirements,
    /// What of that is required by a volume of the pod.
    pub volumes: Requirements,
    /// What its pods and daemons would need: with the fewest daemons, and with the most.
    pub resources: (Resources, Resources),
    /// The nearest miss, where resources are short.
    pub shortage: Option<Shortage>,
}

/// Which conditions some size meets. A node needs all three of one size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "six facts, each of which may be true or not")]
pub struct Met {
    /// Its labels suit.
    pub requirements: bool,
    /// It is large enough.
    pub resources: bool,
    /// It can be had as demanded.
    pub offering: bool,
    /// The first two.
    pub requirements_and_resources: bool,
    /// The first and the last.
    pub requirements_and_offering: bool,
    /// The last two.
    pub resources_and_offering: bool,
}

impl Reason {
    /// Whether the pod was refused before anything was tried.
    pub fn is_rejected(&self) -> bool {
        matches!(self, Reason::Invalid(_))
    }

    /// Whether the pod only waits for the next plan.
    pub fn is_deferred(&self) -> bool {
        matches!(self, Reason::Reserved { .. })
    }
}
