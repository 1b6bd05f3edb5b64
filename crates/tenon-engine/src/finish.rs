//! What was packed, as a plan: sizes in order of price, what a node asks for, and a reason for every pod that waits.

use std::collections::{BTreeMap, BTreeSet};

use tenon_model::labels::CAPACITY_TYPE;
use tenon_model::{
    Chosen, MinValuesPolicy, NewNode, Operator, Placement, Plan, Pod, PodKey, Price, RESERVED, Reason, Requirement,
    Requirements, ReservedTrouble, Resources, Unplaced,
};

use crate::bug::{found, missing};
use crate::desk::{Remaining, offerings};
use crate::open_claim::OpenClaim;
use crate::packing::{Failure, Packing};
use crate::template::SIMULATED;

impl Packing<'_> {
    /// The plan, in an order that does not depend on that of the snapshot.
    pub(crate) fn finish(mut self, failures: BTreeMap<usize, Failure>) -> Plan {
        let mut plan = Plan::default();
        let claims = std::mem::take(&mut self.claims.claims);
        for claim in &claims {
            match self.new_node(claim) {
                Ok(node) => plan.new_nodes.push(node),
                Err(reason) => {
                    let dropped = claim.pods.iter().filter_map(|pod| self.pod(*pod));
                    let dropped: Vec<Unplaced> =
                        dropped.map(|pod| Unplaced { pod: pod.key.clone(), reason: reason.clone() }).collect();
                    self.unplaced.extend(dropped);
                }
            }
        }
        let waiting = self.reasons(failures);
        self.unplaced.extend(waiting);
        for room in &self.existing.rooms {
            let keys = room.pods.iter().filter_map(|pod| self.pod(*pod)).map(|pod| pod.key.clone());
            plan.placements.extend(keys.map(|pod| Placement { pod, node: room.node.name.clone() }));
        }
        plan.placements.sort_by(|a, b| (&a.node, &a.pod).cmp(&(&b.node, &b.pod)));
        plan.unplaced = self.unplaced;
        plan.unplaced.sort_by(|a, b| a.pod.cmp(&b.pod));
        plan
    }

    fn pod(&self, number: usize) -> Option<&Pod> {
        found(self.pods.get(number).copied(), "the pod")
    }

    /// The node, or why its pods wait after all.
    fn new_node(&self, claim: &OpenClaim<'_>) -> Result<NewNode, Reason> {
        let lost = |what: &'static str| move || Reason::Internal(missing(what));
        let (stock, template) = self.desk.of(claim.template).ok_or_else(lost("the template of the NodePool"))?;
        let state = stock.state(claim.now.state).ok_or_else(lost("the requirements of the node"))?;
        let sizes = self.by_price(claim);
        let listed = sizes.get(..self.snapshot.options.max_types).unwrap_or(&sizes);
        if listed.len() < sizes.len() && self.snapshot.options.min_values == MinValuesPolicy::Strict {
            let types = listed.iter().filter_map(|name| stock.catalog.find(name)).map(|size| &size.requirements);
            state.requirements.min_values_satisfied_by(types).map_err(Reason::Truncated)?;
        }
        let left = Remaining {
            state: claim.now.state,
            slots: &claim.now.slots,
            held: &claim.now.held,
            pool: &template.pool.name,
        };
        let chosen = claim.now.hold.or_else(|| self.desk.cheapest(stock, left, None));
        // Only reserved offerings were left, and other nodes of this plan take all of them.
        let taken = || Reason::Reserved { pool: template.pool.name.clone(), why: ReservedTrouble::Taken };
        let chosen = chosen.ok_or_else(taken)?;
        let offered = stock.offering(chosen).ok_or_else(lost("the offering"))?;
        let size = stock.catalog.types().get(offered.size).ok_or_else(lost("the size of the offering"))?;
        let mut pods: Vec<PodKey> =
            claim.pods.iter().filter_map(|pod| self.pod(*pod)).map(|pod| pod.key.clone()).collect();
        pods.sort();
        Ok(NewNode {
            pool: template.pool.name.clone(),
            instance_types: listed.to_vec(),
            chosen: Chosen {
                instance_type: size.name.clone(),
                requirements: offered.way.requirements.clone(),
                labels: labels(&size.requirements, &offered.way.requirements),
                price: offered.way.price,
                place: offered.way.place.clone(),
            },
            requirements: self.requirements(claim),
            requests: self.requests(claim),
            pods,
            min_values_relaxed: claim.is_relaxed,
        })
    }

    /// Sizes that are left, the cheapest first by what can be launched of them now.
    fn by_price(&self, claim: &OpenClaim<'_>) -> Vec<String> {
        let Some((stock, _)) = self.desk.of(claim.template) else { return Vec::new() };
        let mut prices: BTreeMap<usize, Price> = BTreeMap::new();
        for slot in claim.now.slots.iter().filter_map(|slot| stock.slot(slot)) {
            prices.insert(slot.size, Price::OUT_OF_REACH);
        }
        let held = &claim.now.held;
        for (_, offered) in offerings(stock, claim.now.state, &claim.now.slots) {
            if self.snapshot.options.can_launch(offered.way) && self.desk.may_use(offered, held) {
                prices.entry(offered.size).and_modify(|price| *price = (*price).min(offered.way.price));
            }
        }
        let mut sizes: Vec<(Price, &str)> = prices
            .into_iter()
            .filter_map(|(size, price)| Some((price, stock.catalog.types().get(size)?.name.as_str())))
            .collect();
        sizes.sort_unstable();
        // Who holds reserved capacity is made from nothing else, so sizes without it would only be in the way.
        if !held.is_empty() {
            sizes.retain(|(price, _)| *price < Price::OUT_OF_REACH);
        }
        sizes.into_iter().map(|(_, name)| name.to_owned()).collect()
    }

    /// The claim's own demands: whoever holds reserved capacity asks for that and nothing else.
    fn requirements(&self, claim: &OpenClaim<'_>) -> Requirements {
        let Some((stock, _)) = self.desk.of(claim.template) else { return Requirements::default() };
        let state = stock.state(claim.now.state);
        let mut requirements = state.map(|state| state.requirements.clone()).unwrap_or_default();
        SIMULATED.into_iter().for_each(|label| drop(requirements.remove(label)));
        let held = &claim.now.held;
        if held.is_empty() {
            return requirements;
        }
        requirements.replace(CAPACITY_TYPE, Requirement::is(RESERVED));
        let ways = stock.offerings.iter().filter_map(|offered| offered.way.reservation.as_ref());
        let labels: BTreeSet<&str> = ways.filter(|way| held.contains(&way.id)).map(|way| way.label.as_str()).collect();
        for label in labels {
            if let Some(one_of) = Requirement::new(Operator::In, held.iter().cloned()) {
                requirements.add(label, &one_of);
            }
        }
        requirements
    }

    /// What its pods need, and what its daemons need at least, whatever size it becomes.
    fn requests(&self, claim: &OpenClaim<'_>) -> Resources {
        let mut requests = Resources::default();
        claim.pods.iter().filter_map(|pod| self.pod(*pod)).for_each(|pod| requests.add(&pod.requests));
        let Some((stock, template)) = self.desk.of(claim.template) else { return requests };
        let sizes = claim.now.slots.iter().filter_map(|slot| stock.slot(slot)).map(|slot| slot.size);
        let daemons = sizes.filter_map(|size| template.daemons.of(size)).map(|group| group.requests.clone());
        let least = daemons.reduce(|least, other| {
            let both = least.iter().filter(|(name, _)| other.iter().any(|(also, _)| also == *name));
            both.map(|(name, amount)| (name.to_owned(), amount.min(other.get(name)))).collect()
        });
        least.iter().for_each(|least| requests.add(least));
        requests
    }
}

/// Labels of which just one value is left.
fn labels(size: &Requirements, offering: &Requirements) -> BTreeMap<String, String> {
    let mut facts = size.clone();
    facts.add_all(offering);
    let single = facts.iter().filter(|(_, fact)| fact.operator() == Operator::In && fact.values().len() == 1);
    single.filter_map(|(label, fact)| Some((label.to_owned(), fact.values().first()?.clone()))).collect()
}
