//! What is left of each Proxmox machine: what it has, less what its guests may use at most, less what open claims hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use tenon_api::{MetadataType, NodeClaim, ProxmoxNodeClass, launch_record, names};
use tenon_engine::cpu::Bound;
use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{Host, HostName, InstanceType, LaunchRecord, Pinning, Place, Quantity, Resources, VmId};
use tenon_pve::{GuestRow, HostRow};

use super::gather::Gathered;
use super::host_load::loads;
use super::host_obstacles::{self, ClassOnHost};
use super::launch_site::LaunchSpot;
use crate::context::is_our_class;
use crate::cpus::{HostUse, is_capacity_vm};

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
        let mut used: BTreeMap<&HostName, Used> = BTreeMap::new();
        // Templates never run, nor do guests that are stopped and do not start with their host, nor the one that only describes
        // its host. Everything else may.
        let is_idle = |guest: &GuestRow| gathered.facts.idle.contains(&(region.clone(), guest.id));
        let counts = |guest: &&GuestRow| !guest.template && !is_idle(guest) && !is_capacity_vm(guest);
        for guest in resources.guests.iter().map(AsRef::as_ref).filter(counts) {
            // A VM of ours that was just made still has its template's size, or none in the listing.
            let order = ordered.remove(&guest.id).unwrap_or_default();
            let size = cpu_and_memory(guest.maxcpu, guest.maxmem).or_larger(&order.size);
            let bound = gathered.cpus.binds().then(|| {
                let by_options = || gathered.cpus.bound(region, guest.id, whole_cpus(&size));
                order.pinning.as_ref().map_or_else(by_options, Bound::to)
            });
            used.entry(&guest.host).or_default().add(&size, bound);
        }
        // What is left of the orders is not made yet.
        for order in ordered.values() {
            let Some(host) = &order.host else { continue };
            let to_nothing = || Bound::to_nothing(whole_cpus(&order.size));
            let bound = order.pinning.as_ref().map_or_else(to_nothing, Bound::to);
            used.entry(host).or_default().add(&order.size, gathered.cpus.binds().then_some(bound));
        }
        for row in &resources.hosts {
            let used = used.remove(&row.host).unwrap_or_default();
            let place = Place { region: region.clone(), host: row.host.clone() };
            let closed_for = closed_for(gathered, &place, makers);
            let load = loads.remove(&place);
            hosts.push(Host { closed_for, load, ..left(gathered, row, (place, &used)) });
        }
    }
    hosts
}

/// What guests and orders have of a host.
#[derive(Debug, Default)]
struct Used {
    size: Resources,
    /// What they are bound to, where VMs are bound.
    bound: Vec<Bound>,
}

impl Used {
    fn add(&mut self, size: &Resources, bound: Option<Bound>) {
        self.size.add(size);
        self.bound.extend(bound);
    }
}

/// What is left of a host, for whoever makes nodes.
fn left(gathered: &Gathered, row: &HostRow, (place, used): (Place, &Used)) -> Host {
    let (cpus, memory_bytes) = (row.maxcpu.unwrap_or_default(), row.maxmem.unwrap_or_default());
    let left = gathered.cpus.left(&HostUse { place: &place, cpus, memory_bytes, guests: &used.bound });
    let mut rules = gathered.capacity_rules.get(&place.region).cloned().unwrap_or_default().of(&row.host);
    // What the settings of hosts keep back already is not kept back twice.
    let kept_back = memory_bytes.saturating_sub(left.usable.memory_bytes);
    rules.memory_reserve_bytes = rules.memory_reserve_bytes.saturating_sub(kept_back);
    let mut capacity = rules.usable(left.usable.cpus, left.usable.memory_bytes);
    let mut free = capacity.without(&used.size);
    if let Some(cpus) = left.cpus {
        free = free.with(CPU, Quantity::whole(cpus));
        capacity = capacity.or_larger(&free);
    }
    let ha_state = gathered.facts.ha_states.get(&place).map(String::as_str);
    let closed = host_obstacles::of_host(row, rules.excluded, ha_state).or(left.closed);
    Host { place, closed, closed_for: BTreeMap::new(), capacity, free, load: None, cpus: left.room }
}

fn whole_cpus(size: &Resources) -> u64 {
    u64::try_from(size.get(CPU).value()).unwrap_or_default()
}

/// Who makes nothing on a host, for a while or for want of something, and why. Whoever wants nothing of the host has no entry.
fn closed_for(gathered: &Gathered, place: &Place, makers: &Makers) -> BTreeMap<String, String> {
    let has_seed_storage = gathered.estate.seed_storage(&place.region, place.host.as_str()).is_some();
    let why = |class: &ProxmoxNodeClass| {
        if !host_obstacles::is_wanted(class, place) {
            return None;
        }
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
        Some(Host { closed, place, closed_for: BTreeMap::new(), capacity, free, load: None, cpus: None })
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

/// What an open claim orders.
#[derive(Debug, Default)]
struct Order {
    host: Option<HostName>,
    /// What the VM takes from its host.
    size: Resources,
    pinning: Option<Pinning>,
}

/// What open claims order in a region, by id of the VM.
fn ordered_in(region: &str, claims: &[Arc<NodeClaim>], types: &[InstanceType]) -> BTreeMap<VmId, Order> {
    let order = |claim: &NodeClaim| {
        let record = record_of(claim).filter(|record| record.place.region == region)?;
        let known = instance_type_of(claim, types)
            .map(|size| Resources::default().with(CPU, size.capacity.get(CPU)).with(MEMORY, size.capacity.get(MEMORY)));
        // What a VM is bound to is its size, too, whatever became of its instance type.
        let bound = |pinning: &Pinning| cpu_and_memory(Some(pinning.cpus().count()), Some(pinning.memory_mib() << 20));
        let size = known.or_else(|| record.pinning.as_ref().map(bound))?;
        Some((record.vmid, Order { host: Some(record.place.host), size, pinning: record.pinning }))
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
