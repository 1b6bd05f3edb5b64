//! How long a plan and its check take, and how that grows: with pods, with how much they differ, with nodes that are there.
//!
//! The catalogue is that of the reference's own benchmark: 400 sizes with five offerings each.

mod scan;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tenon_engine::{Change, Engine, check};
use tenon_model::labels::{CAPACITY_TYPE, HOSTNAME, ZONE};
use tenon_model::{
    BoundPod, Catalog, CatalogType, NamespaceChoice, NodeState, Offering, Operator, Overhead, Owner, Pod,
    PodAffinityTerm, PodKey, PodShape, Pool, Price, Quantity, Requirement, Requirements, Resources, Selector, Snapshot,
    Spread, UseNodes, WhenUnsatisfiable, WrittenRequirement,
};

const OFFERINGS: [(&str, &str); 5] =
    [("spot", "1"), ("spot", "2"), ("on-demand", "1"), ("on-demand", "2"), ("on-demand", "3")];

fn amounts(milli_cpu: u64, memory_mib: u64, pods: u64) -> Resources {
    let whole = |amount: u64| Quantity::whole(i64::try_from(amount).unwrap_or(i64::MAX));
    let cpu = format!("{milli_cpu}m").parse().unwrap_or_default();
    Resources::default().with("cpu", cpu).with("memory", whole(memory_mib << 20)).with("pods", whole(pods))
}

fn labels(labels: &[(&str, &str)]) -> Requirements {
    labels.iter().map(|(label, value)| ((*label).to_owned(), Requirement::is(*value))).collect()
}

fn catalog() -> Arc<Catalog> {
    let size = |number: u64| {
        let offering = |(capacity_type, zone): &(&str, &str)| Offering {
            requirements: labels(&[(CAPACITY_TYPE, capacity_type), (ZONE, zone)]),
            price: Price::new(0.3 * number as f64),
            available: true,
            ..Offering::default()
        };
        let kube_reserved = amounts(100, 10, 0);
        CatalogType {
            name: format!("size-{number}"),
            requirements: Requirements::default(),
            capacity: amounts(1000 * number, 2048 * number, 10 * number),
            overhead: Overhead { kube_reserved, ..Overhead::default() },
            offerings: OFFERINGS.iter().map(offering).collect(),
            ..CatalogType::default()
        }
    };
    Arc::new(Catalog::new((1..=400).map(size).collect()))
}

/// Pods of a few kinds, or each of a kind of its own.
fn pod(number: u64, are_alike: bool) -> Arc<Pod> {
    let kind = if are_alike { number % 30 } else { number };
    let zone = OFFERINGS.get(usize::try_from(kind % 7).unwrap_or_default()).map(|(_, zone)| *zone);
    let wanted = zone.map(|zone| labels(&[(ZONE, zone)])).unwrap_or_default();
    let shape = PodShape {
        requests: amounts(100 + kind * 37 % 1500, 128 + kind * 61 % 4096, 1),
        alternatives: vec![wanted],
        ..PodShape::default()
    };
    let key =
        PodKey { namespace: "default".into(), name: format!("pod-{number}").into(), uid: number.to_string().into() };
    Arc::new(Pod { key: Arc::new(key), shape: Arc::new(shape), ..Pod::default() })
}

/// A node with room for a few small pods.
fn node(number: u64) -> Arc<NodeState> {
    let labels = [(ZONE.to_owned(), (1 + number % 3).to_string())].into_iter().collect();
    let (all, used) = (amounts(8000, 16 << 10, 110), amounts(7500, 15 << 10, 20));
    let name = format!("node-{number}");
    Arc::new(NodeState { name, labels, capacity: all.clone(), allocatable: all, bound: used, ..NodeState::default() })
}

fn snapshot(pods: u64, are_alike: bool, nodes: u64) -> Snapshot {
    let pool = Pool { name: "default".to_owned(), catalog: catalog(), ..Pool::default() };
    Snapshot {
        pools: vec![Arc::new(pool)],
        pods: (0..pods).map(|number| pod(number, are_alike)).collect(),
        nodes: (0..nodes).map(node).collect(),
        ..Snapshot::default()
    }
}

fn plans(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("plan");
    group.sample_size(10);
    for (pods, nodes) in [(100, 0), (1000, 0), (5000, 0), (20_000, 0), (5000, 2000)] {
        for (kinds, are_alike) in [("30 kinds", true), ("all different", false)] {
            let world = snapshot(pods, are_alike, nodes);
            let (mut engine, name) =
                (Engine::of(&world), BenchmarkId::new(format!("{pods} pods, {nodes} nodes"), kinds));
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    engine.advance(&world);
                    black_box(engine.plan())
                });
            });
        }
    }
    let world = snapshot(100, true, 0);
    group.bench_function("100 pods, 0 nodes/catalogue not read before", |bencher| {
        bencher.iter(|| black_box(tenon_engine::plan(&world)));
    });
    group.finish();
}

/// The controller checks every plan before anything is created.
fn checks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("check");
    group.sample_size(10);
    for (pods, nodes) in [(5000, 0), (20_000, 0), (5000, 2000)] {
        let world = snapshot(pods, true, nodes);
        let plan = tenon_engine::plan(&world);
        assert!(check(&world, &plan).is_empty(), "the plan that is checked is sound");
        group.bench_function(format!("{pods} pods, {nodes} nodes"), |bencher| {
            bencher.iter(|| black_box(check(&world, &plan)));
        });
    }
    group.finish();
}

/// A node of thirty pods of 300 workloads. Some spread over zones, some stay away from their like, most do neither.
fn full_node(number: u64, shapes: &[Arc<PodShape>]) -> Arc<NodeState> {
    let labels = [(ZONE.to_owned(), (1 + number % 3).to_string())].into_iter().collect();
    let (all, mut used) = (amounts(8000, 16 << 10, 110), Resources::default());
    let pods = (0..30).map(|place| {
        let shape = &shapes[usize::try_from((number * 7 + place * 11) % 300).unwrap_or_default()];
        used.add(&shape.requests);
        let name = format!("pod-{number}-{place}");
        let key = PodKey { namespace: "default".into(), uid: name.clone().into(), name: name.into() };
        Arc::new(BoundPod { key: Arc::new(key), shape: shape.clone(), ..BoundPod::default() })
    });
    let pods = pods.collect();
    let (name, pool, is_managed) = (format!("node-{number}"), Some("default".to_owned()), true);
    let (capacity, allocatable) = (all.clone(), all);
    let state =
        NodeState { name, pool, is_managed, labels, capacity, allocatable, bound: used, pods, ..NodeState::default() };
    Arc::new(state)
}

fn workload(number: u64) -> Arc<PodShape> {
    let labels = Arc::new([("app".to_owned(), number.to_string())].into_iter().collect());
    let app = WrittenRequirement {
        label: "app".to_owned(),
        operator: Operator::In,
        values: vec![number.to_string()],
        min_values: None,
    };
    let selector = Some(Selector { requirements: vec![app] });
    let spread = Spread {
        label: ZONE.to_owned(),
        max_skew: 20,
        min_domains: None,
        when_unsatisfiable: WhenUnsatisfiable::DoNotSchedule,
        selector: selector.clone(),
        nodes: UseNodes { that_are_wanted: true, that_are_tolerated: false },
    };
    let namespaces = NamespaceChoice { names: ["default".to_owned()].into_iter().collect(), selector: None };
    let apart = PodAffinityTerm { label: HOSTNAME.to_owned(), selector, namespaces };
    Arc::new(PodShape {
        requests: amounts(150 + number % 7 * 10, 256 + number % 11 * 16, 1),
        labels,
        spreads: number.is_multiple_of(3).then_some(spread).into_iter().collect(),
        pod_anti_affinity: number.is_multiple_of(5).then_some(apart).into_iter().collect(),
        owner: Owner::Other,
        ..PodShape::default()
    })
}

/// What a scan for nodes that can be removed asks: each of 1,000 nodes by itself.
fn what_ifs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("what if");
    group.sample_size(10);
    let shapes: Vec<Arc<PodShape>> = (0..300).map(workload).collect();
    let mut world = snapshot(0, true, 0);
    world.nodes = (0..1000).map(|number| full_node(number, &shapes)).collect();
    group.bench_function("1000 nodes, 30000 pods/read", |bencher| {
        bencher.iter(|| black_box(Engine::with_pods_on_nodes(&world)));
    });
    let engine = Engine::with_pods_on_nodes(&world);
    let names: Vec<String> = (0..1000).map(|number| format!("node-{number}")).collect();
    let mut what_ifs = engine.what_ifs(false);
    let change = Change { remove: &["node-500"], most_new_nodes: Some(1), ..Change::default() };
    let plan = what_ifs.plan(&change).unwrap_or_default();
    let placed = plan.placements.len() + plan.new_nodes.iter().map(|node| node.pods.len()).sum::<usize>();
    assert_eq!(placed, 30, "all pods of a node find another place");
    group.bench_function("1000 nodes, 30000 pods/each node removed alone", |bencher| {
        bencher.iter(|| {
            for name in &names {
                let change = Change { remove: &[name], most_new_nodes: Some(1), ..Change::default() };
                black_box(what_ifs.plan(&change));
            }
        });
    });
    group.bench_function("1000 nodes, 30000 pods/100 nodes removed at once", |bencher| {
        let remove: Vec<&str> = names.iter().take(100).map(String::as_str).collect();
        bencher.iter(|| black_box(what_ifs.plan(&Change { remove: &remove, ..Change::default() })));
    });
    group.finish();
}

criterion_group!(benches, plans, checks, what_ifs, scan::scans);
criterion_main!(benches);
