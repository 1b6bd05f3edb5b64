//! Does somebody else have an address of a launch by now? Asked before the VM is cloned, and before it is given its addresses:
//! nothing else would notice, as Proxmox accepts an address twice.

use std::collections::BTreeSet;
use std::net::IpAddr;

use kube::ResourceExt;
use tenon_api::NodeClaim;
use tenon_model::{CardAddresses, LaunchRecord, LaunchStep};

use crate::context::Context;
use crate::provision::record_of;

/// Who has an address of this launch, if somebody has: the claim goes back to planning then. Of two claims the older keeps it.
pub(super) fn taken(context: &Context, claim: &NodeClaim, record: &LaunchRecord) -> Option<String> {
    if record.step > LaunchStep::Configure || record.addresses.is_empty() {
        return None;
    }
    let own: BTreeSet<IpAddr> = record.addresses.iter().flat_map(CardAddresses::addresses).collect();
    if let Some(vmid) = context.survey.holder(&own) {
        return Some(format!("VM {vmid} has one of its addresses ({}) by now", words(&own)));
    }
    let claims = context.memory.with_fresh(context.watched.claims.state());
    let other = claims.iter().find(|other| other.uid() != claim.uid() && is_older(other, claim) && shares(other, &own));
    other.map(|other| format!("NodeClaim {} has one of its addresses ({}), too", other.name_any(), words(&own)))
}

fn shares(claim: &NodeClaim, addresses: &BTreeSet<IpAddr>) -> bool {
    let record = record_of(claim);
    let theirs = record.iter().flat_map(|record| &record.addresses).flat_map(CardAddresses::addresses);
    theirs.into_iter().any(|address| addresses.contains(&address))
}

/// One whose VM has its addresses already counts as older.
fn is_older(other: &NodeClaim, claim: &NodeClaim) -> bool {
    let has_them = |claim: &NodeClaim| record_of(claim).is_some_and(|record| record.step > LaunchStep::Configure);
    let age = |claim: &NodeClaim| (!has_them(claim), claim.creation_timestamp().map(|time| time.0), claim.uid());
    age(other) < age(claim)
}

fn words(addresses: &BTreeSet<IpAddr>) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
