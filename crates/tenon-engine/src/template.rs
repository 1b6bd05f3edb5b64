//! A pool as new nodes are made from it: its demands, what they leave of the catalogue, its daemons and its limits.

use tenon_model::labels::NODEPOOL;
use tenon_model::{MinValuesPolicy, Options, Pod, Pool, Quantity, Requirement, Requirements, Resources};

use crate::axes::{self, Amounts, Axes};
use crate::bits::Bits;
use crate::daemons::{DaemonGroups, NodeSpec};
use crate::stock::Stock;

/// The key of a limit that counts nodes.
pub(crate) const NODES: &str = "nodes";

/// Labels that a node has once it takes pods. Daemons may ask for them, and no claim mentions them.
pub(crate) const SIMULATED: [&str; 2] = ["karpenter.sh/registered", "karpenter.sh/initialized"];

/// A pool as new nodes are made from it.
pub(crate) struct Template<'a> {
    pub(crate) pool: &'a Pool,
    /// Its catalogue, by number.
    pub(crate) stock: usize,
    /// Its demands, by number of state.
    pub(crate) state: usize,
    /// What they leave of the catalogue.
    pub(crate) slots: Bits,
    /// What each slot leaves to pods, daemons taken off.
    pub(crate) rooms: Vec<Amounts>,
    pub(crate) daemons: DaemonGroups,
    /// What its limits still allow.
    pub(crate) allowance: Resources,
}

/// What the making of a template needs besides the pool.
pub(crate) struct Supplies<'s> {
    pub(crate) daemons: &'s [&'s Pod],
    pub(crate) axes: &'s Axes,
    pub(crate) options: &'s Options,
}

impl<'a> Template<'a> {
    /// The template of a pool, if its demands leave anything to make nodes of.
    pub(crate) fn new(pool: &'a Pool, stock: (usize, &mut Stock<'a>), supplies: &Supplies<'_>) -> Option<Template<'a>> {
        let (number, stock) = stock;
        let demands = demands(pool);
        let spec = NodeSpec { requirements: &demands, taints: &pool.taints };
        let daemons = DaemonGroups::new(stock, spec, supplies.daemons, supplies.axes);
        let state = stock.enter(demands.clone());
        let mut slots = stock.state(state)?.slots.clone();
        let mut rooms = Vec::with_capacity(stock.slots.len());
        for (index, slot) in stock.slots.iter().enumerate() {
            let mut room = slot.allocatable.clone();
            if let Some(group) = daemons.of(slot.size) {
                axes::take(&mut room, &group.row);
            }
            rooms.push(room);
            if slot.is_overdrawn {
                slots.remove(index);
            }
        }
        let sizes = slots.iter().filter_map(|slot| stock.size_of(slot));
        let is_rich = demands.min_values_satisfied_by(sizes.map(|size| &size.requirements)).is_ok();
        let is_usable = is_rich || supplies.options.min_values == MinValuesPolicy::BestEffort;
        if slots.is_empty() || !is_usable {
            return None;
        }
        let allowance = pool.limits.iter().map(|(name, limit)| (name, limit - pool.used.get(name))).collect();
        Some(Template { pool, stock: number, state, slots, rooms, daemons, allowance })
    }

    /// What the limits leave of the catalogue for one more node, or which limit leaves nothing.
    pub(crate) fn affordable(&self, stock: &Stock<'a>) -> Result<Bits, String> {
        if self.pool.limits.iter().any(|(name, _)| name == NODES) && self.allowance.get(NODES) < Quantity::whole(1) {
            return Err(NODES.to_owned());
        }
        let mut slots = self.slots.clone();
        let mut exceeded = None;
        for slot in self.slots.iter() {
            let passed = stock.size_of(slot).and_then(|size| {
                self.allowance.iter().find(|(name, left)| *name != NODES && size.capacity.get(name) > *left)
            });
            if let Some((name, _)) = passed {
                slots.remove(slot);
                exceeded = exceeded.or_else(|| Some(name.to_owned()));
            }
        }
        if slots.is_empty() { Err(exceeded.unwrap_or_default()) } else { Ok(slots) }
    }

    /// Counts a new node against the limits: as the largest it may still become.
    pub(crate) fn charge(&mut self, stock: &Stock<'a>, slots: &Bits) {
        let sizes: Vec<&Resources> =
            slots.iter().filter_map(|slot| stock.size_of(slot)).map(|size| &size.capacity).collect();
        let left = |(name, left): (&str, Quantity)| {
            let most = match name {
                NODES => Quantity::whole(1),
                _ => sizes.iter().map(|capacity| capacity.get(name)).max().unwrap_or_default(),
            };
            (name.to_owned(), left - most)
        };
        self.allowance = self.allowance.iter().map(left).collect();
    }
}

/// What is true of every node of the pool, those labels included that only daemons ask for.
fn demands(pool: &Pool) -> Requirements {
    let mut demands = pool.requirements.clone();
    demands.add(NODEPOOL, &Requirement::is(&pool.name));
    SIMULATED.into_iter().for_each(|label| demands.add(label, &Requirement::is("true")));
    demands
}
