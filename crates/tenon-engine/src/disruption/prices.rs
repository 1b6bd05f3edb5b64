//! Is a replacement cheaper than what it replaces: whatever of its instance types is launched, or only as it is planned?

use std::sync::Arc;

use tenon_model::labels::{CAPACITY_TYPE, INSTANCE_TYPE, REGION, ZONE};
use tenon_model::{CatalogType, DisruptionGates, NewNode, Pool, Price, RESERVED, Requirement, Requirements};

use super::candidates::Node;
use super::consolidation::Search;
use super::kept::Kept;

pub(super) const SPOT: &str = "spot";
const ON_DEMAND: &str = "on-demand";

/// One spot node is replaced by another only if so many instance types would do: with fewer, the next interruption leads
/// to the node that was just left.
const SPOT_TYPES_LEAST: usize = 15;

/// Prices are compared in billionths, so that the order in which they are added does not matter.
const NANOS: f64 = 1e9;

/// What is asked of a replacement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cheaper<'s> {
    pub(super) search: Search,
    pub(super) gates: DisruptionGates,
    pub(super) pools: &'s [Arc<Pool>],
}

/// How certain it is that a replacement costs less than the nodes that go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    /// Whichever offering of its instance types is launched. That is what Karpenter asks for.
    Whatever,
    /// Only the offering that was planned is known to cost less. A NodeClaim is launched from that.
    AsPlanned,
}

/// A price as a whole number of billionths.
#[expect(clippy::cast_possible_truncation, reason = "prices are far below 9 billion; beyond that it saturates")]
pub(super) fn nanos(price: Price) -> i128 {
    let nanos = (price.value() * NANOS).round();
    if nanos.is_nan() { 0 } else { nanos as i128 }
}

/// What several cost together.
#[expect(clippy::cast_precision_loss, reason = "sums of prices are far below 2^53 billionths")]
pub(super) fn sum(prices: impl Iterator<Item = Price>) -> Price {
    let nanos = prices.map(nanos).fold(0, i128::saturating_add);
    Price::new(nanos as f64 / NANOS)
}

/// The replacement with only those instance types that cost less than the nodes that go, or why there is none.
pub(super) fn replacement(new: &NewNode, going: &[&Node<'_>], rule: Cheaper<'_>) -> Result<(NewNode, Certainty), Kept> {
    let current = sum(going.iter().filter_map(|node| node.price));
    let is_spot = going.iter().all(|node| node.is_of_capacity_type(SPOT));
    let is_spot_to_spot = is_spot && new.requirements.admit(CAPACITY_TYPE, SPOT);
    if is_spot_to_spot && !rule.gates.spot_to_spot {
        return Err(Kept::SpotToSpotOff);
    }
    if new.min_values_relaxed {
        return Err(Kept::MinValues);
    }
    let mut new = new.clone();
    pin_capacity_type(&mut new);
    let limit = if rule.search == Search::Row { same_type_limit(&new, going, current) } else { current };
    let not_cheaper =
        || Kept::NotCheaper { instance_type: new.chosen.instance_type.clone(), price: new.chosen.price, current };
    if nanos(new.chosen.price) >= nanos(limit) {
        return Err(not_cheaper());
    }
    let Some(pool) = rule.pools.iter().find(|pool| pool.name == new.pool) else { return Err(not_cheaper()) };
    let is_cheaper = |size: &CatalogType| nanos(worst_launch_price(size, &new.requirements)) < nanos(limit);
    let cheaper = new.instance_types.iter().filter(|name| pool.catalog.find(name).is_some_and(is_cheaper));
    let cheaper: Vec<String> = cheaper.cloned().collect();
    let is_left = |name: &&String| **name == new.chosen.instance_type || cheaper.contains(name);
    let with_planned: Vec<String> = new.instance_types.iter().filter(is_left).cloned().collect();
    let choice = Choice { new: &new, pool, fifteen: is_spot_to_spot && rule.search == Search::Single };
    let certainty = match choice.among(cheaper) {
        Ok(_) => Certainty::Whatever,
        Err(_) => Certainty::AsPlanned,
    };
    new.instance_types = choice.among(with_planned)?.into();
    Ok((new, certainty))
}

/// The new node with the host it was planned on and no other, and only those instance types that cost no more there than what
/// was planned.
pub(super) fn no_dearer(new: &NewNode, pool: &Pool) -> Result<NewNode, Kept> {
    let mut new = new.clone();
    let asks_for_several = |label: &&str| new.requirements.get(label).is_some_and(|asked| asked.min_values().is_some());
    if new.min_values_relaxed || [ZONE, REGION].iter().any(asks_for_several) {
        return Err(Kept::MinValues);
    }
    pin_capacity_type(&mut new);
    for label in [ZONE, REGION] {
        if let Some(only) = new.chosen.requirements.get(label).and_then(Requirement::any) {
            new.requirements.replace(label, Requirement::is(only));
        }
    }
    let is_no_dearer = |name: &&String| {
        let price = pool.catalog.find(name).map(|size| worst_launch_price(size, &new.requirements));
        **name == new.chosen.instance_type || price.is_some_and(|price| nanos(price) <= nanos(new.chosen.price))
    };
    let types: Vec<String> = new.instance_types.iter().filter(is_no_dearer).cloned().collect();
    new.instance_types = Choice { new: &new, pool, fifteen: false }.among(types)?.into();
    Ok(new)
}

/// Which instance types a replacement may list.
struct Choice<'n> {
    new: &'n NewNode,
    pool: &'n Pool,
    /// Whether one spot node is replaced by another.
    fifteen: bool,
}

impl Choice<'_> {
    /// Of these, those that a NodeClaim lists; or why they do not do.
    fn among(&self, mut types: Vec<String>) -> Result<Vec<String>, Kept> {
        let of_types = types.iter().filter_map(|name| self.pool.catalog.find(name)).map(|size| &size.requirements);
        let needed = self.new.requirements.min_values_satisfied_by(of_types).map_err(|_| Kept::MinValues)?;
        if self.fifteen {
            if types.len() < SPOT_TYPES_LEAST {
                return Err(Kept::FewSpotTypes { found: types.len() });
            }
            types.truncate(SPOT_TYPES_LEAST.max(needed));
        }
        // Nothing to choose from is no choice.
        if types.is_empty() { Err(Kept::MinValues) } else { Ok(types) }
    }
}

/// A replacement that may be spot or on demand is launched as what was compared: never as the dearer kind because the
/// cheaper one is gone by then.
fn pin_capacity_type(new: &mut NewNode) {
    let allows_both = new.requirements.admit(CAPACITY_TYPE, SPOT) && new.requirements.admit(CAPACITY_TYPE, ON_DEMAND);
    let chosen = new.chosen.labels.get(CAPACITY_TYPE).cloned();
    if let Some(chosen) = chosen.filter(|chosen| allows_both && [SPOT, ON_DEMAND].contains(&chosen.as_str())) {
        new.requirements.replace(CAPACITY_TYPE, Requirement::is(chosen));
    }
}

/// A row of nodes is not replaced by one of an instance type that one of them has, unless it costs less than that one: deleting the
/// others would do. Of a pair it is known that it would not.
fn same_type_limit(new: &NewNode, going: &[&Node<'_>], current: Price) -> Price {
    let is_option = |node: &&&Node<'_>| {
        let own = node.state.labels.get(INSTANCE_TYPE);
        new.instance_types.iter().any(|name| Some(name.as_str()) == own)
    };
    let same = going.iter().filter(is_option).filter_map(|node| node.price).min();
    same.map_or(current, |same| same.min(current))
}

/// The most that can be paid for an instance type: of the first capacity type that can be launched.
fn worst_launch_price(size: &CatalogType, demands: &Requirements) -> Price {
    let ways = size.offerings.iter().filter(|way| way.is_launchable());
    let ways: Vec<_> = ways.filter(|way| demands.can_meet(&way.requirements, |_| true)).collect();
    let of_kind =
        |kind: &str| ways.iter().filter(|way| way.label(CAPACITY_TYPE) == Some(kind)).map(|way| way.price).max();
    [RESERVED, SPOT, ON_DEMAND].into_iter().find_map(of_kind).unwrap_or(Price::OUT_OF_REACH)
}
