//! On which other hosts can a template be cloned to? Where all its disks lie on storages that both hosts share.

use std::collections::BTreeSet;

use futures::future::join_all;
use tenon_model::Place;
use tenon_pve::VmConfig;

use super::estate::Estate;
use crate::provision::{place_of, template_of};
use crate::regions::Regions;

/// The other places that a template at these zones reaches, as `region/host/template`.
pub(super) async fn reach(regions: &Regions, estate: &Estate, zones: &[String]) -> Vec<String> {
    let mut reached: Vec<String> = join_all(zones.iter().map(|zone| of(regions, estate, zone))).await.concat();
    reached.sort();
    reached.dedup();
    reached
}

async fn of(regions: &Regions, estate: &Estate, zone: &str) -> Vec<String> {
    let (Some(place), Some(id)) = (place_of(zone), template_of(zone)) else { return Vec::new() };
    // Of a host that does not answer, or a template that may not be read, nothing is known.
    let Some(pve) = regions.get(&place.region).filter(|_| estate.is_online(&place)) else { return Vec::new() };
    let Ok(config) = regions.reads.template(&pve, &place, id).await else { return Vec::new() };
    let Place { region, host } = &place;
    let others = estate.sharing(region, host.as_str(), &storages(&config));
    others.into_iter().map(|other| format!("{region}/{other}/{id}")).collect()
}

/// The storages that a clone is made on: those of disks, and of a cloud-init drive. An empty drive, or an image that is only
/// read, does not count where it is not shared: Proxmox refuses only what it has to copy.
fn storages(config: &VmConfig) -> BTreeSet<String> {
    let drives = config.drives();
    let copied = drives.iter().filter(|(_, drive)| !drive.is_cdrom() || drive.is_cloudinit());
    copied.filter_map(|(_, drive)| drive.storage().map(str::to_owned)).collect()
}
