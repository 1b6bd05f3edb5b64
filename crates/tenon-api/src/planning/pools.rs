//! Pools as the engine sees them: what their nodes are like, and what they are made of.

use std::sync::Arc;

use kube::ResourceExt;
use tenon_model::{Catalog, Pool, Requirement, Requirements, Resources};

use super::conversion::{requirements, taint};
use crate::candidate::disruption_pool;
use crate::{NodeClassRef, NodePool, resources_of};

/// A pool, made of this, whose machines are launched from that. What its nodes have together is not in it.
pub(super) fn pool(pool: &NodePool, catalog: Arc<Catalog>, not_ready: Option<String>, launched_from: &str) -> Pool {
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
        limits: pool.spec.limits.as_ref().map(resources_of).unwrap_or_default(),
        used: Resources::default(),
        catalog,
        replicas: pool.spec.replicas.map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
        not_ready,
        revision: format!("{}/{launched_from}", pool.metadata.generation.unwrap_or_default()),
        disruption: Some(Arc::new(disruption_pool(pool))),
    }
}

/// The label of every node of a class.
fn class_label(class: &NodeClassRef) -> String {
    format!("{}/{}", class.group, class.kind.to_lowercase())
}
