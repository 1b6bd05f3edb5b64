//! What is to be created? Sizes in order of price, what a node asks for, and a reason for every pod that waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenon_model::labels::CAPACITY_TYPE;
use tenon_model::{
    Chosen, MinValuesPolicy, NewNode, Operator, Placement, Plan, PodKey, Price, RESERVED, Reason, Requirement,
    Requirements, ReservedTrouble, Resources, Unplaced,
};

use crate::base::SIMULATED;
use crate::index::{CatalogIx, Id, NodeIx, OfferingIx, PodIx, TypeIx};
use crate::instance_types::CatalogIndex;
use crate::solver::{OpenNode, Remaining, SlotsLeft, Work};

/// The plan, in an order that does not depend on that of the snapshot.
pub(crate) fn finished(work: &mut Work<'_>) -> Plan {
    let mut plan = Plan { unplaced: work.refused_pods().cloned().collect(), ..Plan::default() };
    let open = std::mem::take(&mut work.open.nodes);
    let mut counts = vec![0; work.base.classes.classes.len()];
    let mut last: Option<(CatalogIx, OfferingIx, Chosen)> = None;
    for node in open.iter() {
        let pods = work.keys_of(node);
        match work.offering_for(node) {
            Ok(offering) => {
                let requests = work.requests(node, &mut counts);
                let chosen = work.chosen(node, offering, &mut last);
                plan.new_nodes.push(work.new_node(node, chosen, (pods, requests)));
            }
            Err(reason) => plan.unplaced.extend(pods.into_iter().map(|pod| Unplaced { pod, reason: reason.clone() })),
        }
    }
    let failures = std::mem::take(&mut work.failures);
    plan.unplaced.extend(work.reasons(failures));
    plan.placements = work.placements();
    plan.unplaced.sort_by(|a, b| a.pod.cmp(&b.pod));
    plan
}

impl Work<'_> {
    /// The pods of a node, by key.
    fn keys_of(&self, node: &OpenNode<'_>) -> Vec<Arc<PodKey>> {
        let mut pods = node.pods.clone();
        pods.sort_unstable_by(|one, other| self.base.order(*one, *other));
        pods.into_iter().map(|pod| self.base.pods[pod].0.key.clone()).collect()
    }

    /// By name of the node, then by key.
    fn placements(&self) -> Vec<Placement> {
        let mut placed = self.placed.clone();
        placed.sort_unstable_by(|one, other| one.0.cmp(&other.0).then_with(|| self.base.order(one.1, other.1)));
        let name = |node: NodeIx| &self.base.nodes.nodes[node].name;
        // Stable, and quick: nodes of each stage are numbered by name.
        placed.sort_by(|(one, _), (other, _)| name(*one).cmp(name(*other)));
        let placement = |(node, pod): (NodeIx, PodIx)| Placement {
            pod: self.base.pods[pod].0.key.clone(),
            node: name(node).clone(),
        };
        placed.into_iter().map(placement).collect()
    }

    /// What a node is made from, or why its pods wait after all.
    pub(super) fn offering_for(&mut self, node: &OpenNode<'_>) -> Result<OfferingIx, Reason> {
        let base = self.base;
        let (template, index) = (&base.templates[node.template], base.catalog_of(node.template));
        let has_min_values = self.memo.state(template.catalog, node.now.state).has_min_values;
        if has_min_values && base.options.min_values == MinValuesPolicy::Strict {
            let (names, is_cut) = self.instance_types(node);
            let state = self.memo.state(template.catalog, node.now.state);
            let types = names.iter().filter(|_| is_cut).filter_map(|name| index.catalog.find(name));
            let types = types.map(|size| &size.requirements);
            if is_cut {
                state.requirements.min_values_satisfied_by(types).map_err(Reason::Truncated)?;
            }
        }
        let left = Remaining { state: node.now.state, slots: &node.now.slots, held: &node.now.held };
        let chosen = node.now.hold.or_else(|| self.cheapest(node.template, left, None));
        // Only reserved offerings were left, and other nodes of this plan take all of them.
        let taken = || Reason::Reserved { pool: template.pool.name.clone(), why: ReservedTrouble::Taken };
        chosen.ok_or_else(taken)
    }

    fn new_node(
        &mut self,
        node: &OpenNode<'_>,
        chosen: Chosen,
        (pods, requests): (Vec<Arc<PodKey>>, Resources),
    ) -> NewNode {
        NewNode {
            pool: self.base.templates[node.template].pool.name.clone(),
            instance_types: self.instance_types(node).0,
            chosen,
            requirements: self.requirements(node),
            requests,
            pods,
            min_values_relaxed: node.is_relaxed,
            pinning: node.now.pinning.clone(),
        }
    }

    /// What is made. The next node is often made from the same.
    fn chosen(
        &self,
        node: &OpenNode<'_>,
        offering: OfferingIx,
        last: &mut Option<(CatalogIx, OfferingIx, Chosen)>,
    ) -> Chosen {
        let catalog = self.base.templates[node.template].catalog;
        if let Some((_, _, chosen)) = last.as_ref().filter(|known| (known.0, known.1) == (catalog, offering)) {
            return chosen.clone();
        }
        let chosen = chosen_of(&self.base.catalogs[catalog], offering);
        *last = Some((catalog, offering, chosen.clone()));
        chosen
    }

    /// Sizes that are left, the cheapest first by what can be launched of them now; and whether the list was cut.
    fn instance_types(&mut self, node: &OpenNode<'_>) -> (Arc<[String]>, bool) {
        let base = self.base;
        let catalog = base.templates[node.template].catalog;
        if node.now.held.is_empty() {
            let left = SlotsLeft { catalog, state: node.now.state, slots: &node.now.slots };
            return self.memo.type_names(base, &self.reservations, &left);
        }
        // Who holds reserved capacity is made from nothing else, so sizes without it would only be in the way.
        let (index, state) = (&base.catalogs[catalog], self.memo.state(catalog, node.now.state));
        let mut prices: BTreeMap<TypeIx, Price> = BTreeMap::new();
        for offering in state.offerings.iter() {
            let (offered, way) = (&index.offerings[offering], index.way(offering));
            let is_left = node.now.slots.has(offered.slot) && self.reservations.can_launch(way);
            if is_left && self.reservations.may_use(way, &node.now.held) {
                let price = prices.entry(offered.type_ix).or_insert(way.price);
                *price = (*price).min(way.price);
            }
        }
        let mut types: Vec<(Price, TypeIx)> = prices.into_iter().map(|(type_ix, price)| (price, type_ix)).collect();
        types.retain(|(price, _)| *price < Price::OUT_OF_REACH);
        types.sort_unstable();
        let names = types.iter().take(base.options.max_types).map(|(_, type_ix)| index.size(*type_ix).name.clone());
        (names.collect(), types.len() > base.options.max_types)
    }

    /// The claim's own demands: whoever holds reserved capacity asks for that and nothing else.
    fn requirements(&self, node: &OpenNode<'_>) -> Requirements {
        let template = &self.base.templates[node.template];
        let state = self.memo.state(template.catalog, node.now.state);
        let mut requirements = Requirements::clone(&state.requirements);
        SIMULATED.into_iter().for_each(|label| drop(requirements.remove(label)));
        let held = &node.now.held;
        if held.is_empty() {
            return requirements;
        }
        requirements.replace(CAPACITY_TYPE, Requirement::is(RESERVED));
        let types = template.pool.catalog.types().iter();
        let ways = types.flat_map(|size| &size.offerings).filter_map(|way| way.reservation.as_ref());
        let labels: BTreeSet<&str> = ways.filter(|way| held.contains(&way.id)).map(|way| way.label.as_str()).collect();
        for label in labels {
            if let Some(one_of) = Requirement::new(Operator::In, held.iter().cloned()) {
                requirements.add(label, &one_of);
            }
        }
        requirements
    }

    /// What its pods need, and what its daemons need at least, whatever size it becomes. Pods are counted by class, in the
    /// order the classes came; the counts are nothing before and after.
    fn requests(&self, node: &OpenNode<'_>, counts: &mut [u32]) -> Resources {
        let mut first_of_class: Vec<PodIx> = Vec::new();
        for pod in &node.pods {
            let count = &mut counts[self.base.pods[*pod].1.position()];
            if *count == 0 {
                first_of_class.push(*pod);
            }
            *count += 1;
        }
        let mut requests = Resources::default();
        for pod in first_of_class {
            let (pod, class) = &self.base.pods[pod];
            requests.add_times(&pod.requests, std::mem::take(&mut counts[class.position()]));
        }
        let (template, index) = (&self.base.templates[node.template], self.base.catalog_of(node.template));
        let groups = template.daemons.of_types(node.now.slots.iter().map(|slot| index.slots[slot].type_ix));
        let daemons = groups.into_iter().map(|group| template.daemons.requests(group).clone());
        let least = daemons.reduce(|least, other| {
            let both = least.iter().filter(|(name, _)| other.names(name));
            both.map(|(name, amount)| (name.to_owned(), amount.min(other.get(name)))).collect()
        });
        least.iter().for_each(|least| requests.add(least));
        requests
    }
}

/// What is made.
fn chosen_of(index: &CatalogIndex, offering: OfferingIx) -> Chosen {
    let (size, way) = (index.size(index.offerings[offering].type_ix), index.way(offering));
    Chosen {
        instance_type: size.name.clone(),
        requirements: way.requirements.clone(),
        labels: labels(&size.requirements, &way.requirements),
        price: way.price,
        place: way.place.clone(),
    }
}

/// Labels of which just one value is left.
fn labels(size: &Requirements, offering: &Requirements) -> BTreeMap<String, String> {
    let mut facts = size.clone();
    facts.add_all(offering);
    let single = facts.iter().filter(|(_, fact)| fact.operator() == Operator::In && fact.values().len() == 1);
    single.filter_map(|(label, fact)| Some((label.to_owned(), fact.values().first()?.clone()))).collect()
}
