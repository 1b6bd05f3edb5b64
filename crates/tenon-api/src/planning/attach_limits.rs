//! How many volumes a node can attach, by what it says itself and by what its instance type says.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_model::{AttachLimit, Catalog, NodeState, attach_limits};

use super::Surroundings;
use crate::kube_objects::CSINode;
use crate::names::{LABEL_INSTANCE_TYPE, LABEL_NODEPOOL};
use crate::objects::Objects;

/// What is known of drivers on nodes.
pub(super) struct Drivers<'a> {
    nodes: BTreeMap<&'a str, &'a Arc<CSINode>>,
    catalogs: BTreeMap<&'a str, Arc<Catalog>>,
}

/// Limits by driver.
pub(super) type Limits = BTreeMap<String, u32>;

impl<'a> Drivers<'a> {
    pub(super) fn new(objects: &'a Objects, around: &dyn Surroundings) -> Drivers<'a> {
        let nodes = objects.csi_nodes.iter().filter_map(|found| Some((found.metadata.name.as_deref()?, found)));
        let pools = objects.node_pools.iter();
        let catalogs = pools.filter_map(|pool| Some((pool.metadata.name.as_deref()?, around.catalog(pool))));
        Drivers { nodes: nodes.collect(), catalogs: catalogs.collect() }
    }

    /// What a node says of its drivers, once they registered there.
    pub(super) fn of_node(&self, node: Option<&str>) -> Option<&'a Arc<CSINode>> {
        self.nodes.get(node?).copied()
    }

    /// What the instance type of a node says, by the labels of the node.
    pub(super) fn of_type(&self, labels: Option<&BTreeMap<String, String>>) -> Limits {
        let label = |label: &str| labels.and_then(|labels| labels.get(label));
        let find = || self.catalogs.get(label(LABEL_NODEPOOL)?.as_str())?.find(label(LABEL_INSTANCE_TYPE)?);
        find().map(|size| size.volume_attachment_limits.clone()).unwrap_or_default()
    }
}

/// Writes down how many volumes a node can attach.
pub(super) fn fill(state: &mut NodeState, reported: Option<&CSINode>, of_type: &Limits) {
    let drivers = reported.into_iter().flat_map(|node| &node.spec.drivers);
    let reported = drivers.map(|driver| {
        let count = driver.allocatable.as_ref().and_then(|most| most.count);
        let limit = count.map_or(AttachLimit::Unlimited, |count| AttachLimit::Count(u32::try_from(count).unwrap_or(0)));
        (driver.name.clone(), limit)
    });
    state.attach_limits = attach_limits(&reported.collect(), of_type);
}
