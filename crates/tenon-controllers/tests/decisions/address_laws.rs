//! Laws of giving addresses, under whatever may happen to claims, VMs and the controller.

use std::collections::BTreeSet;
use std::net::IpAddr;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use tenon_controllers::addresses::AddressFacts;
use tenon_controllers::provision::Gathered;
use tenon_model::LaunchRecord;

use super::addresses::{claim_of, facts, launched, world};

/// Something that happens. Numbers choose among what there is.
#[derive(Debug, Clone, Copy)]
enum Happening {
    /// New nodes are planned, and so many of their claims are written before the controller dies.
    Plan { count: usize, written: usize },
    /// Proxmox makes the VM of a claim.
    VmMade(usize),
    /// The VM of a claim is gone; the claim does not know yet.
    VmGone(usize),
    /// A claim whose VM was seen to be gone is deleted.
    ClaimGone(usize),
    /// A claim is deleted without its VM, because its operator asked for that.
    ClaimLetGo(usize),
    /// Somebody gives an address to a VM of their own.
    ForeignTakes(u8),
    /// … and takes it away.
    ForeignLeaves(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (1..6_usize, 0..6_usize).prop_map(|(count, written)| Happening::Plan { count, written }),
        3 => any::<usize>().prop_map(Happening::VmMade),
        3 => any::<usize>().prop_map(Happening::VmGone),
        3 => any::<usize>().prop_map(Happening::ClaimGone),
        1 => any::<usize>().prop_map(Happening::ClaimLetGo),
        2 => any::<u8>().prop_map(Happening::ForeignTakes),
        1 => any::<usize>().prop_map(Happening::ForeignLeaves),
    ]
}

/// What is true outside of the controller.
#[derive(Default)]
struct Outside {
    /// Claims, and whether their VM exists.
    claims: Vec<(LaunchRecord, bool)>,
    /// Addresses of VMs that are nobody's claim.
    foreign: Vec<IpAddr>,
    next_id: u32,
}

/// A /27 with gateway 10.0.0.1, of which the class excludes five: 24 are left.
const EXCLUDED: &str = "10.0.0.10-10.0.0.14";
const LEFT: usize = 24;

impl Outside {
    fn gathered(&self) -> (Gathered, AddressFacts) {
        let mut gathered = world(json!({ "exclude": [EXCLUDED] }));
        gathered.claims = self.claims.iter().map(|(record, _)| claim_of(record)).collect();
        let mut facts = facts("ip=10.0.0.0/27,gw=10.0.0.1", [json!({}), json!({})]);
        // Guests are read anew each time, as after a restart.
        facts.guests = self.in_use_by_vms().into_iter().collect();
        (gathered, facts)
    }

    fn in_use_by_vms(&self) -> Vec<IpAddr> {
        let made = self.claims.iter().filter(|(_, exists)| *exists).flat_map(|(record, _)| addresses(record));
        made.chain(self.foreign.iter().copied()).collect()
    }

    fn held(&self) -> BTreeSet<IpAddr> {
        let claimed = self.claims.iter().flat_map(|(record, _)| addresses(record));
        claimed.chain(self.foreign.iter().copied()).collect()
    }

    /// Nodes that are planned: their launches, which must keep every law.
    fn plan(&self, count: usize) -> Result<Vec<LaunchRecord>, TestCaseError> {
        let (mut gathered, facts) = self.gathered();
        let hosts: Vec<&str> = ["pve1", "pve2"].into_iter().cycle().take(count).collect();
        let (mut held, mut records) = (self.held(), Vec::new());
        for launch in launched(&mut gathered, &facts, &hosts) {
            let Ok(record) = launch else {
                let usable = held.iter().filter(|address| is_usable(**address)).count();
                prop_assert_eq!(usable, LEFT, "refused although addresses are free: {:?}", launch);
                continue;
            };
            let given = addresses(&record);
            prop_assert_eq!(given.len(), 1);
            prop_assert!(given.iter().all(|address| is_usable(*address)), "{:?}", given);
            prop_assert!(given.iter().all(|address| held.insert(*address)), "{:?} is held already", given);
            records.push(record);
        }
        Ok(records)
    }

    fn happens(&mut self, happening: Happening) -> Result<(), TestCaseError> {
        let at = |number: usize, length: usize| number.checked_rem(length);
        match happening {
            Happening::Plan { count, written } => {
                for mut record in self.plan(count)?.into_iter().take(written) {
                    self.next_id += 1;
                    record.vmid = (30_000 + self.next_id).try_into().unwrap();
                    self.claims.push((record, false));
                }
            }
            Happening::VmMade(number) => {
                if let Some(at) = at(number, self.claims.len()) {
                    self.claims[at].1 = true;
                }
            }
            Happening::VmGone(number) => {
                if let Some(at) = at(number, self.claims.len()) {
                    self.claims[at].1 = false;
                }
            }
            Happening::ClaimGone(number) => {
                let gone = at(number, self.claims.len()).filter(|at| !self.claims[*at].1);
                gone.map(|at| self.claims.remove(at));
            }
            Happening::ClaimLetGo(number) => {
                if let Some(at) = at(number, self.claims.len()) {
                    let (record, exists) = self.claims.remove(at);
                    self.foreign.extend(addresses(&record).into_iter().filter(|_| exists));
                }
            }
            Happening::ForeignTakes(last) => {
                // People do not look at our claims, only at what answers; the first who has it keeps it.
                let address = IpAddr::from([10, 0, 0, last % 32]);
                if is_usable(address) && !self.held().contains(&address) {
                    self.foreign.push(address);
                }
            }
            Happening::ForeignLeaves(number) => {
                at(number, self.foreign.len()).map(|at| self.foreign.remove(at));
            }
        }
        Ok(())
    }
}

fn addresses(record: &LaunchRecord) -> Vec<IpAddr> {
    record.addresses.iter().flat_map(|card| card.addresses().collect::<Vec<_>>()).collect()
}

/// Neither network, broadcast, gateway nor excluded.
fn is_usable(address: IpAddr) -> bool {
    let IpAddr::V4(address) = address else { return false };
    let [a, b, c, last] = address.octets();
    [a, b, c] == [10, 0, 0] && (2..=30).contains(&last) && !(10..=14).contains(&last)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_address_is_given_twice_and_none_is_lost(happenings in vec(happening(), 1..40)) {
        let mut outside = Outside::default();
        for happening in happenings {
            outside.happens(happening)?;
        }
        // Once everything is gone, everything is free again.
        outside.claims.clear();
        outside.foreign.clear();
        prop_assert_eq!(outside.plan(LEFT + 3)?.len(), LEFT);
    }
}
