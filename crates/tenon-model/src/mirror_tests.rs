//! A mirror that was told of every change is the one that was told of what is there in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use crate::resources::CPU;
use crate::{
    Attachment, BoundPod, Mirror, NamespaceChoice, NodeState, Options, Owner, Pod, PodAffinityTerm, PodKey, PodShape,
    Pool, Quantity, Resources, Seconds, Snapshot,
};

#[derive(Debug, Clone)]
enum Change {
    Pool(u8, i32),
    NoPool(u8),
    /// Number, pool, cores, whether it leaves, and under which name pods are bound to it, if any.
    Node(u8, u8, u8, bool, Option<u8>),
    NoNode(u8),
    /// Pod, node, cores, whether it is a daemon, and whether it must not be with others.
    Bind(u8, u8, u8, bool, bool),
    Wait(u8, u8),
    Refuse(u8),
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
        (small(), small(), 1..9_u8, any::<bool>(), proptest::option::of(small()))
            .prop_map(|(a, b, c, d, e)| Change::Node(a, b, c, d, e)),
        small().prop_map(Change::NoNode),
        (small(), small(), 1..9_u8, any::<bool>(), any::<bool>())
            .prop_map(|(a, b, c, d, e)| Change::Bind(a, b, c, d, e)),
        (small(), 1..9_u8).prop_map(|(a, b)| Change::Wait(a, b)),
        small().prop_map(Change::Refuse),
        small().prop_map(Change::NoPod),
        (small(), 1..9_u8).prop_map(|(a, b)| Change::Daemon(a, b)),
        small().prop_map(Change::NoDaemon),
        Just(Change::Look),
    ]
}

fn key(kind: &str, number: u8) -> PodKey {
    let name = format!("{kind}{number}").into_boxed_str();
    PodKey { namespace: kind.into(), uid: name.clone(), name }
}

fn cores(count: u8) -> Resources {
    Resources::default().with(CPU, Quantity::whole(i64::from(count)))
}

fn tell(mirror: &mut Mirror, change: &Change) {
    match *change {
        Change::Pool(name, weight) => mirror.set_pool(Pool { name: format!("p{name}"), weight, ..Pool::default() }),
        Change::NoPool(name) => mirror.remove_pool(&format!("p{name}")),
        Change::Node(name, pool, cpu, is_leaving, node) => {
            let node = node.map(|node| format!("n{node}"));
            let (name, pool) = (format!("m{name}"), Some(format!("p{pool}")));
            let state =
                NodeState { name: name.clone(), pool, capacity: cores(cpu), is_leaving, ..NodeState::default() };
            mirror.set_machine(&name, node.as_deref(), state);
        }
        Change::NoNode(name) => mirror.remove_machine(&format!("m{name}")),
        Change::Bind(pod, node, cpu, is_daemon, is_alone) => {
            let pod_anti_affinity = if is_alone { vec![term(cpu)] } else { Vec::new() };
            let owner = if is_daemon { Owner::DaemonSet } else { Owner::Other };
            let shape = PodShape { requests: cores(cpu), owner, pod_anti_affinity, ..PodShape::default() };
            let key = Arc::new(key("pod", pod));
            let volume = || Attachment { driver: "d".to_owned(), volume: format!("n/v{}", cpu % 2) };
            let attachments = (cpu > 4).then(volume).into_iter().collect();
            let bound = BoundPod { key, shape: Arc::new(shape), attachments, ..BoundPod::default() };
            mirror.bind(&format!("n{node}"), bound);
        }
        Change::Wait(pod, cpu) => mirror.wait(waiting(key("pod", pod), cpu)),
        Change::Refuse(pod) => mirror.refuse(&key("pod", pod), "it asks for what nothing is".to_owned()),
        Change::NoPod(pod) => mirror.remove_pod(&key("pod", pod)),
        Change::Daemon(set, cpu) => mirror.set_daemon(&key("set", set), waiting(PodKey::default(), cpu)),
        Change::NoDaemon(set) => mirror.remove_daemon(&key("set", set)),
        Change::Look => drop(look(mirror)),
    }
}

fn waiting(key: PodKey, cpu: u8) -> Pod {
    let shape = PodShape { requests: cores(cpu), ..PodShape::default() };
    Pod { key: Arc::new(key), shape: Arc::new(shape), ..Pod::default() }
}

fn term(number: u8) -> PodAffinityTerm {
    let namespaces = NamespaceChoice { names: BTreeSet::new(), selector: None };
    PodAffinityTerm { label: format!("t{number}"), selector: None, namespaces }
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
            Change::Bind(pod, ..) | Change::Wait(pod, _) | Change::Refuse(pod) | Change::NoPod(pod) => (2, *pod),
            Change::Daemon(set, _) | Change::NoDaemon(set) => (3, *set),
            Change::Look => continue,
        };
        words.insert(about, change.clone());
    }
    words.into_values().collect()
}

proptest! {
    #[test]
    fn i8_usage_deltas_give_the_same_mirror_as_a_rebuild(changes in proptest::collection::vec(any_change(), 0..60)) {
        let (mut told, mut built) = (Mirror::default(), Mirror::default());
        changes.iter().for_each(|change| tell(&mut told, change));
        last_words(&changes).iter().for_each(|change| tell(&mut built, change));
        prop_assert_eq!(format!("{:?}", look(&mut told)), format!("{:?}", look(&mut built)));
    }
}

fn told(changes: &[Change]) -> Mirror {
    let mut mirror = Mirror::default();
    changes.iter().for_each(|change| tell(&mut mirror, change));
    mirror
}

#[test]
fn i8_pool_resources_what_is_on_a_node_is_summed_up_there_and_in_its_pool() {
    let mut mirror = told(&[
        Change::Pool(0, 0),
        Change::Bind(1, 0, 2, true, false),
        Change::Bind(2, 0, 3, false, false),
        Change::Node(0, 0, 8, false, Some(0)),
    ]);
    let before = look(&mut mirror);
    assert_eq!(before.nodes[0].bound.get("cpu").value(), 5);
    assert_eq!(before.nodes[0].bound_daemons.get("cpu").value(), 2);
    let pods =
        |snapshot: &Snapshot| snapshot.nodes[0].pods.iter().map(|pod| pod.key.name.to_string()).collect::<Vec<_>>();
    assert_eq!(pods(&before), ["pod1", "pod2"]);
    assert_eq!((before.pools[0].used.get("cpu").value(), before.pools[0].used.get("nodes").value()), (8, 1));
    tell(&mut mirror, &Change::NoPod(2));
    tell(&mut mirror, &Change::Node(0, 0, 8, true, Some(0)));
    let after = look(&mut mirror);
    assert_eq!(after.nodes[0].bound.get("cpu").value(), 2);
    assert_eq!(pods(&after), ["pod1"]);
    assert_eq!(after.pools[0].used.get("nodes").value(), 0, "what leaves does not count");
    assert_eq!(before.nodes[0].bound.get("cpu").value(), 5, "a snapshot does not change");
}

#[test]
fn what_did_not_change_is_shared_between_snapshots() {
    let mut mirror = told(&[
        Change::Pool(0, 0),
        Change::Node(0, 1, 8, false, Some(0)),
        Change::Node(1, 1, 8, false, Some(1)),
        Change::Wait(0, 1),
    ]);
    let before = look(&mut mirror);
    tell(&mut mirror, &Change::Bind(3, 1, 1, false, false));
    let after = look(&mut mirror);
    assert!(Arc::ptr_eq(&before.nodes[0], &after.nodes[0]) && Arc::ptr_eq(&before.pods[0], &after.pods[0]));
    assert!(Arc::ptr_eq(&before.pools[0], &after.pools[0]));
    assert!(!Arc::ptr_eq(&before.nodes[1], &after.nodes[1]), "this one got a pod");
}

/// CPU and nodes that count in each pool.
fn used(mirror: &mut Mirror) -> Vec<(i64, i64)> {
    let of = |pool: &Arc<Pool>| (pool.used.get("cpu").value(), pool.used.get("nodes").value());
    look(mirror).pools.iter().map(of).collect()
}

#[test]
fn i8_pool_resources_a_node_that_changes_its_pool_counts_in_the_new_one_only() {
    let mut mirror = told(&[Change::Pool(0, 0), Change::Pool(1, 0), Change::Node(0, 0, 8, false, None)]);
    assert_eq!(used(&mut mirror), [(8, 1), (0, 0)]);
    tell(&mut mirror, &Change::Node(0, 1, 8, false, None));
    assert_eq!(used(&mut mirror), [(0, 0), (8, 1)]);
    tell(&mut mirror, &Change::Node(0, 1, 4, false, None));
    assert_eq!(used(&mut mirror), [(0, 0), (4, 1)], "what it had before does not count");
}

#[test]
fn i8_marked_a_node_is_taken_off_its_pool_once_and_counts_again_when_it_stays() {
    let mut mirror =
        told(&[Change::Pool(0, 0), Change::Node(0, 0, 8, false, None), Change::Node(1, 0, 2, false, None)]);
    for (is_leaving, left) in [(true, (2, 1)), (true, (2, 1)), (false, (10, 2)), (true, (2, 1))] {
        tell(&mut mirror, &Change::Node(0, 0, 8, is_leaving, None));
        assert_eq!(used(&mut mirror), [left]);
    }
    tell(&mut mirror, &Change::NoNode(0));
    assert_eq!(used(&mut mirror), [(2, 1)], "who left is not taken off again");
    tell(&mut mirror, &Change::NoNode(0));
    assert_eq!(used(&mut mirror), [(2, 1)]);
}

#[test]
fn i8_anti_affinity_a_pod_that_refuses_others_does_so_while_it_is_bound_wherever_it_moves() {
    let refusing = |mirror: &mut Mirror| -> Vec<bool> {
        let refuses = |node: &Arc<NodeState>| node.pods.iter().any(|pod| !pod.shape.pod_anti_affinity.is_empty());
        look(mirror).nodes.iter().map(refuses).collect()
    };
    // The pod is seen before its node is.
    let mut mirror = told(&[Change::Bind(0, 0, 1, false, true)]);
    tell(&mut mirror, &Change::Node(0, 0, 8, false, Some(0)));
    tell(&mut mirror, &Change::Node(1, 0, 8, false, Some(1)));
    assert_eq!(refusing(&mut mirror), [true, false]);
    tell(&mut mirror, &Change::Bind(0, 1, 1, false, true));
    assert_eq!(refusing(&mut mirror), [false, true]);
    tell(&mut mirror, &Change::Bind(0, 1, 1, false, false));
    assert_eq!(refusing(&mut mirror), [false, false]);
}
