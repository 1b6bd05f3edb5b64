//! The copy that a launch begins with: what it is made from, and when it is its turn.

use std::time::Duration;

use kube::ResourceExt;
use tenon_api::condition_reasons;
use tenon_engine::launch::LaunchResult;
use tenon_model::{LaunchStep, VmId, VmIds};

use super::ClaimError;
use super::clone_slots::{self, CloneRoute, NoSlot};
use super::desired_vm::{CloneSource, DesiredVm, disk_storage};
use super::launch::{Advance, Launch, REPORT_AFTER_S};
use super::outcome::Outcome;
use super::registration::template_place;
use crate::context::Context;
use crate::provision::records_in;
use crate::status::Verdict;

/// VM ids that are tried in one pass before it is left to the next.
const IDS: usize = 8;

/// Whoever waits for its turn to clone is woken when it comes; this is in case a call was lost.
const LOOK_AT_SLOTS: Duration = Duration::from_secs(5);

impl Launch<'_> {
    /// What the VM is copied from. It matters for the copy, and for the firewall, which comes with the copy.
    pub(super) async fn source(&self, context: &Context) -> CloneSource {
        let Launch { record, pve, .. } = self;
        if !matches!(record.step, LaunchStep::Clone | LaunchStep::Firewall) {
            return CloneSource::default();
        }
        let (place, reads) = (template_place(context, record).await, &context.regions.reads);
        // What the API token may not read is not known, and Proxmox says what is wrong with the copy.
        let config = reads.template(pve, &place, record.template).await.ok();
        let has_groups = self.class.spec.security_groups.iter().flatten().next().is_some();
        let rules = if has_groups { reads.rules(pve, &place, record.template).await.ok() } else { None };
        CloneSource {
            storage: config.as_deref().and_then(disk_storage),
            has_no_rules: rules.is_some_and(|rules| rules.is_empty()),
            host: Some(place.host).filter(|host| host != record.host()),
        }
    }

    /// Takes a slot for the clone that is about to be sent. One that was sent before a restart has its slot.
    pub(super) fn clone_slot(&self, context: &Context, desired: &DesiredVm<'_>) -> Result<(), NoSlot> {
        let Launch { claim, record, .. } = self;
        if record.step != LaunchStep::Clone {
            return Ok(());
        }
        let route = CloneRoute {
            region: record.place.region.clone(),
            host: desired.source.host.as_ref().unwrap_or(record.host()).clone(),
            storage: desired.clone_storage(),
        };
        if clone_slots::is_sent(record) {
            context.memory.clones.note(&claim.name_any(), &route);
            return Ok(());
        }
        context.memory.clones.take(&claim.name_any(), &route, context.settings.clones)
    }

    /// A clone that runs keeps its slot; one that ended, or was not sent, gives it back.
    pub(super) fn free_clone_slot(&self, context: &Context, result: &LaunchResult) {
        let is_running = match result {
            LaunchResult::Record(next) => clone_slots::is_sent(next),
            LaunchResult::Wait(_) => self.record.step == LaunchStep::Clone,
            _ => false,
        };
        if !is_running {
            context.memory.clones.give_back(&self.claim.name_any());
        }
    }

    /// Waits for its turn. That is no standstill: others go on.
    pub(super) fn queued(&self, context: &Context, why: &NoSlot) -> Advance {
        let outcome = Outcome::after(LOOK_AT_SLOTS);
        let lasts = context.clock.seconds().since(self.record.last_progress_at) > REPORT_AFTER_S;
        let note = format!("Waiting to clone template {}: {why}", self.record.template);
        let verdict = Verdict::unknown(&condition_reasons::CLONE_QUEUED, note);
        let outcome = if lasts { outcome.with_condition(&condition_reasons::LAUNCHED, verdict) } else { outcome };
        Advance::To(Box::new(outcome))
    }

    /// The next VM id that no guest has, no claim means to take, and is not in quarantine.
    pub(super) async fn another_id(&self, context: &Context) -> Result<Option<VmId>, ClaimError> {
        let Launch { record, pve, .. } = self;
        let region = &record.place.region;
        let mut ids = VmIds::new(context.settings.ids);
        context.ids.apply(&mut ids, context.clock.seconds()).await;
        ids.take(region, pve.resources().await?.guests.iter().map(|guest| guest.id));
        let claims = context.memory.with_fresh(context.watched.claims.state());
        for other in records_in(region, claims.iter().map(AsRef::as_ref)) {
            ids.begin_after(region, other.vmid);
            ids.take(region, other.retired.into_iter().chain([other.vmid]));
        }
        ids.take(region, [record.vmid]);
        for _ in 0..IDS {
            let Some(vmid) = ids.take_next(region) else { return Ok(None) };
            // A token with rights on a pool only does not see every VM, but may ask of every id.
            if pve.is_id_free(vmid).await? {
                context.ids.reserve(region, vmid, context.clock.seconds());
                return Ok(Some(vmid));
            }
        }
        Ok(None)
    }
}
