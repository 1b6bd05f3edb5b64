//! What do NodeOverlays mean for a plan and for the claims that come of it?

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use tenon_api::planning::EvaluatedOverlays;
use tenon_api::{NodeClaim, NodeOverlay, NodePool, ProxmoxNodeClass, names};
use tenon_model::{Catalog, InstanceType, NewNode, Snapshot};

use super::snapshot::catalog;

/// What of all overlays applies to these pools. Without its class nothing is known of a pool, and it is left out.
pub fn evaluate_overlays<'a>(
    overlays: impl IntoIterator<Item = &'a NodeOverlay>,
    pools: &[Arc<NodePool>],
    classes: &[Arc<ProxmoxNodeClass>],
    types: &[InstanceType],
) -> EvaluatedOverlays {
    let catalogs: BTreeMap<String, Arc<Catalog>> =
        classes.iter().map(|class| (class.name_any(), Arc::new(catalog(class, types)))).collect();
    let with_catalog = |pool: &Arc<NodePool>| {
        Some((pool.clone(), catalogs.get(&pool.spec.template.spec.node_class_ref.name)?.clone()))
    };
    let known: Vec<(Arc<NodePool>, Arc<Catalog>)> = pools.iter().filter_map(with_catalog).collect();
    EvaluatedOverlays::of(overlays, &known)
}

/// Why a pool makes no node yet.
pub(super) fn not_evaluated(pool: &str) -> String {
    format!(
        "NodeOverlays are not applied to NodePool {pool} yet; if this stays, look for NodeOverlays in the log of the controller"
    )
}

/// On claims: whether overlays changed one of the sizes they may become.
pub(super) fn overlay_annotations(node: &NewNode, snapshot: &Snapshot) -> BTreeMap<String, String> {
    let pool = snapshot.pools.iter().find(|pool| pool.name == node.pool);
    let names = node.instance_types.iter().chain([&node.chosen.instance_type]);
    let overlaid = pool.iter().flat_map(|pool| names.clone().filter_map(|name| pool.catalog.find(name)));
    let overlaid: Vec<_> = overlaid.map(|size| size.overlaid).collect();
    [
        (names::ANNOTATION_PRICE_OVERLAY, overlaid.iter().any(|overlaid| overlaid.price)),
        (names::ANNOTATION_CAPACITY_OVERLAY, overlaid.iter().any(|overlaid| overlaid.capacity)),
    ]
    .into_iter()
    .filter(|(_, is_so)| *is_so)
    .map(|(annotation, _)| (annotation.to_owned(), "true".to_owned()))
    .collect()
}

/// The size that a claim was created for, with what overlays promised of it.
pub(crate) fn with_promised(size: InstanceType, claim: &NodeClaim, overlays: &EvaluatedOverlays) -> InstanceType {
    let is_promised = claim.annotations().contains_key(names::ANNOTATION_CAPACITY_OVERLAY);
    let pool = claim.labels().get(names::LABEL_NODEPOOL).filter(|_| is_promised);
    let Some(more) = pool.and_then(|pool| overlays.capacity(pool, &size.name)) else { return size };
    let capacity = more.iter().fold(size.capacity.clone(), |all, (resource, amount)| all.with(resource, amount));
    InstanceType { capacity, ..size }
}
