//! What new nodes can be launched from, as the engine needs it: templates, storages for first-boot data, VM ids and addresses
//! in use.

use std::collections::BTreeMap;

use kube::ResourceExt;
use tenon_api::{MetadataType, ProxmoxNodeClass};
use tenon_model::{BootImage, LaunchSite, Place, VmId, VmIds};

use super::claims::class_of;
use super::gather::Gathered;
use super::hosts::{place_of, pools_of, record_of};
use crate::context::is_our_class;

/// Where a launch failed: on a host, for a class, with the storage the class named then. Another class, or the same with
/// another storage, may well be launched there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaunchSpot {
    /// The host.
    pub place: Place,
    /// The ProxmoxNodeClass.
    pub class: String,
    /// The storage it names for its disk; unset: the template's.
    pub storage: Option<String>,
}

impl LaunchSpot {
    /// Where VMs of this class are made on a host.
    pub fn of(class: &ProxmoxNodeClass, place: &Place) -> LaunchSpot {
        let storage = class.spec.boot_device.storage.clone().filter(|storage| !storage.is_empty());
        LaunchSpot { place: place.clone(), class: class.name_any(), storage }
    }
}

/// What the nodes of every NodePool are launched from.
pub(crate) fn launch_site(gathered: &Gathered) -> LaunchSite {
    let ours = gathered.pools.iter().filter(|pool| is_our_class(&pool.spec.template.spec.node_class_ref));
    let image = |pool: &_| Some(boot_image(class_of(pool, gathered)?));
    let images = ours.filter_map(|pool| Some((pool.name_any(), image(&pool.spec.template.spec.node_class_ref.name)?)));
    let owners = pools_of(gathered);
    let addresses = gathered.addresses.site(owners.iter().map(|(pool, class)| (pool.clone(), class.as_str())));
    LaunchSite { addresses, ..site_of(images.collect(), gathered) }
}

/// What one node of a class is launched from; `owner` is what the plan calls its pool.
pub(crate) fn launch_site_for(owner: &str, class: &ProxmoxNodeClass, gathered: &Gathered) -> LaunchSite {
    let addresses = gathered.addresses.site([(owner.to_owned(), class.name_any().as_str())].into_iter());
    LaunchSite { addresses, ..site_of([(owner.to_owned(), boot_image(class))].into(), gathered) }
}

fn site_of(images: BTreeMap<String, BootImage>, gathered: &Gathered) -> LaunchSite {
    let places = images.values().flat_map(|image| image.templates.keys());
    let storage = |place: &Place| gathered.estate.seed_storage(&place.region, place.host.as_str());
    let seed_storages = places.filter_map(|place| Some((place.clone(), storage(place)?.to_owned()))).collect();
    LaunchSite { images, seed_storages, ids: ids_in_use(gathered), ..LaunchSite::default() }
}

fn boot_image(class: &ProxmoxNodeClass) -> BootImage {
    let zones = class.status.iter().flat_map(|status| status.selected_zones.iter().flatten());
    let mut templates = BTreeMap::new();
    // The first template that was selected for a host counts.
    for (place, template) in zones.filter_map(|zone| Some((place_of(zone)?, template_of(zone)?))) {
        templates.entry(place).or_insert(template);
    }
    BootImage { templates, has_seed: class.spec.metadata_options.type_ == MetadataType::Cdrom }
}

/// The template in `region/host/template`.
pub(crate) fn template_of(zone: &str) -> Option<VmId> {
    zone.splitn(3, '/').nth(2)?.parse().ok()
}

/// Ids in use in each region: by guests, by open claims, or by incomplete clones.
fn ids_in_use(gathered: &Gathered) -> VmIds {
    let mut ids = gathered.ids.clone();
    for (region, view) in &gathered.estate.regions {
        ids.take(region, view.iter().flat_map(|resources| &resources.guests).map(|guest| guest.id));
    }
    for record in gathered.claims.iter().filter_map(|claim| record_of(claim)) {
        ids.take(&record.place.region, record.retired.iter().copied().chain([record.vmid]));
        ids.begin_after(&record.place.region, record.vmid);
    }
    ids
}
