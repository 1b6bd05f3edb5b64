//! What can a pool build? Its demands, what they leave of the catalogue, its daemons.

use std::sync::Arc;

use tenon_model::labels::NODEPOOL;
use tenon_model::{MinValuesPolicy, Options, Pod, Pool, Requirement, Requirements};

use super::advance::Ground;
use super::daemon_overhead::{DaemonGroups, NodeSpec};
use crate::capacity::{Hosts, Limits};
use crate::index::{Bits, CatalogIx, HostIx, SlotIx};
use crate::instance_types::CatalogIndex;
use crate::resources::{Columns, FitIndex, Row, Rows};

/// Labels that a node has once it takes pods. Daemons may ask for them, and no claim mentions them.
pub(crate) const SIMULATED: [&str; 2] = ["karpenter.sh/registered", "karpenter.sh/initialized"];

/// A pool as new nodes are made from it.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) pool: Arc<Pool>,
    pub(crate) catalog: CatalogIx,
    /// What is true of every node of the pool, those labels included that only daemons ask for.
    pub(crate) demands: Requirements,
    /// What they leave of the catalogue.
    pub(crate) slots: Bits<SlotIx>,
    pub(crate) limits: Limits,
    /// What each slot leaves to pods, daemons taken off.
    rooms: Rows<SlotIx>,
    fit: FitIndex,
    pub(crate) daemons: DaemonGroups,
    /// Whether some daemon takes ports of its node.
    pub(crate) has_daemon_ports: bool,
    /// Hosts that its nodes are not made on, whoever else's are.
    pub(crate) closed_hosts: Bits<HostIx>,
}

/// What the making of a template needs besides the pool.
pub(crate) struct Supplies<'s> {
    pub(crate) daemons: &'s [&'s Pod],
    pub(crate) columns: &'s Columns,
    pub(crate) options: &'s Options,
    pub(crate) hosts: &'s Hosts,
    /// What it shares with nodes.
    pub(super) ground: &'s Ground,
}

impl Template {
    /// The template of a pool, if its demands leave anything to make nodes of.
    pub(crate) fn new(
        pool: &Arc<Pool>,
        (catalog, index): (CatalogIx, &CatalogIndex),
        supplies: &Supplies<'_>,
    ) -> Option<Template> {
        let demands = demands(pool);
        let (mut slots, _) = index.left_by(&demands);
        index.slots.pairs().filter(|(_, slot)| slot.is_overdrawn).for_each(|(number, _)| slots.remove(number));
        let types = slots.iter().map(|slot| &index.size_of(slot).requirements);
        let is_rich = demands.min_values_satisfied_by(types).is_ok();
        let is_usable = is_rich || supplies.options.min_values == MinValuesPolicy::BestEffort;
        if slots.is_empty() || !is_usable {
            return None;
        }
        let spec = NodeSpec { requirements: &demands, taints: &pool.taints };
        let daemons = DaemonGroups::new(index, spec, supplies.daemons);
        let width = supplies.columns.len();
        let mut rooms = Rows::new(width);
        for slot in index.slots.iter() {
            let left = slot.allocatable.without(&daemons.of(slot.type_ix).requests);
            rooms.push(&supplies.columns.offered(&left));
        }
        let has_daemon_ports = supplies.daemons.iter().any(|daemon| !daemon.host_ports.is_empty());
        let fit = FitIndex::new(&rooms, (index.slots.len(), width));
        Some(Template {
            limits: Limits::new(pool, index, &slots),
            closed_hosts: supplies.hosts.closed_for(&pool.name),
            pool: pool.clone(),
            catalog,
            demands,
            slots,
            rooms,
            fit,
            daemons,
            has_daemon_ports,
        })
    }

    /// What a slot leaves to pods.
    pub(crate) fn room(&self, slot: SlotIx) -> &[i64] {
        self.rooms.row(slot)
    }

    /// Keeps the slots that hold this much.
    pub(crate) fn keep_holding(&self, asked: &Row, slots: &mut Bits<SlotIx>) {
        self.fit.keep_holding(asked, slots);
    }

    /// The most that any of these slots leaves to pods, resource by resource, in place of what the row says.
    pub(crate) fn reach(&self, slots: &Bits<SlotIx>, row: &mut Row) {
        self.fit.most_of(slots, row);
    }
}

/// Whether a pool makes no nodes for pods, whatever they ask.
pub(crate) fn is_out_of_use(pool: &Pool) -> bool {
    pool.not_ready.is_some() || pool.replicas.is_some()
}

fn demands(pool: &Pool) -> Requirements {
    let mut demands = pool.requirements.clone();
    demands.add(NODEPOOL, &Requirement::is(&pool.name));
    SIMULATED.into_iter().for_each(|label| demands.add(label, &Requirement::is("true")));
    demands
}
