//! Whether VMs of a ProxmoxNodeClass can be made, and where.

use tenon_api::condition_reasons::{
    ADDRESSES_INVALID, INSTANCE_METADATA_OPTIONS_READY, INSTANCE_TEMPLATE_READY, PROXMOX_ACCESS_DENIED,
    TEMPLATES_NOT_FOUND,
};
use tenon_api::{Addresses, InstanceTemplateKind, MetadataType, ProxmoxNodeClassSpec};

use super::Verdict;
use super::estate::Estate;
use crate::first_boot::NoFirstBoot;

/// The conditions of a class.
pub(crate) const TEMPLATE_READY: &str = INSTANCE_TEMPLATE_READY.name();
pub(crate) const METADATA_READY: &str = INSTANCE_METADATA_OPTIONS_READY.name();
/// Those that make it ready.
pub(crate) const CLASS_CONDITIONS: &[&str] = &[TEMPLATE_READY, METADATA_READY];

/// Where VMs can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassVerdict {
    /// Each place as `region/host/template`.
    pub selected_zones: Vec<String>,
    /// The condition of its template.
    pub template: Verdict,
    /// The condition of its first-boot data.
    pub metadata: Verdict,
}

/// The template a class names.
#[derive(Debug, Clone, Copy)]
pub struct ObservedTemplate<'a> {
    /// Where it was found.
    pub zones: &'a [String],
    /// Where it can be cloned to besides, because its disks lie on a shared storage.
    pub reach: &'a [String],
    /// What it says of itself.
    pub ready: &'a Verdict,
}

/// Judges a class by its template; `None` if there is no such template object.
/// `first_boot` tells whether its VMs can be given first-boot data.
pub fn judge_class(
    spec: &ProxmoxNodeClassSpec,
    found: Option<ObservedTemplate<'_>>,
    estate: &Estate,
    first_boot: &Result<(), NoFirstBoot>,
) -> ClassVerdict {
    let selected_zones = found.map(|found| select(spec, found, estate)).unwrap_or_default();
    let name = &spec.instance_template_ref.name;
    let template = if spec.is_absent() {
        Verdict::fails(&TEMPLATES_NOT_FOUND, "spec is missing; set at least spec.instanceTemplateRef")
    } else if let Some(Err(why)) = spec.addresses.as_ref().map(Addresses::read) {
        Verdict::fails(&ADDRESSES_INVALID, why)
    } else {
        match found {
            None => Verdict::fails(&TEMPLATES_NOT_FOUND, format!("{} {name} does not exist; create it", kind(spec))),
            Some(found) if selected_zones.is_empty() => {
                Verdict::fails(&TEMPLATES_NOT_FOUND, nowhere(spec, found, estate))
            }
            Some(_) => estate.refusal_of(&selected_zones).map_or_else(
                || Verdict::holds(&INSTANCE_TEMPLATE_READY),
                |why| Verdict::fails(&PROXMOX_ACCESS_DENIED, why),
            ),
        }
    };
    ClassVerdict { selected_zones, template, metadata: metadata(first_boot) }
}

/// One place for each host: the first template there, on a host that has what the class needs. Of a region that does not
/// answer nothing is known, and what was selected stays so.
fn select(spec: &ProxmoxNodeClassSpec, found: ObservedTemplate<'_>, estate: &Estate) -> Vec<String> {
    let mut selected: Vec<String> = Vec::new();
    let sorted = |zones: &[String]| {
        let mut sorted = zones.to_vec();
        // Of several on a host the one with the lowest id: a number, so that 9001 comes before 10000.
        sorted.sort_by_cached_key(|zone| {
            let (place, id) = zone.rsplit_once('/').unwrap_or((zone, ""));
            (place.to_owned(), id.parse::<u32>().unwrap_or(u32::MAX))
        });
        sorted
    };
    // A template on the host itself comes before one on a shared storage that lies on another.
    let near = sorted(found.zones).into_iter().map(|zone| (zone, false));
    for (zone, is_far) in near.chain(sorted(found.reach).into_iter().map(|zone| (zone, true))) {
        let mut parts = zone.splitn(3, '/');
        let (Some(region), Some(host)) = (parts.next(), parts.next()) else { continue };
        let in_region = spec.region.as_ref().is_none_or(|wanted| wanted == region);
        let is_fit = estate.is_silent(region) || has_storages(spec, estate, (region, host));
        // Proxmox copies to another host only onto a storage that both share.
        let is_shared = |storage| estate.storage(region, host, storage).is_some_and(|row| row.shared);
        let is_fit = is_fit && (!is_far || storage(spec).is_none_or(is_shared));
        let is_excluded = spec.placement_strategy.excludes(host);
        let is_first = !selected.iter().any(|taken| taken.starts_with(&format!("{region}/{host}/")));
        if in_region && is_fit && is_first && !is_excluded {
            selected.push(zone);
        }
    }
    selected.sort();
    selected
}

/// The hosts that would be selected if none were excluded, in words; nothing if there are none.
fn all_excluded(spec: &ProxmoxNodeClassSpec, found: ObservedTemplate<'_>, estate: &Estate) -> Option<String> {
    let mut open = spec.clone();
    open.placement_strategy.excluded_hosts.take()?;
    let selected = select(&open, found, estate);
    let hosts: Vec<&str> = selected.iter().filter_map(|zone| zone.split('/').nth(1)).collect();
    (!hosts.is_empty()).then(|| hosts.join(", "))
}

fn has_storages(spec: &ProxmoxNodeClassSpec, estate: &Estate, (region, host): (&str, &str)) -> bool {
    storage(spec).is_none_or(|storage| estate.has_storage(region, host, storage))
        && (!needs_seed(spec) || estate.takes_seeds(region, host))
}

fn needs_seed(spec: &ProxmoxNodeClassSpec) -> bool {
    spec.metadata_options.type_ == MetadataType::Cdrom
}

fn storage(spec: &ProxmoxNodeClassSpec) -> Option<&str> {
    spec.boot_device.storage.as_deref().filter(|storage| !storage.is_empty())
}

fn nowhere(spec: &ProxmoxNodeClassSpec, found: ObservedTemplate<'_>, estate: &Estate) -> String {
    let name = &spec.instance_template_ref.name;
    let at = found.zones.join(", ");
    if let Some(hosts) = all_excluded(spec, found, estate) {
        return format!(
            "spec.placementStrategy.excludedHosts names every host on which VMs of template {name} can be created ({hosts}); \
             remove a host from the list, or put the template on another host"
        );
    }
    let host_of = |zone: &String| zone.splitn(3, '/').take(2).map(str::to_owned).collect::<Vec<_>>();
    let takes_seeds = found.zones.iter().map(host_of).any(|parts| match parts.as_slice() {
        [region, host] => estate.takes_seeds(region, host),
        _ => false,
    });
    let is_blind = !found.zones.iter().map(host_of).any(|parts| match parts.as_slice() {
        [region, host] => estate.shows_storages(region, host),
        _ => false,
    });
    match storage(spec) {
        _ if found.zones.is_empty() => format!("{} {name}: {}", kind(spec), found.ready.message()),
        _ if is_blind => format!(
            "the API token sees no storage on the hosts of template {name}; grant Datastore.Audit on the storages of one of \
             these hosts: {at}"
        ),
        Some(storage) => format!(
            "no host of template {name} has storage {storage} available, or the API token cannot see it (Datastore.Audit); \
             the template is at {at}"
        ),
        None if needs_seed(spec) && !takes_seeds => format!(
            "no host of template {name} has a storage for ISO images, which first-boot data needs, or the API token cannot see \
             it; grant Datastore.Audit on such a storage, or allow content type iso on a storage of one of these hosts: {at}"
        ),
        None => format!("template {name} does not exist in region {}", spec.region.as_deref().unwrap_or_default()),
    }
}

/// The kind of the template a class names.
fn kind(spec: &ProxmoxNodeClassSpec) -> &'static str {
    match spec.instance_template_ref.kind {
        InstanceTemplateKind::ProxmoxTemplate => "ProxmoxTemplate",
        InstanceTemplateKind::ProxmoxUnmanagedTemplate => "ProxmoxUnmanagedTemplate",
    }
}

fn metadata(first_boot: &Result<(), NoFirstBoot>) -> Verdict {
    match first_boot {
        Ok(()) => Verdict::holds(&INSTANCE_METADATA_OPTIONS_READY),
        Err(NoFirstBoot { reason, message }) => Verdict::fails(reason, message.clone()),
    }
}
