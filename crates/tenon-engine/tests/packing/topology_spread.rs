//! Topology spread: where pods go so that no domain has many more of them than another.
//!
//! The groups E1 to E9 are those of the behaviour checklist.

use crate::packing::cluster::{cluster, expect, reason, sound_plan, told};

/// One size in zones a, b and c, with room for ten pods of one CPU.
const ZONES: &str = "type one cpu=10 memory=40Gi zone=a,b,c capacity-type=spot,on-demand";

/// How many pods each zone gets, by zone: of new nodes and of nodes that are there. No pod may wait.
#[track_caller]
fn by_zone(text: &str) -> Vec<(String, usize)> {
    by_label("topology.kubernetes.io/zone", text)
}

#[track_caller]
fn by_label(label: &str, text: &str) -> Vec<(String, usize)> {
    let snapshot = cluster(text);
    let plan = sound_plan(&snapshot);
    assert!(plan.unplaced.is_empty(), "{:?}\n{text}", told(&plan));
    let mut counts: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for node in &plan.new_nodes {
        let demand = node.requirements.get(label).filter(|demand| demand.values().len() == 1);
        let value = demand.and_then(|demand| demand.values().first().cloned());
        let value = value.or_else(|| node.chosen.labels.get(label).cloned()).unwrap_or_default();
        *counts.entry(value).or_default() += node.pods.len();
    }
    for placement in &plan.placements {
        let node = snapshot.nodes.iter().find(|node| node.name == placement.node).unwrap();
        *counts.entry(node.labels.get(label).unwrap_or_default().to_owned()).or_default() += 1;
    }
    counts.into_iter().collect()
}

fn pods(count: usize, words: &str) -> String {
    (0..count).map(|number| format!("\npod p{number:02} cpu=1 label:app=web {words}")).collect()
}

fn zones(counts: &[(&str, usize)]) -> Vec<(String, usize)> {
    counts.iter().map(|(zone, count)| ((*zone).to_owned(), *count)).collect()
}

#[test]
fn e1_a_label_that_no_node_can_have_leaves_the_pod_pending() {
    let text = format!("{ZONES}\npod p cpu=1 label:app=web spread=rack:1:app=web");
    let why = reason(&text);
    assert!(why.contains("topology spread, key=rack: new nodes have no value of label rack"), "{why}");
}

#[test]
fn e1_without_a_selector_nobody_is_spread() {
    expect(&format!("{ZONES}\npod a cpu=1 spread=zone:1:-\npod b cpu=1 spread=zone:1:-"), &["default/one: a b"]);
}

#[test]
fn e2_pods_are_spread_over_zones() {
    let found = by_zone(&format!("{ZONES}{}", pods(7, "spread=zone:1:app=web")));
    let mut counts: Vec<usize> = found.into_iter().map(|(_, count)| count).collect();
    counts.sort_unstable();
    assert_eq!(counts, [2, 2, 3]);
}

#[test]
fn e2_only_zones_of_the_pool_are_domains() {
    let text = format!("{ZONES}\npool web need:zone=In:a,b{}", pods(4, "spread=zone:1:app=web"));
    assert_eq!(by_zone(&text), zones(&[("a", 2), ("b", 2)]));
    let text = format!("{ZONES}\npool one label:zone=a\npool two label:zone=b{}", pods(4, "spread=zone:1:app=web"));
    assert_eq!(by_zone(&text), zones(&[("a", 2), ("b", 2)]));
}

#[test]
fn e2_pods_on_a_node_that_does_not_say_yet_which_machine_it_is_are_counted() {
    let text = format!(
        "{ZONES}\nnode n1 cpu=9 memory=9Gi label:zone=a unidentified\nbound x on=n1 cpu=1 label:app=web\nbound y on=n1 label:app=web{}",
        pods(4, "spread=zone:1:app=web")
    );
    assert_eq!(by_zone(&text), zones(&[("b", 2), ("c", 2)]), "two run in zone a, where nothing is put");
    expect(&format!("{ZONES}\nnode n1 cpu=9 memory=9Gi unidentified\npod p cpu=1"), &["default/one: p"]);
}

#[test]
fn e2_pods_that_run_already_are_counted() {
    let text = format!(
        "{ZONES}\nnode n1 cpu=4 memory=8Gi label:zone=a\nbound x on=n1 cpu=4 label:app=web\nbound y on=n1 label:app=web{}",
        pods(4, "spread=zone:1:app=web")
    );
    assert_eq!(by_zone(&text), zones(&[("b", 2), ("c", 2)]), "two run in zone a");
}

#[test]
fn e2_pods_that_end_or_do_not_match_are_not_counted() {
    let text = format!(
        "{ZONES}\nnode n1 cpu=9 memory=8Gi label:zone=a\nbound x on=n1 cpu=9 label:app=web terminating\n\
         bound y on=n1 label:app=db\nbound z on=n1 label:app=web ns=other{}",
        pods(3, "spread=zone:1:app=web")
    );
    assert_eq!(by_zone(&text), zones(&[("a", 1), ("b", 1), ("c", 1)]));
}

#[test]
fn e2_a_skew_that_is_broken_already_is_not_made_worse() {
    let text = format!(
        "{ZONES}\nnode n1 cpu=4 memory=8Gi label:zone=a\nbound x on=n1 cpu=4 label:app=web\nbound y on=n1 label:app=web\n\
         bound z on=n1 label:app=web{}",
        pods(2, "spread=zone:1:app=web")
    );
    assert_eq!(by_zone(&text), zones(&[("b", 1), ("c", 1)]));
}

#[test]
fn e2_a_pod_that_can_only_go_to_a_full_zone_waits() {
    let full = "node n1 cpu=4 memory=8Gi label:zone=a\nbound x on=n1 cpu=4 label:app=web";
    let text = format!(
        "{ZONES}\npool web need:zone=In:a\n{full}\nnode n2 cpu=1 memory=1Gi label:zone=b taint=x:NoSchedule{}",
        pods(1, "spread=zone:1:app=web")
    );
    let why = reason(&text);
    assert!(
        why.contains("topology spread, key=topology.kubernetes.io/zone: maxSkew 1 allows no more pods in a (1 pod)"),
        "{why}"
    );
}

#[test]
fn e2_pods_that_their_own_selector_does_not_choose_are_not_kept_apart() {
    let alone = pods(5, "spread=hostname:1:app=other spread=zone:1:app=other");
    assert_eq!(by_node(&format!("{ZONES}{alone}")), [5]);
}

#[test]
fn e2_pods_of_two_kinds_that_count_each_other_are_spread_by_the_others() {
    let of = |kind: &str, other: &str| {
        let name = |number: usize| format!("\npod {kind}{number} cpu=1 label:app={kind} spread=zone:1:app={other}");
        (0..3).map(name).collect::<String>()
    };
    // Nobody is counted at first, so pods of one kind share a zone; those of the other kind avoid it, and share another.
    let text = format!("{ZONES}{}{}", of("web", "db"), of("db", "web"));
    assert_eq!(by_zone(&text), zones(&[("a", 3), ("b", 3)]));
    let there =
        "node n1 cpu=2 memory=2Gi label:zone=a\nbound x on=n1 cpu=1 label:app=db\nbound y on=n1 cpu=1 label:app=db";
    let counts = by_zone(&format!("{ZONES}\n{there}{}", of("web", "db")));
    assert!(counts.iter().all(|(zone, _)| zone != "a"), "{counts:?}");
}

#[test]
fn e2_with_fewer_domains_than_min_domains_the_emptiest_counts_as_empty() {
    let spread = |least: u32| format!("spread=zone:1:app=web;min={least}");
    let text = |count, least| format!("{ZONES}\npool web need:zone=In:a,b{}", pods(count, &spread(least)));
    assert_eq!(by_zone(&text(4, 2)), zones(&[("a", 2), ("b", 2)]));
    let plan = sound_plan(&cluster(&text(4, 3)));
    assert_eq!(plan.unplaced.len(), 2, "one pod for each domain: {:?}", told(&plan));
}

#[test]
fn e2_domains_of_nodes_that_no_pool_makes_are_known() {
    let text = format!(
        "{ZONES}\npool web need:zone=In:a\nnode n1 cpu=9 memory=9Gi label:zone=z{}",
        pods(4, "spread=zone:1:app=web")
    );
    assert_eq!(by_zone(&text), zones(&[("a", 2), ("z", 2)]));
}

/// How many pods each new node has, the fewest first.
#[track_caller]
fn by_node(text: &str) -> Vec<usize> {
    let plan = sound_plan(&cluster(text));
    assert!(plan.unplaced.is_empty(), "{:?}\n{text}", told(&plan));
    let mut counts: Vec<usize> = plan.new_nodes.iter().map(|node| node.pods.len()).collect();
    counts.sort_unstable();
    counts
}

#[test]
fn e3_a_node_takes_as_many_pods_as_max_skew() {
    assert_eq!(by_node(&format!("{ZONES}{}", pods(4, "spread=hostname:1:app=web"))), [1, 1, 1, 1]);
    assert_eq!(by_node(&format!("{ZONES}{}", pods(5, "spread=hostname:2:app=web"))), [1, 2, 2]);
    let text = format!(
        "{ZONES}\nnode n1 cpu=9 memory=9Gi\nbound x on=n1 label:app=web{}",
        pods(2, "spread=hostname:1:app=web")
    );
    assert_eq!(by_node(&text), [1, 1], "the node that is there has one already");
}

#[test]
fn e3_several_deployments_share_nodes() {
    let other = pods(2, "spread=hostname:1:app=db").replace("pod p", "pod q").replace("label:app=web", "label:app=db");
    assert_eq!(by_node(&format!("{ZONES}{}{other}", pods(2, "spread=hostname:1:app=web"))), [2, 2]);
}

#[test]
fn e3_deployments_for_different_architectures_share_no_nodes() {
    let sizes = "type x cpu=8 memory=16Gi arch=amd64\ntype y cpu=8 memory=16Gi arch=arm64";
    let web = pods(2, "need:arch=In:amd64 spread=hostname:1:app=web");
    let db = pods(2, "need:arch=In:arm64 spread=hostname:1:app=db").replace("pod p", "pod q");
    let db = db.replace("label:app=web", "label:app=db");
    let text = format!("{sizes}{web}{db}");
    assert_eq!(by_node(&text), [1, 1, 1, 1]);
    assert_eq!(by_label("kubernetes.io/arch", &text), zones(&[("amd64", 2), ("arm64", 2)]));
}

#[test]
fn e4_pods_are_spread_over_capacity_types_and_architectures() {
    let label = "karpenter.sh/capacity-type";
    let text = format!("{ZONES}{}", pods(4, "spread=capacity-type:1:app=web"));
    assert_eq!(by_label(label, &text), zones(&[("on-demand", 2), ("spot", 2)]));
    let sizes = "type x cpu=4 memory=8Gi arch=amd64\ntype y cpu=4 memory=8Gi arch=arm64";
    let text = format!("{sizes}{}", pods(4, "spread=arch:1:app=web"));
    assert_eq!(by_label("kubernetes.io/arch", &text), zones(&[("amd64", 2), ("arm64", 2)]));
}

#[test]
fn e4_a_spread_that_is_only_wished_for_is_given_up() {
    let text = format!("{ZONES}{}", pods(1, "spread?=rack:1:app=web"));
    expect(&text, &["default/one: p00"]);
    let full = "node n1 cpu=4 memory=8Gi label:zone=b\nbound x on=n1 cpu=4 label:app=web";
    let text = format!(
        "{ZONES}\npool web need:zone=In:b\n{full}\nnode n2 cpu=1 memory=1Gi label:zone=a taint=x:NoSchedule{}",
        pods(1, "spread?=zone:1:app=web")
    );
    expect(&text, &["web/one: p00"]);
}

#[test]
fn e5_several_constraints_hold_at_once() {
    let words = "spread=zone:1:app=web spread=hostname:1:app=web spread=capacity-type:1:app=web";
    let text = format!("{ZONES}{}", pods(6, words));
    assert_eq!(by_zone(&text), zones(&[("a", 2), ("b", 2), ("c", 2)]));
    assert_eq!(by_label("karpenter.sh/capacity-type", &text), zones(&[("on-demand", 3), ("spot", 3)]));
    assert_eq!(by_node(&text), [1; 6]);
}

#[test]
fn e5_a_label_that_only_pools_require_shares_pods_among_pools_by_its_values() {
    // Of five values one belongs to the pool on demand: it gets a fifth of the pods.
    let pools = "pool demand need:capacity-type=In:on-demand need:share=In:1\n\
                 pool spot need:capacity-type=In:spot need:share=In:2,3,4,5";
    let text = format!("{ZONES}\n{pools}{}", pods(20, "spread=share:1:app=web"));
    assert_eq!(by_label("share", &text), zones(&["1", "2", "3", "4", "5"].map(|value| (value, 4))));
    assert_eq!(by_label("karpenter.sh/capacity-type", &text), zones(&[("on-demand", 4), ("spot", 16)]));
}

#[test]
fn e6_match_label_keys_are_part_of_the_selector() {
    // The selector has the value of the pod's own label; another revision is another group.
    let pods = |revision: &str, names: [&str; 2]| {
        let words = format!("label:app=web label:rev={revision} spread=zone:1:app=web&rev={revision}");
        names.map(|name| format!("\npod {name} cpu=1 {words}")).concat()
    };
    let text = format!("{ZONES}{}{}", pods("1", ["a", "b"]), pods("2", ["c", "d"]));
    assert_eq!(by_zone(&text), zones(&[("a", 2), ("b", 2)]));
}

#[test]
fn e7_nodes_with_taints_count_unless_taints_are_honoured() {
    let tainted = "node n1 cpu=1 memory=1Gi label:zone=z taint=gpu:NoSchedule";
    let text = |policy: &str| {
        format!("{ZONES}\npool web need:zone=In:a\n{tainted}{}", pods(2, &format!("spread=zone:1:app=web{policy}")))
    };
    assert_eq!(sound_plan(&cluster(&text(""))).unplaced.len(), 1, "zone z stays empty");
    assert_eq!(by_zone(&text(";taints=honor")), zones(&[("a", 2)]));
}

#[test]
fn e7_domains_of_pools_with_taints_count_unless_taints_are_honoured() {
    let pools = "pool web need:zone=In:a\npool gpu need:zone=In:b taint=gpu:NoSchedule";
    let text = |words: &str| format!("{ZONES}\n{pools}{}", pods(2, words));
    assert_eq!(sound_plan(&cluster(&text("spread=zone:1:app=web"))).unplaced.len(), 1);
    assert_eq!(by_zone(&text("spread=zone:1:app=web;taints=honor")), zones(&[("a", 2)]));
    assert_eq!(by_zone(&text("tolerate=gpu spread=zone:1:app=web;taints=honor")), zones(&[("a", 1), ("b", 1)]));
}

#[test]
fn e7_pools_that_exclude_each_other_by_taints_share_zones_and_count_apart() {
    let pools = "pool red need:zone=In:a,b taint=red:NoSchedule\npool blue need:zone=In:b,c taint=blue:NoSchedule";
    let of = |name: &str, policy: &str| {
        pods(4, &format!("tolerate={name} spread=zone:1:app=web{policy}")).replace("pod p", &format!("pod {name}"))
    };
    let (red, blue) = (of("red", ";taints=honor"), of("blue", ";taints=honor"));
    assert_eq!(by_zone(&format!("{ZONES}\n{pools}{red}")), zones(&[("a", 2), ("b", 2)]));
    assert_eq!(by_zone(&format!("{ZONES}\n{pools}{red}{blue}")), zones(&[("a", 2), ("b", 4), ("c", 2)]));
    // Without that policy the zone that only the other pool has stays empty, and stops the rest.
    let plan = sound_plan(&cluster(&format!("{ZONES}\n{pools}{}", of("red", ""))));
    assert_eq!(plan.unplaced.len(), 2, "{:?}", told(&plan));
}

#[test]
fn e8_nodes_the_pod_cannot_go_to_count_only_if_affinity_is_ignored() {
    let there = "node n1 cpu=4 memory=8Gi label:zone=a label:team=red\nbound x on=n1 cpu=4 label:app=web\nbound y on=n1 label:app=web";
    let text = |policy: &str| {
        format!(
            "{ZONES}\npool web label:team=blue\n{there}{}",
            pods(3, &format!("need:team=In:blue spread=zone:1:app=web{policy}"))
        )
    };
    assert_eq!(by_zone(&text("")), zones(&[("a", 1), ("b", 1), ("c", 1)]));
    assert_eq!(by_zone(&text(";affinity=ignore")), zones(&[("b", 2), ("c", 1)]));
}

#[test]
fn e9_what_the_pod_requires_limits_the_spread_and_what_it_prefers_does_not() {
    assert_eq!(
        by_zone(&format!("{ZONES}{}", pods(4, "need:zone=In:a,b spread=zone:1:app=web"))),
        zones(&[("a", 2), ("b", 2)])
    );
    // Preferred for zone a, but spread over all zones: once a has one pod more, the wish is given up.
    let text = format!("{ZONES}{}", pods(3, "prefer:5:zone=In:a spread=zone:1:app=web"));
    assert_eq!(by_zone(&text), zones(&[("a", 1), ("b", 1), ("c", 1)]));
}

#[test]
fn a_pod_that_is_not_counted_itself_still_goes_where_fewest_are() {
    let text = format!(
        "{ZONES}\nnode n1 cpu=4 memory=8Gi label:zone=a\nbound x on=n1 cpu=4 label:app=web\npod p cpu=1 label:app=db spread=zone:1:app=web"
    );
    let zone = by_zone(&text);
    assert!(zone == zones(&[("b", 1)]) || zone == zones(&[("c", 1)]), "{zone:?}");
}

#[test]
fn who_is_refused_by_two_constraints_together_hears_what_one_of_them_allows() {
    let nodes = "node na cpu=8 label:zone=a\nnode nb cpu=8 label:zone=b\nbound w1 on=na label:app=web";
    let pod = "pod p cpu=1 label:app=web spread=zone:1:app=web;affinity=ignore with=zone:app=web need:zone=In:a,b";
    let why = reason(&format!("{ZONES}\n{nodes}\n{pod}"));
    assert!(
        why.contains("maxSkew 1 allows only b (0 pods), and the other requirements of the pod exclude that"),
        "{why}"
    );
}

#[test]
fn who_must_be_with_pods_on_a_host_hears_that_a_new_node_has_none() {
    let why = reason(&format!("{ZONES}\npod p cpu=1 with=hostname:app=web"));
    assert!(why.ends_with("pod affinity, key=kubernetes.io/hostname: a new node has no pod to be with"), "{why}");
}
