//! On which hosts a ProxmoxTemplate should have a VM template, and why it cannot have one on others.

use std::collections::{BTreeMap, BTreeSet};

use tenon_api::{ProxmoxTemplateSpec, template_image};
use tenon_engine::{TemplateTarget, WantedTemplates};
use tenon_model::Place;
use tenon_pve::{Resources, StorageRow};

use super::desired::card_number;
use crate::status::Estate;

/// Where templates should be.
#[derive(Debug, Default)]
pub(super) struct Targets {
    pub(super) wanted: WantedTemplates,
    /// What is in the way where there should be one and none can be made, each as a sentence without a dot.
    pub(super) obstacles: Vec<String>,
    /// Whether a region that matters does not answer.
    pub(super) is_blind: bool,
}

/// What is wrong with a spec, as a sentence; nothing if templates can be made from it.
pub(super) fn fault(spec: &ProxmoxTemplateSpec) -> Option<String> {
    if *spec == ProxmoxTemplateSpec::default() {
        return Some("spec is missing; set at least spec.sourceImage, spec.storageIDs and spec.network".to_owned());
    }
    if let Err(why) = template_image::image_id(&spec.source_image) {
        return Some(why.to_string());
    }
    let source = &spec.source_image;
    if source.checksum.is_some() != source.checksum_type.is_some() {
        return Some(
            "spec.sourceImage.checksum and spec.sourceImage.checksumType belong together; set both".to_owned(),
        );
    }
    let mut numbers = BTreeSet::new();
    for (index, card) in spec.network.iter().enumerate() {
        let number = card_number(card, index);
        let is_named = card.name.as_ref().is_none_or(|name| *name == format!("net{number}"));
        if !is_named || number > 5 || !numbers.insert(number) {
            let name = card.name.clone().unwrap_or_else(|| format!("net{number}"));
            return Some(format!(
                "spec.network has a device named {name}; give each device its own name from net0 to net5"
            ));
        }
    }
    None
}

/// Looks at every region that matters.
pub(super) fn targets(spec: &ProxmoxTemplateSpec, estate: &Estate) -> Targets {
    let mut targets = Targets::default();
    if let Some(region) = spec.region.as_ref().filter(|region| !estate.regions.contains_key(*region)) {
        let known: Vec<&str> = estate.regions.keys().map(String::as_str).collect();
        targets.obstacles.push(format!("region {region} is not in the cloud config, which has {}", known.join(", ")));
        return targets;
    }
    targets.wanted.only_region.clone_from(&spec.region);
    let in_scope = estate.regions.iter().filter(|(name, _)| spec.region.as_ref().is_none_or(|wanted| wanted == *name));
    for (region, view) in in_scope {
        match view {
            Ok(resources) => targets.look_at(spec, region, resources),
            Err(trouble) => {
                targets.is_blind = true;
                targets.obstacles.push(format!("region {region}: {trouble}"));
            }
        }
    }
    targets
}

impl Targets {
    fn look_at(&mut self, spec: &ProxmoxTemplateSpec, region: &str, resources: &Resources) {
        let hosts = resources.hosts.iter().map(|row| row.host.clone()).collect();
        self.wanted.hosts.insert(region.to_owned(), hosts);
        let mut rows: Vec<_> = resources.hosts.iter().collect();
        rows.sort_by(|a, b| a.host.cmp(&b.host));
        let mut shared: BTreeMap<String, TemplateTarget> = BTreeMap::new();
        for row in rows {
            let place = Place { region: region.to_owned(), host: row.host.clone() };
            if row.status.as_deref() != Some("online") {
                self.obstacles.push(format!("host {} is {}", row.host, row.status.as_deref().unwrap_or("not online")));
                continue;
            }
            let first = |content: &str| first_storage(spec, resources, &place, content);
            let (Some(image), Some(disk)) = (first("import"), first("images")) else {
                self.obstacles.push(storages_missing(
                    spec,
                    &place,
                    first("import").is_some(),
                    first("images").is_some(),
                ));
                self.wanted.unfit.insert(place);
                continue;
            };
            let target = TemplateTarget {
                place,
                image_storage: image.storage.clone(),
                disk_storage: disk.storage.clone(),
                shared: disk.shared,
            };
            if disk.shared {
                // The first host by name makes the one template of a shared storage.
                shared.entry(disk.storage.clone()).or_insert(target);
            } else {
                self.wanted.targets.push(target);
            }
        }
        self.wanted.targets.extend(shared.into_values());
    }
}

/// The first storage of the spec that works on a host and takes some content.
fn first_storage<'a>(
    spec: &ProxmoxTemplateSpec,
    resources: &'a Resources,
    place: &Place,
    content: &str,
) -> Option<&'a StorageRow> {
    let rows = resources.storages.iter().map(AsRef::as_ref);
    let mut rows: Vec<&StorageRow> = rows.filter(|row| row.host == place.host && row.takes(content)).collect();
    let rank = |row: &StorageRow| spec.storage_ids.iter().position(|name| *name == row.storage);
    rows.retain(|row| rank(row).is_some());
    rows.into_iter().min_by_key(|row| rank(row))
}

fn storages_missing(spec: &ProxmoxTemplateSpec, place: &Place, has_import: bool, has_images: bool) -> String {
    let contents = match (has_import, has_images) {
        (false, false) => "content types import and images",
        (false, true) => "content type import (disk images to import)",
        _ => "content type images (disks of VMs)",
    };
    format!(
        "host {} has no storage of spec.storageIDs ({}) with {contents}, or the API token cannot see it (Datastore.Audit)",
        place.host,
        spec.storage_ids.join(", ")
    )
}
