//! Which hosts are members of their Proxmox cluster, and which regions are configured: what has to be sure before a VM template
//! is given up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tenon_api::event_reasons;
use tenon_engine::WantedTemplates;
use tenon_model::TemplateBuild;
use tenon_pve::ClusterStatus;

use super::observe::is_denied;
use super::one::Run;
use crate::events::Event;

/// The state of a cluster comes at once. One that takes longer says nothing.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// What a cluster says of itself.
enum Reply {
    Status(ClusterStatus),
    /// The token may not ask.
    MayNotAsk,
    None,
}

impl Run<'_> {
    /// Where a listing lacks the host of a build, the cluster itself is asked: without quorum, or without an answer, nothing
    /// is concluded.
    pub(super) async fn doubt_members(&self, wanted: &mut WantedTemplates) {
        let lacks = |build: &&TemplateBuild| {
            let hosts = wanted.hosts.get(&build.place.region);
            hosts.is_some_and(|hosts| !hosts.contains(&build.place.host))
        };
        let regions: BTreeSet<String> =
            self.builds.iter().filter(lacks).map(|build| build.place.region.clone()).collect();
        for region in regions {
            match self.cluster_status(&region).await {
                Reply::Status(status) if status.quorate => {
                    let members = status.members.into_iter().map(|member| member.name);
                    wanted.hosts.entry(region).or_default().extend(members);
                }
                // A token that may not ask has the listing, which shows every member.
                Reply::MayNotAsk => {}
                Reply::Status(_) | Reply::None => drop(wanted.hosts.remove(&region)),
            }
        }
    }

    /// What a cluster says of itself.
    async fn cluster_status(&self, region: &str) -> Reply {
        let Some(pve) = self.context.regions.get(region) else { return Reply::None };
        match tokio::time::timeout(ANSWERED_WITHIN, pve.cluster_status()).await {
            Ok(Ok(status)) => Reply::Status(status),
            Ok(Err(error)) if is_denied(&error) => Reply::MayNotAsk,
            _ => Reply::None,
        }
    }

    /// Names the VM templates whose region was taken out of the cloud config: they are kept until it is back.
    pub(super) fn tell_regions(&mut self) {
        let mut ids: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for build in self.builds.iter().filter(|build| !self.work.estate.regions.contains_key(&build.place.region)) {
            ids.entry(&build.place.region).or_default().push(build.vmid.to_string());
        }
        let known = self.work.estate.regions.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let note = |(region, ids): (&str, Vec<String>)| {
            let ids = ids.join(", ");
            format!(
                "VM templates {ids} are kept and not touched: region {region} is not in the cloud config, which has {known}; \
                 add the region"
            )
        };
        let notes: Vec<String> = ids.into_iter().map(note).collect();
        let event = |note: &String| Event::new(&event_reasons::REGION_NOT_CONFIGURED, note.clone());
        self.events.extend(notes.iter().map(event));
        self.notes.extend(notes);
    }
}
