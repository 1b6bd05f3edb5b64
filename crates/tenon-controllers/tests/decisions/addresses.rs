//! Which addresses VMs of a class are given, and which are taken.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tenon_api::kube_objects::Node;
use tenon_api::{NodeClaim, launch_record, names};
use tenon_controllers::addresses::{AddressBook, AddressFacts};
use tenon_controllers::provision::{Gathered, to_claims, to_snapshot};
use tenon_model::{
    Chosen, InstanceType, LaunchRecord, NewNode, Place, Plan, Price, Reason, Requirements, Resources, Seconds,
};
use tenon_pve::{Interface, VmConfig};

use crate::decisions::claims::ready_world;
use crate::decisions::objects::spec;

pub(super) fn place(host: &str) -> Place {
    Place { region: "lab".to_owned(), host: host.parse().unwrap() }
}

/// A host interface with an IPv4 address, and perhaps more.
pub(super) fn bridge(extra: Value) -> Interface {
    let mut row = json!({ "iface": "vmbr0", "type": "bridge", "active": 1 });
    let (Some(fields), Value::Object(extra)) = (row.as_object_mut(), extra) else { panic!("not an object") };
    fields.extend(extra);
    spec(row)
}

/// Templates on pve1 and pve2 with this `ipconfig0`, and a bridge on each host.
pub(super) fn facts(ipconfig: &str, bridges: [Value; 2]) -> AddressFacts {
    let text = format!("net0: virtio=BC:24:11:00:00:01,bridge=vmbr0\nipconfig0: {ipconfig}");
    let template = || Ok(VmConfig::from_lines(&text).unwrap());
    let ids =
        [("pve1", 9001_u32), ("pve2", 9002)].map(|(host, id)| ((place(host), id.try_into().unwrap()), template()));
    let hosts = ["pve1", "pve2"].into_iter().zip(bridges).map(|(host, extra)| (place(host), vec![bridge(extra)]));
    AddressFacts { templates: ids.into(), hosts: hosts.collect(), ..AddressFacts::default() }
}

/// The usual world, in which the class says this of addresses.
pub(super) fn world(addresses: Value) -> Gathered {
    let mut gathered = ready_world(0);
    let mut class = gathered.classes[0].as_ref().clone();
    class.spec.addresses = spec(addresses);
    gathered.classes = vec![Arc::new(class)];
    gathered
}

fn new_node(host: &str) -> NewNode {
    let chosen = Chosen {
        instance_type: "s1.4VCPU-16GB".to_owned(),
        requirements: Requirements::default(),
        labels: BTreeMap::new(),
        price: Price::default(),
        place: Some(place(host)),
    };
    NewNode {
        pool: "default".to_owned(),
        instance_types: ["s1.4VCPU-16GB".to_owned()].into(),
        chosen,
        requirements: Requirements::default(),
        requests: Resources::default(),
        pods: Vec::new(),
        min_values_relaxed: false,
        pinning: None,
    }
}

/// New nodes on these hosts: each with its launch, or why it has none.
pub(super) fn launched(
    gathered: &mut Gathered,
    facts: &AddressFacts,
    hosts: &[&str],
) -> Vec<Result<LaunchRecord, String>> {
    gathered.addresses = AddressBook::new(facts, &gathered.classes, &gathered.claims, &gathered.nodes);
    let plan = Plan { new_nodes: hosts.iter().map(|host| new_node(host)).collect(), ..Plan::default() };
    let snapshot = to_snapshot(gathered, &InstanceType::built_in());
    let record = |claim: NodeClaim| launch_record::read(&claim.metadata.annotations.unwrap()[names::ANNOTATION_LAUNCH]);
    let claims = to_claims(&plan, &snapshot, gathered).into_iter();
    claims.map(|claim| claim.map(|claim| record(claim).unwrap()).map_err(|error| error.to_string())).collect()
}

/// A claim with this launch.
pub(super) fn claim_of(record: &LaunchRecord) -> Arc<NodeClaim> {
    Arc::new(spec(json!({
        "metadata": {
            "name": format!("claim-{}", record.vmid),
            "annotations": { names::ANNOTATION_LAUNCH: launch_record::write(record) },
        },
        "spec": { "requirements": [], "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" } },
    })))
}

/// What each node on pve1 is given, as `ipconfig0` will say.
fn given(gathered: &mut Gathered, facts: &AddressFacts, count: usize) -> Vec<String> {
    let hosts = vec!["pve1"; count];
    launched(gathered, facts, &hosts)
        .into_iter()
        .map(|launch| launch.map_or_else(|why| why, |record| words(&record)))
        .collect()
}

fn words(record: &LaunchRecord) -> String {
    let cards = record.addresses.iter().flat_map(|card| [&card.v4, &card.v6]).flatten();
    let texts = cards.map(|given| match given.gateway {
        Some(gateway) => format!("{} via {gateway}", given.address),
        None => given.address.to_string(),
    });
    texts.collect::<Vec<_>>().join(" and ")
}

fn none() -> [Value; 2] {
    [json!({}), json!({})]
}

#[test]
fn without_static_addresses_nothing_is_given() {
    for ipconfig in ["ip=dhcp", "ip=dhcp,ip6=auto", "ip6=dhcp"] {
        assert_eq!(given(&mut world(json!(null)), &facts(ipconfig, none()), 1), [""], "{ipconfig}");
    }
}

#[test]
fn the_network_of_the_template_gives_one_address_to_each_vm() {
    let facts = facts("ip=10.0.0.0/29,gw=10.0.0.1", none());
    let given = given(&mut world(json!(null)), &facts, 7);
    let all = ["10.0.0.2/29 via 10.0.0.1", "10.0.0.3/29 via 10.0.0.1", "10.0.0.4/29 via 10.0.0.1"];
    assert_eq!(given[..3], all);
    assert_eq!(given[4], "10.0.0.6/29 via 10.0.0.1");
    let why = "no free IP address for card net0 in 10.0.0.0/29";
    assert!(given[5].contains(why) && given[5].contains("on host pve1"), "{}", given[5]);
}

#[test]
fn a_host_with_a_part_of_the_network_to_itself_gives_from_there_and_is_the_gateway() {
    let bridges = [json!({ "cidr": "10.0.4.1/24" }), json!({ "cidr": "10.0.5.1/24" })];
    let facts = facts("ip=10.0.0.0/16", bridges);
    let launched = launched(&mut world(json!(null)), &facts, &["pve1", "pve2", "pve1"]);
    let given: Vec<String> = launched.into_iter().map(|record| words(&record.unwrap())).collect();
    assert_eq!(given, ["10.0.4.2/16 via 10.0.4.1", "10.0.5.2/16 via 10.0.5.1", "10.0.4.3/16 via 10.0.4.1"]);
}

#[test]
fn a_single_address_of_the_template_is_given_to_one_vm_only() {
    let facts = facts("ip=10.0.0.50/24,gw=10.0.0.1", none());
    let given = given(&mut world(json!(null)), &facts, 2);
    assert_eq!(given[0], "10.0.0.50/24 via 10.0.0.1");
    assert!(given[1].contains("no free IP address for card net0 in 10.0.0.50/24"), "{}", given[1]);
}

#[test]
fn ranges_of_the_class_come_before_the_template_and_leave_out_what_is_excluded() {
    let addresses = json!({
        "ranges": ["10.0.0.10-10.0.0.13/24", "10.0.0.20/24", "fd00::10-fd00::1f/64"],
        "exclude": ["10.0.0.11", "fd00::10-fd00::11"],
        "gateway": "10.0.0.1", "gateway6": "fe80::1",
    });
    let facts = facts("ip=10.9.0.0/24,gw=10.9.0.1", none());
    let given = given(&mut world(addresses), &facts, 5);
    let all = [
        "10.0.0.10/24 via 10.0.0.1 and fd00::12/64 via fe80::1",
        "10.0.0.12/24 via 10.0.0.1 and fd00::13/64 via fe80::1",
        "10.0.0.13/24 via 10.0.0.1 and fd00::14/64 via fe80::1",
        "10.0.0.20/24 via 10.0.0.1 and fd00::15/64 via fe80::1",
    ];
    assert_eq!(given[..4], all);
    assert!(given[4].contains("10.0.0.10-10.0.0.13/24, 10.0.0.20/24"), "{}", given[4]);
}

#[test]
fn a_class_may_only_exclude_and_the_template_s_network_gives_the_rest() {
    let facts = facts("ip=10.0.0.0/29,ip6=fd00::/64,gw6=fd00::1", none());
    let given = given(&mut world(json!({ "exclude": ["10.0.0.1-10.0.0.4"] })), &facts, 3);
    // An IPv6 network of 64 bits stands for the address that the hardware address makes.
    assert_eq!(given[..2], ["10.0.0.5/29 and fd00::/64 via fd00::1", "10.0.0.6/29 and fd00::/64 via fd00::1"]);
    assert!(given[2].contains("no free IP address"));
}

#[test]
fn a_longer_ipv6_network_gives_addresses_one_by_one() {
    let facts = facts("ip=dhcp,ip6=fd00::/120", none());
    assert_eq!(given(&mut world(json!(null)), &facts, 2), ["fd00::1/120", "fd00::2/120"]);
}

#[test]
fn what_claims_nodes_guests_hosts_and_gateways_have_is_taken() {
    let bridges = [json!({ "cidr": "10.0.0.2/24", "gateway": "10.0.0.3" }), json!({ "cidr": "10.0.0.4/24" })];
    let mut facts = facts("ip=10.0.0.0/24,gw=10.0.0.1", bridges);
    facts.guests = ["10.0.0.5".parse().unwrap()].into();
    let mut gathered = world(json!({ "dns": ["10.0.0.8"] }));
    let record = LaunchRecord::new(place("pve1"), 20_001.try_into().unwrap(), 9001.try_into().unwrap(), Seconds(0));
    let mut held = launched(&mut gathered, &facts, &["pve1"]).remove(0).unwrap();
    assert_eq!(words(&held), "10.0.0.6/24 via 10.0.0.1");
    held.vmid = record.vmid;
    gathered.claims = vec![claim_of(&held)];
    let node: Node = spec(json!({
        "metadata": { "name": "old" },
        "status": { "addresses": [
            { "type": "InternalIP", "address": "10.0.0.7" }, { "type": "Hostname", "address": "10.0.0.9" },
        ] },
    }));
    gathered.nodes = vec![Arc::new(node)];
    assert_eq!(given(&mut gathered, &facts, 1), ["10.0.0.9/24 via 10.0.0.1"]);
}

#[test]
fn two_classes_with_networks_that_overlap_never_give_the_same_address() {
    let facts = facts("ip=10.0.0.0/24,gw=10.0.0.1", none());
    let mut gathered = world(json!(null));
    let first = launched(&mut gathered, &facts, &["pve1", "pve2"]);
    gathered.claims = first.iter().map(|record| claim_of(record.as_ref().unwrap())).collect();
    let mut other = world(json!({ "ranges": ["10.0.0.0/28"] }));
    other.claims = gathered.claims.clone();
    assert_eq!(given(&mut other, &facts, 1), ["10.0.0.4/28 via 10.0.0.1"]);
}

#[test]
fn a_host_without_a_free_address_is_closed_for_the_class_and_says_so() {
    let mut gathered = ready_world(1);
    let full = facts("ip=10.0.0.1/32", none());
    let taken = AddressFacts { guests: ["10.0.0.1".parse().unwrap()].into(), ..full };
    gathered.addresses = AddressBook::new(&taken, &gathered.classes, &[], &[]);
    let plan = tenon_engine::plan(&to_snapshot(&gathered, &InstanceType::built_in()));
    assert!(plan.new_nodes.is_empty());
    let told = plan.unplaced[0].reason.to_string();
    assert!(told.contains("no free IP address for card net0 in 10.0.0.1/32"), "{told}");
    assert!(!matches!(plan.unplaced[0].reason, Reason::Internal(_)));
}

#[test]
fn a_template_that_cannot_be_read_closes_its_host_with_the_cause() {
    let mut gathered = ready_world(1);
    let unread =
        |host: &str, id: u32| ((place(host), id.try_into().unwrap()), Err("host pve1 is not online".to_owned()));
    let facts =
        AddressFacts { templates: [unread("pve1", 9001), unread("pve2", 9002)].into(), ..AddressFacts::default() };
    gathered.addresses = AddressBook::new(&facts, &gathered.classes, &[], &[]);
    let plan = tenon_engine::plan(&to_snapshot(&gathered, &InstanceType::built_in()));
    let told = plan.unplaced[0].reason.to_string();
    assert!(told.contains("template 9001 cannot be read: host pve1 is not online"), "{told}");
}

#[test]
fn the_way_out_of_the_bridge_is_used_before_the_bridge_itself() {
    let bridges = [json!({ "cidr": "10.0.0.2/24", "gateway": "10.0.0.1" }), json!({ "cidr": "10.0.0.3/24" })];
    let facts = facts("ip=dhcp", bridges);
    let mut gathered = world(json!({ "ranges": ["10.0.0.10-10.0.0.20/24"] }));
    let launched = launched(&mut gathered, &facts, &["pve1", "pve2"]);
    let given: Vec<String> = launched.into_iter().map(|record| words(&record.unwrap())).collect();
    assert_eq!(given, ["10.0.0.10/24 via 10.0.0.1", "10.0.0.11/24 via 10.0.0.3"]);
}

#[test]
fn what_a_bridge_takes_for_its_network_or_for_all_is_nobody_s() {
    let bridges = [json!({ "cidr": "10.0.4.1/30" }), json!({ "cidr": "10.0.8.1/24" })];
    let facts = facts("ip=10.0.0.0/16", bridges);
    let given = given(&mut world(json!(null)), &facts, 3);
    // 10.0.4.3 goes to all hosts of the bridge's network, 10.0.4.0 is its own address.
    let all = ["10.0.4.2/16 via 10.0.4.1", "10.0.4.4/16 via 10.0.4.1", "10.0.4.5/16 via 10.0.4.1"];
    assert_eq!(given, all);
}

#[test]
fn a_host_whose_network_is_not_known_yet_gives_nothing_unless_the_gateway_is_said() {
    let unread = AddressFacts { hosts: BTreeMap::new(), ..facts("ip=10.0.0.0/24", none()) };
    let mut gathered = world(json!(null));
    gathered.pods = ready_world(1).pods;
    gathered.addresses = AddressBook::new(&unread, &gathered.classes, &[], &[]);
    let plan = tenon_engine::plan(&to_snapshot(&gathered, &InstanceType::built_in()));
    assert!(plan.unplaced[0].reason.to_string().contains("the network interfaces of the host cannot be read yet"));
    let said = AddressFacts { hosts: BTreeMap::new(), ..facts("ip=10.0.0.0/24,gw=10.0.0.1", none()) };
    assert_eq!(given(&mut world(json!(null)), &said, 1), ["10.0.0.2/24 via 10.0.0.1"]);
}

#[test]
fn dns_servers_of_the_template_and_the_api_server_are_taken() {
    let text = "net0: virtio=BC:24:11:00:00:01,bridge=vmbr0\nipconfig0: ip=10.0.0.0/24,gw=10.0.0.1\nnameserver: 10.0.0.2 10.0.0.3";
    let template = || Ok(VmConfig::from_lines(text).unwrap());
    let mut facts = facts("ip=dhcp", none());
    facts.templates.values_mut().for_each(|known| *known = template());
    facts.others = ["10.0.0.4".parse().unwrap()].into();
    assert_eq!(given(&mut world(json!(null)), &facts, 1), ["10.0.0.5/24 via 10.0.0.1"]);
}

#[test]
fn both_addresses_of_a_network_of_two_are_given_once_each() {
    let given = given(&mut world(json!({ "ranges": ["10.0.0.4/31"] })), &facts("ip=dhcp", none()), 3);
    assert_eq!(given[..2], ["10.0.0.4/31", "10.0.0.5/31"]);
    assert!(given[2].contains("no free IP address"), "{}", given[2]);
}

#[test]
fn until_a_guest_was_read_nobody_is_given_an_address() {
    let mut gathered = ready_world(1);
    let unread = AddressFacts { unread: Some("guest 500 is not known".to_owned()), ..facts("ip=10.0.0.0/24", none()) };
    gathered.addresses = AddressBook::new(&unread, &gathered.classes, &[], &[]);
    let plan = tenon_engine::plan(&to_snapshot(&gathered, &InstanceType::built_in()));
    assert!(plan.unplaced[0].reason.to_string().contains("guest 500 is not known"));
    // Who asks for an address by DHCP need not wait.
    let unread = AddressFacts { unread: Some("guest 500 is not known".to_owned()), ..facts("ip=dhcp", none()) };
    gathered.addresses = AddressBook::new(&unread, &gathered.classes, &[], &[]);
    assert_eq!(tenon_engine::plan(&to_snapshot(&gathered, &InstanceType::built_in())).new_nodes.len(), 1);
}
