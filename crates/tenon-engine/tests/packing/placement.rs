//! Which of several hosts gets a new node, by the strategy of its pool; and hosts that may not be used.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tenon_engine::{check, plan};
use tenon_model::{Plan, Quantity, Snapshot};

use crate::packing::cluster::{cluster, expect, place, reason, sound_plan};
use crate::packing::laws::SEED;

/// Pods that are too large to share a node of the only size there is room for.
fn pods(count: usize) -> String {
    (0..count).map(|pod| format!("pod p{pod} cpu=1500m memory=1Gi\n")).collect()
}

/// The hosts of the new nodes, in the order they are planned.
#[track_caller]
fn hosts_of(text: &str) -> Vec<String> {
    let plan = sound_plan(&cluster(text));
    assert!(plan.unplaced.is_empty(), "{:?}", plan.unplaced);
    let host = |node: &tenon_model::NewNode| node.chosen.place.as_ref().unwrap().host.to_string();
    plan.new_nodes.iter().map(host).collect()
}

/// One node for each pod: nothing larger is left by the pool.
const SMALL: &str = "need:instance-type=In:c1.2VCPU-4GB";

#[track_caller]
fn chosen(hosts: &str, pool: &str, count: usize) -> Vec<String> {
    hosts_of(&format!("{hosts}\npool default {SMALL} {pool}\n{}", pods(count)))
}

const EQUAL: &str = "host pve1 cpu=16 memory=64Gi\nhost pve2 cpu=16 memory=64Gi";

#[test]
fn a_burst_is_balanced_because_planned_nodes_count_at_once() {
    let three = format!("{EQUAL}\nhost pve3 cpu=16 memory=64Gi");
    assert_eq!(chosen(&three, "", 6), ["pve1", "pve2", "pve3", "pve1", "pve2", "pve3"]);
}

#[test]
fn balanced_takes_the_host_that_is_used_least_however_large_it_is() {
    // More memory is left on pve1, and a larger share of it is used.
    let hosts = "host pve1 cpu=16 memory=100Gi of:cpu=64 of:memory=400Gi\nhost pve2 cpu=16 memory=50Gi of:memory=64Gi";
    assert_eq!(chosen(hosts, "", 1), ["pve2"]);
    assert_eq!(chosen(hosts, "hosts=MaxMemory", 1), ["pve1"]);
}

#[test]
fn balanced_looks_at_cores_and_at_memory() {
    let cores = "host pve1 cpu=4 memory=64Gi of:cpu=16\nhost pve2 cpu=12 memory=48Gi of:cpu=16 of:memory=64Gi";
    assert_eq!(chosen(cores, "", 1), ["pve2"]);
    let memory = "host pve1 cpu=16 memory=16Gi of:memory=64Gi\nhost pve2 cpu=8 memory=64Gi of:cpu=16";
    assert_eq!(chosen(memory, "", 1), ["pve2"]);
}

#[test]
fn max_memory_and_max_cpu_take_the_host_with_the_most_of_it_left() {
    let hosts = "host pve1 cpu=12 memory=60Gi of:cpu=16\nhost pve2 cpu=16 memory=56Gi of:memory=64Gi";
    assert_eq!(chosen(hosts, "hosts=MaxMemory", 3), ["pve1", "pve1", "pve2"]);
    assert_eq!(chosen(hosts, "hosts=MaxCPU", 4), ["pve2", "pve2", "pve1", "pve2"]);
}

#[test]
fn spread_takes_the_host_with_the_fewest_vms_of_the_pool_then_the_most_memory_then_the_name() {
    let uneven = "host pve1 cpu=64 memory=100Gi\nhost pve2 cpu=64 memory=400Gi\nhost pve3 cpu=64 memory=100Gi";
    assert_eq!(chosen(uneven, "hosts=Spread", 4), ["pve2", "pve1", "pve3", "pve2"]);
    assert_eq!(chosen(uneven, "hosts=Spread vms:pve2=2 vms:pve1=1", 4), ["pve3", "pve1", "pve3", "pve2"]);
}

#[test]
fn spread_counts_each_pool_for_itself() {
    let pools = format!(
        "pool a {SMALL} need:team=In:a hosts=Spread vms:pve1=1\npool b {SMALL} need:team=In:b hosts=Spread vms:pve2=1"
    );
    let pods = "pod p cpu=1500m need:team=In:a\npod q cpu=1500m need:team=In:b";
    expect(&format!("{EQUAL}\n{pools}\n{pods}"), &["a/c1.2VCPU-4GB@pve2: p", "b/c1.2VCPU-4GB@pve1: q"]);
}

#[test]
fn pack_takes_the_host_with_the_most_vms_then_the_one_that_is_used_most_then_the_next_with_room() {
    let uneven =
        "host pve1 cpu=4 memory=64Gi of:cpu=16\nhost pve2 cpu=16 memory=64Gi\nhost pve3 cpu=8 memory=64Gi of:cpu=16";
    assert_eq!(chosen(uneven, "hosts=Pack vms:pve2=2 vms:pve1=1", 3), ["pve2", "pve2", "pve2"]);
    assert_eq!(chosen(uneven, "hosts=Pack", 4), ["pve1", "pve1", "pve3", "pve3"], "whoever uses it");
    assert_eq!(chosen(uneven, "hosts=Pack exclude=pve1 keep:cpu=4", 3), ["pve3", "pve3", "pve2"]);
}

#[test]
fn balanced_load_takes_the_host_with_the_lowest_measured_load() {
    let hosts =
        "host pve1 cpu=16 memory=64Gi load=30/40\nhost pve2 cpu=8 memory=32Gi of:cpu=16 of:memory=64Gi load=50/10";
    assert_eq!(chosen(hosts, "hosts=BalancedLoad", 1), ["pve2"], "however much is given away there");
}

#[test]
fn what_is_planned_and_what_is_being_created_counts_as_load() {
    let hosts = "host pve1 cpu=16 memory=64Gi load=20/20\nhost pve2 cpu=16 memory=64Gi load=15/15";
    // A node takes an eighth of the cores and a sixteenth of the memory.
    assert_eq!(chosen(hosts, "hosts=BalancedLoad", 4), ["pve2", "pve1", "pve2", "pve1"]);
    let rising = "host pve1 cpu=16 memory=64Gi load=20/20\nhost pve2 cpu=14 memory=60Gi load=15/15 rising:cpu=2 rising:memory=4Gi";
    assert_eq!(chosen(rising, "hosts=BalancedLoad", 1), ["pve1"]);
}

#[test]
fn where_no_load_is_measured_what_guests_may_use_counts() {
    let hosts =
        "host pve1 cpu=8 memory=32Gi of:cpu=16 of:memory=64Gi\nhost pve2 cpu=12 memory=48Gi of:cpu=16 of:memory=64Gi";
    assert_eq!(chosen(hosts, "hosts=BalancedLoad", 1), ["pve2"]);
}

#[test]
fn round_robin_alternates_between_two_equal_hosts() {
    assert_eq!(chosen(EQUAL, "hosts=RoundRobin", 5), ["pve1", "pve2", "pve1", "pve2", "pve1"]);
}

#[test]
fn round_robin_goes_on_after_the_host_of_the_newest_node_and_begins_again_behind_the_last() {
    let three = format!("{EQUAL}\nhost pve3 cpu=16 memory=640Gi");
    assert_eq!(chosen(&three, "hosts=RoundRobin last=pve1", 4), ["pve2", "pve3", "pve1", "pve2"]);
    assert_eq!(chosen(&three, "hosts=RoundRobin last=pve3", 1), ["pve1"]);
    assert_eq!(chosen(&three, "hosts=RoundRobin last=pve2x", 1), ["pve3"], "also where that host is gone");
}

#[test]
fn round_robin_leaves_out_a_host_without_room() {
    let full = format!("{EQUAL}\nhost pve0 cpu=1 memory=64Gi");
    assert_eq!(chosen(&full, "hosts=RoundRobin", 3), ["pve1", "pve2", "pve1"]);
}

#[test]
fn a_node_that_grows_keeps_its_turn() {
    let text = format!(
        "{EQUAL}\npool default hosts=RoundRobin\npod a cpu=900m memory=256Mi\npod b cpu=900m memory=256Mi\n\
                        pod c cpu=900m memory=256Mi port=80\npod d cpu=900m memory=256Mi port=80"
    );
    assert_eq!(hosts_of(&text), ["pve1", "pve2"]);
}

#[test]
fn the_price_decides_before_any_strategy() {
    for strategy in ["Balanced", "MaxMemory", "MaxCPU", "Spread", "BalancedLoad", "RoundRobin", "Pack"] {
        // The cheapest size fits only where the strategy would not go.
        let hosts = "host pve1 cpu=1 memory=2Gi of:cpu=16 of:memory=64Gi load=90/90";
        let text = format!("{hosts}\npool default hosts={strategy} vms:pve1=9 last=pve1\npod p cpu=500m memory=1Gi");
        expect(&text, &["default/c1.1VCPU-2GB@pve1: p"]);
    }
}

#[test]
fn a_host_is_not_used_if_less_would_stay_free_than_must() {
    let hosts = "host pve1 cpu=16 memory=7Gi\nhost pve2 cpu=5 memory=64Gi\nhost pve3 cpu=6 memory=8Gi";
    assert_eq!(chosen(hosts, "keep:cpu=4 keep:memory=4Gi", 1), ["pve3"]);
    assert_eq!(chosen(hosts, "keep:memory=4Gi hosts=MaxMemory", 2), ["pve2", "pve2"]);
}

#[test]
fn what_must_stay_free_holds_for_planned_nodes_together() {
    let one = "host pve1 cpu=16 memory=14Gi";
    let text = format!("{one}\npool default {SMALL} keep:memory=4Gi\n{}", pods(3));
    let plan = sound_plan(&cluster(&text));
    assert_eq!((plan.new_nodes.len(), plan.unplaced.len()), (2, 1));
}

#[test]
fn a_pod_that_waits_for_what_must_stay_free_hears_which_host_how_much_is_free_and_how_much_must_be() {
    let text = format!(
        "host pve1 cpu=16 memory=6Gi\nhost pve2 cpu=16 memory=2Gi\npool default {SMALL} keep:memory=4Gi\n{}",
        pods(1)
    );
    assert_eq!(
        reason(&text),
        "NodePool default: no host keeps enough memory free with a VM of instance type c1.2VCPU-4GB: host pve1 has 6 GiB of \
         memory free, the VM needs 4 GiB, and 4 GiB must stay free (spec.placementStrategy.minAvailable of the \
         ProxmoxNodeClass); free up memory on a host, add a host, or lower minAvailable.memory"
    );
    let cores = format!("host pve1 cpu=3 memory=64Gi\npool default {SMALL} keep:cpu=1500m\n{}", pods(1));
    assert!(
        reason(&cores).contains("host pve1 has 3 CPU free, the VM needs 2, and 1500m must stay free"),
        "{}",
        reason(&cores)
    );
}

#[test]
fn a_host_without_room_is_told_as_before_whatever_must_stay_free() {
    let text = format!("host pve1 cpu=16 memory=2Gi\npool default {SMALL} keep:memory=4Gi\n{}", pods(1));
    assert!(reason(&text).contains("no host has 4 GiB of memory free"), "{}", reason(&text));
}

#[test]
fn an_excluded_host_is_not_used_whatever_the_strategy() {
    let hosts = "host pve1 cpu=16 memory=16Gi\nhost pve2 cpu=64 memory=400Gi";
    for strategy in ["Balanced", "MaxMemory", "MaxCPU", "Spread", "BalancedLoad", "RoundRobin"] {
        assert_eq!(chosen(hosts, &format!("hosts={strategy} exclude=pve2"), 2), ["pve1", "pve1"], "{strategy}");
    }
}

#[test]
fn a_pod_that_waits_because_a_host_is_excluded_hears_which() {
    let named = "host pve2 was skipped: spec.placementStrategy.excludedHosts of the ProxmoxNodeClass names it";
    for offered in ["", "unoffered"] {
        let hosts = format!("host pve1 cpu=16 memory=2Gi\nhost pve2 cpu=64 memory=400Gi {offered}");
        let full = format!("{hosts}\npool default {SMALL} exclude=pve2\n{}", pods(1));
        assert!(reason(&full).contains("no host has 4 GiB of memory free"), "{}", reason(&full));
        assert!(reason(&full).ends_with(named), "{}", reason(&full));
    }
    let hosts = "host pve1 cpu=16 memory=64Gi\nhost pve2 cpu=64 memory=400Gi unoffered";
    let tied = format!("{hosts}\npool default exclude=pve2\npod p cpu=1 need:zone=In:pve2");
    assert!(reason(&tied).ends_with(named), "{}", reason(&tied));
}

#[test]
fn an_excluded_host_that_would_not_help_is_not_spoken_of() {
    let hosts = "host pve1 cpu=16 memory=2Gi\nhost pve2 cpu=16 memory=3Gi unoffered";
    let both = format!("{hosts}\npool default {SMALL} exclude=pve2\n{}", pods(1));
    assert!(!reason(&both).contains("excludedHosts"), "{}", reason(&both));
    let hosts = "host pve1 cpu=16 memory=2Gi\nhost pve2 cpu=16 memory=64Gi unoffered";
    let tied = format!("{hosts}\npool default {SMALL} exclude=pve2\npod p cpu=1 memory=1Gi need:zone=In:pve1");
    assert!(!reason(&tied).contains("excludedHosts"), "{}", reason(&tied));
}

#[test]
fn the_checker_finds_nodes_on_excluded_hosts_and_hosts_with_too_little_left() {
    let text = |pool: &str| format!("{EQUAL}\npool default {SMALL} {pool}\n{}", pods(2));
    let plan = plan(&cluster(&text("")));
    let found = |pool: &str| check(&cluster(&text(pool)), &plan).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(found("keep:memory=60Gi keep:cpu=14"), Vec::<String>::new());
    let excluded = found("exclude=pve2");
    assert_eq!(excluded.len(), 1, "{excluded:?}");
    assert!(excluded[0].contains("is on host pve2, which its ProxmoxNodeClass excludes"), "{excluded:?}");
    let short = found("keep:memory=61Gi");
    assert_eq!(short.len(), 2, "{short:?}");
    assert!(short[0].contains("host pve1 has") && short[0].contains("61Gi must stay free"), "{short:?}");
}

fn any_pool(name: &'static str) -> impl Strategy<Value = String> {
    let strategies = ["Balanced", "MaxMemory", "MaxCPU", "Spread", "BalancedLoad", "RoundRobin"];
    (0..strategies.len(), 0..6_u32, 0..16_u32, 0..5_u32, 0..4_u32).prop_map(move |(strategy, cpu, memory, out, vms)| {
        let exclude = if out == 0 { "exclude=pve2".to_owned() } else { format!("last=pve{out}") };
        format!(
            "pool {name} hosts={} keep:cpu={cpu} keep:memory={memory}Gi vms:pve1={vms} {exclude}",
            strategies[strategy]
        )
    })
}

fn any_hosts() -> impl Strategy<Value = String> {
    proptest::collection::vec((0..24_u32, 0..48_u32, 0..100_u32), 3).prop_map(|hosts| {
        let host = |(number, (cpu, memory, load)): (usize, (u32, u32, u32))| {
            format!("host pve{} cpu={cpu} memory={memory}Gi of:cpu=24 of:memory=64Gi load={load}/50\n", number + 1)
        };
        hosts.into_iter().enumerate().map(host).collect()
    })
}

/// What each host with new VMs has left.
fn left(snapshot: &Snapshot, plan: &Plan) -> BTreeMap<String, (Quantity, Quantity)> {
    let mut left = BTreeMap::new();
    for node in &plan.new_nodes {
        let at = node.chosen.place.as_ref().unwrap();
        let size = &snapshot.pools[0].catalog.find(&node.chosen.instance_type).unwrap().capacity;
        let host = snapshot.hosts.iter().find(|host| host.place == *at).unwrap();
        let (cpu, memory) = left.entry(at.host.to_string()).or_insert((host.free.get("cpu"), host.free.get("memory")));
        (*cpu, *memory) = (*cpu - size.get("cpu"), *memory - size.get("memory"));
    }
    left
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: SEED, ..ProptestConfig::default() })]

    #[test]
    fn what_must_stay_free_always_does(
        hosts in any_hosts(),
        pool in any_pool("default"),
        pods in proptest::collection::vec((100..4_000_u32, 100..8_000_u32), 1..10),
    ) {
        let pod = |(number, (cpu, memory)): (usize, &(u32, u32))| format!("pod p{number} cpu={cpu}m memory={memory}Mi\n");
        let pods: String = pods.iter().enumerate().map(pod).collect();
        let snapshot = cluster(&format!("{hosts}{pool}\n{pods}"));
        let plan = sound_plan(&snapshot);
        let kept = &snapshot.host_rules.get("default").cloned().unwrap_or_default();
        for (host, (cpu, memory)) in left(&snapshot, &plan) {
            prop_assert!(cpu >= kept.min_available.get("cpu") && memory >= kept.min_available.get("memory"), "{host}");
            prop_assert!(!kept.excluded.contains(&place(&host)), "{host}");
        }
    }

    #[test]
    fn plans_of_pools_with_different_rules_are_sound_in_any_order_and_remembered_refusals_stay_true(
        hosts in any_hosts(),
        pools in (any_pool("default"), any_pool("other")),
        pods in proptest::collection::vec((100..4_000_u32, 100..8_000_u32, 0..3_u8), 1..10),
    ) {
        let pod = |(number, (cpu, memory, kind)): (usize, &(u32, u32, u8))| {
            let wish = ["", "need:nodepool=In:other", "need:zone=In:pve1,pve2"][usize::from(*kind)];
            format!("pod p{number} cpu={cpu}m memory={memory}Mi {wish}\n")
        };
        let pods: String = pods.iter().enumerate().map(pod).collect();
        let snapshot = cluster(&format!("{hosts}{}\n{}\n{pods}", pools.0, pools.1));
        let made = sound_plan(&snapshot);
        let mut turned = snapshot.clone();
        turned.hosts.reverse();
        turned.pools.reverse();
        turned.pods.reverse();
        prop_assert_eq!(&plan(&turned), &made);
        let engine = tenon_engine::Engine::of(&snapshot);
        prop_assert_eq!(engine.measure(true).0, engine.measure(false).0);
    }
}
