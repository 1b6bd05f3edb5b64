//! May a drifted or broken node go before what comes for it is there? Only where nothing else can place its pods, and an operator allows it.

use tenon_model::{RESERVED, ReservedMode};

use super::candidates::instance_type;
use super::command::{Command, Method, TerminateFirst};
use super::kept::Kept;
use super::scan::Scan;
use crate::capacity::Reserved;
use crate::what_ifs::{Change, MovedPods};

impl Scan<'_> {
    /// The move of a node whose pods find a place only on the reserved capacity that the node itself uses. Proven by planning
    /// again as if that were free, and nothing else were taken in its place; so capacity that others use up is never waited for.
    pub(super) fn terminated_first(&mut self, method: Method, number: usize, why: Kept) -> Result<Command, Kept> {
        let is_allowed = self.may_go_first(method);
        let id = is_allowed.then(|| self.reservation_of(number)).flatten();
        let (Some(id), Kept::Unschedulable { .. }) = (id, &why) else { return Err(why) };
        let mut options = self.snapshot.options.clone();
        options.reserved = ReservedMode::Strict;
        options.credits.insert(id, 1);
        let credited = Reserved::new(self.snapshot, options);
        self.simulated += 1;
        let pods = if method == Method::Repair { MovedPods::All } else { MovedPods::Free };
        let change = Change { remove: &[self.nodes[number].name()], pods, ..Change::default() };
        let Some(plan) = self.what_ifs.supposing(&credited).plan(&change) else { return Err(why) };
        if self.all_placed(&[number], &plan).is_err() {
            return Err(why);
        }
        let mut command = self.command(method, &[number], (&plan, Vec::new()));
        command.terminate_first = Some(TerminateFirst::NoReservedCapacity);
        command.savings = 0.0;
        Ok(command)
    }

    /// The reserved capacity that a node uses.
    fn reservation_of(&self, number: usize) -> Option<String> {
        let node = &self.nodes[number];
        if !node.is_of_capacity_type(RESERVED) {
            return None;
        }
        let ways = &instance_type(node.state, node.pool?)?.offerings;
        let held = ways.iter().filter_map(|way| way.reservation.as_ref());
        let mut own = held.filter(|held| node.state.labels.get(&held.label) == Some(held.id.as_str()));
        own.next().map(|held| held.id.clone())
    }

    /// Whether a node of a static pool at its limit may go first: its pool must be able to make another.
    pub(super) fn may_go_at_limit(&self, method: Method, number: usize) -> bool {
        let is_usable = self.nodes[number].pool.is_some_and(|pool| pool.not_ready.is_none());
        self.may_go_first(method) && is_usable
    }

    fn may_go_first(&self, method: Method) -> bool {
        let gates = self.snapshot.disruption.gates;
        if method == Method::Repair { gates.terminate_first_repair } else { gates.terminate_first_drift }
    }
}
