//! What is left of each Proxmox machine: what it has, less what its guests may use at most, less what open claims hold.

use std::collections::{BTreeMap, BTreeSet};

use tenon_api::{NodeClaim, launch_record, names};
use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{Host, HostName, InstanceType, LaunchRecord, Place, Quantity, Resources, VmId};

use crate::status::Estate;

/// The hosts of every region that answers.
pub(crate) fn hosts(estate: &Estate, claims: &[NodeClaim], types: &[InstanceType]) -> Vec<Host> {
    let mut hosts = Vec::new();
    for (region, view) in &estate.regions {
        let Ok(resources) = view else { continue };
        let mut ordered = ordered_in(region, claims, types);
        let mut used: BTreeMap<&HostName, Resources> = BTreeMap::new();
        // Templates never run; everything else may, whatever it does now.
        for guest in resources.guests.iter().filter(|guest| !guest.template) {
            // A VM of ours that was just made still has its template's size, or none in the listing.
            let ordered = ordered.remove(&guest.id).map(|(_, size)| size).unwrap_or_default();
            used.entry(&guest.host).or_default().add(&amounts(guest.maxcpu, guest.maxmem).or_larger(&ordered));
        }
        for row in &resources.hosts {
            let mut free =
                amounts(row.maxcpu, row.maxmem).without(used.get(&row.host).unwrap_or(&Resources::default()));
            // What is left of the orders is not made yet.
            for (_, size) in ordered.values().filter(|(host, _)| *host == row.host) {
                free = free.without(size);
            }
            // Without its size a host cannot be planned with: it is away, or the token may not see it.
            let online = row.status.as_deref() == Some("online") && row.maxcpu.is_some() && row.maxmem.is_some();
            hosts.push(Host { place: Place { region: region.clone(), host: row.host.clone() }, online, free });
        }
    }
    hosts
}

/// What open claims order in a region: for each id the host and what the VM takes from it.
fn ordered_in(region: &str, claims: &[NodeClaim], types: &[InstanceType]) -> BTreeMap<VmId, (HostName, Resources)> {
    let order = |claim: &NodeClaim| {
        let record = record_of(claim).filter(|record| record.place.region == region)?;
        let capacity = &type_of(claim, types)?.capacity;
        let size = Resources::default().with(CPU, capacity.get(CPU)).with(MEMORY, capacity.get(MEMORY));
        Some((record.vmid, (record.place.host, size)))
    };
    claims.iter().filter_map(order).collect()
}

/// The launch written into a claim, if there is one that can be read.
pub(crate) fn record_of(claim: &NodeClaim) -> Option<LaunchRecord> {
    let text = claim.metadata.annotations.as_ref()?.get(names::ANNOTATION_LAUNCH)?;
    launch_record::read(text).ok()
}

/// The size a claim was made for.
pub(crate) fn type_of<'a>(claim: &NodeClaim, types: &'a [InstanceType]) -> Option<&'a InstanceType> {
    let name = claim.metadata.labels.as_ref()?.get(names::LABEL_INSTANCE_TYPE)?;
    types.iter().find(|size| size.name == *name)
}

/// Ids that are taken in each region: by guests, by open claims, or by what was left half-made.
pub(crate) fn taken_ids(estate: &Estate, claims: &[NodeClaim]) -> BTreeMap<String, BTreeSet<VmId>> {
    let mut taken: BTreeMap<String, BTreeSet<VmId>> = BTreeMap::new();
    for (region, view) in &estate.regions {
        let guests = view.iter().flat_map(|resources| &resources.guests).map(|guest| guest.id);
        taken.entry(region.clone()).or_default().extend(guests);
    }
    for record in claims.iter().filter_map(record_of) {
        let ids = taken.entry(record.place.region.clone()).or_default();
        ids.insert(record.vmid);
        ids.extend(record.retired);
    }
    taken
}

fn amounts(cpus: Option<u64>, memory_bytes: Option<u64>) -> Resources {
    let whole = |amount: Option<u64>| Quantity::whole(i64::try_from(amount.unwrap_or_default()).unwrap_or(i64::MAX));
    Resources::default().with(CPU, whole(cpus)).with(MEMORY, whole(memory_bytes))
}
