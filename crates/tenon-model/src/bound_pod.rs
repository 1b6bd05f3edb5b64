//! A pod on a node: what it uses there, who may choose it by its labels, what moving it would mean.

use std::sync::Arc;

use crate::eviction_cost::PodWorth;
use crate::launch::Seconds;
use crate::pod::{PodKey, PodShape};
use crate::protection::Owner;
use crate::volumes::{Attachment, PodStorage};

/// A pod on a node. There are many of them: names are held once, and what pods of one workload share is shared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BoundPod {
    /// Which.
    pub key: Arc<PodKey>,
    /// What it asks for, uses and is chosen by.
    pub shape: Arc<PodShape>,
    /// When a node took it.
    pub started: Option<Seconds>,
    /// Whether somebody deleted it: it still uses what it uses, but no longer counts where pods are spread.
    pub is_terminating: bool,
    /// What it says about its worth.
    pub worth: PodWorth,
    /// Its volumes that are attached to the node.
    pub attachments: Vec<Attachment>,
    /// What its volumes would ask of another node; nothing if it has none.
    pub storage: Option<Arc<PodStorage>>,
}

impl BoundPod {
    /// Whether a DaemonSet put it there.
    pub fn is_daemon(&self) -> bool {
        self.shape.owner == Owner::DaemonSet
    }
}
