//! What does each new node of a plan boot from, under which VM id, and with which addresses? The last choices a plan leaves.

use std::collections::BTreeSet;
use std::net::IpAddr;

use tenon_model::{CardWish, LaunchRecord, LaunchSite, NewNode, Place, Plan, Seconds, Snapshot, VmIds};

use super::addresses::{NoAddress, give};

/// Why a new node cannot be launched, although it was planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchRefusal {
    /// The plan names no host.
    #[error("NodePool {pool}: no host was chosen for a new node; check that its ProxmoxNodeClass selects zones")]
    NoHost {
        /// The NodePool.
        pool: String,
    },
    /// There is no template on the host.
    #[error("NodePool {pool}: its ProxmoxNodeClass selects no template on host {}", place.host)]
    NoTemplate {
        /// The NodePool.
        pool: String,
        /// The host.
        place: Place,
    },
    /// Every VM id of the range is taken.
    #[error(
        "no VM ID is free in region {region}; widen the range of VM IDs (PROXMOX_VMID, PROXMOX_VMID_MAX) or remove VMs"
    )]
    NoVmId {
        /// The region.
        region: String,
    },
    /// Every address that its cards could be given is taken.
    #[error("NodePool {pool}: {missing} on host {}", place.host)]
    NoAddress {
        /// The NodePool.
        pool: String,
        /// The host.
        place: Place,
        /// Which address is missing.
        missing: NoAddress,
    },
}

/// The launch of every new node of a plan, in the plan's order: the template of its host, the storage for its first-boot
/// data, and the next VM id and addresses that no guest, no claim and no other node of the plan has.
pub fn launches(snapshot: &Snapshot, plan: &Plan) -> Vec<Result<LaunchRecord, LaunchRefusal>> {
    let site = &snapshot.launch_site;
    let mut free = Free { ids: site.ids.clone(), taken: site.addresses.taken.clone() };
    plan.new_nodes.iter().map(|node| launch(node, site, &mut free, snapshot.now)).collect()
}

/// What is left for the other nodes of a plan.
struct Free {
    ids: VmIds,
    taken: BTreeSet<IpAddr>,
}

fn launch(node: &NewNode, site: &LaunchSite, free: &mut Free, now: Seconds) -> Result<LaunchRecord, LaunchRefusal> {
    let pool = || node.pool.clone();
    let place = node.chosen.place.as_ref().ok_or_else(|| LaunchRefusal::NoHost { pool: pool() })?;
    let no_template = || LaunchRefusal::NoTemplate { pool: pool(), place: place.clone() };
    let image = site.images.get(&node.pool).ok_or_else(no_template)?;
    let template = *image.templates.get(place).ok_or_else(no_template)?;
    // Addresses first: one that has none takes no id.
    let wishes = site.addresses.wanted.get(&node.pool).and_then(|hosts| hosts.get(place));
    let no_address = |missing| LaunchRefusal::NoAddress { pool: pool(), place: place.clone(), missing };
    let wishes: &[CardWish] = wishes.map(Vec::as_slice).unwrap_or_default();
    let addresses = give(&free.taken, wishes).map_err(no_address)?;
    let no_id = || LaunchRefusal::NoVmId { region: place.region.clone() };
    let vmid = free.ids.take_next(&place.region).ok_or_else(no_id)?;
    free.taken.extend(addresses.iter().flat_map(tenon_model::CardAddresses::addresses));
    let seed_storage = site.seed_storages.get(place).filter(|_| image.has_seed).cloned();
    let pinning = node.pinning.as_deref().cloned();
    Ok(LaunchRecord { seed_storage, addresses, pinning, ..LaunchRecord::new(place.clone(), vmid, template, now) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tenon_model::{BootImage, Chosen, Price, Requirements, Resources, VmId, VmIdRange};

    use super::*;

    fn id(number: u32) -> VmId {
        number.try_into().unwrap()
    }

    fn place(host: &str) -> Place {
        Place { region: "lab".to_owned(), host: host.parse().unwrap() }
    }

    fn node(pool: &str, place: Option<Place>) -> NewNode {
        let chosen = Chosen {
            instance_type: "t1".to_owned(),
            requirements: Requirements::default(),
            labels: BTreeMap::new(),
            price: Price::default(),
            place,
        };
        NewNode {
            pool: pool.to_owned(),
            instance_types: ["t1".to_owned()].into(),
            chosen,
            requirements: Requirements::default(),
            requests: Resources::default(),
            pods: Vec::new(),
            min_values_relaxed: false,
            pinning: None,
        }
    }

    /// Templates 9001 on pve1 and 9002 on pve2, a storage for seeds on pve1, and VM ids 100 to 102 of which 100 is taken.
    fn snapshot(has_seed: bool) -> Snapshot {
        let mut ids = VmIds::new(VmIdRange::new(id(100), id(102)).unwrap());
        ids.take("lab", [id(100)]);
        let templates = [(place("pve1"), id(9001)), (place("pve2"), id(9002))].into();
        let images = [("default".to_owned(), BootImage { templates, has_seed })].into();
        let seed_storages = [(place("pve1"), "local".to_owned())].into();
        Snapshot {
            launch_site: LaunchSite { images, seed_storages, ids, ..LaunchSite::default() },
            now: Seconds(7),
            ..Snapshot::default()
        }
    }

    fn chosen(has_seed: bool, nodes: Vec<NewNode>) -> Vec<Result<LaunchRecord, LaunchRefusal>> {
        launches(&snapshot(has_seed), &Plan { new_nodes: nodes, ..Plan::default() })
    }

    #[test]
    fn each_node_gets_its_host_s_template_and_the_next_free_id() {
        let nodes = vec![node("default", Some(place("pve2"))), node("default", Some(place("pve1")))];
        let records: Vec<_> = chosen(true, nodes).into_iter().map(Result::unwrap).collect();
        let seen: Vec<_> = records.iter().map(|record| (record.vmid.get(), record.template.get())).collect();
        assert_eq!(seen, [(101, 9002), (102, 9001)]);
        assert_eq!(records[0].seed_storage, None, "pve2 has no storage for seeds");
        assert_eq!(records[1].seed_storage.as_deref(), Some("local"));
        assert_eq!(records[0].started_at, Seconds(7));
    }

    #[test]
    fn a_node_without_first_boot_data_needs_no_storage_for_it() {
        let record = chosen(false, vec![node("default", Some(place("pve1")))]).remove(0).unwrap();
        assert_eq!(record.seed_storage, None);
    }

    #[test]
    fn a_node_that_cannot_be_launched_says_why_and_takes_no_id() {
        let nodes = vec![
            node("default", None),
            node("other", Some(place("pve1"))),
            node("default", Some(place("pve3"))),
            node("default", Some(place("pve1"))),
            node("default", Some(place("pve1"))),
            node("default", Some(place("pve1"))),
        ];
        let found: Vec<String> = chosen(true, nodes)
            .into_iter()
            .map(|launch| launch.map_or_else(|refusal| refusal.to_string(), |record| record.vmid.to_string()))
            .collect();
        assert!(found[0].contains("no host was chosen"), "{}", found[0]);
        assert_eq!(found[1], "NodePool other: its ProxmoxNodeClass selects no template on host pve1");
        assert_eq!(found[2], "NodePool default: its ProxmoxNodeClass selects no template on host pve3");
        assert_eq!(found[3..5], ["101", "102"]);
        assert!(found[5].starts_with("no VM ID is free in region lab"), "{}", found[5]);
    }
}
