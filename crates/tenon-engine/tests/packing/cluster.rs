//! Small clusters in few words, read line by line, and plans told the same way.
//!
//! ```text
//! option    preferences=Ignore min-values=BestEffort reserved=Fallback dra=true credit:r1=2
//! host      pve1 cpu=16 memory=64Gi closed=offline closed-for=web of:cpu=32 of:memory=128Gi load=20/50 rising:cpu=4 unoffered cells=2 threads=2
//! type      small cpu=1 memory=2Gi price=1 zone=a,b capacity-type=spot,on-demand arch=arm64 need:gpu-model=DoesNotExist
//!           attach-limit:driver=3
//! offering  small price=0.1 zone=a capacity-type=reserved id=r1 left=2
//! pool      web weight=5 label:team=red need:zone=In:a,b taint=gpu:NoSchedule limit:cpu=4 used:cpu=2 replicas=1
//!           hosts=Spread keep:cpu=2 keep:memory=4Gi exclude=pve1,pve2 vms:pve1=3 last=pve2
//! node      n1 cpu=4 memory=8Gi label:team=red taint=x:NoSchedule rising pool=web attach-limit:driver=3
//! daemon    agent cpu=100m
//! pod       p1 cpu=1 memory=1Gi need:zone=In:a prefer:5:zone=In:b tolerate=gpu port=80 pending label:app=web ns=shop
//!           volume=zone:a|zone:b,c&team:red attach=driver/vol
//! bound     b1 on=n1 cpu=1 terminating attach=driver/vol
//! namespace shop label:team=red
//! ```
//!
//! Which pods a pod must or must not be with is read in `constraints.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_engine::cpu::{CpuFacts, Layout, room};
use tenon_engine::{check, plan};
use tenon_model::resources::{CPU, MEMORY, PODS};
use tenon_model::{
    Attachment, BoundPod, Catalog, CatalogType, CpuRoom, Effect, Host, HostGoal, HostLoad, HostPort, HostRules,
    HostSettings, HostStrategy, InstanceType, MinValuesPolicy, NodeStage, NodeState, Offering, Operator, Overrides,
    Place, Plan, Pod, PodKey, PodShape, PodStorage, PodVolumes, Pool, PreferencePolicy, Preferred, Price, Quantity,
    Requirement, Requirements, Reservation, ReservedMode, Resources, Seconds, Snapshot, Taint, Tolerated, Toleration,
};

use crate::packing::constraints;

/// Short names of labels that tests use often.
const LABELS: [(&str, &str); 8] = [
    ("zone", "topology.kubernetes.io/zone"),
    ("region", "topology.kubernetes.io/region"),
    ("capacity-type", "karpenter.sh/capacity-type"),
    ("instance-type", "node.kubernetes.io/instance-type"),
    ("arch", "kubernetes.io/arch"),
    ("os", "kubernetes.io/os"),
    ("hostname", "kubernetes.io/hostname"),
    ("nodepool", "karpenter.sh/nodepool"),
];

pub(crate) fn label(short: &str) -> String {
    LABELS.iter().find(|(name, _)| *name == short).map_or(short, |(_, label)| label).to_owned()
}

pub(crate) fn place(host: &str) -> Place {
    Place { region: "lab".to_owned(), host: host.parse().unwrap() }
}

/// A line: what it is, its name, and words of the form `key=value` or just `key`.
struct Line<'a> {
    kind: &'a str,
    name: &'a str,
    words: Vec<(&'a str, &'a str)>,
}

impl<'a> Line<'a> {
    fn read(text: &'a str) -> Line<'a> {
        let mut words = text.split_whitespace();
        let (kind, rest): (&str, Vec<&str>) = (words.next().unwrap(), words.collect());
        let has_name = kind != "option";
        let name = if has_name { rest[0] } else { "" };
        let pairs = rest.iter().skip(usize::from(has_name)).map(|word| word.split_once('=').unwrap_or((word, "")));
        Line { kind, name, words: pairs.collect() }
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.words.iter().find(|(found, _)| *found == key).map(|(_, value)| *value)
    }

    /// Words that begin with a prefix, with the rest of their key.
    fn under(&self, prefix: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.words.iter().filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?, *value)))
    }

    fn amounts(&self, prefix: &str) -> Resources {
        let plain = ["cpu", "memory", "ephemeral-storage", "pods", "gpu", "fpga", "hugepages-2Mi", "nodes"];
        let words = self.words.iter().filter_map(|(key, value)| Some((key.strip_prefix(prefix)?, *value)));
        words.filter(|(key, _)| plain.contains(key)).map(|(key, value)| (key, value.parse().unwrap())).collect()
    }

    fn labels(&self) -> BTreeMap<String, String> {
        self.under("label:").map(|(key, value)| (label(key), value.to_owned())).collect()
    }

    fn requirements(&self, prefix: &str) -> Requirements {
        self.under(prefix).map(|(key, value)| (label(key), requirement(value))).collect()
    }

    /// Where volumes can be used.
    fn places(&self) -> Vec<Requirements> {
        let demand = |text: &str| {
            let (key, values) = text.split_once(':').unwrap();
            (label(key), requirement(&format!("In:{values}")))
        };
        let place = |text: &str| text.split('&').map(demand).collect();
        self.get("volume").into_iter().flat_map(|places| places.split('|')).map(place).collect()
    }

    fn attachments(&self) -> Vec<Attachment> {
        let words = self.words.iter().filter(|(key, _)| *key == "attach");
        let attachment = |text: &str| {
            let (driver, volume) = text.split_once('/').unwrap();
            Attachment { driver: driver.to_owned(), volume: format!("default/{volume}") }
        };
        words.map(|(_, text)| attachment(text)).collect()
    }

    fn attach_limits(&self) -> BTreeMap<String, u32> {
        self.under("attach-limit:").map(|(driver, count)| (driver.to_owned(), count.parse().unwrap())).collect()
    }

    fn taints(&self, key: &str) -> Vec<Taint> {
        self.words.iter().filter(|(found, _)| *found == key).map(|(_, value)| taint(value)).collect()
    }
}

/// `In:a,b`, `Exists:`, `Gt:3`, with `min=2` after a `+` for a number of values.
pub(crate) fn requirement(text: &str) -> Requirement {
    let (text, least) = text.split_once("+min=").map_or((text, None), |(text, least)| (text, Some(least)));
    let (operator, values) = text.split_once(':').unwrap_or((text, ""));
    let operator: Operator = operator.parse().unwrap();
    let values = values.split(',').filter(|value| !value.is_empty()).map(str::to_owned);
    Requirement::new(operator, values).unwrap().with_min_values(least.map(|least| least.parse().unwrap()))
}

pub(crate) fn taint(text: &str) -> Taint {
    let (key, effect) = text.split_once(':').unwrap();
    let effect = match effect {
        "NoSchedule" => Effect::NoSchedule,
        "NoExecute" => Effect::NoExecute,
        "PreferNoSchedule" => Effect::PreferNoSchedule,
        other => panic!("{other} is no effect"),
    };
    Taint { key: key.to_owned(), value: String::new(), effect }
}

/// A cluster from its lines. Without a `type` there are the built-in ones on the hosts; without a `pool` there is one.
pub(crate) fn cluster(text: &str) -> Snapshot {
    let lines: Vec<Line<'_>> = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(Line::read).collect();
    let of = |kind: &'static str| lines.iter().filter(move |line| line.kind == kind);
    let mut snapshot = Snapshot { hosts: of("host").map(host).collect(), ..Snapshot::default() };
    let places: Vec<Place> =
        of("host").filter(|line| line.get("unoffered").is_none()).map(|line| place(line.name)).collect();
    let mut types: Vec<CatalogType> = of("type").map(catalog_type).collect();
    for line in of("offering") {
        let size = types.iter_mut().find(|size| size.name == line.name).unwrap();
        size.offerings.push(offering(line));
        for key in ["zone", "capacity-type"].map(label) {
            let offered = size.offerings.iter().filter_map(|way| way.requirements.get(&key));
            let values: Vec<String> = offered.flat_map(|demand| demand.values().clone()).collect();
            size.requirements.replace(key, Requirement::new(Operator::In, values).unwrap());
        }
    }
    if types.is_empty() {
        types = InstanceType::built_in().iter().map(|size| size.offered_at(&places)).collect();
    }
    let catalog = Arc::new(Catalog::new(types));
    let default = [Line::read("pool default")];
    let pools: Vec<&Line<'_>> = of("pool").collect();
    let pools = if pools.is_empty() { default.iter().collect() } else { pools };
    snapshot.host_rules = pools.iter().filter_map(|line| Some((line.name.to_owned(), host_rules(line)?))).collect();
    snapshot.pools = pools.into_iter().map(|line| Arc::new(pool(line, &catalog))).collect();
    let mut nodes: Vec<NodeState> = of("node").map(node).collect();
    of("bound").for_each(|line| bind(line, &mut nodes));
    snapshot.nodes = nodes.into_iter().map(Arc::new).collect();
    snapshot.namespaces = Arc::new(of("namespace").map(|line| (line.name.to_owned(), line.labels())).collect());
    snapshot.daemons = of("daemon").map(|line| Arc::new(pod(line))).collect();
    snapshot.pods = of("pod").map(|line| Arc::new(pod(line))).collect();
    of("option").for_each(|line| options(line, &mut snapshot));
    snapshot
}

fn options(line: &Line<'_>, snapshot: &mut Snapshot) {
    for (key, value) in &line.words {
        let options = &mut snapshot.options;
        if let Some(id) = key.strip_prefix("credit:") {
            options.credits.insert(id.to_owned(), value.parse().unwrap());
            continue;
        }
        match (*key, *value) {
            ("preferences", "Ignore") => options.preferences = PreferencePolicy::Ignore,
            ("min-values", "BestEffort") => options.min_values = MinValuesPolicy::BestEffort,
            ("reserved", "Fallback") => options.reserved = ReservedMode::Fallback,
            ("reserved", "Off") => options.reserved = ReservedMode::Off,
            ("dra", "true") => options.ignore_resource_claims = false,
            ("max-types", count) => options.max_types = count.parse().unwrap(),
            other => panic!("{other:?} is no option"),
        }
    }
}

fn host(line: &Line<'_>) -> Host {
    let closed = line.get("closed").map(|why| format!("it is {why}"));
    let closed_for = line.get("closed-for").map(|pool| (pool.to_owned(), format!("the storage of {pool} is full")));
    let free = line.amounts("");
    let percent = |text: &str| text.parse::<u32>().unwrap() * 10_000;
    let load = line.get("load").and_then(|load| load.split_once('/')).map(|(cpu, memory)| HostLoad {
        cpu: percent(cpu),
        memory: percent(memory),
        rising: line.amounts("rising:"),
    });
    let capacity = free.or_larger(&line.amounts("of:"));
    let closed_for = closed_for.into_iter().collect();
    Host { place: place(line.name), closed, closed_for, capacity, free, load, cpus: bound_cpus(line) }
}

/// What a pool says of hosts, if it says anything.
fn host_rules(line: &Line<'_>) -> Option<HostRules> {
    let strategy = match line.get("hosts") {
        None | Some("Balanced") => HostStrategy::Balanced,
        Some("MaxMemory") => HostStrategy::MaxMemory,
        Some("MaxCPU") => HostStrategy::MaxCpu,
        Some("Spread") => HostStrategy::Spread,
        Some("BalancedLoad") => HostStrategy::BalancedLoad,
        Some("RoundRobin") => HostStrategy::RoundRobin,
        Some("Pack") => HostStrategy::Pack,
        Some(other) => panic!("{other} is no strategy"),
    };
    let excluded = line.get("exclude").into_iter().flat_map(|hosts| hosts.split(',')).map(place).collect();
    let vms = line.under("vms:").map(|(host, count)| (place(host), count.parse().unwrap())).collect();
    let goal = line.get("goal").map(|goal| if goal == "pack" { HostGoal::Pack } else { HostGoal::Spread });
    let (min_available, last) = (line.amounts("keep:"), line.get("last").map(place));
    let rules = HostRules { strategy, min_available, excluded, vms, last, goal };
    (rules != HostRules::default()).then_some(rules)
}

/// CPUs that VMs are bound to: all of the host, in as many NUMA nodes as it says.
fn bound_cpus(line: &Line<'_>) -> Option<Arc<CpuRoom>> {
    let cells: u32 = line.get("cells")?.parse().unwrap();
    let whole = |resource: &str| u64::try_from(line.amounts("").get(resource).value()).unwrap();
    let cpus = u32::try_from(whole(CPU)).unwrap();
    let threads: u32 = line.get("threads").map_or(1, |threads| threads.parse().unwrap());
    let facts =
        CpuFacts { cpus, cores: cpus / threads, sockets: cells, memory_bytes: whole(MEMORY), ..CpuFacts::default() };
    let settings = HostSettings { reserved_memory_bytes: Some(0), ..HostSettings::default() };
    let (layout, _) = Layout::of(&facts, &settings, None);
    Some(Arc::new(room(&layout, &settings, &[]).room))
}

fn catalog_type(line: &Line<'_>) -> CatalogType {
    let list = |key: &str, default: &'static str| -> Vec<String> {
        line.get(key).unwrap_or(default).split(',').map(str::to_owned).collect()
    };
    let (zones, kinds) = (list("zone", "a"), list("capacity-type", "on-demand"));
    let price: f64 = line.get("price").unwrap_or("1").parse().unwrap();
    let way = |zone: &String, kind: &String| Offering {
        requirements: [("zone", zone), ("capacity-type", kind)]
            .into_iter()
            .map(|(key, value)| (label(key), Requirement::is(value)))
            .collect(),
        price: Price::new(if kind == "spot" { price / 2.0 } else { price }),
        available: line.get("unavailable") != Some(zone),
        ..Offering::default()
    };
    let all = |values: &[String]| Requirement::new(Operator::In, values.iter().cloned()).unwrap();
    let mut requirements: Requirements = [
        ("instance-type", Requirement::is(line.name)),
        ("zone", all(&zones)),
        ("capacity-type", all(&kinds)),
        ("arch", Requirement::is(line.get("arch").unwrap_or("amd64"))),
        ("os", Requirement::is(line.get("os").unwrap_or("linux"))),
    ]
    .into_iter()
    .map(|(key, value)| (label(key), value))
    .collect();
    requirements.add_all(&Requirements::from_labels(&line.labels()));
    requirements.add_all(&line.requirements("need:"));
    let mut capacity = line.amounts("");
    if capacity.get(PODS).is_zero() {
        capacity = capacity.with(PODS, Quantity::whole(110));
    }
    let overhead = tenon_model::Overhead { kube_reserved: line.amounts("overhead:"), ..Default::default() };
    let offerings = zones.iter().flat_map(|zone| kinds.iter().map(move |kind| way(zone, kind))).collect();
    let volume_attachment_limits = line.attach_limits();
    let name = line.name.to_owned();
    CatalogType {
        name,
        requirements,
        capacity,
        overhead,
        offerings,
        volume_attachment_limits,
        ..CatalogType::default()
    }
}

fn offering(line: &Line<'_>) -> Offering {
    let facts = ["zone", "capacity-type"].into_iter().filter_map(|key| Some((key, line.get(key)?)));
    let mut requirements: Requirements = facts.map(|(key, value)| (label(key), Requirement::is(value))).collect();
    let reservation = line.get("id").map(|id| {
        requirements.add("example.com/reservation-id", &Requirement::is(id));
        let capacity = line.get("left").unwrap_or("0").parse().unwrap();
        Reservation { label: "example.com/reservation-id".to_owned(), id: id.to_owned(), capacity }
    });
    Offering {
        requirements,
        price: Price::new(line.get("price").unwrap_or("0").parse().unwrap()),
        available: line.get("unavailable").is_none(),
        reservation,
        place: None,
        overrides: Overrides { capacity: line.amounts("capacity:"), overhead: line.amounts("overhead:") },
    }
}

fn pool(line: &Line<'_>, catalog: &Arc<Catalog>) -> Pool {
    let mut requirements = line.requirements("need:");
    requirements.add_all(&Requirements::from_labels(&line.labels()));
    Pool {
        name: line.name.to_owned(),
        weight: line.get("weight").map(|weight| weight.parse().unwrap()).unwrap_or_default(),
        requirements,
        taints: line.taints("taint"),
        startup_taints: line.taints("startup"),
        limits: line.amounts("limit:"),
        used: line.amounts("used:"),
        catalog: if line.get("empty").is_some() { Arc::default() } else { catalog.clone() },
        replicas: line.get("replicas").map(|count| count.parse().unwrap()),
        not_ready: line.get("not-ready").map(str::to_owned),
        ..Pool::default()
    }
}

fn node(line: &Line<'_>) -> NodeState {
    let mut allocatable = line.amounts("");
    if allocatable.get(PODS).is_zero() {
        allocatable = allocatable.with(PODS, Quantity::whole(110));
    }
    NodeState {
        name: line.name.to_owned(),
        pool: line.get("pool").map(str::to_owned),
        is_managed: line.get("pool").is_some(),
        labels: line.labels().into_iter().collect(),
        taints: line.taints("taint"),
        startup_taints: line.taints("startup"),
        capacity: allocatable.clone(),
        allocatable,
        bound: line.amounts("bound:"),
        bound_daemons: line.amounts("daemons:"),
        host_ports: line.under("port:").map(|(pod, number)| (key(pod), port(number))).collect(),
        attach_limits: line.attach_limits(),
        stage: match (line.get("rising"), line.get("rebooting")) {
            (Some(_), _) => NodeStage::Rising,
            (_, Some(_)) => NodeStage::Rebooting,
            _ => NodeStage::Initialized,
        },
        is_leaving: line.get("leaving").is_some(),
        is_unidentified: line.get("unidentified").is_some(),
        ..NodeState::default()
    }
}

fn key(name: &str) -> Arc<PodKey> {
    Arc::new(PodKey { namespace: "default".into(), name: name.into(), uid: format!("uid-{name}").into() })
}

/// Puts a pod on its node.
fn bind(line: &Line<'_>, nodes: &mut [NodeState]) {
    let pod = pod(line);
    let node = nodes.iter_mut().find(|node| Some(node.name.as_str()) == line.get("on")).unwrap();
    node.bound.add(&pod.requests);
    node.host_ports.extend(pod.host_ports.iter().map(|port| (pod.key.clone(), port.clone())));
    let is_terminating = line.get("terminating").is_some();
    let (key, shape, attachments) = (pod.key, pod.shape, line.attachments());
    attach(node, &attachments);
    let storage = line.get("volume").map(|_| Arc::new(pod.storage));
    let pod = BoundPod { key, shape, is_terminating, attachments, storage, ..BoundPod::default() };
    node.pods.push(Arc::new(pod));
    node.pods.sort_by(|one, other| one.key.cmp(&other.key));
}

/// Volumes of one more pod are attached to a node.
pub(crate) fn attach(node: &mut NodeState, attachments: &[Attachment]) {
    node.attachments.extend(attachments.iter().cloned());
    node.attachments.sort();
    node.attachments.dedup();
}

fn port(number: &str) -> HostPort {
    let address = "0.0.0.0".parse().unwrap();
    HostPort { address, port: number.parse().unwrap(), protocol: "TCP".to_owned() }
}

fn pod(line: &Line<'_>) -> Pod {
    let terms: Vec<Requirements> =
        line.under("or:").map(|(key, value)| [(label(key), requirement(value))].into_iter().collect()).collect();
    let needed = line.requirements("need:");
    let joined = |term: &Requirements| {
        let mut joined = needed.clone();
        joined.add_all(term);
        joined
    };
    let alternatives = if terms.is_empty() { vec![needed.clone()] } else { terms.iter().map(joined).collect() };
    let preferred = line.under("prefer:").map(|(wish, value)| {
        let (weight, key) = wish.split_once(':').unwrap();
        let requirements = [(label(key), requirement(value))].into_iter().collect();
        Preferred { weight: weight.parse().unwrap(), requirements }
    });
    let namespace = line.get("ns").unwrap_or("default");
    let tolerations = line.words.iter().filter(|(key, _)| *key == "tolerate");
    let shape = PodShape {
        requests: line.amounts("").with(PODS, Quantity::whole(1)),
        alternatives,
        preferred: preferred.collect(),
        tolerations: tolerations
            .map(|(_, key)| Toleration { key: Some((*key).to_owned()), value: Tolerated::Exists, effect: None })
            .collect(),
        host_ports: line.words.iter().filter(|(key, _)| *key == "port").map(|(_, number)| port(number)).collect(),
        resource_claims: line.get("claim").map(str::to_owned).into_iter().collect(),
        labels: Arc::new(line.labels()),
        spreads: constraints::spreads(&line.words),
        pod_affinity: constraints::terms(&line.words, "with", namespace),
        pod_anti_affinity: constraints::terms(&line.words, "apart", namespace),
        preferred_pod_affinity: constraints::weighted(&line.words, "with?", namespace),
        preferred_pod_anti_affinity: constraints::weighted(&line.words, "apart?", namespace),
        ..PodShape::default()
    };
    Pod {
        key: Arc::new(PodKey { namespace: namespace.into(), ..key(line.name).as_ref().clone() }),
        created: line.get("created").map(|second| Seconds(second.parse().unwrap())),
        is_pending: line.get("pending").is_some(),
        storage: PodStorage::Known(PodVolumes::new(line.places(), line.attachments())),
        shape: Arc::new(shape),
        ..Pod::default()
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

/// A plan in words: each new node as `pool/type[@host]: pods`, each placement as `node: pod`, each waiting pod as
/// `pod waits`.
pub(crate) fn told(plan: &Plan) -> Vec<String> {
    let names = |pods: &[Arc<PodKey>]| pods.iter().map(|pod| &*pod.name).collect::<Vec<_>>().join(" ");
    let new = plan.new_nodes.iter().map(|node| {
        let at = node.chosen.place.as_ref().map(|place| format!("@{}", place.host)).unwrap_or_default();
        format!("{}/{}{at}: {}", node.pool, node.chosen.instance_type, names(&node.pods))
    });
    let placed = plan.placements.iter().map(|placement| format!("{}: {}", placement.node, placement.pod.name));
    let waiting = plan.unplaced.iter().map(|unplaced| format!("{} waits", unplaced.pod.name));
    new.chain(placed).chain(waiting).collect()
}

/// What the plan of a cluster must say, in any order; and the plan must be sound.
#[track_caller]
pub(crate) fn expect(text: &str, expected: &[&str]) {
    let mut told = told(&sound_plan(&cluster(text)));
    let mut expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
    told.sort();
    expected.sort();
    assert_eq!(told, expected, "\n{text}");
}

/// What the first new node demands of a label; nothing, if it demands nothing. No pod may wait.
#[track_caller]
pub(crate) fn demand_on(short: &str, text: &str) -> String {
    let plan = sound_plan(&cluster(text));
    assert!(plan.unplaced.is_empty(), "{:?}", told(&plan));
    plan.new_nodes[0].requirements.get(&label(short)).map(ToString::to_string).unwrap_or_default()
}

/// The sizes that the first new node lists.
#[track_caller]
pub(crate) fn sizes(text: &str) -> Vec<String> {
    sound_plan(&cluster(text)).new_nodes[0].instance_types.to_vec()
}

/// The reason why the only waiting pod waits.
#[track_caller]
pub(crate) fn reason(text: &str) -> String {
    let plan = sound_plan(&cluster(text));
    assert_eq!(plan.unplaced.len(), 1, "{:?}", told(&plan));
    plan.unplaced[0].reason.to_string()
}

pub(crate) fn amounts(cpu: &str, memory: &str) -> Resources {
    Resources::default().with(CPU, cpu.parse().unwrap()).with(MEMORY, memory.parse().unwrap())
}
