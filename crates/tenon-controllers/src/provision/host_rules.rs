//! How do those who make nodes choose among hosts? What their ProxmoxNodeClass says, and what they have on each host.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use tenon_api::{NodeClaim, ProxmoxNodeClass, names};
use tenon_model::{HostRules, HostStrategy, Place, ProviderId, VmId};

use super::claims::class_of;
use super::gather::Gathered;
use super::hosts::{Makers, record_of};

/// The rules of every NodePool.
pub(crate) fn host_rules(gathered: &Gathered, makers: &Makers) -> BTreeMap<String, HostRules> {
    let rules = |(pool, class): &(String, String)| {
        let is_its = |claim: &NodeClaim| pool_of(claim) == Some(pool);
        Some((pool.clone(), rules_of(gathered, class_of(class, gathered)?, is_its)))
    };
    makers.iter().filter_map(rules).collect()
}

/// The rules for a claim that is planned alone: it counts with those of its NodePool, or else with all of its
/// ProxmoxNodeClass that have none.
pub(crate) fn host_rules_for(claim: &NodeClaim, class: &ProxmoxNodeClass, gathered: &Gathered) -> HostRules {
    let is_alike = |other: &NodeClaim| {
        let same_class = other.spec.node_class_ref == claim.spec.node_class_ref;
        pool_of(other) == pool_of(claim) && (same_class || pool_of(claim).is_some())
    };
    rules_of(gathered, class, is_alike)
}

fn rules_of(gathered: &Gathered, class: &ProxmoxNodeClass, is_its: impl Fn(&NodeClaim) -> bool) -> HostRules {
    let placement = &class.spec.placement_strategy;
    let strategy = placement.strategy();
    let claims = || gathered.claims.iter().map(AsRef::as_ref).filter(|claim| is_its(claim));
    let mut rules = HostRules {
        strategy,
        min_available: placement.min_available(),
        excluded: excluded(gathered, class),
        goal: placement.goal(),
        ..HostRules::default()
    };
    match strategy {
        HostStrategy::Spread => rules.vms = vms(gathered, claims()),
        // A host that others have VMs on is in use, too.
        HostStrategy::Pack => rules.vms = vms(gathered, gathered.claims.iter().map(AsRef::as_ref)),
        HostStrategy::RoundRobin => rules.last = newest(claims()),
        HostStrategy::Balanced | HostStrategy::MaxMemory | HostStrategy::MaxCpu | HostStrategy::BalancedLoad => {}
    }
    rules
}

/// How many VMs of these claims each host has. Those that are being deleted do not count.
fn vms<'c>(gathered: &Gathered, claims: impl Iterator<Item = &'c NodeClaim>) -> BTreeMap<Place, u32> {
    let mut vms = BTreeMap::new();
    let stays = claims.filter(|claim| claim.metadata.deletion_timestamp.is_none());
    for place in stays.filter_map(|claim| vm_place(gathered, claim)) {
        *vms.entry(place).or_default() += 1;
    }
    vms
}

/// Hosts of the regions of a class that it excludes.
fn excluded(gathered: &Gathered, class: &ProxmoxNodeClass) -> BTreeSet<Place> {
    let placement = &class.spec.placement_strategy;
    let is_its = |region: &str| class.spec.region.as_deref().is_none_or(|wanted| wanted == region);
    let regions = gathered.estate.regions.iter().filter(|(region, _)| is_its(region));
    let rows = regions
        .flat_map(|(region, view)| view.iter().flat_map(move |shown| shown.hosts.iter().map(move |row| (region, row))));
    let excluded = rows.filter(|(_, row)| placement.excludes(row.host.as_str()));
    excluded.map(|(region, row)| Place { region: region.clone(), host: row.host.clone() }).collect()
}

/// Where the launch was planned last. Claims are created in the order of a plan, with VM ids that go up; several in a second.
fn newest<'c>(claims: impl Iterator<Item = &'c NodeClaim>) -> Option<Place> {
    let planned = claims.filter_map(|claim| Some((claim.creation_timestamp(), record_of(claim)?)));
    planned.max_by_key(|(created, record)| (created.clone(), record.vmid)).map(|(_, record)| record.place)
}

/// Where the VM of a claim is: the listing knows where one went that was migrated.
fn vm_place(gathered: &Gathered, claim: &NodeClaim) -> Option<Place> {
    let record = record_of(claim);
    let told = || claim.status.as_ref()?.provider_id.as_deref()?.parse::<ProviderId>().ok();
    let (region, vmid): (String, VmId) = match &record {
        Some(record) => (record.place.region.clone(), record.vmid),
        None => told().and_then(|id| Some((id.region()?.to_owned(), id.vmid())))?,
    };
    let shown = gathered.estate.regions.get(&region).and_then(|view| view.as_ref().ok());
    let guests = shown.map(|shown| shown.guests.as_slice()).unwrap_or_default();
    let found = guests.binary_search_by_key(&vmid, |guest| guest.id).ok().and_then(|at| guests.get(at));
    let host = found.map(|guest| guest.host.clone()).or_else(|| record.map(|record| record.place.host))?;
    Some(Place { region, host })
}

fn pool_of(claim: &NodeClaim) -> Option<&String> {
    claim.labels().get(names::LABEL_NODEPOOL)
}
