//! Which nodes are silent because their VM is stopped? With `--start-stopped-vms` the VM is started again before anything else is done.
//!
//! It is started as for a reboot: the condition Rebooting is the record, the VM is proven to be ours before, and a node that does not
//! come back is given up after 20 minutes. Twice within 24 hours at most, reboots by repair policies included.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use tenon_api::condition_reasons::{INITIALIZED, REBOOTING};
use tenon_api::{NodeClaim, event_reasons, names};
use tenon_model::LaunchRecord;
use tenon_pve::{PowerState, Resources};

use super::candidate::Shown;
use super::pass::Failures;
use super::queue::Queue;
use super::reboot::{self, Wanted};
use super::reboot_history::RebootHistory;
use crate::claim::{ClaimError, is_ready, is_true, observe_vm};
use crate::context::Context;
use crate::events::Event;
use crate::moments::after;
use crate::provision::record_of;

/// A VM that is stopped for a moment only, by a backup or by whoever reboots it by hand, is left alone.
const STOPPED_FOR: SignedDuration = SignedDuration::from_secs(30);

/// Since when VMs are seen stopped, by their NodeClaim. May be lost: then they are watched for as long again.
#[derive(Debug, Default)]
pub(super) struct StoppedVms(BTreeMap<String, Timestamp>);

impl StoppedVms {
    /// The claims whose VM was stopped for long enough, of those whose VM is stopped now.
    fn due(&mut self, stopped: &BTreeSet<String>, now: Timestamp) -> Vec<String> {
        self.0.retain(|name, _| stopped.contains(name));
        for name in stopped {
            self.0.entry(name.clone()).or_insert(now);
        }
        let is_due = |(_, since): &(&String, &Timestamp)| after(**since, STOPPED_FOR) <= now;
        self.0.iter().filter(is_due).map(|(name, _)| name.clone()).collect()
    }

    /// Has VMs started that are stopped. Does nothing without `--start-stopped-vms`.
    pub(super) async fn start(
        &mut self,
        context: &Context,
        shown: &Shown,
        queue: &Queue,
        reboots: &mut RebootHistory,
    ) -> Failures {
        let mut failures = Failures::new();
        if !context.settings.planning.start_stopped_vms {
            return failures;
        }
        let now = context.clock.now();
        let often = reboots.often(&shown.claims, now);
        let mut stopped = BTreeMap::new();
        for claim in
            shown.claims.iter().filter(|claim| !queue.has(&claim.name_any()) && !often.contains(&claim.name_any()))
        {
            if is_silent(shown, claim)
                && let Some(record) = record_of(claim)
                && let Some(listing) = context.regions.polled(&record.place.region).await
                && is_listed_stopped(&listing, &record)
            {
                stopped.insert(claim.name_any(), (claim, record));
            }
        }
        for name in self.due(&stopped.keys().cloned().collect(), now) {
            let Some((claim, record)) = stopped.get(&name) else { continue };
            match start_one(context, claim, record).await {
                Ok(true) => reboots.note(claim, now),
                Ok(false) => {}
                Err(error) => failures.push((name, error)),
            }
        }
        failures
    }

    /// Nodes that nobody repairs meanwhile.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.0.keys().cloned()
    }
}

/// Whether a node took pods and does not any more, and nobody does anything about it or forbids that.
fn is_silent(shown: &Shown, claim: &Arc<NodeClaim>) -> bool {
    let node = shown.nodes.get(&claim.name_any());
    let is_kept = |annotations: &BTreeMap<String, String>| {
        annotations.get(names::ANNOTATION_DO_NOT_REPAIR).is_some_and(|value| value == "true")
    };
    let is_down = node.is_some_and(|node| !is_ready(node) && !is_kept(node.annotations()));
    let is_up = is_true(claim, &INITIALIZED) && !is_true(claim, &REBOOTING);
    is_down && is_up && claim.metadata.deletion_timestamp.is_none() && !is_kept(claim.annotations())
}

/// A VM with a lock is stopped for something that somebody does with it.
fn is_listed_stopped(listing: &Resources, record: &LaunchRecord) -> bool {
    let row = listing.guests.iter().find(|guest| guest.id == record.vmid);
    row.is_some_and(|row| row.status.as_deref() == Some("stopped") && row.lock.is_none())
}

/// Whether it was asked for. The listing may be behind, and the VM may be another's by now: both are asked again.
async fn start_one(context: &Context, claim: &NodeClaim, record: &LaunchRecord) -> Result<bool, ClaimError> {
    let Ok(pve) = context.region(&record.place.region) else { return Ok(false) };
    let Some(vm) = observe_vm(&pve, &context.owner(claim), record).await?.proven else { return Ok(false) };
    if pve.vm_status(vm.host(), vm.vmid()).await?.power != PowerState::Stopped {
        return Ok(false);
    }
    let name = claim.name_any();
    let why = format!("VM {} on host {} is stopped", vm.vmid(), vm.host());
    let wanted = Wanted { claim: name.clone(), bound: Some(Duration::ZERO), why };
    let Some(claim) = reboot::request(context, &wanted).await? else { return Ok(false) };
    context.metrics.stopped_vms_started.get_or_create(&()).inc();
    tracing::info!(claim = name, vmid = %vm.vmid(), host = %vm.host(), "starting stopped VM");
    let note = format!("Starting VM {} of NodeClaim {name} on host {}: it is stopped", vm.vmid(), vm.host());
    context.events.publish(&claim, &Event::new(&event_reasons::STARTING_STOPPED_VM, note)).await;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_is_started_once_it_was_stopped_for_half_a_minute_without_a_break() {
        let (mut seen, at) = (StoppedVms::default(), |second| Timestamp::from_second(second).unwrap());
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        assert!(seen.due(&names(&["a", "b"]), at(0)).is_empty());
        assert_eq!(seen.names().count(), 2);
        assert!(seen.due(&names(&["a"]), at(20)).is_empty());
        assert_eq!(seen.due(&names(&["a", "b"]), at(30)), ["a"], "the other one ran meanwhile");
        assert!(seen.due(&names(&["b"]), at(59)).is_empty());
        assert_eq!(seen.due(&names(&["b"]), at(60)), ["b"]);
    }
}
