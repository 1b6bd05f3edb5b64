//! A pool of nodes: what its nodes are like, what they are made of, and how many there may be.

use std::sync::Arc;

use crate::candidate::DisruptionPool;
use crate::catalog::Catalog;
use crate::requirements::Requirements;
use crate::resources::Resources;
use crate::taint::Taint;

/// A pool of nodes.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Higher is tried first; of equal ones the last by name.
    pub weight: i32,
    /// Demands on its nodes, its labels among them.
    pub requirements: Requirements,
    /// Taints its nodes have for good.
    pub taints: Vec<Taint>,
    /// Taints its nodes start with and somebody else takes away. Pods need not tolerate them.
    pub startup_taints: Vec<Taint>,
    /// What its nodes may have together; a resource that is not named is not limited. `nodes` counts them.
    pub limits: Resources,
    /// What its nodes have together now, those included that are only claimed yet; without those that leave.
    pub used: Resources,
    /// What its nodes are made of.
    pub catalog: Arc<Catalog>,
    /// A fixed number of nodes. Such a pool makes none for pods.
    pub replicas: Option<u32>,
    /// Why it cannot be used, if it cannot.
    pub not_ready: Option<String>,
    /// Changes with the NodePool, its NodeClass and the template that its nodes are copied from, also where nothing else here does.
    pub revision: String,
    /// How its nodes may be disrupted. No part of which nodes are created.
    pub disruption: Option<Arc<DisruptionPool>>,
}
