//! May a drifted node go before what comes for it is there? Only where nothing else can place its pods, and an operator allows it.

use tenon_model::{RESERVED, ReservedMode};

use super::candidates::instance_type;
use super::command::{Command, Method, TerminateFirst};
use super::kept::Kept;
use super::scan::Scan;
use crate::engine::Engine;
use crate::what_ifs::Destinations;

impl Scan<'_> {
    /// The move of a node whose pods find a place only on the reserved capacity that the node itself uses. Proven by planning
    /// again as if that were free, and nothing else were taken in its place; so capacity that others use up is never waited for.
    pub(super) fn terminated_first(&self, number: usize, why: Kept) -> Result<Command, Kept> {
        let is_allowed = self.snapshot.disruption.gates.terminate_first_drift;
        let id = is_allowed.then(|| self.reservation_of(number)).flatten();
        let (Some(id), Kept::Unschedulable { .. }) = (id, &why) else { return Err(why) };
        let mut credited = self.snapshot.clone();
        credited.options.reserved = ReservedMode::Strict;
        credited.options.credits.insert(id, 1);
        let engine = Engine::with_pods_on_nodes(&credited);
        let mut scan = Scan::new(&credited, engine.what_ifs(false));
        let Some(plan) = scan.what_if(&[number], None, Destinations::Any) else { return Err(why) };
        if scan.all_placed(&[number], &plan).is_err() {
            return Err(why);
        }
        let mut command = scan.command(Method::Drift, &[number], (&plan, Vec::new()));
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
    pub(super) fn may_go_at_limit(&self, number: usize) -> bool {
        let is_usable = self.nodes[number].pool.is_some_and(|pool| pool.not_ready.is_none());
        self.snapshot.disruption.gates.terminate_first_drift && is_usable
    }
}
