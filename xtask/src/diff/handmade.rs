//! Clusters made by hand for the golden file: each is about one thing that seeds meet seldom or in small numbers.

use serde_json::{Value, json};

use super::cluster::{Asks, Cluster, bound, claim, daemon, is, merged, node, pod, pods, pool, size};
use super::scenario::Scenario;
use super::vocabulary::{CAPACITY_TYPE, INSTANCE_TYPE, RESERVATION, ZONE, ZONES};

/// Each cluster and its name.
pub(super) fn all() -> Vec<(&'static str, Scenario)> {
    let clusters = [
        ("equal-nodes", equal_nodes()),
        ("equal-types", equal_types()),
        ("many-open-nodes", many_open_nodes()),
        ("six-hundred-pods", six_hundred_pods()),
        ("reservations", reservations()),
        ("min-values-strict", min_values()),
        ("min-values-best-effort", min_values().with_options(json!({"minValuesPolicy": "BestEffort"}))),
        ("preferences", preferences()),
        ("preferences-ignored", preferences().with_options(json!({"preferencePolicy": "Ignore"}))),
        ("prefer-no-schedule", prefer_no_schedule()),
        ("host-ports", host_ports()),
        ("daemons", daemons()),
        ("limits", limits()),
        ("node-stages", node_stages()),
        ("custom-labels", custom_labels()),
        ("refusals", refusals()),
    ];
    clusters.into_iter().map(|(name, cluster)| (name, cluster.into_scenario())).collect()
}

/// Sizes from one core to 32, larger ones cheaper by the core.
fn sizes() -> Vec<Value> {
    let one = |(index, cpu): (u32, u64)| {
        let price = 0.05 * f64::from(1_u32 << index) * (1.0 - 0.02 * f64::from(index));
        size(&format!("s{cpu}"), cpu, cpu * 4, price)
    };
    (0..).zip([1, 2, 4, 8, 16, 32]).map(one).collect()
}

fn plain() -> Cluster {
    Cluster::new(sizes()).with(pool("default", &json!({})))
}

fn ports(number: u64, more: &Value) -> Value {
    let port = merged(json!({"containerPort": number, "hostPort": number, "protocol": "TCP"}), more);
    let requests = json!({"cpu": "500m", "memory": "256Mi"});
    json!({"containers": [{"name": "main", "ports": [port], "resources": {"requests": requests}}]})
}

fn required(terms: &Value) -> Value {
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": terms}}}})
}

fn preferred(wishes: &[(u64, Value)]) -> Value {
    let wish = |(weight, expression): &(u64, Value)| json!({"weight": weight, "preference": {"matchExpressions": [expression]}});
    let wishes: Vec<Value> = wishes.iter().map(wish).collect();
    json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}})
}

/// Which of equal nodes takes a pod, and what is left for new ones.
fn equal_nodes() -> Cluster {
    let nodes = (0..9).map(|number| node(&format!("node-{number}"), ZONES[number % 2], Asks("4", "8Gi")));
    plain().with_all(nodes).with_all(pods("a", 25, Asks("1", "1Gi"), &json!({}))).with_all(pods(
        "b",
        25,
        Asks("700m", "1500Mi"),
        &json!({}),
    ))
}

/// Types and offerings at the same price.
fn equal_types() -> Cluster {
    let types = ["d", "b", "c", "a"].map(|name| size(name, 4, 16, 0.2)).to_vec();
    let zones = ZONES.map(|zone| pod(zone, Asks("1", "1Gi"), &json!({"nodeSelector": {ZONE: zone}})));
    Cluster::new(types)
        .with(pool("one", &json!({})))
        .with(pool("two", &json!({})))
        .with_all(pods("any", 13, Asks("1300m", "2Gi"), &json!({})))
        .with_all(zones)
}

/// Forty pods with one host port need forty nodes, and the others go round among these.
fn many_open_nodes() -> Cluster {
    plain()
        .with_all(pods("port", 40, Asks("500m", "256Mi"), &ports(8080, &json!({}))))
        .with_all(pods("small", 90, Asks("100m", "100Mi"), &json!({})))
        .with_all(pods("middle", 30, Asks("400m", "300Mi"), &json!({"nodeSelector": {ZONE: ZONES[1]}})))
        .with_all(pods("large", 5, Asks("6", "5Gi"), &json!({"nodeSelector": {CAPACITY_TYPE: "on-demand"}})))
}

/// As many pods as a plan often has, of thirty kinds, on nodes that exist and on new ones.
fn six_hundred_pods() -> Cluster {
    let mut cluster =
        plain().with(daemon("agent", Asks("100m", "64Mi"), &json!({"tolerations": [{"operator": "Exists"}]})));
    for number in 0..60 {
        cluster = cluster.with(node(&format!("node-{number}"), ZONES[number % 3], Asks("2", "4Gi")));
    }
    for number in 0..600 {
        let kind = number % 30;
        let asks = (format!("{}m", 100 + kind * 37 % 1500), format!("{}Mi", 128 + kind * 61 % 4096));
        let more = match kind % 5 {
            0 => json!({"nodeSelector": {ZONE: ZONES[kind % 3]}}),
            1 => preferred(&[(5, is(CAPACITY_TYPE, "on-demand")), (9, is(ZONE, ZONES[2]))]),
            _ => json!({}),
        };
        cluster = cluster.with(pod(&format!("pod-{number}"), Asks(&asks.0, &asks.1), &more));
    }
    cluster
}

/// Two reservations, fewer machines than pods that would use them.
fn reservations() -> Cluster {
    let mut types = sizes();
    for (index, (id, left)) in [(2, ("r1", 2)), (3, ("r2", 1)), (4, ("r2", 1)), (5, ("r3", 0))] {
        let requirements = json!([is(ZONE, ZONES[0]), is(CAPACITY_TYPE, "reserved"), is(RESERVATION, id)]);
        let offering = json!({"requirements": requirements, "price": 0.001, "reservationCapacity": left});
        if let Some(offerings) = types[index]["offerings"].as_array_mut() {
            offerings.push(offering);
        }
    }
    let on = |capacity_type: &str| json!({"nodeSelector": {CAPACITY_TYPE: capacity_type}});
    Cluster::new(types)
        .with(pool("default", &json!({"weight": 10})))
        .with(pool("other", &json!({})))
        .with_all(pods("reserved", 3, Asks("3", "3Gi"), &on("reserved")))
        .with_all(pods("large", 2, Asks("14", "20Gi"), &json!({})))
        .with_all(pods("any", 6, Asks("3", "3Gi"), &json!({})))
        .with_all(pods("on-demand", 4, Asks("1", "1Gi"), &on("on-demand")))
}

/// A choice of types and zones that some pods leave too small.
fn min_values() -> Cluster {
    let keeps = |key: &str, least: u64| json!({"key": key, "operator": "Exists", "minValues": least});
    let demands = |list: Value| json!({"template": {"spec": {"requirements": list}}});
    let is_small = required(&json!([{"matchExpressions": [
        {"key": INSTANCE_TYPE, "operator": "In", "values": ["s1", "s2"]}]}]));
    Cluster::new(sizes())
        .with(pool("types", &merged(demands(json!([keeps(INSTANCE_TYPE, 3)])), &json!({"weight": 20}))))
        .with(pool("zones", &merged(demands(json!([keeps(ZONE, 2)])), &json!({"weight": 10}))))
        .with_all(pods("any", 8, Asks("1500m", "2Gi"), &json!({})))
        .with_all(pods("small", 4, Asks("300m", "256Mi"), &is_small))
        .with_all(pods("zone", 4, Asks("700m", "1Gi"), &json!({"nodeSelector": {ZONE: ZONES[2]}})))
        .with_all(pods("both", 2, Asks("300m", "1Gi"), &merged(is_small, &json!({"nodeSelector": {ZONE: ZONES[0]}}))))
        .with_all(pods("huge", 2, Asks("30", "40Gi"), &json!({})))
}

/// Wishes that can be met, wishes that cannot, and several required terms.
fn preferences() -> Cluster {
    let nowhere = || is(ZONE, "nowhere");
    let chain: Vec<(u64, Value)> = (1..=9).map(|step| (step * 10, is("example.com/step", &step.to_string()))).collect();
    let terms = json!([{"matchExpressions": [nowhere()]}, {"matchExpressions": [is(INSTANCE_TYPE, "gone")]},
        {"matchExpressions": [is(ZONE, ZONES[1])]}]);
    let labelled = json!({"template": {"metadata": {"labels": {"example.com/step": "4"}}}, "weight": 1});
    plain()
        .with(pool("labelled", &labelled))
        .with(node("node-0", ZONES[0], Asks("3", "6Gi")))
        .with_all(pods("met", 6, Asks("900m", "1Gi"), &preferred(&[(1, is(ZONE, ZONES[2])), (50, is(ZONE, ZONES[1]))])))
        .with_all(pods("unmet", 6, Asks("800m", "1Gi"), &preferred(&[(7, nowhere()), (70, is(ZONE, ZONES[0]))])))
        .with_all(pods("chain", 6, Asks("700m", "1Gi"), &preferred(&chain)))
        .with_all(pods("terms", 6, Asks("600m", "1Gi"), &merged(required(&terms), &preferred(&[(3, nowhere())]))))
}

/// Taints that pods would rather not have.
fn prefer_no_schedule() -> Cluster {
    let tainted = |effect: &str| {
        let taint = json!({"key": "example.com/slow", "value": "1", "effect": effect});
        json!({"template": {"spec": {"taints": [taint]}}})
    };
    let tolerates =
        |effect: &str| json!({"tolerations": [{"key": "example.com/slow", "operator": "Exists", "effect": effect}]});
    let soft = merged(tainted("PreferNoSchedule"), &json!({"weight": 50}));
    Cluster::new(sizes())
        .with(pool("soft", &soft))
        .with(pool("hard", &merged(tainted("NoSchedule"), &json!({"weight": 40, "limits": {"cpu": "8"}}))))
        .with_all(pods("none", 5, Asks("1", "1Gi"), &json!({})))
        .with_all(pods("soft", 5, Asks("1", "1Gi"), &tolerates("PreferNoSchedule")))
        .with_all(pods("hard", 9, Asks("1", "1Gi"), &tolerates("NoSchedule")))
        .with_all(pods("wish", 3, Asks("2", "1Gi"), &preferred(&[(2, is(ZONE, "nowhere"))])))
}

/// Ports of pods, of running pods and of daemons, on one address and on all.
fn host_ports() -> Cluster {
    let at = |address: &str| json!({"hostIP": address});
    let mut running = bound("running", "node-0", Asks("100m", "64Mi"));
    running["spec"] = merged(ports(8080, &json!({})), &json!({"nodeName": "node-0"}));
    plain()
        .with(node("node-0", ZONES[0], Asks("8", "16Gi")))
        .with(node("node-1", ZONES[1], Asks("8", "16Gi")))
        .with(running)
        .with(daemon("exporter", Asks("50m", "50Mi"), &ports(9100, &json!({}))))
        .with_all(pods("web", 4, Asks("500m", "256Mi"), &ports(8080, &json!({}))))
        .with_all(pods("first", 3, Asks("500m", "256Mi"), &ports(7070, &at("10.0.0.1"))))
        .with_all(pods("second", 3, Asks("500m", "256Mi"), &ports(7070, &at("10.0.0.2"))))
        .with_all(pods("udp", 3, Asks("500m", "256Mi"), &ports(8080, &json!({"protocol": "UDP"}))))
        .with_all(pods("clash", 2, Asks("500m", "256Mi"), &ports(9100, &json!({}))))
}

/// Daemons that run on some nodes only, so that types differ in what they leave for pods.
fn daemons() -> Cluster {
    let on = |values: Value| {
        required(&json!([{"matchExpressions": [
        {"key": INSTANCE_TYPE, "operator": "In", "values": values}]}]))
    };
    let taint = json!({"key": "dedicated", "value": "batch", "effect": "NoSchedule"});
    let batch = json!({"template": {"spec": {"taints": [taint]}}});
    plain()
        .with(pool("batch", &batch))
        .with(daemon("everywhere", Asks("200m", "200Mi"), &json!({"tolerations": [{"operator": "Exists"}]})))
        .with(daemon("small", Asks("300m", "1Gi"), &on(json!(["s1", "s2"]))))
        .with(daemon("large", Asks("1500m", "2Gi"), &on(json!(["s16", "s32"]))))
        .with(daemon("zone", Asks("250m", "100Mi"), &json!({"nodeSelector": {ZONE: ZONES[0]}})))
        .with_all(pods("tiny", 12, Asks("450m", "400Mi"), &json!({})))
        .with_all(pods("wide", 4, Asks("13", "10Gi"), &json!({})))
        .with_all(pods("zone", 5, Asks("1600m", "1Gi"), &json!({"nodeSelector": {ZONE: ZONES[0]}})))
        .with_all(pods(
            "batch",
            5,
            Asks("900m", "1Gi"),
            &json!({"tolerations": [{"key": "dedicated", "operator": "Exists"}]}),
        ))
}

/// Pools that fill up one after the other.
fn limits() -> Cluster {
    let limit = |weight: u64, limits: Value| json!({"weight": weight, "limits": limits});
    Cluster::new(sizes())
        .with(pool("cores", &limit(90, json!({"cpu": "10"}))))
        .with(pool("memory", &limit(80, json!({"memory": "20Gi"}))))
        .with(pool("nodes", &limit(70, json!({"nodes": "2"}))))
        .with(pool("none", &limit(60, json!({"cpu": "0"}))))
        .with_all(pods("a", 12, Asks("1900m", "1Gi"), &json!({})))
        .with_all(pods("b", 12, Asks("900m", "3Gi"), &json!({})))
        .with_all(pods("c", 6, Asks("6", "9Gi"), &json!({})))
}

/// Nodes that work, that start, that have not joined and that leave, with pods on them.
fn node_stages() -> Cluster {
    let labelled = |mut made: Value, labels: &Value| {
        made["metadata"]["labels"] = merged(made["metadata"]["labels"].clone(), labels);
        made
    };
    let of_pool = |name: &str, facts: &Value| {
        let labels = claim(name, "default", "s4")["metadata"]["labels"].clone();
        labelled(labelled(node(name, ZONES[0], Asks("3900m", "16284Mi")), &labels), facts)
    };
    let mut leaving = claim("leaving", "default", "s4");
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T01:00:00Z");
    leaving["metadata"]["finalizers"] = json!(["karpenter.sh/termination"]);
    let works = json!({"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"});
    let mut starts = of_pool("starts", &json!({"karpenter.sh/registered": "true"}));
    starts["spec"]["taints"] = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
    let mut cordoned = of_pool("cordoned", &works);
    cordoned["spec"]["taints"] = json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
    plain()
        .with_all(["works", "starts", "launched", "cordoned"].map(|name| claim(name, "default", "s4")))
        .with_all([leaving, of_pool("works", &works), starts, cordoned, of_pool("leaving", &works)])
        .with_all((0..3).map(|number| bound(&format!("stays-{number}"), "works", Asks("400m", "1Gi"))))
        .with_all((0..4).map(|number| bound(&format!("moves-{number}"), "leaving", Asks("600m", "2Gi"))))
        .with_all(pods("new", 20, Asks("800m", "2Gi"), &json!({})))
}

/// Labels that only pools define, or that pools leave open.
fn custom_labels() -> Cluster {
    let team = |demand: Value| json!({"template": {"spec": {"requirements": [demand]}}});
    let with =
        |operator: &str, values: Value| json!({"key": "example.com/team", "operator": operator, "values": values});
    let ask = |demand: Value| required(&json!([{"matchExpressions": [demand]}]));
    let tier = json!({"key": "tier", "operator": "Gt", "values": ["3"]});
    Cluster::new(sizes())
        .with(pool("colours", &merged(team(with("In", json!(["blue", "red"]))), &json!({"weight": 5}))))
        .with(pool("open", &team(json!({"key": "example.com/team", "operator": "Exists"}))))
        .with(pool("tiers", &team(json!({"key": "tier", "operator": "In", "values": ["1", "4", "5"]}))))
        .with_all(pods("blue", 4, Asks("700m", "1Gi"), &ask(with("In", json!(["blue", "green"])))))
        .with_all(pods("not-red", 4, Asks("700m", "1Gi"), &ask(with("NotIn", json!(["red"])))))
        .with_all(pods("some", 4, Asks("700m", "1Gi"), &ask(json!({"key": "example.com/team", "operator": "Exists"}))))
        .with_all(pods("green", 3, Asks("700m", "1Gi"), &ask(with("In", json!(["green"])))))
        .with_all(pods("tier", 4, Asks("700m", "1Gi"), &ask(tier)))
        .with_all(pods("any", 6, Asks("300m", "1Gi"), &json!({})))
}

/// Pods that find no node, each for another reason.
fn refusals() -> Cluster {
    let taint = json!({"key": "dedicated", "effect": "NoSchedule"});
    let device = json!({"containers": [{"name": "main", "resources": {"limits": {"example.com/gpu": "1"}}}]});
    Cluster::new(sizes())
        .with(pool("tainted", &json!({"template": {"spec": {"taints": [taint]}}, "weight": 2})))
        .with(pool("full", &json!({"limits": {"cpu": "2"}})))
        .with(node("node-0", ZONES[0], Asks("1", "1Gi")))
        .with(pod("too-large", Asks("64", "1Gi"), &json!({})))
        .with(pod("too-much-memory", Asks("1", "500Gi"), &json!({})))
        .with(pod("no-zone", Asks("1", "1Gi"), &json!({"nodeSelector": {ZONE: "nowhere"}})))
        .with(pod("no-label", Asks("1", "1Gi"), &json!({"nodeSelector": {"example.com/unheard-of": "x"}})))
        .with(pod("no-device", Asks("1", "1Gi"), &device))
        .with(pod("invalid", Asks("1", "1Gi"), &json!({"nodeSelector": {"karpenter.sh/unheard-of": "x"}})))
        .with(pod("wrong-type", Asks("3", "1Gi"), &json!({"nodeSelector": {INSTANCE_TYPE: "s2"}})))
        .with_all(pods("limit", 4, Asks("1500m", "1Gi"), &json!({})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cluster_has_a_name_of_its_own_and_pods() {
        let all = all();
        let mut names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
        for (name, scenario) in all {
            let items = scenario.objects["items"].as_array().unwrap();
            assert!(items.iter().any(|item| item["kind"] == "Pod"), "{name}");
        }
    }
}
