//! What is left of hosts where VMs are bound to CPUs, and what is kept back everywhere.

use std::sync::Arc;

use serde_json::json;
use tenon_api::{NodeClaim, launch_record, names};
use tenon_controllers::cpus::CpuBook;
use tenon_controllers::provision::{Gathered, to_claims, to_snapshot};
use tenon_engine::cpu::{Bound, CpuFacts, Layout};
use tenon_engine::plan;
use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{
    Host, HostSettings, InstanceType, LaunchRecord, NodePolicy, NodeSettings, PinnedCell, Pinning, Place, Seconds,
};
use tenon_pve::GuestRow;

use crate::decisions::claims::ready_world;
use crate::decisions::objects::{estate, guest, spec};

fn place(host: &str) -> Place {
    Place { region: "lab".to_owned(), host: host.parse().unwrap() }
}

/// Two sockets of eight CPUs and 32 GiB each, on both hosts.
fn bound(guests: &[(u32, Bound)]) -> CpuBook {
    let facts = CpuFacts { cpus: 16, cores: 8, sockets: 2, memory_bytes: 64 << 30, ..CpuFacts::default() };
    let (layout, _) = Layout::of(&facts, &HostSettings::default(), None);
    CpuBook {
        policy: NodePolicy::Static,
        layouts: ["pve1", "pve2"].map(|host| (place(host), layout.clone())).into(),
        guests: guests
            .iter()
            .map(|(id, bound)| (("lab".to_owned(), (*id).try_into().unwrap()), bound.clone()))
            .collect(),
        ..CpuBook::default()
    }
}

fn to_cpus(cpus: &str, memory: &[(u32, u64)]) -> Bound {
    Bound { vcpus: 2, cpus: cpus.parse().unwrap(), memory_mib: memory.iter().copied().collect() }
}

/// A claim for a VM of four CPUs and 16 GiB that is bound to these CPUs of NUMA node 0.
fn claim(vmid: u32, host: &str, cpus: Option<&str>, size: &str) -> Arc<NodeClaim> {
    let cell = |cpus: &str| PinnedCell { node: 0, cpus: cpus.parse().unwrap(), memory_mib: 16384 };
    let pinning = cpus.map(|cpus| Pinning { cells: vec![cell(cpus)] });
    let record = LaunchRecord::new(place(host), vmid.try_into().unwrap(), "9001".parse().unwrap(), Seconds(0));
    let record = LaunchRecord { pinning, ..record };
    Arc::new(spec(json!({
        "metadata": {
            "name": format!("claim-{vmid}"), "labels": { names::LABEL_INSTANCE_TYPE: size },
            "annotations": { names::ANNOTATION_LAUNCH: launch_record::write(&record) },
        },
        "spec": { "requirements": [], "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" } },
    })))
}

fn host(gathered: &Gathered, name: &str) -> Host {
    let snapshot = to_snapshot(gathered, &InstanceType::built_in());
    snapshot.hosts.into_iter().find(|found| found.place == place(name)).unwrap()
}

/// CPUs and GiB that are left, and which CPUs and how many MiB of each NUMA node.
fn left(gathered: &Gathered, name: &str) -> (i64, i64, Vec<(String, i64)>) {
    let host = host(gathered, name);
    let cells = host.cpus.iter().flat_map(|room| &room.cells);
    let cells = cells.map(|cell| (cell.cpus.to_string(), cell.memory_mib)).collect();
    (host.free.get(CPU).value(), host.free.get(MEMORY).value() >> 30, cells)
}

fn cells(first: (&str, i64), second: (&str, i64)) -> Vec<(String, i64)> {
    [first, second].map(|(cpus, memory)| (cpus.to_owned(), memory)).to_vec()
}

const SIZE: &str = "s1.4VCPU-16GB";

#[test]
fn guests_and_claims_take_the_cpus_they_are_bound_to_and_others_count() {
    let cpus = bound(&[(100, to_cpus("0,8", &[(0, 4096)]))]);
    let guests = vec![guest(100, "pve1", 4), guest(101, "pve1", 8)];
    let gathered = Gathered { estate: estate(guests), cpus, ..Gathered::default() };
    // A GiB is kept back, half of it on each NUMA node. VM 101 has two CPUs somewhere.
    let expected = (12, 51, cells(("1-3,9-11", 28160), ("4-7,12-15", 32256)));
    assert_eq!(left(&gathered, "pve1"), expected);
    // An order holds what its launch says, whether or not its VM is there yet, and once.
    let claims = vec![claim(20_000, "pve1", Some("1-2,9-10"), SIZE)];
    let ordered = Gathered { claims: claims.clone(), ..gathered };
    let expected = (8, 35, cells(("3,11", 11776), ("4-7,12-15", 32256)));
    assert_eq!(left(&ordered, "pve1"), expected);
    let guests = vec![guest(100, "pve1", 4), guest(101, "pve1", 8), guest(20_000, "pve1", 16)];
    let made = Gathered { estate: estate(guests), ..ordered };
    assert_eq!(left(&made, "pve1"), expected);
}

#[test]
fn a_launch_that_is_not_bound_counts_and_one_of_a_forgotten_size_holds_what_it_is_bound_to() {
    let with =
        |claim| Gathered { estate: estate(Vec::new()), claims: vec![claim], cpus: bound(&[]), ..Gathered::default() };
    let all = cells(("0-3,8-11", 32256), ("4-7,12-15", 32256));
    assert_eq!(left(&with(claim(20_000, "pve1", None, SIZE)), "pve1"), (12, 47, all));
    let less = cells(("2-3,10-11", 15872), ("4-7,12-15", 32256));
    assert_eq!(left(&with(claim(20_000, "pve1", Some("0-1,8-9"), "gone.1")), "pve1"), (12, 47, less));
}

#[test]
fn more_than_there_is_leaves_less_than_nothing() {
    let many = GuestRow { maxcpu: Some(40), ..guest(100, "pve1", 80) };
    let gathered = Gathered { estate: estate(vec![many]), cpus: bound(&[]), ..Gathered::default() };
    let (cpus, memory, _) = left(&gathered, "pve1");
    assert_eq!((cpus, memory), (-24, -17));
}

#[test]
fn a_vm_that_describes_its_host_takes_nothing_of_it() {
    let capacity = GuestRow {
        name: Some("node-capacity".to_owned()),
        tags: Some("karpenter".to_owned()),
        status: Some("stopped".to_owned()),
        maxcpu: Some(16),
        ..guest(900, "pve1", 62)
    };
    let untagged = GuestRow { tags: None, ..capacity.clone() };
    for (row, free) in [(capacity, (16, 63)), (untagged, (0, 1))] {
        let gathered = Gathered { estate: estate(vec![row]), ..Gathered::default() };
        let (cpus, memory, cells) = left(&gathered, "pve1");
        assert_eq!(((cpus, memory), cells), (free, Vec::new()));
    }
}

#[test]
fn what_an_operator_reserves_is_kept_back_with_either_policy() {
    let told = HostSettings {
        reserved_cpus: "0,8".parse().unwrap(),
        reserved_memory_bytes: Some(4 << 30),
        ..HostSettings::default()
    };
    let settings = NodeSettings { regions: [("lab".to_owned(), [("pve1".to_owned(), told)].into())].into() };
    let simple = CpuBook { settings: settings.clone(), ..CpuBook::default() };
    let gathered = Gathered { estate: estate(Vec::new()), cpus: simple, ..Gathered::default() };
    assert_eq!(left(&gathered, "pve1"), (14, 60, Vec::new()));
    assert_eq!(left(&gathered, "pve2"), (16, 63, Vec::new()), "without settings 1 GiB is kept");
    let gathered = Gathered { cpus: CpuBook { settings, ..bound(&[]) }, ..gathered };
    assert_eq!(left(&gathered, "pve1"), (14, 60, cells(("1-3,9-11", 30720), ("4-7,12-15", 30720))));
}

#[test]
fn a_host_that_was_not_read_yet_says_so() {
    let mut cpus = bound(&[]);
    cpus.layouts.remove(&place("pve2"));
    cpus.unread.insert(place("pve1"), "the CPUs that VM 7 is bound to are not known yet; retrying".to_owned());
    let gathered = Gathered { estate: estate(Vec::new()), cpus, ..Gathered::default() };
    assert_eq!(
        host(&gathered, "pve1").closed.as_deref(),
        Some("the CPUs that VM 7 is bound to are not known yet; retrying")
    );
    assert_eq!(
        host(&gathered, "pve2").closed.as_deref(),
        Some("the CPU topology of the host is not known yet; retrying")
    );
}

#[test]
fn new_claims_say_what_their_vms_are_bound_to_and_the_next_plan_holds_it() {
    let mut gathered = Gathered { cpus: bound(&[]), ..ready_world(3) };
    let types = InstanceType::built_in();
    let snapshot = to_snapshot(&gathered, &types);
    let decided = plan(&snapshot);
    assert_eq!((decided.new_nodes.len(), decided.unplaced.len()), (1, 2), "pve1 has a guest already");
    let claims: Vec<NodeClaim> = to_claims(&decided, &snapshot, &gathered).into_iter().map(Result::unwrap).collect();
    let record =
        launch_record::read(&claims[0].metadata.annotations.as_ref().unwrap()[names::ANNOTATION_LAUNCH]).unwrap();
    let pinning = record.pinning.unwrap();
    assert_eq!((pinning.affinity().as_str(), pinning.memory_mib()), ("0-3,8-11,4-7,12-15", 32 << 10));
    gathered.claims = claims.into_iter().map(Arc::new).collect();
    let (cpus, _, cells) = left(&gathered, "pve2");
    assert_eq!((cpus, cells.iter().all(|(cpus, _)| cpus.is_empty())), (0, true));
}
