//! Which NodeClaims have their VM on a host that Proxmox lists as offline?
//!
//! Their nodes are replaced elsewhere as other broken nodes are. Their VMs are left as they are until the host answers again, because
//! nothing proves before that a VM is ours; and a host that was removed from its Proxmox cluster has no VMs any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use tenon_api::NodeClaim;
use tenon_model::LaunchRecord;
use tenon_pve::Resources;

use crate::context::Context;
use crate::provision::record_of;

/// How Proxmox calls a host that its cluster has lost.
const OFFLINE: &str = "offline";

/// The names of such claims, if an operator wants their nodes replaced, and their Proxmox cluster has quorum.
pub(super) async fn claims_on_offline_hosts(context: &Context, claims: &[Arc<NodeClaim>]) -> BTreeSet<String> {
    if !context.settings.planning.repair_offline_hosts {
        return BTreeSet::new();
    }
    let records: Vec<(String, LaunchRecord)> =
        claims.iter().filter_map(|claim| Some((claim.name_any(), record_of(claim)?))).collect();
    let mut listings: BTreeMap<&str, Option<Arc<Resources>>> = BTreeMap::new();
    for (_, record) in &records {
        let region = record.place.region.as_str();
        if !listings.contains_key(region) {
            listings.insert(region, context.regions.polled(region).await);
        }
    }
    let is_on_one = |record: &LaunchRecord| {
        let listing = listings.get(record.place.region.as_str()).and_then(Option::as_deref);
        listing.is_some_and(|listing| offline_host(listing, record).is_some())
    };
    let found: Vec<(&str, &String)> = records
        .iter()
        .filter(|(_, record)| is_on_one(record))
        .map(|(name, record)| (record.place.region.as_str(), name))
        .collect();
    let mut quorate = BTreeMap::new();
    for (region, _) in &found {
        if !quorate.contains_key(region) {
            quorate.insert(*region, is_quorate(context, region).await);
        }
    }
    found
        .into_iter()
        .filter(|(region, _)| quorate.get(region).is_some_and(|is_quorate| *is_quorate))
        .map(|(_, name)| name.clone())
        .collect()
}

/// Whether a Proxmox cluster knows which of its hosts are away. To hosts that were cut off, all the others look offline.
async fn is_quorate(context: &Context, region: &str) -> bool {
    let Ok(pve) = context.region(region) else { return false };
    pve.is_quorate().await.unwrap_or_else(|error| {
        tracing::debug!(region, error = error.to_string(), "cannot read whether the Proxmox cluster is quorate");
        false
    })
}

/// The host of a VM, if it is listed as offline.
pub(crate) fn offline_host(listing: &Resources, record: &LaunchRecord) -> Option<String> {
    let guest = listing.guests.iter().find(|guest| guest.id == record.vmid)?;
    let host = listing.hosts.iter().find(|row| row.host == guest.host)?;
    (host.status.as_deref() == Some(OFFLINE)).then(|| host.host.to_string())
}
