//! How long a scan of a whole cluster takes: every node judged for deletion and replacement, and groups of nodes.

use std::hint::black_box;
use std::sync::Arc;

use criterion::Criterion;
use tenon_engine::disruption::{KeptNode, Method, Scanner, decide};
use tenon_model::labels::{CAPACITY_TYPE, INSTANCE_TYPE, ZONE};
use tenon_model::{
    BoundPod, BudgetText, CandidateClaim, CandidateKubeNode, ConsolidationPolicy, DisruptionBudget, DisruptionFacts,
    DisruptionPool, NodeState, PodKey, PodShape, Resources, Seconds, Snapshot, Timestamp,
};

use super::{amounts, snapshot, workload};

/// Long after all nodes came up.
const NOW: Seconds = Seconds(1_000_000);

/// How much room nodes have beside their pods.
#[derive(Debug, Clone, Copy)]
enum Room {
    /// So much that any node can go.
    Plenty,
    /// For no pod of another node: nothing can be done, and all of it has to be found out.
    None,
}

fn facts(name: &str) -> DisruptionFacts {
    let came_up = Some(Timestamp::from(Seconds(1000)));
    DisruptionFacts {
        claim: CandidateClaim { name: name.to_owned(), initialized_at: came_up, ..CandidateClaim::default() },
        node: Some(CandidateKubeNode {
            name: name.to_owned(),
            is_initialized: true,
            is_ready: true,
            ..CandidateKubeNode::default()
        }),
    }
}

fn node(number: u64, (pods, room): (u64, Room), shapes: &[Arc<PodShape>]) -> Arc<NodeState> {
    let name = format!("node-{number}");
    let mut used = Resources::default();
    let pods: Vec<Arc<BoundPod>> = (0..pods)
        .map(|place| {
            let shape = &shapes[usize::try_from((number * 7 + place * 11) % 300).unwrap_or_default()];
            used.add(&shape.requests);
            let pod = format!("pod-{number}-{place}");
            let key = PodKey { namespace: "default".into(), uid: pod.clone().into(), name: pod.into() };
            Arc::new(BoundPod { key: Arc::new(key), shape: shape.clone(), ..BoundPod::default() })
        })
        .collect();
    let (allocatable, size) = match room {
        Room::Plenty => (amounts(8000, 16 << 10, 110), "size-8"),
        Room::None => (used.clone(), "size-1"),
    };
    let zone = (1 + number % 3).to_string();
    let labels = [(ZONE, zone.as_str()), (CAPACITY_TYPE, "on-demand"), (INSTANCE_TYPE, size)];
    Arc::new(NodeState {
        disruption: Some(Arc::new(facts(&name))),
        name,
        pool: Some("default".to_owned()),
        is_managed: true,
        labels: labels.into_iter().collect(),
        capacity: allocatable.clone(),
        allocatable,
        bound: used,
        pods,
        ..NodeState::default()
    })
}

fn world(nodes: u64, pods_each: u64, room: Room) -> Snapshot {
    let shapes: Vec<Arc<PodShape>> = (0..300).map(workload).collect();
    let mut world = snapshot(0, true, 0);
    let budget = BudgetText { nodes: "100%", schedule: None, duration: None };
    let rules = DisruptionPool {
        name: "default".to_owned(),
        is_deleting: false,
        is_static: false,
        policy: ConsolidationPolicy::WhenEmptyOrUnderutilized,
        consolidate_after: "0s".parse(),
        budgets: vec![DisruptionBudget::read(budget, None)],
    };
    for pool in &mut world.pools {
        Arc::make_mut(pool).disruption = Some(Arc::new(rules.clone()));
    }
    world.nodes = (0..nodes).map(|number| node(number, (pods_each, room), &shapes)).collect();
    world.now = NOW;
    world
}

/// The same after a pod of one node ended.
fn after_one_pod(world: &Snapshot) -> Snapshot {
    let mut after = world.clone();
    if let Some(node) = after.nodes.get_mut(37).map(Arc::make_mut)
        && let Some(pod) = node.pods.pop()
    {
        node.bound = node.bound.without(&pod.shape.requests);
    }
    after
}

/// Everything from the snapshot to the moves and a reason for each node that stays: the first scan of a cluster, and one after a pod
/// changed.
pub(super) fn scans(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scan");
    group.sample_size(10);
    for (nodes, pods_each, room, name) in [
        (1000, 30, Room::Plenty, "with room"),
        (1000, 30, Room::None, "full"),
        (5000, 20, Room::Plenty, "with room"),
        (5000, 20, Room::None, "full"),
    ] {
        let cluster = format!("{nodes} nodes, {} pods/{name}", nodes * pods_each);
        group.bench_function(format!("{cluster}/first"), |bencher| {
            let world = world(nodes, pods_each, room);
            let decided = decide(&world);
            let judged = |kept: &KeptNode| kept.reasons.iter().any(|(by, _)| *by == Method::SingleNode);
            assert!(decided.kept.iter().all(judged), "every node is judged by itself");
            assert_eq!(decided.commands.len(), usize::from(matches!(room, Room::Plenty)));
            bencher.iter(|| black_box(decide(&world)));
        });
        group.bench_function(format!("{cluster}/one pod changed"), |bencher| {
            let world = world(nodes, pods_each, room);
            let other = after_one_pod(&world);
            let (mut scanner, mut turn) = (Scanner::default(), false);
            bencher.iter(|| {
                turn = !turn;
                black_box(scanner.decide(if turn { &world } else { &other }))
            });
        });
    }
    group.finish();
}
