//! Moves between hosts end, whatever the cluster: each makes smaller what must fall, none is unsafe, and neither consolidation nor
//! another goal takes one back.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tenon_engine::disruption::{Method, decide, expected};
use tenon_model::{HostGoal, Place, Snapshot};

use super::settling::{measure, unsafe_in};
use super::world::{reasons, told, world};
use crate::packing::cluster::{label, place};
use crate::packing::laws::SEED;

/// Longer than any `consolidateAfter` of these clusters.
const HOUR: i64 = 3600;

/// No cluster of twelve nodes needs more moves.
const ROUNDS_MOST: usize = 80;

/// Nodes by host: all, and those of each pool.
fn counts(snapshot: &Snapshot) -> (BTreeMap<Place, u32>, BTreeMap<(String, Place), u32>) {
    let (mut all, mut of_pool) = (BTreeMap::new(), BTreeMap::new());
    for node in snapshot.nodes.iter().filter(|node| node.disruption.is_some()) {
        let place = place(node.labels.get(&label("zone")).unwrap());
        *all.entry(place.clone()).or_default() += 1;
        *of_pool.entry((node.pool.clone().unwrap(), place)).or_default() += 1;
    }
    (all, of_pool)
}

/// What must fall with each move, in this order: what all cost, how many nodes there are, how unevenly pools are that are spread,
/// how many hosts are in use, and how evenly they are.
type Potential = ((usize, i64, usize), u32, usize, i64);

fn potential(snapshot: &Snapshot) -> Potential {
    let (all, of_pool) = counts(snapshot);
    let is_spread =
        |pool: &str| snapshot.host_rules.get(pool).is_some_and(|rules| rules.goal == Some(HostGoal::Spread));
    let uneven = of_pool.iter().filter(|((pool, _), _)| is_spread(pool)).map(|(_, count)| count * count).sum();
    let squares: i64 = all.values().map(|count| i64::from(count * count)).sum();
    (measure(snapshot), uneven, all.len(), -squares)
}

/// Hosts know what they have by now, as a controller would tell.
fn recounted(mut snapshot: Snapshot) -> Snapshot {
    let (all, of_pool) = counts(&snapshot);
    for (pool, rules) in &mut snapshot.host_rules {
        let own =
            || of_pool.iter().filter(|((name, _), _)| name == pool).map(|((_, place), count)| (place.clone(), *count));
        rules.vms = if rules.goal == Some(HostGoal::Pack) { all.clone() } else { own().collect() };
    }
    snapshot
}

/// All moves until there are none, with what went wrong, and how many of them were between hosts.
fn settle(text: &str) -> (Snapshot, Vec<String>, usize) {
    let (mut snapshot, mut faults, mut moved) = (world(text), Vec::new(), 0);
    for round in 0..ROUNDS_MOST {
        snapshot = recounted(snapshot);
        let decided = decide(&snapshot);
        let [command] = decided.commands.as_slice() else {
            if !decided.commands.is_empty() {
                faults.push("several moves at once".to_owned());
            }
            return (snapshot, faults, moved);
        };
        let broken = unsafe_in(&snapshot, command);
        if !broken.is_empty() {
            faults.push(format!("{}: {}", told(command), broken.join("; ")));
        }
        let before = potential(&snapshot);
        moved += usize::from(command.method == Method::HostGoal);
        snapshot = expected(&snapshot, command, &format!("r{round}"));
        let after = potential(&snapshot);
        if after >= before {
            faults.push(format!("{before:?} becomes {after:?} by {}", told(command)));
        }
        snapshot.now.0 += HOUR;
    }
    faults.push("it does not settle".to_owned());
    (snapshot, faults, moved)
}

fn any_node(index: usize) -> impl Strategy<Value = String> {
    let pod = (4_u32..36, 0..14_u8);
    (0..3_usize, 1..6_u8, 0..3_usize, 0..24_u8, proptest::collection::vec(pod, 1..3)).prop_map(
        move |(size, host, pool, state, pods)| {
            let pool = ["web", "web", "db"][pool];
            let more = match state {
                0 => "keep",
                1 => "not-ready",
                2 => "nominated",
                _ => "",
            };
            let size = ["c1.2VCPU-4GB", "c1.2VCPU-4GB", "c1.4VCPU-8GB"][size];
            let node = format!("node n{index:02} is={size} zone=pve{host} region=lab pool={pool} {more}");
            let pods = pods.iter().enumerate().map(|(number, (cpu, rule))| {
                let rule = match rule {
                    0 => "label:app=x apart=hostname:app=x",
                    1 => "label:app=y spread=zone:1:app=y",
                    2 => "need:zone=In:pve1",
                    3 => "keep=true",
                    4 => "pdb=now",
                    5 => "prefer:5:zone=In:pve2",
                    _ => "label:app=y",
                };
                format!("bound p{index}-{number} on=n{index:02} cpu={}m memory=256Mi {rule}", cpu * 50)
            });
            std::iter::once(node).chain(pods).collect::<Vec<_>>().join("\n")
        },
    )
}

/// Five hosts, which may be full; two pools with any goals.
fn any_world() -> impl Strategy<Value = String> {
    let nodes = (1..13_usize).prop_flat_map(|count| (0..count).map(any_node).collect::<Vec<_>>());
    let rooms = proptest::collection::vec((0..9_u32, 0..20_u8), 5);
    (nodes, rooms, (0..3_usize, 0..3_usize), (0..4_usize, 0..6_usize)).prop_map(|(nodes, rooms, goals, rules)| {
        let hosts = rooms.iter().enumerate().map(|(number, (cpu, state))| {
            let closed = if *state == 0 { "closed=offline" } else { "" };
            format!("host pve{} cpu={cpu} memory=64Gi of:cpu=24 {closed}\n", number + 1)
        });
        let hosts: String = hosts.collect();
        let goal = |number: usize| ["", "goal=pack hosts=Pack", "goal=spread hosts=Spread"][number];
        let budget = ["", "budget=1", "budget=34%", "budget=2"][rules.0];
        let more = ["", "policy=Balanced", "after=30s", "exclude=pve3", "keep:cpu=2", ""][rules.1];
        format!("{hosts}pool web {} {budget}\npool db {} {more}\n{}", goal(goals.0), goal(goals.1), nodes.join("\n"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, rng_seed: SEED, ..ProptestConfig::default() })]

    #[test]
    fn each_move_lowers_what_must_fall_and_is_safe_until_nothing_moves(text in any_world()) {
        let (_, faults, _) = settle(&text);
        prop_assert!(faults.is_empty(), "{}\n{}", text, faults.join("\n"));
    }

    #[test]
    fn the_order_of_the_input_does_not_matter_to_moves_between_hosts(text in any_world()) {
        let snapshot = recounted(world(&text));
        let mut turned = snapshot.clone();
        turned.nodes.reverse();
        turned.pools.reverse();
        turned.hosts.reverse();
        prop_assert_eq!(decide(&turned), decide(&snapshot));
    }

    #[test]
    fn without_a_goal_all_is_as_if_nobody_had_thought_of_goals(text in any_world()) {
        let mut snapshot = recounted(world(&text));
        snapshot.host_rules.values_mut().for_each(|rules| rules.goal = None);
        let decided = decide(&snapshot);
        let is_goal = |method: Method| method == Method::HostGoal;
        prop_assert!(!decided.commands.iter().any(|command| is_goal(command.method)));
        let lines = decided.kept.iter().flat_map(|kept| &kept.reasons);
        prop_assert!(!lines.into_iter().any(|(method, _)| is_goal(*method)), "{:?}", reasons(&decided));
    }
}

/// Nodes of two cores, each filled by a pod, on six hosts with room for eight of them.
fn half_used(goal: &str, hosts: &[usize]) -> String {
    let mut text: String = (1..=6).map(|host| format!("host pve{host} cpu=10 memory=64Gi of:cpu=16\n")).collect();
    text += &format!("pool web need:instance-type=In:c1.2VCPU-4GB budget=10% {goal}\n");
    let nodes = hosts.iter().enumerate().flat_map(|(host, count)| std::iter::repeat_n(host + 1, *count));
    for (number, host) in nodes.enumerate() {
        text += &format!("node n{number:02} is=c1.2VCPU-4GB zone=pve{host} region=lab pool=web\n");
        text += &format!("bound p{number} on=n{number:02} cpu=1500m\n");
    }
    text
}

fn nodes_by_host(snapshot: &Snapshot) -> Vec<u32> {
    let mut found: Vec<u32> = counts(snapshot).0.into_values().collect();
    found.sort_unstable();
    found
}

#[test]
fn six_half_used_hosts_become_as_few_as_their_nodes_need() {
    let (after, faults, moved) = settle(&half_used("goal=pack hosts=Pack", &[3; 6]));
    assert_eq!(faults, Vec::<String>::new());
    // Eighteen nodes, of which eight fit on a host at most.
    assert_eq!(nodes_by_host(&after).len(), 3, "{:?}", nodes_by_host(&after));
    assert!(moved <= 12, "those of three hosts, and few of them twice: {moved}");
}

#[test]
fn uneven_hosts_become_even() {
    let (after, faults, moved) = settle(&half_used("goal=spread hosts=Spread", &[7, 4, 1, 0, 0, 0]));
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!(nodes_by_host(&after), [2; 6]);
    assert_eq!(moved, 7, "those that are too many, and each of them once");
}

#[test]
fn two_pools_with_opposite_goals_settle() {
    let mut text = half_used("goal=pack hosts=Pack", &[2, 2, 2, 1, 1, 1]);
    text = text.replace("pool web", "pool db need:instance-type=In:c1.2VCPU-4GB goal=spread hosts=Spread\npool web");
    for number in ["00", "01", "02", "03"] {
        text = text.replace(
            &format!("node n{number} is=c1.2VCPU-4GB zone=pve1 region=lab pool=web"),
            &format!("node n{number} is=c1.2VCPU-4GB zone=pve1 region=lab pool=db"),
        );
        text = text.replace(
            &format!("node n{number} is=c1.2VCPU-4GB zone=pve2 region=lab pool=web"),
            &format!("node n{number} is=c1.2VCPU-4GB zone=pve2 region=lab pool=db"),
        );
    }
    let (_, faults, _) = settle(&text);
    assert_eq!(faults, Vec::<String>::new());
}
