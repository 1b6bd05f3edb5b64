//! Everything a plan is made from, at one moment. If a decision needs something, it is a field here.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::disruption_inputs::DisruptionInputs;
use crate::host_rules::HostRules;
use crate::launch::Seconds;
use crate::launch_site::LaunchSite;
use crate::node_state::NodeState;
use crate::options::Options;
use crate::place::Host;
use crate::pod::{Pod, PodKey};
use crate::pool::Pool;

/// The world at one moment. The order of its lists means nothing.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Pools that nodes may be made from.
    pub pools: Vec<Arc<Pool>>,
    /// Machines and what is left of them.
    pub hosts: Vec<Host>,
    /// How each pool chooses among them, by its name; whoever is not in it does as `HostRules::default()` says.
    pub host_rules: BTreeMap<String, HostRules>,
    /// Nodes that are there, and nodes that are on their way.
    pub nodes: Vec<Arc<NodeState>>,
    /// Pods that need a node: those that fit nowhere, and those whose node leaves.
    pub pods: Vec<Arc<Pod>>,
    /// Pods for which no node could ever be what they ask for, and why.
    pub invalid: Vec<(Arc<PodKey>, String)>,
    /// The labels of every namespace, by its name.
    pub namespaces: Arc<BTreeMap<String, BTreeMap<String, String>>>,
    /// One pod of each DaemonSet, as it would be on a new node.
    pub daemons: Vec<Arc<Pod>>,
    /// What new nodes are launched from. No part of which nodes are created where.
    pub launch_site: LaunchSite,
    /// What an operator decides.
    pub options: Options,
    /// What decides which nodes are disrupted. No part of which nodes are created.
    pub disruption: DisruptionInputs,
    /// When it was taken.
    pub now: Seconds,
}
