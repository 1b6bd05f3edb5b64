//! Laws that hold for every cluster.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tenon_engine::{Engine, plan};
use tenon_model::{BoundPod, Effect, NodeStage, NodeState, Pod, Quantity, Resources, Snapshot, Taint, labels};

use crate::packing::cluster::{attach, cluster, sound_plan};

fn any_pod(index: usize) -> impl Strategy<Value = String> {
    (1_i64..5_000, 64_i64..20_000, 0..20_u8, 0..20_u8).prop_map(move |(cpu, memory, kind, mate)| {
        let size = format!("pod p{index} cpu={cpu}m memory={memory}Mi created={} {}", index % 3, about_others(mate));
        let wish = match kind {
            0 => "need:zone=In:pve1,pve9",
            1 => "need:zone=NotIn:pve2",
            2 => "need:arch=In:arm64",
            3 => "tolerate=special",
            4 => "need:team=Exists",
            5 => "port=80",
            6 => "prefer:3:zone=In:pve3 prefer:9:team=In:red",
            7 => "or:zone=In:pve9 or:zone=In:pve1",
            8 => "need:capacity-type=In:spot",
            9 => "need:team=NotIn:blue",
            10 => "volume=zone:pve2|zone:pve1",
            11 => "volume=zone:pve3 prefer:3:zone=In:pve2",
            12 => "attach=disk/shared",
            13 => "volume=team:red|zone:pve1 attach=disk/shared attach=nfs/x",
            14 | 15 => return format!("{size} attach=disk/v{index}"),
            16 => return format!("{size} attach=disk/v{index} attach=disk/w{index} volume=zone:pve1"),
            _ => "",
        };
        format!("{size} {wish}")
    })
}

/// What a pod asks of other pods.
fn about_others(kind: u8) -> &'static str {
    match kind {
        0 => "label:app=web spread=zone:1:app=web",
        1 => "label:app=web spread=hostname:1:app=web",
        2 => "label:app=db apart=hostname:app=db",
        3 => "label:app=db with=zone:app=db",
        4 => "with=hostname:app=web",
        5 => "label:app=web apart=zone:app=db",
        6 => "label:app=x spread?=zone:1:app=x apart?=3:hostname:app=x with?=2:zone:app=web",
        7 => "label:app=web spread=capacity-type:2:app=web;min=2",
        8 => "label:app=x spread=zone:1:app=web spread=hostname:2:*",
        9 => "label:app=x apart=zone:app=x;in=*",
        10 => "label:app=db with=hostname:app=db spread=zone:1:app=db;taints=honor",
        11 => "label:team=red with=team:team=red",
        12 | 13 => "label:app=web",
        14 => "label:app=db",
        _ => "",
    }
}

/// Hosts, on which VMs are bound to CPUs if a word says so.
fn any_hosts(word: &'static str) -> impl Strategy<Value = String> {
    proptest::collection::vec((0_i64..32, 0_i64..96, any::<bool>()), 3).prop_map(move |sizes| {
        let host = |(index, (cpu, memory, online)): (usize, (i64, i64, bool))| {
            let closed = match (online, index) {
                (true, _) => "",
                (false, 0) => "closed-for=default",
                (false, _) => "closed=offline",
            };
            format!("host pve{} cpu={cpu} memory={memory}Gi {closed} {word}", index + 1)
        };
        sizes.into_iter().enumerate().map(host).collect::<Vec<_>>().join("\n")
    })
}

/// Either built-in sizes on hosts, or a catalogue with reservations and no hosts.
fn any_ground() -> impl Strategy<Value = String> {
    let catalogue = (proptest::collection::vec((1_i64..16, 1_i64..32, 1_i64..20), 1..6), 0_u32..3).prop_map(|(types, left)| {
        let size = |(index, (cpu, memory, price)): (usize, &(i64, i64, i64))| {
            let limit = ["attach-limit:disk=1", "attach-limit:disk=2", ""][index % 3];
            format!("type t{index} cpu={cpu} memory={memory}Gi price={price} zone=pve1,pve2,pve3 capacity-type=spot,on-demand {limit}")
        };
        let types: Vec<String> = types.iter().enumerate().map(size).collect();
        format!("{}\noffering t0 price=0 zone=pve1 capacity-type=reserved id=r left={left}", types.join("\n"))
    });
    let bound = prop_oneof![any_hosts("cells=2 threads=2"), any_hosts("cells=4"), any_hosts("cells=1")];
    prop_oneof![2 => any_hosts(""), 2 => catalogue, 1 => bound]
}

/// A cluster in words, so that a law that is broken says by which cluster.
pub(crate) fn any_cluster() -> impl Strategy<Value = String> {
    let pods = (0..14_usize).prop_flat_map(|count| (0..count).map(any_pod).collect::<Vec<_>>());
    let nodes = proptest::collection::vec((0_i64..4_000, 0_i64..8, 0..4_u8), 0..3);
    (pods, any_ground(), nodes, 0_i64..60, (0_i64..6, 0..5_u8)).prop_map(|(pods, ground, nodes, limit, (count, mode))| {
        let node = |(index, (cpu, memory, kind)): (usize, (i64, i64, u8))| {
            let more = ["", "rising pool=default attach-limit:disk=1", "label:team=red attach-limit:disk=2", "leaving"];
            let more = more[usize::from(kind)];
            let there = ["label:app=web", "label:app=db apart=hostname:app=db", "label:app=x apart=zone:app=web", "terminating"];
            let bound = format!("bound b{index} on=n{index} {}", there[usize::try_from(cpu % 4).unwrap()]);
            let zone = 1 + memory % 3;
            format!("node n{index} cpu={cpu}m memory={memory}Gi label:zone=pve{zone} {more}\n{bound}")
        };
        let nodes: Vec<String> = nodes.into_iter().enumerate().map(node).collect();
        let options = [
            "",
            "option preferences=Ignore",
            "option reserved=Fallback",
            "option min-values=BestEffort",
            "option credit:r=1",
        ];
        format!(
            "{}\n{ground}\npool default limit:cpu={limit} need:instance-type=Exists:+min=1\n\
             pool special weight=1 taint=special:NoSchedule limit:nodes={count}\npool soft taint=x:PreferNoSchedule label:team=red\n\
             daemon agent cpu=100m memory=64Mi\ndaemon odd cpu=50m need:team=In:red port=80\n{}\n{}",
            options[usize::from(mode)],
            nodes.join("\n"),
            pods.join("\n")
        )
    })
}

fn bound(pod: &Pod) -> BoundPod {
    let (storage, created) = (Some(Arc::new(pod.storage.clone())), pod.created);
    BoundPod { key: pod.key.clone(), shape: pod.shape.clone(), created, storage, ..BoundPod::default() }
}

/// The snapshot after the plan was carried out: its new nodes are on their way, with what was put on them.
pub(crate) fn carried_out(snapshot: &Snapshot) -> Snapshot {
    let plan = plan(snapshot);
    let mut after = snapshot.clone();
    after.pods.retain(|pod| plan.unplaced.iter().any(|unplaced| unplaced.pod == pod.key));
    let pod_of = |key| snapshot.pods.iter().find(|pod| pod.key == key).unwrap();
    for placement in &plan.placements {
        let node = after.nodes.iter_mut().find(|node| node.name == placement.node).unwrap();
        let (node, pod) = (Arc::make_mut(node), pod_of(placement.pod.clone()));
        attach(node, &pod.storage.volumes().unwrap().attachments);
        node.bound.add(&pod.requests);
        node.host_ports.extend(pod.host_ports.iter().map(|port| (pod.key.clone(), port.clone())));
        node.pods.push(Arc::new(bound(pod)));
    }
    for (index, new) in plan.new_nodes.iter().enumerate() {
        let pool = after.pools.iter_mut().find(|pool| pool.name == new.pool).unwrap();
        let pool = Arc::make_mut(pool);
        let size = pool.catalog.find(&new.chosen.instance_type).unwrap().clone();
        pool.used.add(&size.capacity);
        pool.used.add(&Resources::default().with("nodes", Quantity::whole(1)));
        if let Some(place) = &new.chosen.place {
            let host = after.hosts.iter_mut().find(|host| host.place == *place).unwrap();
            let vm: Resources = ["cpu", "memory"].into_iter().map(|name| (name, size.capacity.get(name))).collect();
            host.free = host.free.without(&vm);
        }
        let mut labels = new.chosen.labels.clone();
        labels.extend(new.requirements.iter().filter_map(|(label, demand)| Some((label.to_owned(), demand.any()?))));
        labels.extend(new.chosen.labels.clone());
        let mut node = NodeState {
            name: format!("new{index}"),
            pool: Some(new.pool.clone()),
            is_managed: true,
            labels: labels.into_iter().collect(),
            taints: pool.taints.clone(),
            capacity: size.capacity.clone(),
            allocatable: size.allocatable(&tenon_model::Overrides::default()),
            stage: NodeStage::Rising,
            attach_limits: size.volume_attachment_limits.clone(),
            ..NodeState::default()
        };
        for pod in new.pods.iter().map(|key| pod_of(key.clone())) {
            attach(&mut node, &pod.storage.volumes().unwrap().attachments);
            node.bound.add(&pod.requests);
            node.host_ports.extend(pod.host_ports.iter().map(|port| (pod.key.clone(), port.clone())));
            node.pods.push(Arc::new(bound(pod)));
        }
        after.nodes.push(Arc::new(node));
    }
    after
}

/// The same clusters in every run, so that a run says what the last one said. `PROPTEST_RNG_SEED` is not read here: change the
/// number to look at others.
pub(crate) const SEED: RngSeed = RngSeed::Fixed(20_261_118);

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, rng_seed: SEED, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_is_sound(text in any_cluster()) {
        let snapshot = cluster(&text);
        sound_plan(&snapshot);
    }

    #[test]
    fn the_order_of_the_input_does_not_matter(text in any_cluster()) {
        let snapshot = cluster(&text);
        let mut turned = snapshot.clone();
        turned.pods.reverse();
        turned.nodes.reverse();
        turned.hosts.reverse();
        turned.pools.reverse();
        turned.daemons.reverse();
        for pool in &mut turned.pools {
            let mut types = pool.catalog.types().to_vec();
            types.reverse();
            types.iter_mut().for_each(|size| size.offerings.reverse());
            Arc::make_mut(pool).catalog = Arc::new(tenon_model::Catalog::new(types));
        }
        prop_assert_eq!(plan(&snapshot), plan(&turned));
    }

    #[test]
    fn what_is_remembered_to_be_refused_is_refused_when_it_is_asked_again(text in any_cluster()) {
        let snapshot = cluster(&text);
        let engine = Engine::of(&snapshot);
        let (trusting, _) = engine.measure(false);
        prop_assert_eq!(engine.measure(true).0, trusting);
    }

    #[test]
    fn a_second_plan_opens_nothing_for_a_pod_the_first_one_placed(text in any_cluster()) {
        let snapshot = cluster(&text);
        let after = carried_out(&snapshot);
        let again = plan(&after);
        if after.pods.is_empty() {
            prop_assert!(again.new_nodes.is_empty() && again.placements.is_empty());
        }
        // Whoever waited, waits for a reason that the first plan did not mend.
        prop_assert!(again.new_nodes.iter().flat_map(|node| &node.pods).all(|pod| after.pods.iter().any(|waiting| waiting.key == *pod)));
    }
}

/// The same, but for what one node says of itself.
fn with_one_node_changed(snapshot: &Snapshot, node: usize, change: u8) -> Snapshot {
    let mut snapshot = snapshot.clone();
    let count = snapshot.nodes.len().max(1);
    let Some(node) = snapshot.nodes.get_mut(node % count).map(Arc::make_mut) else { return snapshot };
    match change {
        0 => node.labels = [(labels::ZONE.to_owned(), "elsewhere".to_owned())].into_iter().collect(),
        1 => node.taints.push(Taint { key: "changed".to_owned(), value: String::new(), effect: Effect::NoSchedule }),
        2 => node.bound = node.allocatable.clone(),
        _ => node.bound = Resources::default(),
    }
    snapshot
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, rng_seed: SEED, ..ProptestConfig::default() })]

    #[test]
    fn an_engine_that_goes_from_one_snapshot_to_the_next_plans_as_a_new_one(
        first in any_cluster(),
        second in any_cluster(),
        changes in proptest::collection::vec((0..20_usize, 0..4_u8), 1..4),
    ) {
        let (first, second) = (cluster(&first), cluster(&second));
        let mut engine = Engine::default();
        let mut snapshots = vec![first.clone(), carried_out(&first), first, second.clone(), carried_out(&second)];
        // What is carried out shares most of what it has with what it was made from; here a node is another in each.
        for (node, change) in changes {
            snapshots.push(with_one_node_changed(&snapshots[snapshots.len() - 1], node, change));
        }
        for snapshot in &snapshots {
            engine.advance(snapshot);
            prop_assert_eq!(engine.plan(), plan(snapshot));
            prop_assert_eq!(engine.plan(), plan(snapshot), "nothing is used up by a plan");
        }
    }
}
