//! What do the NodeOverlays of the input make of a plan, and which of them are not applied?

use std::sync::Arc;

use tenon_api::NodePool;
use tenon_api::objects::Objects;
use tenon_api::plan_options::PlanOptions;
use tenon_api::planning::{self, EvaluatedOverlays, OverlaidCatalogs};
use tenon_controllers::provision;
use tenon_model::Catalog;

use super::supply::Supply;
use super::table_text::count;

/// What applies where; nothing while the feature gate is off.
pub(super) fn evaluated(supply: &Supply, objects: &Objects, options: &PlanOptions) -> Option<EvaluatedOverlays> {
    if !options.feature_gates.node_overlay {
        return None;
    }
    let overlays = objects.node_overlays.iter().map(AsRef::as_ref);
    Some(match supply {
        Supply::Catalog(entries) => {
            let catalog = Arc::new(planning::catalog(entries));
            let pools: Vec<(Arc<NodePool>, Arc<Catalog>)> =
                objects.node_pools.iter().map(|pool| (pool.clone(), catalog.clone())).collect();
            EvaluatedOverlays::of(overlays, &pools)
        }
        Supply::Proxmox(known) => {
            provision::evaluate_overlays(overlays, &objects.node_pools, &known.classes, &known.types)
        }
    })
}

/// The catalogue of each pool of files.
pub(super) fn catalogs(
    evaluated: Option<EvaluatedOverlays>,
    pools: &[Arc<NodePool>],
    base: &Arc<Catalog>,
) -> OverlaidCatalogs {
    let mut catalogs = OverlaidCatalogs::default();
    if let Some(evaluated) = evaluated {
        catalogs.look(&Arc::new(evaluated), pools, |_| base.clone());
    }
    catalogs
}

/// Which NodeOverlays are left out, and why.
pub(super) fn warnings(supply: &Supply, objects: &Objects, options: &PlanOptions) -> Vec<String> {
    match evaluated(supply, objects, options) {
        Some(evaluated) => {
            let told = |(name, fault)| format!("NodeOverlay {name} is not applied: {fault}");
            evaluated.faults.iter().map(told).collect()
        }
        None if objects.node_overlays.is_empty() => Vec::new(),
        None => {
            let overlays = count(objects.node_overlays.len(), "NodeOverlay");
            vec![format!(
                "ignored {overlays}: the feature gate NodeOverlay is off; set featureGates: NodeOverlay=true in the file given \
                 with --options"
            )]
        }
    }
}
