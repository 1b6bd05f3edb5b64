//! What a snapshot says of how hosts are chosen: by the class of a pool, and by what the pool has on each host.

use std::sync::Arc;

use serde_json::{Value, json};
use tenon_api::{NodeClaim, ProxmoxNodeClass, launch_record, names};
use tenon_controllers::provision::{Gathered, decide, to_snapshot};
use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{Host, HostGoal, HostRules, HostStrategy, InstanceType, LaunchRecord, Place, Seconds};

use crate::decisions::claims::ready_world;
use crate::decisions::objects::{estate, guest, listing, spec};

fn place(host: &str) -> Place {
    Place { region: "lab".to_owned(), host: host.parse().unwrap() }
}

/// A claim of a pool with its launch written in, created at this second; more in its metadata and status.
fn claim(vmid: u32, host: &str, second: u32, (metadata, status): (Value, Value)) -> Arc<NodeClaim> {
    let record = LaunchRecord::new(place(host), vmid.try_into().unwrap(), "9001".parse().unwrap(), Seconds(0));
    let mut object = json!({
        "metadata": {
            "name": format!("claim-{vmid}"), "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
            "labels": { names::LABEL_INSTANCE_TYPE: "c1.2VCPU-4GB", names::LABEL_NODEPOOL: "default" },
            "annotations": { names::ANNOTATION_LAUNCH: launch_record::write(&record) },
        },
        "spec": { "requirements": [], "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" } },
        "status": status,
    });
    let Value::Object(metadata) = metadata else { panic!("not an object") };
    object["metadata"].as_object_mut().unwrap().extend(metadata);
    Arc::new(spec(object))
}

fn plain(vmid: u32, host: &str, second: u32) -> Arc<NodeClaim> {
    claim(vmid, host, second, (json!({}), json!({})))
}

/// The world of two hosts, whose class has this strategy.
fn world(strategy: Value, claims: Vec<Arc<NodeClaim>>) -> Gathered {
    let mut gathered = ready_world(1);
    let mut class: ProxmoxNodeClass = gathered.classes[0].as_ref().clone();
    class.spec.placement_strategy = spec(strategy);
    (gathered.classes, gathered.claims) = (vec![Arc::new(class)], claims);
    gathered
}

fn rules(gathered: &Gathered) -> HostRules {
    to_snapshot(gathered, &InstanceType::built_in()).host_rules.remove("default").unwrap()
}

fn host(gathered: &Gathered, name: &str) -> Host {
    let hosts = to_snapshot(gathered, &InstanceType::built_in()).hosts;
    hosts.into_iter().find(|host| host.place == place(name)).unwrap()
}

#[test]
fn a_pool_has_the_rules_of_its_class() {
    let strategy = json!({ "minAvailable": { "cpu": 2, "memory": "4Gi" }, "excludedHosts": ["pve2", "pve9"] });
    let found = rules(&world(strategy, vec![plain(20_000, "pve1", 1)]));
    assert_eq!((found.strategy, found.excluded), (HostStrategy::Balanced, [place("pve2")].into()));
    let kept = (found.min_available.get(CPU).value(), found.min_available.get(MEMORY).value() >> 30);
    assert_eq!(kept, (2, 4));
    assert!(found.vms.is_empty() && found.last.is_none(), "nobody asks where its VMs are");
}

#[test]
fn packing_counts_the_vms_of_all_pools_and_hands_on_the_goal() {
    let others = claim(20_002, "pve2", 1, (json!({ "labels": { names::LABEL_NODEPOOL: "other" } }), json!({})));
    let found = rules(&world(json!({ "goal": "PackHosts" }), vec![plain(20_001, "pve1", 1), others.clone()]));
    assert_eq!((found.strategy, found.goal), (HostStrategy::Pack, Some(HostGoal::Pack)));
    assert_eq!(found.vms, [(place("pve1"), 1), (place("pve2"), 1)].into());
    let found = rules(&world(json!({ "goal": "SpreadHosts" }), vec![plain(20_001, "pve1", 1), others]));
    assert_eq!((found.strategy, found.goal), (HostStrategy::Spread, Some(HostGoal::Spread)));
    assert_eq!(found.vms, [(place("pve1"), 1)].into());
    assert_eq!(rules(&world(json!({ "hosts": "Spread" }), Vec::new())).goal, None);
}

#[test]
fn spread_counts_the_vms_of_the_pool_where_they_are_now() {
    let others = claim(20_004, "pve1", 1, (json!({ "labels": { names::LABEL_NODEPOOL: "other" } }), json!({})));
    let goes = json!({ "deletionTimestamp": "2026-01-01T00:01:00Z", "finalizers": ["x"] });
    let going = claim(20_005, "pve1", 1, (goes, json!({})));
    // Another controller's: it has no launch of ours, and its VM is known.
    let foreign = json!({ "annotations": {} });
    let foreign = claim(20_006, "pve1", 1, (foreign, json!({ "providerID": "proxmox://lab/20006" })));
    let claims =
        vec![plain(20_001, "pve1", 1), plain(20_002, "pve1", 1), plain(20_003, "pve1", 1), others, going, foreign];
    let mut gathered = world(json!({ "hosts": "Spread" }), claims);
    gathered.estate = estate(vec![guest(20_001, "pve1", 4), guest(20_002, "pve2", 4), guest(20_006, "pve2", 4)]);
    assert_eq!(rules(&gathered).vms, [(place("pve1"), 2), (place("pve2"), 2)].into());
}

#[test]
fn round_robin_continues_after_the_newest_claim_and_in_one_second_after_the_highest_vm_id() {
    let newest = |claims| rules(&world(json!({ "hosts": "RoundRobin" }), claims)).last;
    assert_eq!(newest(Vec::new()), None);
    assert_eq!(newest(vec![plain(20_001, "pve1", 5), plain(20_009, "pve2", 4)]), Some(place("pve1")));
    assert_eq!(newest(vec![plain(20_001, "pve1", 5), plain(20_002, "pve2", 5)]), Some(place("pve2")));
    let unplanned = claim(20_003, "pve1", 9, (json!({ "annotations": {} }), json!({})));
    assert_eq!(newest(vec![plain(20_002, "pve2", 5), unplanned]), Some(place("pve2")));
}

#[test]
fn a_claim_without_a_pool_counts_with_those_that_have_none_either() {
    let alone = |vmid, host, second| {
        claim(vmid, host, second, (json!({ "labels": { names::LABEL_INSTANCE_TYPE: "c1.2VCPU-4GB" } }), json!({})))
    };
    let mut gathered =
        world(json!({ "hosts": "RoundRobin" }), vec![alone(20_001, "pve1", 1), plain(20_002, "pve2", 9)]);
    let ready = json!([{ "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    let class = Arc::make_mut(&mut gathered.classes[0]);
    class.status.as_mut().unwrap().conditions = spec(ready);
    let unplanned = claim(20_003, "pve1", 9, (json!({ "annotations": {}, "labels": {} }), json!({})));
    let node = decide(&unplanned, &gathered, &InstanceType::built_in()).unwrap();
    assert_eq!(node.chosen.place, Some(place("pve2")));
}

#[test]
fn a_host_shows_its_load_and_what_is_being_created_there() {
    let up = json!({ "conditions": [
        { "type": "Initialized", "status": "True", "reason": "Initialized", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" },
    ] });
    let initialized = claim(20_002, "pve1", 1, (json!({}), up));
    let mut gathered = world(json!({}), vec![plain(20_001, "pve1", 1), initialized]);
    let mut view = listing(Vec::new());
    let row = Arc::make_mut(&mut view.hosts[0]);
    (row.cpu, row.mem) = (Some(0.25), Some(16 << 30));
    gathered.estate.regions.insert("lab".to_owned(), Ok(view.into()));
    let busy = host(&gathered, "pve1");
    let load = busy.load.unwrap();
    assert_eq!((load.cpu, load.memory), (250_000, 250_000));
    assert_eq!((load.rising.get(CPU).value(), load.rising.get(MEMORY).value() >> 30), (2, 4));
    assert_eq!((busy.capacity.get(CPU).value(), busy.free.get(CPU).value()), (16, 12));
    assert_eq!(host(&gathered, "pve2").load, None, "what Proxmox does not show is not known");
}

#[test]
fn a_host_that_was_just_excluded_is_not_offered_though_the_status_still_has_it() {
    let zones = |strategy| {
        let snapshot = to_snapshot(&world(strategy, Vec::new()), &InstanceType::built_in());
        let ways = snapshot.pools[0].catalog.types()[0].offerings.clone();
        ways.into_iter().map(|way| way.place.unwrap().host.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(zones(json!({})), ["pve1", "pve2"]);
    assert_eq!(zones(json!({ "excludedHosts": ["pve1"] })), ["pve2"]);
}
