//! What was found out and holds for every solve of one base.

use std::sync::Arc;

use super::effective_asks::{At, DomainsLeft, EffectiveAsks, StateDomains};
use crate::base::{Ask, Base};
use crate::capacity::{Held, Reservations};
use crate::index::{
    AskIx, Bits, CatalogIx, DemandIx, GroupIx, Id, KeyIx, NodeIx, NumberMap, OfferingIx, SlotIx, StateIx, Table,
    TemplateIx, TolerationsIx,
};
use crate::instance_types::{CatalogIndex, PricedTypes, State, States, TypeLists};
use crate::resources::fits;
use crate::topology::{Group, Meanings, Picked, Unsaid};

/// What was found out.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    states: Table<CatalogIx, States>,
    /// What each pool demands of its nodes.
    own_states: Table<TemplateIx, StateIx>,
    /// Templates whose taints are tolerated.
    tolerated: Table<TolerationsIx, Bits<TemplateIx>>,
    /// Nodes that are there with the right labels and no taint in the way.
    suiting: Table<AskIx, Option<Bits<NodeIx>>>,
    /// Those of them with room before anything is placed: nothing that goes away makes more of it.
    with_room: Table<AskIx, Option<Bits<NodeIx>>>,
    /// Asks with domains that were chosen.
    effective: EffectiveAsks,
    domains: StateDomains,
    /// Whether planned nodes of a state count for a filter.
    counted: NumberMap<bool>,
    prices: Table<CatalogIx, Vec<Option<PricedTypes>>>,
    lists: Table<CatalogIx, TypeLists>,
}

impl Memo {
    pub(crate) fn new(base: &Base) -> Memo {
        let mut states: Table<CatalogIx, States> = base.catalogs.iter().map(|_| States::default()).collect();
        let own_states = base
            .templates
            .iter()
            .map(|template| states[template.catalog].enter(&base.catalogs[template.catalog], template.demands.clone()));
        let own_states = own_states.collect();
        let tolerated = base.classes.tolerations.iter().map(|tolerations| {
            Bits::those(base.templates.len(), |template: TemplateIx| {
                let taints = &base.templates[template].pool.taints;
                taints.iter().all(|taint| taint.is_tolerated_by(tolerations))
            })
        });
        Memo {
            own_states,
            tolerated: tolerated.collect(),
            effective: EffectiveAsks::default(),
            domains: StateDomains::new(base.catalogs.len()),
            counted: NumberMap::default(),
            suiting: base.classes.asks.iter().map(|_| None).collect(),
            with_room: base.classes.asks.iter().map(|_| None).collect(),
            prices: base.catalogs.iter().map(|_| Vec::new()).collect(),
            lists: base.catalogs.iter().map(|_| TypeLists::default()).collect(),
            states,
        }
    }

    /// What a pool demands of its nodes.
    pub(crate) fn own_state(&self, template: TemplateIx) -> StateIx {
        self.own_states[template]
    }

    /// A state of a catalogue.
    pub(crate) fn state(&self, catalog: CatalogIx, state: StateIx) -> &State {
        self.states[catalog].get(state)
    }

    /// An ask, also one with domains that were chosen.
    pub(crate) fn ask(&self, base: &Base, ask: AskIx) -> Arc<Ask> {
        self.effective.ask(base, ask)
    }

    /// How many asks there are.
    pub(super) fn asks_known(&self, base: &Base) -> usize {
        self.effective.known(base)
    }

    /// The ask with these domains.
    pub(super) fn with_domains(&mut self, base: &Base, ask: AskIx, picked: Picked) -> AskIx {
        self.effective.with_domains(base, ask, picked)
    }

    /// The state after more is demanded, if both can be met.
    pub(super) fn merge(
        &mut self,
        base: &Base,
        catalog: CatalogIx,
        state: StateIx,
        demand: DemandIx,
    ) -> Option<StateIx> {
        let Memo { states, effective, .. } = self;
        states[catalog].merge(&base.catalogs[catalog], state, (demand, effective.demand(base, demand)))
    }

    /// Which domains of a label are left to nodes of a state.
    pub(super) fn domains_left(
        &mut self,
        base: &Base,
        (catalog, key): (CatalogIx, KeyIx),
        state: StateIx,
    ) -> &DomainsLeft {
        let Memo { states, domains, .. } = self;
        domains.of(base, At { catalog, key, state }, &states[catalog].get(state).requirements)
    }

    /// Whether planned nodes of a pool in a state count for a group. Where every node is a domain of its own, also those that
    /// may come to count: whoever looks at such a node later makes it one of those.
    pub(super) fn counts_open(
        &mut self,
        base: &Base,
        group: GroupIx,
        (template, state): (TemplateIx, StateIx),
    ) -> bool {
        let Group { key, filter, .. } = &base.topology.groups[group];
        let found = &base.topology.filters[*filter];
        if found.is_open() {
            return true;
        }
        let is_hostname = base.topology.keys[*key].is_hostname;
        let unsaid = if is_hostname { Unsaid::IsOpen } else { Unsaid::IsMissing };
        let Memo { states, counted, .. } = self;
        let number = |position: usize| u32::try_from(position).unwrap_or(u32::MAX);
        let of_filter = filter.position() * 2 + usize::from(is_hostname);
        let of_pool = number(of_filter * base.templates.len() + template.position());
        counted.get_or((of_pool, number(state.position())), || {
            let template = &base.templates[template];
            let meanings = Meanings { demands: &base.classes.demands, tolerations: &base.classes.tolerations };
            let labels = &states[template.catalog].get(state).requirements;
            found.admits(meanings, (labels, unsaid), template.pool.taints.iter())
        })
    }

    /// The states of a catalogue, to be added to.
    pub(crate) fn states(&mut self, catalog: CatalogIx) -> &mut States {
        &mut self.states[catalog]
    }

    /// Whether the taints of a pool are tolerated.
    pub(crate) fn is_tolerated(&self, tolerations: TolerationsIx, template: TemplateIx) -> bool {
        self.tolerated[tolerations].has(template)
    }

    /// Nodes that are there with the right labels and no taint in the way.
    pub(crate) fn suiting(&mut self, base: &Base, ask: AskIx) -> &Bits<NodeIx> {
        self.suiting[ask].get_or_insert_with(|| {
            let asked = &base.classes.asks[ask];
            let mut nodes = base.nodes.meeting(&base.classes.demands[asked.demand]);
            nodes.keep(&base.nodes.tolerated_by(&base.classes.tolerations[asked.tolerations]));
            nodes
        })
    }

    /// Those of them that had room before anything was placed.
    pub(crate) fn with_room(&mut self, base: &Base, ask: AskIx) -> &Bits<NodeIx> {
        if self.with_room[ask].is_none() {
            let mut nodes = self.suiting(base, ask).clone();
            let row = &base.classes.asks[ask].row;
            let full: Vec<NodeIx> = nodes.iter().filter(|node| !fits(row, base.nodes.remaining.row(*node))).collect();
            full.into_iter().for_each(|node| nodes.remove(node));
            self.with_room[ask] = Some(nodes);
        }
        self.with_room[ask].get_or_insert_default()
    }

    /// The names of the sizes that are left to a node that holds no reservation, the cheapest first; at most so many, and
    /// whether there were more. What can be launched is the same in every solve that the memory is for.
    pub(crate) fn type_names(
        &mut self,
        base: &Base,
        reservations: &Reservations<'_>,
        left: &SlotsLeft<'_>,
    ) -> (Arc<[String]>, bool) {
        let SlotsLeft { catalog, state, slots } = *left;
        let Memo { states, prices, lists, .. } = self;
        let (index, priced) = (&base.catalogs[catalog], &mut prices[catalog]);
        if priced.len() <= state.position() {
            priced.resize_with(state.position() + 1, || None);
        }
        let priced = priced[state.position()].get_or_insert_with(|| {
            PricedTypes::new(index, states[catalog].get(state), |way| {
                reservations.can_launch(way) && reservations.may_use(way, &Held::new())
            })
        });
        let name = |(_, type_ix)| index.size(type_ix).name.clone();
        lists[catalog].names((state, slots), base.options.max_types, || priced.of_slots(slots).map(name).collect())
    }
}

/// What is left to a node of the sizes of a catalogue.
pub(crate) struct SlotsLeft<'s> {
    pub(crate) catalog: CatalogIx,
    pub(crate) state: StateIx,
    pub(crate) slots: &'s Bits<SlotIx>,
}

/// Available offerings that are left to a node, the cheapest first.
pub(crate) fn offerings_left<'s>(
    catalog: &'s CatalogIndex,
    state: &'s State,
    slots: &'s Bits<SlotIx>,
) -> impl Iterator<Item = OfferingIx> + 's {
    state.offerings.iter().filter(move |offering| slots.has(catalog.offerings[*offering].slot))
}
