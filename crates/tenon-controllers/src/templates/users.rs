//! What still needs a VM template that is to go: linked clones of its disks, launches, and classes that select it.

use std::collections::{BTreeMap, BTreeSet};

use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use tenon_api::ProxmoxNodeClass;
use tenon_engine::template::TemplateUsers;
use tenon_model::{LaunchRecord, LaunchStep, TemplateBuild, VmId};
use tenon_pve::ProvenVm;

use crate::claim_list::list_claims;
use crate::provision::record_of;

/// Names in a sentence. The others are only counted.
const NAMED: usize = 5;

/// NodeClaims and classes, as the API server has them now.
pub(super) struct Users {
    /// The launch of each NodeClaim, with the name of the NodeClaim.
    launches: Vec<(String, LaunchRecord)>,
    /// Classes that select a template, by `region/host/vmid`.
    classes: Vec<(String, String)>,
}

impl Users {
    pub(super) async fn read(workload: &Client) -> Result<Users, kube::Error> {
        let launches = list_claims(workload, |claim| Some((claim.name_any(), record_of(&claim)?))).await?;
        let api: Api<ProxmoxNodeClass> = Api::all(workload.clone());
        let zones = |class: ProxmoxNodeClass| {
            let zones = class.status.iter().flat_map(|status| status.selected_zones.iter().flatten());
            zones.map(|zone| (zone.clone(), class.name_any())).collect::<Vec<_>>()
        };
        let classes = api.list(&ListParams::default()).await?.items.into_iter().flat_map(zones).collect();
        Ok(Users { launches, classes })
    }
}

/// Who needs a template. What cannot be found out keeps it.
pub(super) async fn of(
    pve: &tenon_pve::Client,
    build: &TemplateBuild,
    proven: &ProvenVm,
    users: &Users,
) -> TemplateUsers {
    let region = &build.place.region;
    let in_region = || users.launches.iter().filter(|(_, launch)| launch.place.region == *region);
    let owner_of: BTreeMap<VmId, &str> = in_region().map(|(name, launch)| (launch.vmid, name.as_str())).collect();
    let clones = match linked_clones(pve, proven).await {
        Ok(clones) => clones,
        Err(error) => {
            let why =
                format!("cannot find out whether linked clones of VM {} exist: {}", build.vmid, error.full_message());
            return TemplateUsers::Unknown(why);
        }
    };
    let mut names: Vec<String> = clones
        .iter()
        .map(|id| owner_of.get(id).map_or_else(|| format!("VM {id}"), |claim| format!("VM {id} of NodeClaim {claim}")))
        .collect();
    // A clone that was made shows as one; a full one needs its template no more.
    let launching = in_region().filter(|(_, launch)| launch.template == build.vmid && launch.step == LaunchStep::Clone);
    names.extend(launching.map(|(claim, _)| format!("NodeClaim {claim}, which is being launched")));
    let end = format!("/{}", build.vmid);
    let selecting =
        users.classes.iter().filter(|(zone, _)| zone.starts_with(&format!("{region}/")) && zone.ends_with(&end));
    let selecting: BTreeSet<String> =
        selecting.map(|(_, class)| format!("ProxmoxNodeClass {class}, which selects it")).collect();
    names.extend(selecting);
    if names.is_empty() {
        return TemplateUsers::None;
    }
    let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let words = format!(
        "VM {} is kept while it is used by {}{more}; delete their NodeClaims, or wait",
        build.vmid,
        names.join(", ")
    );
    TemplateUsers::Some { count, words }
}

/// How many linked clones a template has, if that can be found out.
pub(super) async fn count(pve: &tenon_pve::Client, proven: &ProvenVm) -> Option<u32> {
    let clones = linked_clones(pve, proven).await.ok()?;
    u32::try_from(clones.len()).ok()
}

/// VMs with a disk that stands on a disk of this one, on every storage it has disks on.
async fn linked_clones(pve: &tenon_pve::Client, proven: &ProvenVm) -> Result<BTreeSet<VmId>, tenon_pve::Error> {
    let drives = proven.config().drives();
    let disks = drives.iter().filter(|(_, drive)| !drive.is_cdrom());
    let storages: BTreeSet<String> = disks.filter_map(|(_, drive)| drive.storage().map(str::to_owned)).collect();
    let base = format!("base-{}-disk-", proven.vmid());
    let mut clones = BTreeSet::new();
    for storage in storages {
        for volume in pve.volumes(proven.host(), &storage, "images").await? {
            let stands_on = volume.parent.as_deref().is_some_and(|parent| is_base(parent, &base));
            let owner = volume.vmid.and_then(|id| u32::try_from(id).ok()).and_then(|id| VmId::try_from(id).ok());
            clones.extend(owner.filter(|id| stands_on && *id != proven.vmid()));
        }
    }
    Ok(clones)
}

/// Storages name the image a clone stands on as a path, or by its name alone.
fn is_base(parent: &str, base: &str) -> bool {
    parent.rsplit('/').next().is_some_and(|name| name.starts_with(base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_a_clone_stands_on_is_known_on_every_kind_of_storage() {
        for parent in ["../1000/base-1000-disk-0.qcow2", "base-1000-disk-0", "base-1000-disk-1@__base__"] {
            assert!(is_base(parent, "base-1000-disk-"), "{parent}");
        }
        for parent in ["../11000/base-11000-disk-0.qcow2", "base-100-disk-0", "vm-1000-disk-0"] {
            assert!(!is_base(parent, "base-1000-disk-"), "{parent}");
        }
    }
}
