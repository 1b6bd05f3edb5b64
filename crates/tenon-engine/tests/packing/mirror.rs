//! A mirror that was told of every change is the one that was told of what is there in the end.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tenon_engine::{BoundPod, Mirror};
use tenon_model::{NodeState, Options, Pod, PodKey, Pool, Seconds, Snapshot};

use crate::cluster::amounts;

#[derive(Debug, Clone)]
enum Change {
    Pool(u8, i32),
    NoPool(u8),
    Node(u8, u8, u8, bool),
    NoNode(u8),
    Bind(u8, u8, u8, bool),
    Wait(u8, u8),
    NoPod(u8),
    Daemon(u8, u8),
    NoDaemon(u8),
    Look,
}

fn any_change() -> impl Strategy<Value = Change> {
    let small = || 0..4_u8;
    prop_oneof![
        (small(), 0..3_i32).prop_map(|(name, weight)| Change::Pool(name, weight)),
        small().prop_map(Change::NoPool),
        (small(), small(), 1..9_u8, any::<bool>()).prop_map(|(a, b, c, d)| Change::Node(a, b, c, d)),
        small().prop_map(Change::NoNode),
        (small(), small(), 1..9_u8, any::<bool>()).prop_map(|(a, b, c, d)| Change::Bind(a, b, c, d)),
        (small(), 1..9_u8).prop_map(|(a, b)| Change::Wait(a, b)),
        small().prop_map(Change::NoPod),
        (small(), 1..9_u8).prop_map(|(a, b)| Change::Daemon(a, b)),
        small().prop_map(Change::NoDaemon),
        Just(Change::Look),
    ]
}

fn key(kind: &str, number: u8) -> PodKey {
    PodKey { namespace: kind.to_owned(), name: format!("{kind}{number}"), uid: format!("{kind}{number}") }
}

fn tell(mirror: &mut Mirror, change: &Change) {
    let cores = |count: u8| amounts(&count.to_string(), "1Gi");
    match *change {
        Change::Pool(name, weight) => mirror.set_pool(Pool { name: format!("p{name}"), weight, ..Pool::default() }),
        Change::NoPool(name) => mirror.remove_pool(&format!("p{name}")),
        Change::Node(name, pool, cpu, is_leaving) => mirror.set_node(NodeState {
            name: format!("n{name}"),
            pool: Some(format!("p{pool}")),
            capacity: cores(cpu),
            is_leaving,
            ..NodeState::default()
        }),
        Change::NoNode(name) => mirror.remove_node(&format!("n{name}")),
        Change::Bind(pod, node, cpu, is_daemon) => mirror.bind(BoundPod {
            key: key("pod", pod),
            node: format!("n{node}"),
            requests: cores(cpu),
            host_ports: Vec::new(),
            is_daemon,
        }),
        Change::Wait(pod, cpu) => mirror.wait(Pod { key: key("pod", pod), requests: cores(cpu), ..Pod::default() }),
        Change::NoPod(pod) => mirror.remove_pod(&key("pod", pod)),
        Change::Daemon(set, cpu) => {
            mirror.set_daemon(Pod { key: key("set", set), requests: cores(cpu), ..Pod::default() });
        }
        Change::NoDaemon(set) => mirror.remove_daemon(&key("set", set)),
        Change::Look => drop(look(mirror)),
    }
}

fn look(mirror: &mut Mirror) -> Snapshot {
    mirror.snapshot(&Options::default(), Seconds(0))
}

/// The last word about each thing.
fn last_words(changes: &[Change]) -> Vec<Change> {
    let mut words: BTreeMap<(u8, u8), Change> = BTreeMap::new();
    for change in changes {
        let about = match change {
            Change::Pool(name, _) | Change::NoPool(name) => (0, *name),
            Change::Node(name, ..) | Change::NoNode(name) => (1, *name),
            Change::Bind(pod, ..) | Change::Wait(pod, _) | Change::NoPod(pod) => (2, *pod),
            Change::Daemon(set, _) | Change::NoDaemon(set) => (3, *set),
            Change::Look => continue,
        };
        words.insert(about, change.clone());
    }
    words.into_values().collect()
}

proptest! {
    #[test]
    fn deltas_give_the_same_mirror_as_a_rebuild(changes in proptest::collection::vec(any_change(), 0..60)) {
        let (mut told, mut built) = (Mirror::default(), Mirror::default());
        changes.iter().for_each(|change| tell(&mut told, change));
        last_words(&changes).iter().for_each(|change| tell(&mut built, change));
        prop_assert_eq!(format!("{:?}", look(&mut told)), format!("{:?}", look(&mut built)));
    }
}

#[test]
fn what_is_on_a_node_is_summed_up_there_and_in_its_pool() {
    let mut mirror = Mirror::default();
    for change in
        [Change::Pool(0, 0), Change::Bind(1, 0, 2, true), Change::Bind(2, 0, 3, false), Change::Node(0, 0, 8, false)]
    {
        tell(&mut mirror, &change);
    }
    let before = look(&mut mirror);
    assert_eq!(before.nodes[0].bound.get("cpu").value(), 5);
    assert_eq!(before.nodes[0].bound_daemons.get("cpu").value(), 2);
    assert_eq!((before.pools[0].used.get("cpu").value(), before.pools[0].used.get("nodes").value()), (8, 1));
    tell(&mut mirror, &Change::NoPod(2));
    tell(&mut mirror, &Change::Node(0, 0, 8, true));
    let after = look(&mut mirror);
    assert_eq!(after.nodes[0].bound.get("cpu").value(), 2);
    assert_eq!(after.pools[0].used.get("nodes").value(), 0, "what leaves does not count");
    assert_eq!(before.nodes[0].bound.get("cpu").value(), 5, "a snapshot does not change");
}
