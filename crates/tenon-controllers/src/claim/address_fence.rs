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
    if let Some(vmid) = context.survey.holder(&own, (&record.place.region, record.vmid)) {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use tenon_api::{launch_record, names};
    use tenon_model::GivenAddress;

    use super::super::test_stage::ClaimStage;
    use super::*;

    /// A claim as it is planned, with this address.
    async fn add(stage: &ClaimStage, name: &str, address: &str) {
        let place = tenon_model::Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
        let number = 20_000 + u32::try_from(stage.claims().await.len()).unwrap();
        let now = stage.context.clock.seconds();
        let record = LaunchRecord::new(place, number.try_into().unwrap(), 9_001.try_into().unwrap(), now);
        let given = GivenAddress { address: address.parse().unwrap(), gateway: None };
        let addresses = vec![CardAddresses { card: 0, v4: Some(given), v6: None }];
        let launch: Value = launch_record::write(&LaunchRecord { addresses, ..record }).into();
        stage.add_claim(name, json!({ "metadata": { "annotations": { names::ANNOTATION_LAUNCH: launch } } })).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_claims_with_one_address_the_older_gets_its_vm_and_the_other_is_planned_again() {
        let stage = ClaimStage::new().await;
        for (name, address) in [("a", "10.0.0.5/24"), ("b", "10.0.0.5/24"), ("c", "10.0.0.6/24")] {
            add(&stage, name, address).await;
        }
        stage.run("b", 30).await;
        assert!(stage.is_gone("b").await && stage.vms().is_empty(), "nothing was cloned for it");
        let told = stage.told("b", "InsufficientCapacityError").await;
        assert!(told[0].contains("NodeClaim a has one of its addresses (10.0.0.5), too"), "{told:?}");
        for name in ["a", "c"] {
            stage.run(name, 30).await;
            assert_eq!(stage.condition(name, "Launched").await.0, "True");
        }
    }
}
