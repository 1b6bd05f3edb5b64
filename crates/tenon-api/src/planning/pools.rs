//! Pools as the engine sees them: what their nodes are like, and what they have together already.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use tenon_model::{NodeState, Pool, Quantity, Requirement, Requirements, Resources};

use super::Surroundings;
use super::amounts::{of_resource_map, requirements, taint};
use crate::objects::Objects;
use crate::{NodeClassRef, NodePool};

/// The key of a limit that counts nodes.
const NODES: &str = "nodes";

/// All pools that are not going.
pub(super) fn pools(objects: &Objects, around: &dyn Surroundings, nodes: &[NodeState]) -> Vec<Arc<Pool>> {
    let used = used(nodes);
    let staying = objects.node_pools.iter().filter(|pool| pool.metadata.deletion_timestamp.is_none());
    let made = staying.map(|found| {
        let used = used.get(found.name_any().as_str()).cloned().unwrap_or_default();
        Arc::new(pool(found, around, used))
    });
    made.collect()
}

fn pool(pool: &NodePool, around: &dyn Surroundings, used: Resources) -> Pool {
    let template = &pool.spec.template;
    let mut wanted = requirements(&template.spec.requirements);
    let labels = template.metadata.iter().flat_map(|metadata| metadata.labels.iter().flatten());
    wanted.add_all(&Requirements::from_labels(labels));
    let class = &template.spec.node_class_ref;
    wanted.add(class_label(class), &Requirement::is(&class.name));
    let taints = |list: &Option<Vec<crate::Taint>>| list.iter().flatten().map(taint).collect();
    Pool {
        name: pool.name_any(),
        weight: pool.spec.weight.unwrap_or_default(),
        requirements: wanted,
        taints: taints(&template.spec.taints),
        startup_taints: taints(&template.spec.startup_taints),
        limits: of_resource_map(pool.spec.limits.as_ref()),
        used,
        catalog: around.catalog(pool),
        replicas: pool.spec.replicas.map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
        not_ready: around.not_ready(pool),
    }
}

/// The label of every node of a class.
fn class_label(class: &NodeClassRef) -> String {
    format!("{}/{}", class.group, class.kind.to_lowercase())
}

/// What each pool has. A claim counts from the moment it is made; what leaves does not count any more.
fn used(nodes: &[NodeState]) -> BTreeMap<&str, Resources> {
    let mut used: BTreeMap<&str, Resources> = BTreeMap::new();
    for node in nodes.iter().filter(|node| !node.is_leaving) {
        let Some(pool) = node.pool.as_deref() else { continue };
        let sum = used.entry(pool).or_default();
        sum.add(&node.capacity);
        sum.add(&Resources::default().with(NODES, Quantity::whole(1)));
    }
    used
}
