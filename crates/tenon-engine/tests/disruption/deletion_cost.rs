//! Pods on nodes that go, or would be disrupted next, are the first that a ReplicaSet should delete.

use std::collections::BTreeMap;

use tenon_engine::disruption::{cost_writes, deletion_cost_state, deletion_costs};
use tenon_model::{NodeReplicas, Replica, Snapshot, WrittenCost};

use super::world::world;

const HEAD: &str = "type small cpu=2 memory=8Gi price=1 zone=a\ntype big cpu=8 memory=32Gi price=4 zone=a\n";

/// All pods are those of ReplicaSets, and nothing is written on them yet. Pods on these nodes come from nobody who makes them anew.
fn replicas(snapshot: &Snapshot, pinned: &[&str]) -> BTreeMap<String, NodeReplicas> {
    let pods = snapshot.nodes.iter().map(|node| {
        let replica = |pod: &std::sync::Arc<tenon_model::BoundPod>| Replica {
            pod: pod.key.clone(),
            written: WrittenCost::default(),
        };
        let is_pinned = pinned.contains(&node.name.as_str());
        (node.name.clone(), NodeReplicas { is_pinned, replicas: node.pods.iter().map(replica).collect() })
    });
    pods.collect()
}

/// `node=cost` in the order in which their pods go.
fn told(text: &str, pinned: &[&str]) -> String {
    let snapshot = world(&format!("{HEAD}{text}"));
    let costs = deletion_costs(&snapshot, &replicas(&snapshot, pinned));
    let cost = |cost: Option<i32>| cost.map_or("-".to_owned(), |cost| cost.to_string());
    costs.iter().map(|node| format!("{}={}", node.node, cost(node.cost))).collect::<Vec<_>>().join(" ")
}

/// A node with a pod.
fn node(name: &str, words: &str) -> String {
    format!("node {name} is=small zone=a pool=web {words}\nbound p-{name} on={name} cpu=1\n")
}

#[test]
fn j7_pods_of_nodes_that_go_are_first_then_those_of_drifted_nodes_then_by_savings() {
    let dear = "node dear is=big zone=a pool=web\nbound q on=dear cpu=1\n";
    let nodes = [node("a", ""), node("b", "drifted=60"), node("c", "deleting"), node("d", "in-progress")];
    let text = format!("pool web\n{dear}{}", nodes.concat());
    assert_eq!(told(&text, &[]), "c=-2147483648 d=-2147483648 b=-3 dear=-2 a=-1");
}

#[test]
fn j7_pods_of_nodes_that_stay_have_no_cost() {
    for words in ["keep", "keep-claim", "nominated", "uninitialized", "foreign"] {
        assert_eq!(told(&format!("pool web\n{}{}", node("a", words), node("b", "")), &[]), "b=-1 a=-", "{words}");
    }
    for words in ["keep=true", "pdb=now", "pdb=several"] {
        let text = format!("pool web\n{}{}", node("a", ""), node("b", ""));
        let text = text.replace("bound p-a on=a cpu=1", &format!("bound p-a on=a cpu=1 {words}"));
        assert_eq!(told(&text, &[]), "b=-1 a=-", "{words}");
    }
}

#[test]
fn j7_a_pinning_pod_keeps_its_node_unless_the_node_goes_anyway() {
    let text = format!("pool web\n{}{}{}", node("a", ""), node("b", "drifted=60"), node("c", "deleting"));
    assert_eq!(told(&text, &["a", "b", "c"]), "c=-2147483648 a=- b=-");
    assert_eq!(told(&text, &["a"]), "c=-2147483648 b=-1 a=-");
}

#[test]
fn j7_a_node_whose_price_nobody_knows_and_a_pool_that_never_consolidates_stay() {
    let gone = "node gone is=old zone=a pool=web\nbound q on=gone cpu=1\n";
    assert_eq!(told(&format!("pool web\n{gone}{}", node("a", "")), &[]), "a=-1 gone=-");
    let never = format!("pool web after=Never\n{}{}", node("a", ""), node("b", "drifted=60"));
    assert_eq!(told(&never, &[]), "b=-1 a=-", "a drifted node is replaced all the same");
}

#[test]
fn j7_budgets_cut_each_pool_and_each_reason_in_the_order_of_savings() {
    let nodes: Vec<String> = ["a", "b", "c"].iter().map(|name| node(name, "")).collect();
    let drifted: Vec<String> = ["x", "y"].iter().map(|name| node(name, "drifted=60")).collect();
    let text = |budgets: &str| format!("pool web {budgets}\n{}{}", nodes.concat(), drifted.concat());
    assert_eq!(told(&text("budget=2@Underutilized budget=1@Drifted"), &[]), "x=-3 a=-2 b=-1 c=- y=-");
    assert_eq!(told(&text("budget=0@Underutilized"), &[]), "x=-2 y=-1 a=- b=- c=-");
    let other = format!("pool db budget=0\n{}", text("budget=1"));
    let other = format!("{other}{}", node("d", "").replace("pool=web", "pool=db"));
    assert_eq!(told(&other, &[]), "x=-2 a=-1 b=- c=- d=- y=-");
    let going = format!("{}{}", text("budget=2"), node("z", "deleting"));
    assert_eq!(told(&going, &[]), "z=-2147483648 x=-2 a=-1 b=- c=- y=-", "one of two is used up");
}

#[test]
fn j7_a_drifted_node_of_a_static_pool_is_no_drifted_one() {
    let text = format!("pool web replicas=2\n{}{}", node("a", ""), node("b", "drifted=60"));
    assert_eq!(told(&text, &[]), "a=-2 b=-1");
}

#[test]
fn j7_nothing_is_written_twice_and_a_cost_of_the_user_is_overwritten_or_removed() {
    let snapshot = world(&format!("{HEAD}pool web\n{}{}", node("a", ""), node("b", "keep")));
    let mut replicas = replicas(&snapshot, &[]);
    let costs = deletion_costs(&snapshot, &replicas);
    let found = cost_writes(&costs, &replicas);
    let told = |found: &tenon_engine::disruption::CostWrites| {
        found.writes.iter().map(|write| format!("{}={:?}", write.pod.name, write.cost)).collect::<Vec<_>>()
    };
    assert_eq!((told(&found), &found.pending["web"]), (vec!["p-a=Some(-1)".to_owned()], &1));
    let mut set = |node: &str, cost: Option<&str>, mark: Option<&str>| {
        replicas.get_mut(node).unwrap().replicas[0].written =
            WrittenCost { cost: cost.map(str::to_owned), mark: mark.map(str::to_owned) };
        cost_writes(&costs, &replicas)
    };
    assert_eq!(set("a", Some("-1"), Some("-1")), Default::default());
    assert_eq!(told(&set("a", Some("7"), Some("-1"))), ["p-a=Some(-1)"]);
    set("a", Some("-1"), Some("-1"));
    assert_eq!(told(&set("b", Some("7"), None)), ["p-b=None"]);
}

#[test]
fn j7_fifty_nodes_are_written_in_one_pass_those_that_go_not_counted_and_those_that_stay_last() {
    let many = |from: usize, to: usize, words: &str| -> String {
        (from..to).map(|number| node(&format!("n{number:03}"), words)).collect()
    };
    let text = format!("{HEAD}pool web budget=48\n{}{}", many(0, 60, ""), many(60, 64, "deleting"));
    let snapshot = world(&text);
    let mut replicas = replicas(&snapshot, &[]);
    for node in replicas.values_mut() {
        node.replicas[0].written.cost = Some("7".to_owned());
    }
    let found = cost_writes(&deletion_costs(&snapshot, &replicas), &replicas);
    let count = |is_one: fn(Option<i32>) -> bool| found.writes.iter().filter(|write| is_one(write.cost)).count();
    assert_eq!(count(|cost| cost == Some(i32::MIN)), 4);
    assert_eq!(count(|cost| cost.is_some_and(|cost| cost > i32::MIN)), 44, "four of 48 are used up");
    assert_eq!(count(|cost| cost.is_none()), 6, "what is left of the fifty");
    assert_eq!((found.pending["web"], found.is_cut), (64, true));
    assert_eq!(cost_writes(&[], &replicas), Default::default(), "no node");
}

#[test]
fn j7_the_state_changes_with_nodes_pods_and_pools_and_not_with_time() {
    let base = format!("{HEAD}pool web\n{}{}", node("a", ""), node("b", ""));
    let mut later = world(&base);
    later.now.0 += 600;
    assert_eq!(deletion_cost_state(&world(&base)), deletion_cost_state(&later));
    for other in [
        base.replace("pool=web \nbound p-b", "pool=web drifted=9\nbound p-b"),
        base.replace("pool=web \nbound p-b", "pool=web deleting\nbound p-b"),
        base.replace("pool=web \nbound p-b", "pool=web in-progress\nbound p-b"),
        base.replace("bound p-b on=b cpu=1\n", ""),
        format!("{base}{}", node("c", "")),
    ] {
        assert_ne!(other, base);
        assert_ne!(deletion_cost_state(&world(&base)), deletion_cost_state(&world(&other)), "{other}");
    }
}
