//! Everything that is to go wrong in a run, and whether an estate has what it names.

use crate::estate::Estate;
use crate::guest::GuestFaultRule;
use crate::state::State;

use super::event::{WorldChange, WorldEvent};
use super::rule::FaultRule;

/// What goes wrong in a run: what `tenon pve-sim --faults FILE` reads, and what tests build.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultPlan {
    /// Faults of calls.
    pub rules: Vec<FaultRule>,
    /// Changes of the world.
    pub events: Vec<WorldEvent>,
    /// Faults of guests; [`Guests`](crate::Guests) are given them.
    pub guests: Vec<GuestFaultRule>,
}

/// A plan names something that the estate does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {kind} `{name}` does not exist; known: {known}")]
pub struct FaultPlanError {
    place: String,
    kind: &'static str,
    name: String,
    known: String,
}

impl Estate {
    /// From now on calls of this kind go wrong.
    pub fn add_fault(&self, rule: FaultRule) {
        self.with(|state| {
            state.faults.add(rule);
            state.remember();
        });
    }

    /// No call goes wrong any more. Tasks that stall go on stalling, and events still happen.
    pub fn remove_faults(&self) {
        self.with(|state| state.faults.clear());
    }

    /// Lets something happen at its time; at once, when that has passed.
    pub fn schedule(&self, event: WorldEvent) {
        self.with(|state| state.schedule_change(event));
    }

    /// Adds the rules and events of a plan, after a look whether the estate has what they name.
    pub fn add_faults(&self, plan: &FaultPlan) -> Result<(), FaultPlanError> {
        self.with(|state| {
            state.check_plan(plan)?;
            plan.rules.iter().cloned().for_each(|rule| state.faults.add(rule));
            plan.events.iter().cloned().for_each(|event| state.schedule_change(event));
            state.remember();
            Ok(())
        })
    }

    /// Lets the clocks of the hosts be wrong by so many seconds.
    pub fn set_clock_skew(&self, seconds: i64) {
        self.with(|state| state.skew_s = seconds);
    }

    /// Takes the quorum away, or lets it follow the number of hosts again.
    pub fn set_quorum_lost(&self, lost: bool) {
        self.with(|state| state.quorum_lost = lost);
    }
}

impl State {
    fn check_plan(&self, plan: &FaultPlan) -> Result<(), FaultPlanError> {
        for (at, rule) in plan.rules.iter().enumerate() {
            let name = if rule.name.is_empty() { String::new() } else { format!(" ({})", rule.name) };
            let place = format!("rules[{at}]{name}");
            self.check_named(&place, ("host", rule.when.host.as_deref()))?;
            self.check_named(&place, ("storage", rule.when.storage.as_deref()))?;
        }
        for (at, event) in plan.events.iter().enumerate() {
            let place = format!("events[{at}]");
            let (first, second) = names(&event.change);
            self.check_named(&place, first)?;
            self.check_named(&place, second)?;
        }
        Ok(())
    }

    fn check_named(&self, place: &str, (kind, name): (&'static str, Option<&str>)) -> Result<(), FaultPlanError> {
        let known: Vec<String> = match kind {
            "host" => self.hosts.keys().cloned().collect(),
            "storage" => self.config.storages.iter().map(|spec| spec.id.clone()).collect(),
            _ => self.config.tokens.iter().map(|token| token.id.clone()).collect(),
        };
        match name.filter(|name| !known.iter().any(|known| known == name)) {
            None => Ok(()),
            Some(name) => {
                let (place, name) = (place.to_string(), name.to_string());
                Err(FaultPlanError { place, kind, name, known: known.join(", ") })
            }
        }
    }
}

type Named<'a> = (&'static str, Option<&'a str>);

/// What a change names.
fn names(change: &WorldChange) -> (Named<'_>, Named<'_>) {
    let nothing = ("host", None);
    match change {
        WorldChange::HostDown { host, .. } | WorldChange::HostUp { host } => (("host", Some(host)), nothing),
        WorldChange::HaRecovery { host, to } => (("host", Some(host)), ("host", to.as_deref())),
        WorldChange::VmMoved { to, .. } => (("host", Some(to)), nothing),
        WorldChange::StorageFree { storage, .. } => (("storage", Some(storage)), nothing),
        WorldChange::TokenRevoked { token } => (("token", Some(token)), nothing),
        WorldChange::QuorumLost | WorldChange::QuorumBack | WorldChange::ClockSkew { .. } => (nothing, nothing),
    }
}
