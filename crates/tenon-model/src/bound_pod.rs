//! A pod on a node: what it uses there, who may choose it by its labels, what moving it would mean.

use std::sync::Arc;

use crate::eviction_cost::PodWorth;
use crate::launch::Seconds;
use crate::pod::{Pod, PodKey, PodShape};
use crate::protection::Owner;
use crate::volumes::{Attachment, PodStorage};

/// A pod on a node. There are many of them: names are held once, and what pods of one workload share is shared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BoundPod {
    /// Which.
    pub key: Arc<PodKey>,
    /// What it asks for, uses and is chosen by.
    pub shape: Arc<PodShape>,
    /// When it was made.
    pub created: Option<Seconds>,
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

    /// Whether it has to run somewhere else when its node is removed. A terminating pod of a StatefulSet still counts, because
    /// its successor has to wait for it and needs the same place.
    pub fn needs_another_node(&self) -> bool {
        match self.shape.owner {
            Owner::DaemonSet | Owner::Node => false,
            Owner::StatefulSet => true,
            Owner::Other | Owner::Nobody => !self.is_terminating,
        }
    }

    /// The pod as it would be if it had no node.
    pub fn unbound(&self) -> Pod {
        Pod {
            key: self.key.clone(),
            created: self.created,
            is_pending: false,
            volumes: Vec::new(),
            storage: self.storage.as_deref().cloned().unwrap_or_default(),
            shape: self.shape.clone(),
        }
    }
}
