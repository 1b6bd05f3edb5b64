//! The VM templates that the status of an object names and its record does not: made by another controller, or on their way
//! out.

use std::collections::BTreeSet;

use tenon_api::event_reasons;
use tenon_model::{Place, TemplateBuild, VmId};

use super::adoption::{self, Adoption, Candidate};
use super::one::Run;
use super::sight::LOOK_WITHIN;
use crate::events::Event;
use crate::provision::{place_of, template_of};

/// What was found of them.
#[derive(Default)]
pub(super) struct Existing {
    /// Those that are ours from now on.
    pub(super) adopted: Vec<TemplateBuild>,
    /// Those of which nothing is known yet, as the status names them.
    pub(super) zones: Vec<String>,
    /// Where these are.
    pub(super) undecided: BTreeSet<Place>,
    pub(super) events: Vec<Event>,
    /// What is in the way of knowing.
    pub(super) notes: Vec<String>,
}

impl Existing {
    /// Looks at each of them.
    pub(super) async fn look(run: &Run<'_>) -> Existing {
        let mut existing = Existing::default();
        let zones = run.work.template().status.iter().flat_map(|status| status.zones.iter().flatten());
        for zone in zones {
            let (Some(place), Some(vmid)) = (place_of(zone), template_of(zone)) else { continue };
            let is_recorded = |build: &TemplateBuild| build.place.region == place.region && build.vmid == vmid;
            if !run.builds.iter().any(is_recorded) {
                existing.judge(run, zone, (place, vmid)).await;
            }
        }
        existing
    }

    async fn judge(&mut self, run: &Run<'_>, zone: &str, (place, vmid): (Place, VmId)) {
        let estate = run.work.estate;
        let unknown = |existing: &mut Existing| {
            existing.zones.push(zone.to_owned());
            existing.undecided.insert(place.clone());
        };
        let pve = match run.context.regions.client(&place.region) {
            Ok(pve) if estate.regions.contains_key(&place.region) => pve,
            Ok(_) => return unknown(self),
            // It may be back with the next cloud config, and its nodes still need their templates.
            Err(why) => {
                self.notes.push(format!("VM {vmid}, which status.zones names, is kept and not touched: {why}"));
                return unknown(self);
            }
        };
        if estate.is_silent(&place.region) {
            return unknown(self);
        }
        // What no listing shows is gone.
        let Some(host) = estate.host_of(&place.region, vmid) else { return };
        let place = Place { host: host.clone(), ..place.clone() };
        if !estate.is_online(&place) || run.context.memory.hangs(&place, run.now()) {
            return unknown(self);
        }
        let config = match tokio::time::timeout(LOOK_WITHIN, pve.vm_config(&place.host, vmid)).await {
            Ok(Ok(config)) => config,
            Ok(Err(error)) if error.is_not_found() => return,
            Ok(Err(_)) => return unknown(self),
            Err(_) => {
                run.context.memory.note_hanging(&place, run.now());
                return unknown(self);
            }
        };
        let mark = run.work.mark(vmid);
        let candidate = Candidate { name: run.work.name(), mark: &mark, place: &place, vmid, config: &config };
        let at = format!("VM {vmid} on host {}", place.host);
        match adoption::judge(&candidate) {
            Adoption::Ours => {}
            Adoption::Wait(why) => {
                self.notes.push(format!("{at}, which status.zones names, is not adopted yet: {why}"));
                self.zones.push(zone.to_owned());
                self.undecided.insert(place.clone());
            }
            Adoption::Refuse(why) => {
                let note = format!(
                    "{at}, which status.zones names, is left alone: {why}. Delete it yourself if nothing needs it"
                );
                self.events.push(Event::new(&event_reasons::TEMPLATE_LEFT_ALONE, note));
            }
            Adoption::Adopt(adopted) => {
                let mut build = adoption::record(&candidate, adopted, run.work.spec(), run.now());
                let row = estate.storage(&place.region, place.host.as_str(), &build.disk_storage);
                build.shared = row.is_some_and(|row| row.shared);
                self.events.push(Event::new(
                    &event_reasons::TEMPLATE_ADOPTED,
                    format!("Adopted VM template {vmid} on host {}", place.host),
                ));
                self.adopted.push(build);
            }
        }
    }
}
