//! Small clusters in few words.

use tenon_engine::{check, plan};
use tenon_model::resources::{CPU, MEMORY, PODS};
use tenon_model::{
    Effect, Host, InstanceType, Node, Operator, Place, Plan, Pod, PodKey, Pool, Quantity, Requirement, Requirements,
    Resources, Snapshot, Taint, Tolerated, Toleration,
};

pub(crate) fn place(host: &str) -> Place {
    Place { region: "lab".to_owned(), host: host.parse().unwrap() }
}

pub(crate) fn amounts(cpu: &str, memory: &str) -> Resources {
    Resources::default().with(CPU, cpu.parse().unwrap()).with(MEMORY, memory.parse().unwrap())
}

/// A pod that asks for cores and memory.
pub(crate) fn pod(name: &str, cpu: &str, memory: &str) -> Pod {
    Pod {
        key: PodKey { namespace: "default".to_owned(), name: name.to_owned(), uid: format!("uid-{name}") },
        requests: amounts(cpu, memory).with(PODS, Quantity::whole(1)),
        ..Pod::default()
    }
}

/// The same pod, asking for a label.
pub(crate) fn wanting(mut pod: Pod, label: &str, operator: Operator, values: &[&str]) -> Pod {
    let requirement = Requirement::new(operator, values.iter().map(ToString::to_string)).unwrap();
    pod.alternatives.iter_mut().for_each(|alternative| alternative.add(label, &requirement));
    pod
}

/// The same pod, putting up with a taint.
pub(crate) fn tolerating(mut pod: Pod, key: &str) -> Pod {
    pod.tolerations.push(Toleration { key: Some(key.to_owned()), value: Tolerated::Exists, effect: None });
    pod
}

pub(crate) fn taint(key: &str, effect: Effect) -> Taint {
    Taint { key: key.to_owned(), value: String::new(), effect }
}

pub(crate) fn host(name: &str, cpu: &str, memory: &str) -> Host {
    Host { place: place(name), closed: None, free: amounts(cpu, memory) }
}

pub(crate) fn pool(name: &str, hosts: &[&str]) -> Pool {
    Pool {
        name: name.to_owned(),
        weight: 0,
        requirements: Requirements::default(),
        taints: Vec::new(),
        limits: Resources::default(),
        used: Resources::default(),
        places: hosts.iter().map(|host| place(host)).collect(),
        not_ready: None,
    }
}

pub(crate) fn node(name: &str, cpu: &str, memory: &str) -> Node {
    let labels = [("kubernetes.io/hostname".to_owned(), Requirement::is(name))].into_iter().collect();
    let room = amounts(cpu, memory).with(PODS, Quantity::whole(110));
    Node { name: name.to_owned(), labels, taints: Vec::new(), room }
}

/// One pool on three equal hosts, with the built-in sizes.
pub(crate) fn cluster(pods: Vec<Pod>) -> Snapshot {
    let names = ["pve1", "pve2", "pve3"];
    Snapshot {
        pools: vec![pool("default", &names)],
        types: InstanceType::built_in(),
        hosts: names.iter().map(|name| host(name, "16", "64Gi")).collect(),
        pods,
        ..Snapshot::default()
    }
}

/// The plan, which must be sound.
pub(crate) fn sound_plan(snapshot: &Snapshot) -> Plan {
    let plan = plan(snapshot);
    let violations = check(snapshot, &plan);
    assert!(
        violations.is_empty(),
        "{}\n{plan:#?}",
        violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    );
    plan
}

/// A plan in words: each new node as `type@host: pods`, each placement as `node: pod`, each waiting pod with its reason.
pub(crate) fn told(plan: &Plan) -> Vec<String> {
    let names = |pods: &[PodKey]| pods.iter().map(|pod| pod.name.as_str()).collect::<Vec<_>>().join(" ");
    let new =
        plan.new_nodes.iter().map(|node| format!("{}@{}: {}", node.instance_type, node.place.host, names(&node.pods)));
    let placed = plan.placements.iter().map(|placement| format!("{}: {}", placement.node, placement.pod.name));
    let waiting = plan.unplaced.iter().map(|unplaced| format!("{} waits: {}", unplaced.pod.name, unplaced.reason));
    new.chain(placed).chain(waiting).collect()
}
