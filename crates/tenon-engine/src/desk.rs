//! Can a planned node take one more pod, and what would it then be? Nothing is changed by asking.

use tenon_model::{HostPort, MinValuesPolicy, Quantity, Requirements, ReservedTrouble, Toleration, TooFewValues};

use crate::axes::{self, Amounts};
use crate::bits::Bits;
use crate::bug::{found, missing};
use crate::hosts::{Footprint, HostLedger};
use crate::reservations::{Held, Reservations};
use crate::stock::{Offered, Stock};
use crate::template::Template;

/// What every question is answered with.
pub(crate) struct Desk<'a> {
    pub(crate) stocks: Vec<Stock<'a>>,
    pub(crate) templates: Vec<Template<'a>>,
    pub(crate) hosts: HostLedger,
    pub(crate) reservations: Reservations<'a>,
    pub(crate) min_values: MinValuesPolicy,
}

/// A node as it stands before the pod.
pub(crate) struct Candidate<'c> {
    pub(crate) template: usize,
    pub(crate) state: usize,
    pub(crate) slots: &'c Bits,
    pub(crate) requests: &'c Amounts,
    pub(crate) held: &'c Held,
    /// The offering it would be made from.
    pub(crate) hold: Option<usize>,
    /// Whether it is not planned yet: then it may make do with fewer values of a label.
    pub(crate) is_new: bool,
}

/// What a pod asks of a node.
pub(crate) struct Ask<'p> {
    pub(crate) demand: (usize, &'p Requirements),
    pub(crate) amounts: &'p Amounts,
    pub(crate) ports: &'p [HostPort],
    pub(crate) tolerations: &'p [Toleration],
}

/// What a node may still be made from.
#[derive(Clone, Copy)]
pub(crate) struct Remaining<'n> {
    /// Its demands, by number of state.
    pub(crate) state: usize,
    pub(crate) slots: &'n Bits,
    /// The reservations it holds.
    pub(crate) held: &'n Held,
    /// Its pool: not every host that is open is open for each.
    pub(crate) pool: &'n str,
}

/// A node as it would be with the pod.
#[derive(Debug, Default)]
pub(crate) struct Accepted {
    pub(crate) state: usize,
    pub(crate) slots: Bits,
    pub(crate) requests: Amounts,
    pub(crate) held: Held,
    pub(crate) hold: Option<usize>,
    pub(crate) is_relaxed: bool,
}

/// Why a node does not take a pod.
#[derive(Debug)]
pub(crate) enum No {
    /// Labels cannot be met.
    Labels,
    /// No size will do.
    Types,
    /// Too few values of a label stay possible.
    MinValues(TooFewValues),
    /// Capacity that was set aside is in the way.
    Reserved(ReservedTrouble),
    /// No host has room; the state and slots that would have done.
    Hosts(usize, Bits),
    /// An index is out of range; what was not found.
    Internal(&'static str),
}

impl No {
    /// Whether asking again is in vain: what others give back may help only where reservations or hosts are in the way.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, No::Reserved(_) | No::Hosts(..))
    }

    /// The template of a pool was not found.
    pub(crate) fn lost_template() -> No {
        No::Internal(missing("the template of the NodePool"))
    }

    /// What is demanded of a node was not found.
    fn lost_state() -> No {
        No::Internal(missing("the requirements of the node"))
    }
}

impl<'a> Desk<'a> {
    /// The stock and the template of a pool.
    pub(crate) fn of(&self, template: usize) -> Option<(&Stock<'a>, &Template<'a>)> {
        let template = self.templates.get(template);
        let both = template.and_then(|template| Some((self.stocks.get(template.stock)?, template)));
        found(both, "the template of the NodePool")
    }

    /// What the node would be with the pod, or why it cannot take it.
    pub(crate) fn judge(&mut self, node: &Candidate<'_>, ask: &Ask<'_>) -> Result<Accepted, No> {
        let template = self.templates.get(node.template).ok_or_else(No::lost_template)?;
        let stock = self.stocks.get_mut(template.stock).ok_or_else(No::lost_template)?;
        if stock.state(node.state).is_none() {
            return Err(No::lost_state());
        }
        let mut state = stock.merge(node.state, ask.demand).ok_or(No::Labels)?;
        let mut requests = node.requests.clone();
        axes::add(&mut requests, ask.amounts);
        let suiting = stock.state(state).ok_or_else(No::lost_state)?;
        let mut slots = with_room(template, node.slots.and(&suiting.slots), &requests);
        if !ask.ports.is_empty() {
            slots = with_free_ports(template, stock, slots, ask.ports);
        }
        if slots.is_empty() {
            return Err(No::Types);
        }
        let mut is_relaxed = false;
        if suiting.has_min_values
            && let Err(short) = min_values(stock, &suiting.requirements, &slots)
        {
            if self.min_values == MinValuesPolicy::Strict || !node.is_new {
                return Err(No::MinValues(short));
            }
            let lowered = lowered(&suiting.requirements, &short);
            state = stock.enter(lowered);
            is_relaxed = true;
        }
        let held = self.reserve(node, state, &slots)?;
        let (_, template) = self.of(node.template).ok_or_else(No::lost_template)?;
        let pool = template.pool.name.as_str();
        let hold = self.hold(node, Remaining { state, slots: &slots, held: &held, pool })?;
        Ok(Accepted { state, slots, requests, held, hold, is_relaxed })
    }

    /// Counts a new node with these slots against the limits of its pool.
    pub(crate) fn charge(&mut self, template: usize, slots: &Bits) {
        let template = found(self.templates.get_mut(template), "the template of the NodePool");
        if let Some(template) = template
            && let Some(stock) = found(self.stocks.get(template.stock), "the stock")
        {
            template.charge(stock, slots);
        }
    }

    /// Whether a planned node of a pool speaks of more labels after a change than before.
    pub(crate) fn adds_label(&self, template: usize, before: usize, after: usize) -> bool {
        if before == after {
            return false;
        }
        let Some((stock, _)) = self.of(template) else { return false };
        let (Some(before), Some(after)) = (stock.state(before), stock.state(after)) else { return false };
        let is_new = |label: &str| before.requirements.get(label).is_none() && !stock.catalog.is_well_known(label);
        after.requirements.iter().any(|(label, _)| is_new(label))
    }

    fn reserve(&self, node: &Candidate<'_>, state: usize, slots: &Bits) -> Result<Held, No> {
        let (stock, _) = self.of(node.template).ok_or_else(No::lost_template)?;
        if !stock.index.has_reserved {
            return Ok(Held::new());
        }
        let mut left = offerings(stock, state, slots).map(|(_, offered)| offered.way);
        if !self.reservations.are_used() {
            // Nothing is counted down, but from what is full already nothing can be made.
            let is_open = left.any(|way| self.reservations.can_launch(way));
            return if is_open { Ok(Held::new()) } else { Err(No::Reserved(ReservedTrouble::Full)) };
        }
        self.reservations.choose(node.held, left).map_err(No::Reserved)
    }

    /// The offering the node holds a host for, where hosts are limited.
    fn hold(&self, node: &Candidate<'_>, after: Remaining<'_>) -> Result<Option<usize>, No> {
        let (stock, _) = self.of(node.template).ok_or_else(No::lost_template)?;
        if !stock.index.has_places {
            return Ok(None);
        }
        let own = node.hold.and_then(|hold| stock.offering(hold));
        let given_back = own.and_then(|own| Some((own.host?, own.footprint)));
        match self.cheapest(stock, after, given_back) {
            Some(offering) => Ok(Some(offering)),
            None => Err(No::Hosts(after.state, after.slots.clone())),
        }
    }

    /// The cheapest offering that is left and has room; among equal ones where the most memory is.
    pub(crate) fn cheapest(
        &self,
        stock: &Stock<'a>,
        left: Remaining<'_>,
        given_back: Option<(usize, Footprint)>,
    ) -> Option<usize> {
        let state = stock.state(left.state)?;
        let mut best: Option<(usize, &Offered<'a>, Option<Quantity>)> = None;
        for number in &stock.index.by_price {
            let Some(offered) = stock.offering(*number) else { continue };
            let is_equal = |(_, best, _): &(usize, &Offered<'a>, Option<Quantity>)| {
                best.way.price == offered.way.price && best.size == offered.size
            };
            if best.as_ref().is_some_and(|best| !is_equal(best)) {
                break;
            }
            let is_left = state.offerings.has(*number) && offered.slot.is_some_and(|slot| left.slots.has(slot));
            if !is_left || !self.reservations.can_launch(offered.way) || !self.may_use(offered, left.held) {
                continue;
            }
            if offered.host.is_some_and(|host| self.hosts.is_closed_for(host, left.pool)) {
                continue;
            }
            let Some(memory) = self.room_for(offered, given_back) else { continue };
            if best.as_ref().is_none_or(|(_, _, most)| memory > *most) {
                best = Some((*number, offered, memory));
            }
        }
        best.map(|(number, ..)| number)
    }

    /// Whoever holds reserved capacity uses that; whoever does not, uses none.
    pub(crate) fn may_use(&self, offered: &Offered<'_>, held: &Held) -> bool {
        let reserved = offered.way.reservation.as_ref().filter(|_| offered.way.is_reserved());
        match reserved {
            _ if !self.reservations.are_used() => true,
            Some(reservation) => held.contains(&reservation.id),
            None => held.is_empty(),
        }
    }

    /// The memory left where it would be made; `Some(None)` where that is not limited.
    fn room_for(&self, offered: &Offered<'_>, given_back: Option<(usize, Footprint)>) -> Option<Option<Quantity>> {
        if offered.way.place.is_none() {
            return Some(None);
        }
        self.hosts.memory_left(offered.host?, offered.footprint, given_back).map(Some)
    }
}

/// Slots that carry what is asked for.
fn with_room(template: &Template<'_>, mut slots: Bits, requests: &Amounts) -> Bits {
    let mut next = slots.next_from(0);
    while let Some(slot) = next {
        let room = found(template.rooms.get(slot), "the room of the slot");
        if !room.is_some_and(|room| axes::fits(requests, room)) {
            slots.remove(slot);
        }
        next = slots.next_from(slot + 1);
    }
    slots
}

/// Slots that have no daemon on the ports.
fn with_free_ports(template: &Template<'_>, stock: &Stock<'_>, mut slots: Bits, ports: &[HostPort]) -> Bits {
    let mut next = slots.next_from(0);
    while let Some(slot) = next {
        if has_daemon_on(template, stock, slot, ports) {
            slots.remove(slot);
        }
        next = slots.next_from(slot + 1);
    }
    slots
}

fn has_daemon_on(template: &Template<'_>, stock: &Stock<'_>, slot: usize, ports: &[HostPort]) -> bool {
    let group = stock.slot(slot).and_then(|slot| template.daemons.of(slot.size));
    let taken = group.iter().flat_map(|group| &group.ports);
    taken.into_iter().any(|taken| ports.iter().any(|port| port.conflicts_with(taken)))
}

/// Available offerings that are left to a node, by number.
pub(crate) fn offerings<'s, 'a>(
    stock: &'s Stock<'a>,
    state: usize,
    slots: &'s Bits,
) -> impl Iterator<Item = (usize, &'s Offered<'a>)> {
    let suiting = stock.state(state).into_iter().flat_map(|state| state.offerings.iter());
    let all = suiting.filter_map(|number| Some((number, stock.offering(number)?)));
    all.filter(|(_, offered)| offered.slot.is_some_and(|slot| slots.has(slot)))
}

/// Whether enough values stay possible over these slots.
pub(crate) fn min_values(stock: &Stock<'_>, requirements: &Requirements, slots: &Bits) -> Result<(), TooFewValues> {
    let sizes = slots.iter().filter_map(|slot| stock.size_of(slot));
    requirements.min_values_satisfied_by(sizes.map(|size| &size.requirements)).map(drop)
}

/// The demands with as many values asked for as there are.
fn lowered(requirements: &Requirements, short: &TooFewValues) -> Requirements {
    let mut lowered = requirements.clone();
    for (label, reached) in &short.reached {
        if let Some(demand) = requirements.get(label) {
            lowered.replace(label.as_str(), demand.clone().with_min_values(Some(*reached)));
        }
    }
    lowered
}

#[cfg(test)]
mod tests {
    use tenon_model::Snapshot;

    use super::*;

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "the template of the NodePool is not there"))]
    fn an_index_out_of_range_is_a_bug_and_no_matter_of_labels() {
        let (snapshot, hosts) = (Snapshot::default(), HostLedger::new(&[]));
        let (reservations, min_values) = (Reservations::new(&snapshot), MinValuesPolicy::Strict);
        let mut desk = Desk { stocks: Vec::new(), templates: Vec::new(), hosts, reservations, min_values };
        let (slots, requests, held, wanted) = (Bits::default(), Amounts::new(), Held::new(), Requirements::default());
        let (template, state, hold, is_new) = (7, 0, None, true);
        let node = Candidate { template, state, slots: &slots, requests: &requests, held: &held, hold, is_new };
        let ask = Ask { demand: (0, &wanted), amounts: &requests, ports: &[], tolerations: &[] };
        let no = desk.judge(&node, &ask).unwrap_err();
        assert!(no.is_final() && matches!(no, No::Internal("the template of the NodePool")));
    }
}
