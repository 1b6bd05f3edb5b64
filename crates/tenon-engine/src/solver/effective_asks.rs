//! What is put to a node once domains are chosen? The ask of the pod, and that the node be in these domains.
//!
//! Such an ask is one like any other: what a node answers to it depends on no count, and is remembered.

use std::sync::Arc;

use tenon_model::Requirements;

use crate::base::{Ask, Base};
use crate::index::{AskIx, Bits, CatalogIx, ChoiceIx, DemandIx, DomainIx, Id, KeyIx, NumberMap, StateIx, Table};
use crate::topology::{Choices, Picked};

/// Asks that came of choosing domains. Their numbers follow those of the base.
#[derive(Debug, Default)]
pub(super) struct EffectiveAsks {
    asks: Vec<Arc<Ask>>,
    demands: Vec<Requirements>,
    choices: Choices,
    ask_of: NumberMap<AskIx>,
    demand_of: NumberMap<DemandIx>,
}

impl EffectiveAsks {
    /// An ask.
    pub(super) fn ask(&self, base: &Base, ask: AskIx) -> Arc<Ask> {
        let own = base.classes.asks.len();
        let found = if ask.position() < own { &base.classes.asks[ask] } else { &self.asks[ask.position() - own] };
        found.clone()
    }

    /// How many asks there are, with those of the base.
    pub(super) fn known(&self, base: &Base) -> usize {
        base.classes.asks.len() + self.asks.len()
    }

    /// What is demanded.
    pub(super) fn demand<'d>(&'d self, base: &'d Base, demand: DemandIx) -> &'d Requirements {
        let own = base.classes.demands.len();
        match demand.position().checked_sub(own) {
            None => &base.classes.demands[demand],
            Some(position) => &self.demands[position],
        }
    }

    /// The ask with these domains.
    pub(super) fn with_domains(&mut self, base: &Base, ask: AskIx, picked: Picked) -> AskIx {
        let choice = self.choices.number(&base.topology.keys, picked);
        let pair = (number(ask), number(choice));
        let EffectiveAsks { asks, ask_of, demands, demand_of, choices } = self;
        ask_of.get_or(pair, || {
            let plain = &base.classes.asks[ask];
            let demand = demand_of.get_or((number(plain.demand), number(choice)), || {
                demands.push(joined(&base.classes.demands[plain.demand], choices, choice));
                DemandIx::of(base.classes.demands.len() + demands.len() - 1)
            });
            let Ask { tolerations, row, ports, .. } = &**plain;
            asks.push(Arc::new(Ask { demand, tolerations: *tolerations, row: row.clone(), ports: ports.clone() }));
            AskIx::of(base.classes.asks.len() + asks.len() - 1)
        })
    }
}

fn joined(plain: &Requirements, choices: &Choices, choice: ChoiceIx) -> Requirements {
    let mut joined = plain.clone();
    joined.add_all(choices.demand(choice));
    joined
}

fn number(id: impl Id) -> u32 {
    u32::try_from(id.position()).unwrap_or(u32::MAX)
}

/// Which domains are left to nodes of each state.
#[derive(Debug, Default)]
pub(super) struct StateDomains {
    known: Table<CatalogIx, (NumberMap<u32>, Vec<DomainsLeft>)>,
}

/// A label, looked at for nodes of a state.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) catalog: CatalogIx,
    pub(super) key: KeyIx,
    pub(super) state: StateIx,
}

/// What a state leaves of the domains of a label.
#[derive(Debug)]
pub(super) struct DomainsLeft {
    pub(super) left: Bits<DomainIx>,
    /// Whether it names them one by one. Where it does not, nobody knows yet where the node will be.
    pub(super) is_listed: bool,
}

impl StateDomains {
    pub(super) fn new(catalogs: usize) -> StateDomains {
        StateDomains { known: (0..catalogs).map(|_| (NumberMap::default(), Vec::new())).collect() }
    }

    pub(super) fn of(&mut self, base: &Base, at: At, demands: &Requirements) -> &DomainsLeft {
        let (numbers, lists) = &mut self.known[at.catalog];
        let position = numbers.get_or((number(at.state), number(at.key)), || {
            let key = &base.topology.keys[at.key];
            let listed = key.listed_by(demands);
            let is_listed = listed.is_some();
            lists.push(DomainsLeft { left: listed.unwrap_or_else(|| key.left_by(demands)), is_listed });
            u32::try_from(lists.len() - 1).unwrap_or(u32::MAX)
        });
        &lists[position as usize]
    }
}
