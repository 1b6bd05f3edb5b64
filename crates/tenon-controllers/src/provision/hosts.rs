//! What is left of each Proxmox machine: what it has, less what its guests may use at most, less what open claims hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use tenon_api::{MetadataType, NodeClaim, ProxmoxNodeClass, launch_record, names};
use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{Host, HostName, InstanceType, LaunchRecord, Place, Quantity, Resources, VmId};
use tenon_pve::GuestRow;

use super::gather::Gathered;
use super::host_load::loads;
use super::host_obstacles::{self, ClassOnHost};
use super::launch_site::LaunchSpot;
use crate::context::is_our_class;

/// Who makes nodes of which class: the name of a NodePool, and the name of its ProxmoxNodeClass.
pub(crate) type Makers = Vec<(String, String)>;

/// All NodePools of ours.
pub(crate) fn pools_of(gathered: &Gathered) -> Makers {
    let ours = gathered.pools.iter().filter(|pool| is_our_class(&pool.spec.template.spec.node_class_ref));
    ours.map(|pool| (pool.name_any(), pool.spec.template.spec.node_class_ref.name.clone())).collect()
}

/// The hosts of every region that answers, for those who make nodes.
pub(crate) fn hosts(gathered: &Gathered, types: &[InstanceType], makers: &Makers) -> Vec<Host> {
    let Gathered { estate, claims, .. } = gathered;
    let (mut hosts, mut loads) = (silent(gathered), loads(gathered, types));
    for (region, view) in &estate.regions {
        let Ok(resources) = view else { continue };
        let mut ordered = ordered_in(region, claims, types);
        let mut used: BTreeMap<&HostName, Resources> = BTreeMap::new();
        // Templates never run, nor do guests that are stopped and do not start with their host. Everything else may.
        let is_idle = |guest: &GuestRow| gathered.facts.idle.contains(&(region.clone(), guest.id));
        for guest in resources.guests.iter().filter(|guest| !guest.template && !is_idle(guest)) {
            // A VM of ours that was just made still has its template's size, or none in the listing.
            let ordered = ordered.remove(&guest.id).map(|(_, size)| size).unwrap_or_default();
            used.entry(&guest.host).or_default().add(&cpu_and_memory(guest.maxcpu, guest.maxmem).or_larger(&ordered));
        }
        for row in &resources.hosts {
            let rules = gathered.capacity_rules.get(region).cloned().unwrap_or_default().of(&row.host);
            let usable = rules.usable(row.maxcpu.unwrap_or_default(), row.maxmem.unwrap_or_default());
            let mut free = usable.without(used.get(&row.host).unwrap_or(&Resources::default()));
            // What is left of the orders is not made yet.
            for (_, size) in ordered.values().filter(|(host, _)| *host == row.host) {
                free = free.without(size);
            }
            let place = Place { region: region.clone(), host: row.host.clone() };
            let closed_for = closed_for(gathered, &place, makers);
            let ha_state = gathered.facts.ha_states.get(&place).map(String::as_str);
            let closed = host_obstacles::of_host(row, rules.excluded, ha_state);
            let load = loads.remove(&place);
            hosts.push(Host { place, closed, closed_for, capacity: usable, free, load });
        }
    }
    hosts
}

/// Who leaves a host alone for a while, and why.
fn closed_for(gathered: &Gathered, place: &Place, makers: &Makers) -> BTreeMap<String, String> {
    let has_seed_storage = gathered.estate.seed_storage(&place.region, place.host.as_str()).is_some();
    let why = |class: &ProxmoxNodeClass| {
        if class.spec.metadata_options.type_ == MetadataType::Cdrom && !has_seed_storage {
            return Some("no storage for ISO images has room for first-boot data; free space, or allow content type iso on another \
                 storage"
                    .to_owned());
        }
        let spot = LaunchSpot::of(class, place);
        let avoided = gathered.avoided.iter().find(|(avoided, _)| *avoided == spot).map(|(_, why)| why.clone());
        avoided
            .or_else(|| on_host(gathered, class, place))
            .or_else(|| gathered.addresses.obstacle(&class.name_any(), place))
    };
    let closed = gathered.classes.iter().filter_map(|class| Some((class.name_any(), why(class)?)));
    let closed: BTreeMap<String, String> = closed.collect();
    makers.iter().filter_map(|(maker, class)| Some((maker.clone(), closed.get(class)?.clone()))).collect()
}

/// Why a class can make no VM on a host for want of a storage or a bridge.
fn on_host(gathered: &Gathered, class: &ProxmoxNodeClass, place: &Place) -> Option<String> {
    let template = gathered.addresses.template(class, place);
    let bridges = gathered.facts.bridges.get(place).map(|bridges| bridges.as_slice()).unwrap_or_default();
    ClassOnHost { class, place, template, bridges }.obstacle(&gathered.estate)
}

/// Hosts of clusters that do not answer, as far as they are known from classes: nothing can be made there now.
fn silent(gathered: &Gathered) -> Vec<Host> {
    let zones = gathered.classes.iter().filter_map(|class| class.status.as_ref()?.selected_zones.clone()).flatten();
    let places: BTreeSet<Place> = zones.filter_map(|zone| place_of(&zone)).collect();
    let closed = |place: &Place| match gathered.estate.regions.get(&place.region) {
        Some(Ok(_)) => None,
        Some(Err(why)) => Some(format!("Proxmox API of region {} unavailable: {why}", place.region)),
        None => Some(format!("region {} is not in the cloud config", place.region)),
    };
    let host = |place: Place| {
        let closed = Some(closed(&place)?);
        let (capacity, free) = (Resources::default(), Resources::default());
        Some(Host { closed, place, closed_for: BTreeMap::new(), capacity, free, load: None })
    };
    places.into_iter().filter_map(host).collect()
}

/// The place in `region/host/template`.
pub(crate) fn place_of(zone: &str) -> Option<Place> {
    let mut parts = zone.splitn(3, '/');
    Some(Place { region: parts.next()?.to_owned(), host: parts.next()?.parse().ok()? })
}

/// Every launch that is written down for a region.
pub(crate) fn records_in<'a>(
    region: &'a str,
    claims: impl Iterator<Item = &'a NodeClaim>,
) -> impl Iterator<Item = LaunchRecord> {
    claims.filter_map(record_of).filter(move |record| record.place.region == region)
}

/// What open claims order in a region: for each id the host and what the VM takes from it.
fn ordered_in(
    region: &str,
    claims: &[Arc<NodeClaim>],
    types: &[InstanceType],
) -> BTreeMap<VmId, (HostName, Resources)> {
    let order = |claim: &NodeClaim| {
        let record = record_of(claim).filter(|record| record.place.region == region)?;
        let capacity = &instance_type_of(claim, types)?.capacity;
        let size = Resources::default().with(CPU, capacity.get(CPU)).with(MEMORY, capacity.get(MEMORY));
        Some((record.vmid, (record.place.host, size)))
    };
    claims.iter().map(AsRef::as_ref).filter_map(order).collect()
}

/// The launch written into a claim, if there is one that can be read.
pub(crate) fn record_of(claim: &NodeClaim) -> Option<LaunchRecord> {
    let text = claim.metadata.annotations.as_ref()?.get(names::ANNOTATION_LAUNCH)?;
    launch_record::read(text).ok()
}

/// The instance type a claim was created for.
pub(crate) fn instance_type_of<'a>(claim: &NodeClaim, types: &'a [InstanceType]) -> Option<&'a InstanceType> {
    let name = claim.metadata.labels.as_ref()?.get(names::LABEL_INSTANCE_TYPE)?;
    types.iter().find(|size| size.name == *name)
}

fn cpu_and_memory(cpus: Option<u64>, memory_bytes: Option<u64>) -> Resources {
    let whole = |amount: Option<u64>| Quantity::whole(i64::try_from(amount.unwrap_or_default()).unwrap_or(i64::MAX));
    Resources::default().with(CPU, whole(cpus)).with(MEMORY, whole(memory_bytes))
}
