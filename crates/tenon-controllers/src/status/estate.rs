//! What every Proxmox cluster shows at one look, or why it shows nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenon_model::{HostName, Place, VmId};
use tenon_pve::{Cause, Error, GuestKind, RefusalKind, Resources, StorageRow};

use super::template_candidates::tags_of;
use crate::regions::Regions;

/// More than any seed is large.
const SEED_BYTES: u64 = 4 << 20;

/// Whether a seed fits onto a storage, as far as is known.
pub(crate) fn has_room_for_seed(storage: &StorageRow) -> bool {
    storage.free() > SEED_BYTES
}

/// All clusters, by region.
#[derive(Debug, Clone, Default)]
pub struct Estate {
    /// Each region with what it shows.
    pub regions: BTreeMap<String, RegionView>,
}

/// One cluster: its listing, or why there is none.
pub type RegionView = Result<Arc<Resources>, RegionTrouble>;

/// Why a cluster shows nothing, and what to do: one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegionTrouble {
    /// It does not answer. What was known of it stays true until it does.
    #[error("{0}")]
    Silent(String),
    /// It answers, and refuses: the token is wrong or lacks a privilege. Nothing can be created there until that is mended.
    #[error("{0}")]
    Refused(String),
}

impl From<&Error> for RegionTrouble {
    fn from(error: &Error) -> RegionTrouble {
        let is_refused = matches!(
            error.refusal().map(|refusal| &refusal.kind),
            Some(RefusalKind::Unauthorized | RefusalKind::Denied { .. })
        );
        if is_refused { RegionTrouble::Refused(explain(error)) } else { RegionTrouble::Silent(explain(error)) }
    }
}

/// A template of somebody's, as the listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateRow {
    pub(crate) zone: String,
    pub(crate) name: String,
    pub(crate) tags: Vec<String>,
}

impl Estate {
    /// Looks at every cluster that answers, once.
    pub async fn look(regions: &Regions) -> Estate {
        regions.look().await
    }

    /// Why regions that matter show nothing, as one text; empty if all do.
    pub(crate) fn troubles(&self, region: Option<&str>) -> String {
        let of_interest = self.regions.iter().filter(|(name, _)| region.is_none_or(|wanted| wanted == *name));
        let troubles = of_interest.filter_map(|(name, view)| Some(format!("region {name}: {}", view.as_ref().err()?)));
        troubles.collect::<Vec<_>>().join("; ")
    }

    /// Templates in the regions that answer, as `region/host/vmid`.
    pub(crate) fn templates(&self, region: Option<&str>) -> Vec<TemplateRow> {
        let of_interest = self.regions.iter().filter(|(name, _)| region.is_none_or(|wanted| wanted == *name));
        let shown = of_interest.filter_map(|(name, view)| Some((name, view.as_ref().ok()?)));
        let rows = shown.flat_map(|(name, resources)| resources.guests.iter().map(move |guest| (name, guest)));
        rows.filter(|(_, guest)| guest.template && guest.kind == GuestKind::Qemu)
            .map(|(name, guest)| TemplateRow {
                zone: format!("{name}/{}/{}", guest.host, guest.id),
                name: guest.name.clone().unwrap_or_default(),
                tags: tags_of(guest),
            })
            .collect()
    }

    /// The storage of a host that takes seeds: the one with the most room, by name where they are alike. One without any
    /// room is no storage.
    pub(crate) fn seed_storage(&self, region: &str, host: &str) -> Option<&str> {
        let resources = self.regions.get(region).and_then(|view| view.as_ref().ok())?;
        let rows = resources.storages.iter().filter(|row| row.host.as_str() == host && row.takes("iso"));
        let roomy = rows.filter(|row| has_room_for_seed(row));
        let best = roomy.max_by(|a, b| a.free().cmp(&b.free()).then_with(|| b.storage.cmp(&a.storage)))?;
        Some(&best.storage)
    }

    /// Why every one of these zones is refused, if it is: a token that is wrong for all of them.
    pub(crate) fn refusal_of(&self, zones: &[String]) -> Option<String> {
        let region = |zone: &String| zone.split('/').next().unwrap_or_default().to_owned();
        let regions: BTreeSet<String> = zones.iter().map(region).collect();
        let refusal = |name: &String| match self.regions.get(name) {
            Some(Err(RegionTrouble::Refused(why))) => Some(format!("region {name}: {why}")),
            _ => None,
        };
        let refusals: Option<Vec<String>> = regions.iter().map(refusal).collect();
        refusals.filter(|refusals| !refusals.is_empty()).map(|refusals| refusals.join("; "))
    }

    /// Whether a listing shows any storage of a host: a token without rights on storages sees none.
    pub(crate) fn shows_storages(&self, region: &str, host: &str) -> bool {
        let resources = self.regions.get(region).and_then(|view| view.as_ref().ok());
        resources.is_some_and(|resources| resources.storages.iter().any(|row| row.host.as_str() == host))
    }

    /// Whether a region does not answer.
    pub(crate) fn is_silent(&self, region: &str) -> bool {
        self.regions.get(region).is_some_and(Result::is_err)
    }

    /// Whether a host has a storage for seeds, full or not.
    pub(crate) fn takes_seeds(&self, region: &str, host: &str) -> bool {
        let resources = self.regions.get(region).and_then(|view| view.as_ref().ok());
        let mut rows = resources.into_iter().flat_map(|resources| &resources.storages);
        rows.any(|row| row.host.as_str() == host && row.takes("iso"))
    }

    /// The row of a storage on a host, if it is listed.
    pub(crate) fn storage(&self, region: &str, host: &str, storage: &str) -> Option<&StorageRow> {
        let resources = self.regions.get(region).and_then(|view| view.as_ref().ok())?;
        resources.storages.iter().map(AsRef::as_ref).find(|row| row.storage == storage && row.host.as_str() == host)
    }

    /// Whether a host answers.
    pub(crate) fn is_online(&self, place: &Place) -> bool {
        let resources = self.regions.get(&place.region).and_then(|view| view.as_ref().ok());
        let mut rows = resources.into_iter().flat_map(|resources| &resources.hosts);
        rows.any(|row| row.host == place.host && row.status.as_deref() == Some("online"))
    }

    /// Whether a region that answers says that a host does not.
    pub(super) fn is_offline(&self, region: &str, host: &str) -> bool {
        let resources = self.regions.get(region).and_then(|view| view.as_ref().ok());
        let mut rows = resources.into_iter().flat_map(|resources| &resources.hosts);
        rows.any(|row| row.host.as_str() == host && row.status.as_deref() != Some("online"))
    }

    /// The host that a guest is on now.
    pub(crate) fn host_of(&self, region: &str, id: VmId) -> Option<&HostName> {
        let resources = self.regions.get(region).and_then(|view| view.as_ref().ok())?;
        resources.guests.iter().find(|guest| guest.id == id).map(|guest| &guest.host)
    }

    /// Other hosts of a region on which all these storages are the same ones and work.
    pub(crate) fn sharing(&self, region: &str, host: &str, storages: &BTreeSet<String>) -> Vec<HostName> {
        let Some(Ok(resources)) = self.regions.get(region) else { return Vec::new() };
        let is_shared = |host: &str, storage: &str| {
            self.storage(region, host, storage)
                .is_some_and(|row| row.shared && row.status.as_deref() == Some("available"))
        };
        let shares = |host: &str| !storages.is_empty() && storages.iter().all(|storage| is_shared(host, storage));
        let others = resources.hosts.iter().map(|row| &row.host).filter(|other| other.as_str() != host);
        others.filter(|other| shares(host) && shares(other.as_str())).cloned().collect()
    }

    /// Whether a storage works on a host.
    pub(crate) fn has_storage(&self, region: &str, host: &str, storage: &str) -> bool {
        let resources = self.regions.get(region).and_then(|view| view.as_ref().ok());
        resources.is_some_and(|resources| {
            resources.storages.iter().any(|row| {
                row.storage == storage && row.host.as_str() == host && row.status.as_deref() == Some("available")
            })
        })
    }
}

/// The trouble in a user's words, with the next move.
fn explain(error: &Error) -> String {
    let next = match (error.cause(), error.refusal().map(|refusal| &refusal.kind)) {
        (Cause::NotSent(_), _) => {
            "check the address and the certificate settings in the cloud config, and that pveproxy runs on the host"
        }
        (_, Some(RefusalKind::Unauthorized)) => "check the token and its secret, and whether it has expired",
        (_, Some(RefusalKind::Denied { .. })) => "give the token the privilege named",
        _ => "retrying",
    };
    format!("{}; {next}", error.full_message())
}
