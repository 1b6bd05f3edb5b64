//! What is the same as in the last snapshot? It is not read again.
//!
//! A snapshot shares what did not change with the one before, so the same pointer means the same thing. Nodes and pools depend on
//! daemons and on the units in which amounts are counted, too.

use std::sync::Arc;

use tenon_model::{NodeState, Options, Pod, Pool};

use super::Base;
use super::node_pools::{Supplies, Template};
use super::nodes::Nodes;
use crate::index::CatalogIx;
use crate::instance_types::CatalogIndex;
use crate::resources::Columns;

/// What nodes and templates are made from, besides nodes and pools.
#[derive(Debug, Default)]
pub(super) struct Ground {
    pub(super) daemons: Vec<Arc<Pod>>,
    pub(super) columns: Columns,
    pub(super) options: Options,
    /// The nodes as they came, those that leave among them.
    pub(super) nodes: Vec<Arc<NodeState>>,
}

impl Ground {
    /// Whether what is made from it besides nodes is the same.
    fn is_same(&self, other: &Ground) -> bool {
        are_same(&self.daemons, &other.daemons) && self.columns == other.columns && self.options == other.options
    }
}

fn are_same<T>(these: &[Arc<T>], those: &[Arc<T>]) -> bool {
    these.len() == those.len() && these.iter().zip(those).all(|(one, other)| Arc::ptr_eq(one, other))
}

impl Base {
    /// The nodes as they are now. Those of the last snapshot that are the same are not read again.
    pub(super) fn nodes_now(&mut self, now: &Ground, daemons: &[&Pod]) -> Arc<Nodes> {
        let mut nodes = std::mem::take(&mut self.nodes);
        let is_right = self.ground.is_same(now)
            && (are_same(&self.ground.nodes, &now.nodes)
                || Arc::get_mut(&mut nodes).is_some_and(|nodes| nodes.follow(&now.nodes, daemons, &now.columns)));
        if is_right { nodes } else { Arc::new(Nodes::new(&now.nodes, daemons, &now.columns)) }
    }

    /// What the last snapshot made of a pool, if it would be made the same way again.
    pub(super) fn same_template(
        &self,
        pool: &Arc<Pool>,
        (number, catalog): (CatalogIx, &Arc<CatalogIndex>),
        supplies: &Supplies<'_>,
    ) -> Option<Arc<Template>> {
        if !self.ground.is_same(supplies.ground) {
            return None;
        }
        let mut known = self.templates.iter().filter(|known| Arc::ptr_eq(&known.pool, pool));
        let found = known.find(|known| known.catalog == number)?;
        let is_same =
            Arc::ptr_eq(&self.catalogs[number], catalog) && found.closed_hosts == supplies.hosts.closed_for(&pool.name);
        is_same.then(|| found.clone())
    }
}
