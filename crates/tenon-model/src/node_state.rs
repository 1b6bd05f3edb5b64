//! A node that is there or on its way, as a plan sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::bound_pod::BoundPod;
use crate::candidate::DisruptionFacts;
use crate::node_labels::NodeLabels;
use crate::pod::{HostPort, PodKey};
use crate::resources::Resources;
use crate::taint::Taint;
use crate::volumes::Attachment;

/// On a node that is started again, until it is up.
const REBOOTING: &str = "karpenter.sh/rebooting";

/// A node that is there or on its way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeState {
    /// The name of the Node, or of the NodeClaim while there is none.
    pub name: String,
    /// The pool it belongs to, by its label.
    pub pool: Option<String>,
    /// Whether there is a NodeClaim for it.
    pub is_managed: bool,
    /// Its labels: those of its claim until it registers. They are facts; what is not there it does not have.
    pub labels: NodeLabels,
    /// Its taints: those of its claim until it registers.
    pub taints: Vec<Taint>,
    /// Taints that somebody takes away before it takes pods.
    pub startup_taints: Vec<Taint>,
    /// What it has.
    pub capacity: Resources,
    /// What of it pods can have.
    pub allocatable: Resources,
    /// The pods on it that have not ended, in the order of their keys.
    pub pods: Vec<Arc<BoundPod>>,
    /// What the pods on it need, daemons included.
    pub bound: Resources,
    /// What the daemons on it need.
    pub bound_daemons: Resources,
    /// Ports of the pods on it.
    pub host_ports: Vec<(Arc<PodKey>, HostPort)>,
    /// How many volumes of a CSI driver it attaches; a driver that is not in it is not limited.
    pub attach_limits: BTreeMap<String, u32>,
    /// Volumes of the pods on it, sorted, each once.
    pub attachments: Vec<Attachment>,
    /// How far it is.
    pub stage: NodeStage,
    /// Whether it goes, so that nothing new is put there.
    pub is_leaving: bool,
    /// Whether it is a node of a pool that does not say yet which machine it is, or of which instance type. Nothing is put there,
    /// and its pool does not count it; where its pods are is known.
    pub is_unidentified: bool,
    /// Of a node with a NodeClaim: what decides whether it may be disrupted. No part of which nodes are created.
    pub disruption: Option<Arc<DisruptionFacts>>,
}

/// How far a node is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeStage {
    /// It takes pods.
    #[default]
    Initialized,
    /// It comes up; taints that go by themselves do not count yet.
    Rising,
    /// It took pods, is started again, and will take them once more.
    Rebooting,
}

impl NodeState {
    /// Whether pods may be put there.
    pub fn takes_pods(&self) -> bool {
        !self.is_leaving && !self.is_unidentified
    }

    /// Taints that pods must tolerate: what goes away by itself while a managed node comes up does not count.
    pub fn lasting_taints(&self) -> impl Iterator<Item = &Taint> {
        let is_passing = self.is_managed && self.stage != NodeStage::Initialized;
        let is_startup = |taint: &Taint| self.startup_taints.iter().any(|startup| startup.is_same_as(taint));
        let goes = move |taint: &Taint| taint.is_ephemeral() || taint.key == REBOOTING || is_startup(taint);
        self.taints.iter().filter(move |taint| !(is_passing && goes(taint)))
    }
}
