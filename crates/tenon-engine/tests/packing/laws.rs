//! Laws that hold for every cluster.

use proptest::prelude::*;
use tenon_engine::plan;
use tenon_model::{Effect, InstanceType, Node, Operator, Pod, Quantity, Resources, Snapshot};

use crate::cluster::{amounts, host, node, pod, pool, sound_plan, taint, tolerating, wanting};

const HOSTS: [&str; 3] = ["pve1", "pve2", "pve3"];

fn any_pod(index: usize) -> impl Strategy<Value = Pod> {
    (1_i64..5_000, 64_i64..20_000, 0..8_u8).prop_map(move |(cpu, memory, kind)| {
        let plain = pod(&format!("p{index}"), &format!("{cpu}m"), &format!("{memory}Mi"));
        match kind {
            0 => wanting(plain, "topology.kubernetes.io/zone", Operator::In, &["pve1", "pve9"]),
            1 => wanting(plain, "topology.kubernetes.io/zone", Operator::NotIn, &["pve2"]),
            2 => wanting(plain, "kubernetes.io/arch", Operator::In, &["arm64"]),
            3 => tolerating(plain, "special"),
            4 => wanting(plain, "team", Operator::Exists, &[]),
            _ => plain,
        }
    })
}

fn any_snapshot() -> impl Strategy<Value = Snapshot> {
    let pods = (0..12_usize).prop_flat_map(|count| (0..count).map(any_pod).collect::<Vec<_>>());
    let host_sizes = proptest::collection::vec((0_i64..32, 0_i64..96, any::<bool>()), 3);
    let nodes = proptest::collection::vec((0_i64..4_000, 0_i64..8), 0..3);
    (pods, host_sizes, nodes, 0_i64..40, any::<bool>()).prop_map(|(pods, sizes, nodes, limit, special)| {
        let mut hosts = Vec::new();
        for (name, (cpu, memory, online)) in HOSTS.iter().zip(sizes) {
            let mut host = host(name, &cpu.to_string(), &format!("{memory}Gi"));
            host.closed = (!online && *name != "pve1").then(|| "it is offline".to_owned());
            hosts.push(host);
        }
        let mut pools = vec![pool("default", &HOSTS), pool("special", &["pve1", "pve2"])];
        pools[0].limits = Resources::default().with("cpu", Quantity::whole(limit));
        pools[1].weight = i32::from(special);
        pools[1].taints = vec![taint("special", Effect::NoSchedule)];
        let to_node = |(index, (cpu, memory)): (usize, (i64, i64))| {
            node(&format!("n{index}"), &format!("{cpu}m"), &format!("{memory}Gi"))
        };
        let nodes: Vec<Node> = nodes.into_iter().enumerate().map(to_node).collect();
        let daemons = vec![pod("agent", "100m", "64Mi")];
        Snapshot { pools, types: InstanceType::built_in(), hosts, nodes, pods, daemons }
    })
}

/// The snapshot after the plan was carried out: its new nodes are there, with what is left on them.
fn carried_out(snapshot: &Snapshot) -> Snapshot {
    let plan = plan(snapshot);
    let mut after = snapshot.clone();
    after.pods.retain(|pod| plan.unplaced.iter().any(|unplaced| unplaced.pod == pod.key));
    for placement in &plan.placements {
        let requests = &snapshot.pods.iter().find(|pod| pod.key == placement.pod).unwrap().requests;
        let node = after.nodes.iter_mut().find(|node| node.name == placement.node).unwrap();
        node.room = node.room.without(requests);
    }
    for (index, new) in plan.new_nodes.iter().enumerate() {
        let size = snapshot.types.iter().find(|size| size.name == new.instance_type).unwrap();
        let host = after.hosts.iter_mut().find(|host| host.place == new.place).unwrap();
        let vm = amounts(&size.capacity.get("cpu").to_string(), &size.capacity.get("memory").to_string());
        host.free = host.free.without(&vm);
        let pool = after.pools.iter_mut().find(|pool| pool.name == new.pool).unwrap();
        pool.used.add(&size.capacity);
        let room = size.allocatable().without(&new.requests);
        after.nodes.push(Node {
            name: format!("new{index}"),
            labels: new.requirements.clone(),
            taints: pool.taints.clone(),
            room,
        });
    }
    after
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_is_sound(snapshot in any_snapshot()) {
        sound_plan(&snapshot);
    }

    #[test]
    fn the_order_of_the_input_does_not_matter(snapshot in any_snapshot()) {
        let mut turned = snapshot.clone();
        turned.pods.reverse();
        turned.nodes.reverse();
        turned.hosts.reverse();
        turned.pools.reverse();
        turned.types.reverse();
        for pool in &mut turned.pools {
            pool.places.reverse();
        }
        prop_assert_eq!(plan(&snapshot), plan(&turned));
    }

    #[test]
    fn a_second_plan_opens_nothing_for_a_pod_the_first_one_placed(snapshot in any_snapshot()) {
        let after = carried_out(&snapshot);
        let again = plan(&after);
        if after.pods.is_empty() {
            prop_assert!(again.new_nodes.is_empty() && again.placements.is_empty());
        }
        // Whoever waited, waits for a reason that the first plan did not mend.
        prop_assert!(again.new_nodes.iter().flat_map(|node| &node.pods).all(|pod| after.pods.iter().any(|waiting| waiting.key == *pod)));
    }
}
