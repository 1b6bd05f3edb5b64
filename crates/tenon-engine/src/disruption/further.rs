//! What is left to save where no method finds anything? Any two nodes that become one or none together.
//!
//! Karpenter does none of this. So it comes last, and only where it saves enough: pods are not moved for a trifle.
//!
//! How much is asked is bounded, however large the cluster is. What the pass over single nodes found out says which pairs are
//! worth a question.

use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{Plan, Price, Resources};

use super::candidates::Node;
use super::command::{Command, Method, Replacement};
use super::consolidation::Search;
use super::kept::Kept;
use super::prices::{nanos, sum};
use super::scan::Scan;

/// One part in so many of what the nodes cost has to be saved. What is left then is less than that of any cluster.
const LEAST_PART: i128 = 20;

/// Pairs of so many nodes are looked at: of those that waste most.
const MOST_NODES: usize = 32;

/// So many pairs are planned: all of eleven nodes. Each takes about twice as long as one node by itself.
const MOST_PAIRS: usize = 64;

/// What a new node has to hold for pods that fit on no other: CPU and memory in billionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spill {
    cpu: i128,
    memory: i128,
}

impl Spill {
    /// Of a plan with one new node at most.
    pub(super) fn of(plan: &Plan) -> Spill {
        plan.new_nodes.first().map_or_else(Spill::default, |new| Spill::in_resources(&new.requests))
    }

    fn in_resources(amounts: &Resources) -> Spill {
        Spill { cpu: amounts.get(CPU).nanos(), memory: amounts.get(MEMORY).nanos() }
    }

    fn and(self, other: Spill) -> Spill {
        Spill { cpu: self.cpu.saturating_add(other.cpu), memory: self.memory.saturating_add(other.memory) }
    }

    fn fits(self, room: Spill) -> bool {
        self.cpu <= room.cpu && self.memory <= room.memory
    }
}

/// What instance types offer at best.
struct Sizes {
    /// Price and room, the cheapest first.
    sizes: Vec<(i128, Spill)>,
    /// The lowest price of a billionth of CPU, and of memory.
    units: [f64; 2],
}

impl Sizes {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn new(mut sizes: Vec<(i128, Spill)>) -> Sizes {
        sizes.sort_by_key(|(price, _)| *price);
        let parts: [fn(&Spill) -> i128; 2] = [|room| room.cpu, |room| room.memory];
        let units = parts.map(|part| {
            let prices = sizes.iter().filter(|(_, room)| part(room) > 0);
            prices.map(|(price, room)| *price as f64 / part(room) as f64).fold(f64::MAX, f64::min)
        });
        Sizes { sizes, units }
    }

    /// What a node for these pods costs at least. Nothing if they need none; none if no instance type is large enough.
    fn price(&self, spill: Spill) -> Option<i128> {
        if spill == Spill::default() {
            return Some(0);
        }
        self.sizes.iter().find(|(_, room)| spill.fits(*room)).map(|(price, _)| *price)
    }

    /// What these pods cost where they share a node with others, at the lowest price for each of CPU and memory.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn share(&self, spill: Spill) -> f64 {
        let share = |(amount, unit): (i128, f64)| if amount > 0 { amount as f64 * unit } else { 0.0 };
        let [cpu, memory] = self.units;
        f64::max(share((spill.cpu, cpu)), share((spill.memory, memory)))
    }
}

/// The move, if it saves enough.
pub(super) fn worth_it(command: Command) -> Result<Command, Kept> {
    let current = sum(command.removed.iter().filter_map(|removed| removed.price));
    match command.replacements.first() {
        Some(Replacement::Planned(new)) if nanos(Price::new(command.savings)) * LEAST_PART < nanos(current) => {
            let (instance_type, price) = (new.chosen.instance_type.clone(), new.chosen.price);
            Err(Kept::SavesTooLittle { instance_type, price, current })
        }
        _ => Ok(command),
    }
}

impl<'s> Scan<'s> {
    /// The two nodes that save most together, or none.
    pub(super) fn pairs(&mut self) -> Vec<Command> {
        let mut best: Option<(Command, [usize; 2])> = None;
        for pair in self.promising_pairs() {
            let found = self.consolidate(Search::Pair, &pair);
            let Ok(command) = found.and_then(|(command, _)| worth_it(command)) else { continue };
            let most = best.as_ref().map_or(0, |(best, _)| nanos(Price::new(best.savings)));
            if nanos(Price::new(command.savings)) > most {
                best = Some((command, pair));
            }
        }
        best.and_then(|(command, pair)| self.take(command, &pair)).into_iter().collect()
    }

    /// Pairs whose nodes were judged by themselves and stay. If there are many, those that may save most.
    fn promising_pairs(&self) -> Vec<[usize; 2]> {
        let sizes = self.sizes();
        let budgets = self.budgets(Method::MultiNode.reason());
        let mut pairs: Vec<(i128, [usize; 2])> = Vec::new();
        let nodes = self.wasteful(&sizes);
        for (place, one) in nodes.iter().copied().enumerate() {
            for other in nodes[place + 1..].iter().copied() {
                let pair = [one.min(other), one.max(other)];
                pairs.push((self.may_save(pair, &sizes), pair));
            }
        }
        let names = |pair: &[usize; 2]| pair.map(|number| Node::pool_name(&self.nodes[number]));
        pairs.retain(|(_, pair)| budgets.have_left(names(pair)));
        if pairs.len() > MOST_PAIRS {
            pairs.retain(|(saving, pair)| saving.saturating_mul(LEAST_PART) >= self.prices_of(*pair));
        }
        pairs.sort_by_key(|(saving, pair)| (std::cmp::Reverse(*saving), *pair));
        pairs.truncate(MOST_PAIRS);
        pairs.into_iter().map(|(_, pair)| pair).collect()
    }

    /// Nodes that cost more than their pods would elsewhere, the worst first.
    fn wasteful(&self, sizes: &Sizes) -> Vec<usize> {
        let waste = |(number, spill): (&usize, &Spill)| {
            let price = self.nodes[*number].price.unwrap_or_default();
            (price.value() * 1e9 - sizes.share(*spill), *number)
        };
        let mut nodes: Vec<(f64, usize)> = self.spills.iter().map(waste).collect();
        nodes.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        nodes.truncate(MOST_NODES);
        nodes.into_iter().map(|(_, number)| number).collect()
    }

    fn prices_of(&self, pair: [usize; 2]) -> i128 {
        nanos(sum(pair.iter().filter_map(|number| self.nodes[*number].price)))
    }

    /// What two nodes save at most, as it seems: pods that need a new node by themselves need one together, too.
    fn may_save(&self, pair: [usize; 2], sizes: &Sizes) -> i128 {
        let [one, other] = pair.map(|number| self.spills.get(&number).copied().unwrap_or_default());
        sizes.price(one.and(other)).map_or(i128::MIN, |price| self.prices_of(pair).saturating_sub(price))
    }

    fn sizes(&self) -> Sizes {
        let usable = self.snapshot.pools.iter().filter(|pool| pool.replicas.is_none() && pool.not_ready.is_none());
        let offered = usable.flat_map(|pool| pool.catalog.types()).filter_map(|size| {
            let ways = size.offerings.iter().filter(|way| way.is_launchable());
            Some((nanos(ways.map(|way| way.price).min()?), Spill::in_resources(&size.capacity)))
        });
        Sizes::new(offered.collect())
    }
}
