//! Which NodeOverlays apply to which pools, and the catalogues that come of it.

mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kube::ResourceExt;
use tenon_model::{Catalog, CatalogChanges, OverlaidPool, OverlayConflict, OverlaySet, Requirements, Resources};

use crate::{NodeOverlay, NodePool};

/// Why a NodeOverlay does not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverlayFault {
    /// It makes no sense: each fault is a sentence.
    Invalid(Vec<String>),
    /// Another of the same weight decides about the same.
    Conflict(OverlayConflict),
}

/// What was found of all NodeOverlays, and for which pools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EvaluatedOverlays {
    set: OverlaySet,
    /// What they change, by pool.
    pools: BTreeMap<String, CatalogChanges>,
    /// Those that do not apply, by name.
    pub faults: BTreeMap<String, OverlayFault>,
}

impl EvaluatedOverlays {
    /// Looks at all overlays and all pools, each with what its nodes are made of, at once. Overlays and pools that are being
    /// deleted count no more.
    pub fn of<'a>(
        overlays: impl IntoIterator<Item = &'a NodeOverlay>,
        pools: &[(Arc<NodePool>, Arc<Catalog>)],
    ) -> EvaluatedOverlays {
        let (mut valid, mut faults) = (Vec::new(), BTreeMap::new());
        for overlay in overlays.into_iter().filter(|overlay| overlay.metadata.deletion_timestamp.is_none()) {
            match read::overlay(overlay) {
                Ok(overlay) => valid.push(overlay),
                Err(why) => drop(faults.insert(overlay.name_any(), OverlayFault::Invalid(why))),
            }
        }
        let known: Vec<(String, &Arc<NodePool>, &Arc<Catalog>)> = pools
            .iter()
            .filter(|(pool, _)| pool.metadata.deletion_timestamp.is_none())
            .map(|(pool, catalog)| (pool.name_any(), pool, catalog))
            .collect();
        let seen: Vec<OverlaidPool<'_>> =
            known.iter().map(|(name, pool, catalog)| OverlaidPool { name, labels: labels(pool), catalog }).collect();
        let (set, conflicts) = OverlaySet::of(valid, &seen);
        faults.extend(conflicts.into_iter().map(|(name, conflict)| (name, OverlayFault::Conflict(conflict))));
        let pools = seen.iter().map(|pool| (pool.name.to_owned(), set.changes(pool))).collect();
        EvaluatedOverlays { set, pools, faults }
    }

    /// Whether a pool was looked at.
    pub fn knows(&self, pool: &str) -> bool {
        self.pools.contains_key(pool)
    }

    /// What a pool's catalogue becomes: of what it is now, which may be more than what was looked at.
    pub fn changes(&self, pool: &NodePool, catalog: &Catalog) -> CatalogChanges {
        self.set.changes(&OverlaidPool { name: &pool.name_any(), labels: labels(pool), catalog })
    }

    /// What nodes of a size have besides in a pool.
    pub fn capacity(&self, pool: &str, instance_type: &str) -> Option<&Resources> {
        self.pools.get(pool)?.capacity_of(instance_type)
    }
}

/// The labels that a pool gives to its nodes.
fn labels(pool: &NodePool) -> Requirements {
    let labels = pool.spec.template.metadata.iter().flat_map(|metadata| metadata.labels.iter().flatten());
    Requirements::from_labels(labels)
}

impl fmt::Display for OverlayFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OverlayFault::Invalid(faults) => f.write_str(&faults.join("; ")),
            OverlayFault::Conflict(conflict) => conflict.fmt(f),
        }
    }
}

/// The catalogue of each pool as NodeOverlays make it. Pools that are changed alike share one, and one that nothing is said of
/// has the catalogue of its class.
#[derive(Debug, Default)]
pub struct OverlaidCatalogs {
    of_pool: BTreeMap<String, PoolCatalog>,
}

/// The catalogue of a pool, and what it was made from.
#[derive(Debug)]
struct PoolCatalog {
    pool: Arc<NodePool>,
    base: Arc<Catalog>,
    evaluated: Arc<EvaluatedOverlays>,
    changes: CatalogChanges,
    catalog: Arc<Catalog>,
}

impl OverlaidCatalogs {
    /// Looks at every pool. Where pool, catalogue and overlays are those of the last look, nothing is made again.
    pub fn look(
        &mut self,
        evaluated: &Arc<EvaluatedOverlays>,
        pools: &[Arc<NodePool>],
        base: impl Fn(&NodePool) -> Arc<Catalog>,
    ) {
        let mut before = std::mem::take(&mut self.of_pool);
        for pool in pools {
            let (name, base) = (pool.name_any(), base(pool));
            let same = before.remove(&name).filter(|known| {
                let is_same = Arc::ptr_eq(&known.pool, pool) && Arc::ptr_eq(&known.base, &base);
                is_same && Arc::ptr_eq(&known.evaluated, evaluated)
            });
            let known = same.unwrap_or_else(|| {
                let changes = evaluated.changes(pool, &base);
                let catalog = self.catalog(&before, &base, &changes);
                PoolCatalog { pool: pool.clone(), base, evaluated: evaluated.clone(), changes, catalog }
            });
            self.of_pool.insert(name, known);
        }
    }

    /// What a pool was found to be made of.
    pub fn get(&self, pool: &str) -> Option<&Arc<Catalog>> {
        self.of_pool.get(pool).map(|known| &known.catalog)
    }

    fn catalog(
        &self,
        before: &BTreeMap<String, PoolCatalog>,
        base: &Arc<Catalog>,
        changes: &CatalogChanges,
    ) -> Arc<Catalog> {
        if changes.is_empty() {
            return base.clone();
        }
        let mut known = self.of_pool.values().chain(before.values());
        let same = known.find(|known| Arc::ptr_eq(&known.base, base) && known.changes == *changes);
        same.map_or_else(|| Arc::new(changes.applied_to(base)), |known| known.catalog.clone())
    }
}
