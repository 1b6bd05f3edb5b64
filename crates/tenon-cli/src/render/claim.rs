//! The NodeClaim that a NodePool would give a node, without planning one.

use std::collections::BTreeMap;

use tenon_api::{NodeClaim, NodePool, ProxmoxNodeClass, names};
use tenon_controllers::first_boot::sample;
use tenon_controllers::provision::{decided, requirements};
use tenon_controllers::static_pools::bare_claim;
use tenon_model::{Chosen, HostName, InstanceType, NewNode, Place, Requirement, Requirements, Resources};

/// Names that nobody takes for those of a real cluster.
const REGION: &str = "sample-region";
const HOST: &str = "sample-host";

/// What a pool demands of its nodes.
pub(super) fn demands(pool: Option<&NodePool>) -> Requirements {
    let mut demands = pool.map(|pool| requirements(&pool.spec.template.spec.requirements)).unwrap_or_default();
    let template = pool.and_then(|pool| pool.spec.template.metadata.as_ref());
    for (label, value) in template.and_then(|metadata| metadata.labels.as_ref()).into_iter().flatten() {
        demands.add(label, &Requirement::is(value));
    }
    if let Some(name) = pool.and_then(|pool| pool.metadata.name.as_ref()) {
        demands.add(names::LABEL_NODEPOOL, &Requirement::is(name));
    }
    demands
}

/// Where the node runs: the first place that pool and class name, or a sample.
pub(super) fn place(class: &ProxmoxNodeClass, demands: &Requirements) -> Option<Place> {
    let first =
        |label: &str| demands.get(label).filter(|demand| !demand.permits_absence() && demand.size() < 1000)?.any();
    let region = class.spec.region.clone().or_else(|| first(names::LABEL_REGION)).unwrap_or_else(|| REGION.to_owned());
    let host: Option<HostName> = first(names::LABEL_ZONE).and_then(|zone| zone.parse().ok());
    Some(Place { region, host: host.or_else(|| HOST.parse().ok())? })
}

/// What the node is created as, and where.
pub(super) struct Made<'a> {
    pub(super) instance_type: &'a InstanceType,
    pub(super) place: &'a Place,
}

/// The claim of a node with these demands.
pub(super) fn claim(
    class: &ProxmoxNodeClass,
    pool: Option<&NodePool>,
    demands: Requirements,
    made: &Made<'_>,
) -> NodeClaim {
    let mut claim = sample::claim(class);
    if let Some(pool) = pool {
        claim = bare_claim(pool, None);
        claim.metadata.name = pool.metadata.name.as_ref().map(|name| format!("{name}-sample"));
    }
    let labels = claim.metadata.labels.get_or_insert_default();
    labels.insert(names::LABEL_NODECLASS.to_owned(), class.metadata.name.clone().unwrap_or_default());
    labels.extend(decided(&node(demands, made)));
    claim
}

/// What a plan would say of the node.
fn node(requirements: Requirements, made: &Made<'_>) -> NewNode {
    let Made { instance_type, place } = *made;
    let offered = instance_type.offered_at(std::slice::from_ref(place));
    let labels: BTreeMap<String, String> =
        offered.requirements.iter().filter_map(|(label, fact)| Some((label.to_owned(), fact.any()?))).collect();
    let chosen = Chosen {
        instance_type: instance_type.name.clone(),
        requirements: Requirements::default(),
        labels,
        price: instance_type.price(),
        place: Some(place.clone()),
    };
    NewNode {
        pool: String::new(),
        instance_types: [instance_type.name.clone()].into(),
        chosen,
        requirements,
        requests: Resources::default(),
        pods: Vec::new(),
        min_values_relaxed: false,
        pinning: None,
    }
}
