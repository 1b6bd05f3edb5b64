//! What a second look at a cluster costs next to the first: only what changed is read again.

use std::hint::black_box;
use std::sync::Arc;
use tenon_api::kube_objects::Pod;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use tenon_api::objects::{Kind, Objects};
use tenon_api::plan_options::PlanOptions;
use tenon_api::planning::{Follower, Surroundings};
use tenon_api::{NodeClaim, NodePool};
use tenon_model::{Catalog, Resources, Seconds};

const NODES: usize = 1000;
const PODS: usize = 20_000;

struct Nothing;

impl Surroundings for Nothing {
    fn catalog(&self, _pool: &NodePool) -> Arc<Catalog> {
        Arc::default()
    }

    fn not_ready(&self, _pool: &NodePool) -> Option<String> {
        None
    }

    fn expected(&self, _claim: &NodeClaim) -> Option<(Resources, Resources)> {
        None
    }
}

fn add(objects: &mut Objects, kind: Kind, value: Value) -> anyhow::Result<()> {
    objects.add(kind.read(value)?.settled()?);
    Ok(())
}

fn pod(number: usize) -> Value {
    json!({
        "metadata": { "name": format!("pod-{number}"), "namespace": "default", "uid": number.to_string(), "labels": { "app": "web" } },
        "spec": {
            "nodeName": format!("node-{}", number % NODES),
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } } }],
        },
        "status": { "phase": "Running" },
    })
}

fn cluster() -> anyhow::Result<Objects> {
    let mut objects = Objects::default();
    let amounts = json!({ "cpu": "8", "memory": "16Gi", "pods": "110" });
    for number in 0..NODES {
        let node = json!({
            "metadata": { "name": format!("node-{number}"), "labels": { "topology.kubernetes.io/zone": "a" } },
            "spec": { "providerID": format!("id-{number}") },
            "status": { "capacity": amounts, "allocatable": amounts },
        });
        add(&mut objects, Kind::Node, node)?;
    }
    (0..PODS).try_for_each(|number| add(&mut objects, Kind::Pod, pod(number)))?;
    Ok(objects)
}

/// Some pods are others now, as a watch would tell.
fn changed(objects: &Objects, count: usize) -> Objects {
    let mut objects = objects.clone();
    for pod in objects.pods.iter_mut().step_by(PODS / count) {
        *pod = Arc::new(Pod::clone(pod));
    }
    objects
}

fn looks(criterion: &mut Criterion) {
    let (options, now) = (PlanOptions::default(), Seconds(0));
    let objects = match cluster() {
        Ok(objects) => objects,
        Err(error) => panic!("the cluster of the benchmark does not read: {error}"),
    };
    let look = |follower: &mut Follower, objects: &Objects| black_box(follower.look(objects, &Nothing, &options, now));
    let mut group = criterion.benchmark_group("look at 20,000 pods on 1,000 nodes");
    group.sample_size(10);
    group.bench_function("the first", |bencher| {
        bencher.iter_batched(Follower::default, |mut follower| look(&mut follower, &objects), BatchSize::PerIteration);
    });
    let mut follower = Follower::default();
    look(&mut follower, &objects);
    for count in [1, 200, 2000] {
        group.bench_function(format!("after {count} pods changed"), |bencher| {
            let another = || changed(&objects, count);
            bencher.iter_batched(another, |objects| look(&mut follower, &objects), BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, looks);
criterion_main!(benches);
