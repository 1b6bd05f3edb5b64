//! Whose turn is it to load a host? A download or import takes a host's disks and its link for minutes, so a host does one at a
//! time, and a region only a few.

use std::collections::BTreeMap;

use tenon_engine::template::TemplateChange;
use tenon_model::{HostName, TemplateBuild, TemplateStep};

use crate::status::Estate;

/// Hosts of a region that download or import at the same time: enough to fill the link to most image servers and a shared
/// storage, few enough to leave something of both to the VMs.
pub(super) const HOSTS_AT_ONCE: usize = 4;

/// Who downloads or imports, in every region.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The UUID of the VM template that a host works on, by region.
    busy: BTreeMap<String, BTreeMap<HostName, String>>,
}

impl Turns {
    /// The turns of builds as they were written down. What a host had begun that does not answer holds up no other.
    pub(super) fn of<'a>(builds: impl Iterator<Item = &'a TemplateBuild>, estate: &Estate) -> Turns {
        let mut turns = Turns::default();
        let is_at_work = |build: &&TemplateBuild| {
            let is_heavy = matches!(build.step, TemplateStep::Download | TemplateStep::Create);
            is_heavy && build.upid.is_some() && estate.is_online(&build.place)
        };
        for build in builds.filter(is_at_work) {
            let region = turns.busy.entry(build.place.region.clone()).or_default();
            region.entry(build.place.host.clone()).or_insert_with(|| build.uuid.clone());
        }
        turns
    }

    /// Takes a turn for a change, or says what it waits for. A build keeps its turn from its download to its import.
    pub(super) fn take(&mut self, build: &TemplateBuild, change: TemplateChange) -> Result<(), String> {
        if !matches!(change, TemplateChange::Download | TemplateChange::Create) {
            return Ok(());
        }
        let (region, host) = (&build.place.region, &build.place.host);
        let busy = self.busy.entry(region.clone()).or_default();
        match busy.get(host) {
            Some(uuid) if *uuid == build.uuid => return Ok(()),
            Some(_) => {
                return Err(format!("VM template {} waits until host {host} has made another one", build.vmid));
            }
            None => {}
        }
        if busy.len() >= HOSTS_AT_ONCE {
            return Err(format!(
                "host {host} waits for its turn: in region {region}, {HOSTS_AT_ONCE} hosts download or import images at the \
                 same time"
            ));
        }
        busy.insert(host.clone(), build.uuid.clone());
        Ok(())
    }
}
