//! Nodes that are being planned: who takes a pod, and what they become by it.

use tenon_model::{HostPort, Requirements, ReservedTrouble, Toleration};

use crate::attempts::Attempt;
use crate::axes::{self, Amounts, Axes};
use crate::bits::Bits;
use crate::bug::{found, missing};
use crate::desk::{Accepted, Ask, Candidate, Desk, No};
use crate::reservations::Held;

/// A node that is being planned.
pub(crate) struct OpenClaim<'a> {
    pub(crate) template: usize,
    pub(crate) now: Accepted,
    pub(crate) pods: Vec<usize>,
    /// The most that any size it may still become leaves to pods: what is larger need not be tried.
    reach: Amounts,
    ports: Vec<&'a HostPort>,
    /// Whether it makes do with fewer values of a label than its pool asks for.
    pub(crate) is_relaxed: bool,
}

/// All nodes that are being planned.
pub(crate) struct Claims<'a> {
    pub(crate) claims: Vec<OpenClaim<'a>>,
    /// Those with the fewest pods first.
    order: Vec<usize>,
    /// Each time a planned node came by a label that its pool does not speak of: that node.
    labelled: Vec<usize>,
    ties: Ties,
    nothing: Amounts,
}

/// Which of several planned nodes with equally many pods is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ties {
    /// The one that has had so many for longer.
    Settled,
    /// The one that was planned first.
    Oldest,
    /// The one that was planned last.
    Newest,
    /// One or the other, in an order that this number stirs.
    Mixed(usize),
}

impl Ties {
    /// Whether a node comes before another with equally many pods, both by number.
    fn puts_first(self, other: usize, mine: usize) -> bool {
        // Multiples of a large odd number are spread evenly enough.
        let place =
            |number: usize, salt: usize| (number + salt).wrapping_mul(salt.wrapping_mul(2_654_435_769) | 1) % 1_009;
        match self {
            Ties::Settled => false,
            Ties::Oldest => other < mine,
            Ties::Newest => other > mine,
            Ties::Mixed(salt) => place(other, salt) < place(mine, salt),
        }
    }
}

/// What a pod demands and tolerates.
type Asked<'p> = (&'p Requirements, &'p [Toleration]);

impl<'a> Claims<'a> {
    pub(crate) fn new(axes: &Axes, ties: Ties) -> Claims<'a> {
        Claims { claims: Vec::new(), order: Vec::new(), labelled: Vec::new(), ties, nothing: axes.nothing() }
    }

    /// Puts the pod on the first planned node that takes it.
    pub(crate) fn add(&mut self, desk: &mut Desk<'a>, attempt: &mut Attempt<'a>, asked: Asked<'_>, pod: usize) -> bool {
        for number in self.labelled.iter().skip(attempt.failed.labels_seen) {
            attempt.failed.claims.remove(*number);
        }
        attempt.failed.labels_seen = self.labelled.len();
        for position in 0..self.order.len() {
            let Some(number) = found(self.order.get(position).copied(), "the planned node") else { continue };
            if attempt.failed.claims.has(number) {
                continue;
            }
            let Some(claim) = found(self.claims.get_mut(number), "the planned node") else { continue };
            match claim.judge(desk, attempt, asked) {
                Ok(accepted) => {
                    if desk.adds_label(claim.template, claim.now.state, accepted.state) {
                        self.labelled.push(number);
                    }
                    claim.accept(desk, accepted, attempt, pod);
                    self.reorder(position);
                    return true;
                }
                Err(no) if no.as_ref().is_none_or(No::is_final) => attempt.failed.claims.insert(number),
                Err(_) => {}
            }
        }
        false
    }

    /// Plans a node for the pod, in the first pool that makes one. The pool and the trouble, if the pod has to wait for
    /// capacity that was set aside: then no other pool is asked.
    pub(crate) fn open(
        &mut self,
        desk: &mut Desk<'a>,
        attempt: &mut Attempt<'a>,
        (demand, tolerations): Asked<'_>,
        pod: usize,
    ) -> Result<bool, (usize, ReservedTrouble)> {
        for number in 0..desk.templates.len() {
            if attempt.failed.pools.has(number) {
                continue;
            }
            let (demand, amounts) = ((attempt.demand, demand), &attempt.amounts);
            let ask = Ask { demand, amounts, ports: attempt.ports, tolerations };
            match judge_new(desk, number, &ask, &self.nothing) {
                Ok(accepted) => {
                    desk.charge(number, &accepted.slots);
                    let mut claim = OpenClaim::new(number, accepted.is_relaxed);
                    claim.accept(desk, accepted, attempt, pod);
                    self.insert(claim);
                    return Ok(true);
                }
                Err(Some(No::Reserved(trouble))) if desk.reservations.are_strict() => return Err((number, trouble)),
                Err(no) if no.as_ref().is_none_or(No::is_final) => attempt.failed.pools.insert(number),
                Err(_) => {}
            }
        }
        Ok(false)
    }

    /// Puts a new planned node, which has one pod, where it is to be asked.
    fn insert(&mut self, claim: OpenClaim<'a>) {
        let position = match self.ties {
            Ties::Newest => 0,
            _ => self.order.iter().take_while(|number| self.pods_on(**number) <= 1).count(),
        };
        self.order.insert(position, self.claims.len());
        self.claims.push(claim);
    }

    fn pods_on(&self, number: usize) -> usize {
        found(self.claims.get(number), "the planned node").map_or(0, |claim| claim.pods.len())
    }

    /// The node at this position took a pod: it moves behind those that have fewer, and those that come first of equals.
    fn reorder(&mut self, position: usize) {
        let Some(mine) = found(self.order.get(position).copied(), "the planned node") else { return };
        let pods = self.pods_on(mine);
        let is_before = |other: usize| {
            let theirs = self.pods_on(other);
            theirs < pods || (theirs == pods && self.ties.puts_first(other, mine))
        };
        let behind = self.order.iter().skip(position + 1).take_while(|other| is_before(**other)).count();
        if let Some(moved) = self.order.get_mut(position..=position + behind) {
            moved.rotate_left(1);
        }
    }
}

/// A new node of a pool for the pod; nothing said means that its limits or taints say no.
pub(crate) fn judge_new(
    desk: &mut Desk<'_>,
    number: usize,
    ask: &Ask<'_>,
    nothing: &Amounts,
) -> Result<Accepted, Option<No>> {
    let (stock, template) = desk.of(number).ok_or_else(|| Some(No::lost_template()))?;
    if !template.pool.taints.iter().all(|taint| taint.is_tolerated_by(ask.tolerations)) {
        return Err(None);
    }
    let slots = template.affordable(stock).map_err(|_| None)?;
    let (held, state) = (Held::new(), template.state);
    let node =
        Candidate { template: number, state, slots: &slots, requests: nothing, held: &held, hold: None, is_new: true };
    desk.judge(&node, ask).map_err(Some)
}

impl<'a> OpenClaim<'a> {
    /// A node of this template that nothing is planned for yet.
    fn new(template: usize, is_relaxed: bool) -> OpenClaim<'a> {
        let (now, pods, ports) = (Accepted::default(), Vec::new(), Vec::new());
        OpenClaim { template, now, pods, reach: Amounts::new(), ports, is_relaxed }
    }

    fn judge(&self, desk: &mut Desk<'a>, attempt: &Attempt<'a>, asked: Asked<'_>) -> Result<Accepted, Option<No>> {
        let (demand, tolerations) = asked;
        let needed = self.now.requests.iter().zip(&attempt.amounts).map(|(now, more)| *now + *more);
        if needed.zip(&self.reach).any(|(needed, reach)| needed > *reach) {
            return Err(None);
        }
        // Never a node without the taints of its pool: with an index out of range, the pod does not fit.
        let template = desk.templates.get(self.template).ok_or_else(|| Some(No::lost_template()))?;
        let taints = &template.pool.taints;
        let is_free = |port: &HostPort| !self.ports.iter().any(|used| used.conflicts_with(port));
        if !taints.iter().all(|taint| taint.is_tolerated_by(tolerations)) || !attempt.ports.iter().all(is_free) {
            return Err(None);
        }
        let Accepted { state, slots, requests, held, hold, .. } = &self.now;
        let (state, hold) = (*state, *hold);
        let node = Candidate { template: self.template, state, slots, requests, held, hold, is_new: false };
        let (demand, amounts) = ((attempt.demand, demand), &attempt.amounts);
        let ask = Ask { demand, amounts, ports: attempt.ports, tolerations };
        desk.judge(&node, &ask).map_err(Some)
    }

    /// Becomes what was judged, and holds what that takes.
    fn accept(&mut self, desk: &mut Desk<'a>, accepted: Accepted, attempt: &Attempt<'a>, pod: usize) {
        let Desk { stocks, templates, hosts, reservations, .. } = desk;
        let template = templates.get(self.template);
        let Some((template, stock)) = template.and_then(|found| Some((found, stocks.get(found.stock)?))) else {
            missing("the template of the NodePool");
            return;
        };
        let at = |offering: Option<usize>| {
            let offered = stock.offering(offering?)?;
            Some((offered.host?, offered.footprint))
        };
        if self.now.hold != accepted.hold {
            at(self.now.hold).into_iter().for_each(|(host, size)| hosts.release(host, size));
            at(accepted.hold).into_iter().for_each(|(host, size)| hosts.hold(host, size));
        }
        reservations.change(&self.now.held, &accepted.held);
        if self.now.slots != accepted.slots {
            self.reach = reach(&template.rooms, &accepted.slots);
        }
        self.now = accepted;
        self.ports.extend(attempt.ports);
        self.pods.push(pod);
    }
}

fn reach(rooms: &[Amounts], slots: &Bits) -> Amounts {
    let mut rooms = slots.iter().filter_map(|slot| found(rooms.get(slot), "the room of the slot"));
    let mut reach = rooms.next().cloned().unwrap_or_default();
    rooms.for_each(|room| axes::raise(&mut reach, room));
    reach
}
