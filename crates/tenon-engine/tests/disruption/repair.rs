//! Broken nodes are replaced, one at a time.

use std::time::Duration;

use super::world::{decided, expect, kept, reasons, told, world};
use tenon_engine::disruption::{decide, expected};
use tenon_model::{NodeStage, RepairAction};

/// A pool of ten, so that two may be broken; `node` and `pod` are more words for the first and its pod.
fn ten(node: &str, pod: &str) -> String {
    let healthy: Vec<String> = (1..10)
        .map(|number| format!("node m{number} is=mid zone=a pool=web keep\nbound q{number} on=m{number} cpu=3"))
        .collect();
    format!(
        "gate node-repair\ntype mid cpu=4 memory=16Gi price=2 zone=a\npool web after=Never\n\
         node n1 is=mid zone=a pool=web {node}\nbound p1 on=n1 cpu=3 {pod}\n{}",
        healthy.join("\n")
    )
}

const SICK: &str = "sick=1000";

#[test]
fn j2_a_broken_node_is_replaced_before_it_goes_and_the_reason_is_told() {
    expect(&ten(SICK, ""), &["repair: n1 => web/mid/on-demand | p1>#0"]);
    let found = decided(&ten(SICK, ""));
    let why = found.commands[0].repair.as_ref().unwrap().driver.to_string();
    assert!(why.starts_with("condition Ready=Unknown since 2026-03-11T"), "{why}");
    assert_eq!(format!("{:?}", found.commands[0].method.reason()), "Unhealthy");
    expect(&ten("sick-false=1000", ""), &["repair: n1 => web/mid/on-demand | p1>#0"]);
    let empty = ten(SICK, "").replace("bound p1 on=n1 cpu=3 \n", "");
    expect(&empty, &["repair: n1"]);
}

#[test]
fn j2_nothing_is_repaired_without_the_gate() {
    let text = ten(SICK, "").replace("gate node-repair\n", "");
    assert!(!kept("n1", &text).contains("Ready"), "{}", kept("n1", &text));
}

#[test]
fn j2_a_condition_is_tolerated_for_a_quarter_of_an_hour_from_the_creation_of_the_node_on() {
    assert!(kept("n1", &ten("sick=899", "")).contains("has condition Ready=Unknown since"));
    assert!(kept("n1", &ten("sick=899", "")).contains("it is repaired from 2026-03-11T"));
    assert_eq!(decided(&ten("sick=900", "")).commands.len(), 1);
    assert!(kept("n1", &ten("sick=2000 created=899", "")).contains("it is repaired from"));
    assert!(kept("n1", &ten("sick=2000 rebooted=899", "")).contains("it is repaired from"), "rebooted a moment ago");
    assert_eq!(decided(&ten("sick=2000 rebooted=900", "")).commands.len(), 1);
}

#[test]
fn j2_budgets_pace_repairs_and_a_node_that_never_came_up_needs_none() {
    let closed = |node: &str| ten(node, "").replace("after=Never", "after=Never budget=0@Unhealthy");
    assert!(kept("n1", &closed(SICK)).contains("allows 0 of 10 nodes to be disrupted at once for Unhealthy"));
    let open = ten(SICK, "").replace("after=Never", "after=Never budget=1@Unhealthy");
    assert_eq!(decided(&open).commands.len(), 1, "that it is not ready is the reason, no disruption by itself");
    let text = closed("uninitialized nominated sick=1000");
    assert_eq!(decided(&text).commands.len(), 1, "{:?}", reasons(&decided(&text)));
    let unregistered = ten("uninitialized unregistered sick=1000", "");
    assert!(kept("n1", &unregistered).contains("not initialized"));
    assert!(kept("n1", &ten("nominated sick=1000", "")).contains("nominated"));
}

#[test]
fn j2_a_pool_of_which_more_than_a_fifth_is_broken_is_left_alone_and_another_is_not() {
    let text = ten(SICK, "").replace("node m1 is=mid zone=a pool=web", "node m1 is=mid zone=a pool=web sick=30");
    assert_eq!(told(&decided(&text).commands[0]), "repair: n1 => web/mid/on-demand | p1>#0", "two of ten may be");
    let text = text.replace("node m2 is=mid zone=a pool=web", "node m2 is=mid zone=a pool=web sick=30");
    let found = kept("n1", &text);
    assert!(found.contains("3 of 10 nodes of NodePool web are unhealthy") && found.contains("only up to 2 (20%)"));
    let other = text.replace("pool web", "pool db after=Never\npool web");
    let other = format!("{other}\nnode d1 is=mid zone=a pool=db sick=950\nbound r1 on=d1 cpu=3 need:nodepool=In:db");
    expect(&other, &["repair: d1 => db/mid/on-demand | r1>#0"]);
}

#[test]
fn nodes_of_a_host_that_is_offline_are_replaced_however_many_they_are() {
    let text = |first: &str, others: &str| {
        let text = ten(&format!("{SICK} {first}"), "");
        (1..4).fold(text, |text, m| {
            text.replace(&format!("node m{m} is=mid"), &format!("node m{m} sick=990 {others} is=mid"))
        })
    };
    assert!(kept("n1", &text("", "")).contains("4 of 10 nodes of NodePool web are unhealthy"));
    expect(&text("host-offline", "host-offline"), &["repair: n1 => web/mid/on-demand | p1>#0"]);
    expect(&text("host-offline reboots", "host-offline"), &["repair: n1 => web/mid/on-demand | p1>#0"]);
    assert!(kept("n1", &text("host-offline no-repair", "")).contains("do-not-repair"), "and the others are too many");
    let closed = text("host-offline", "host-offline").replace("after=Never", "after=Never budget=0@Unhealthy");
    assert!(kept("n1", &closed).contains("allows 0 of 10"), "budgets pace these, too");
    let one_else = text("", "host-offline");
    expect(&one_else, &["repair: n1 => web/mid/on-demand | p1>#0"]);
}

#[test]
fn j2_only_do_not_repair_protects_a_broken_node() {
    for (words, on) in [("no-repair", "Node n1"), ("no-repair-claim", "NodeClaim claim-n1")] {
        let found = kept("n1", &ten(&format!("{SICK} {words}"), ""));
        assert!(found.contains(&format!("{on} has karpenter.sh/do-not-repair")), "{found}");
        let early = kept("n1", &ten(&format!("sick=60 {words}"), ""));
        assert!(!early.contains("do-not-repair"), "only once its time is over: {early}");
    }
    for words in ["keep", "keep-claim"] {
        assert_eq!(decided(&ten(&format!("{SICK} {words}"), "")).commands.len(), 1, "{words}");
    }
}

#[test]
fn j2_pods_that_will_not_leave_hold_a_broken_node_unless_its_drain_is_bounded_and_then_have_a_place() {
    for pod in ["keep=true", "pdb=now", "pdb=always", "pdb=several"] {
        assert!(!kept("n1", &ten(SICK, pod)).is_empty(), "{pod}");
        let bounded = ten(&format!("{SICK} bounded-drain"), pod);
        expect(&bounded, &["repair: n1 => web/mid/on-demand | p1>#0"]);
    }
}

#[test]
fn j2_a_policy_that_bounds_the_drain_lets_a_node_go_whose_pods_will_not_leave() {
    for pod in ["keep=true", "pdb=now", "pdb=always", "pdb=several"] {
        expect(&ten(&format!("{SICK} bound=30"), pod), &["repair: n1 => web/mid/on-demand | p1>#0"]);
        let found = decided(&ten(&format!("{SICK} bound=0"), pod));
        assert_eq!(found.commands[0].repair.as_ref().unwrap().drain_bound, Some(Duration::ZERO), "{pod}");
    }
}

#[test]
fn j3_a_node_whose_policy_says_so_is_rebooted_and_nothing_comes_for_it() {
    let text = ten(&format!("{SICK} reboots"), "");
    let found = decided(&text);
    assert_eq!((told(&found.commands[0]).as_str(), found.commands[0].is_reboot()), ("repair: n1", true));
    let full = text.replace("after=Never", "after=Never limit:cpu=40");
    assert_eq!(told(&decided(&full).commands[0]), "repair: n1", "nobody asks where its pods would go");
    let after = expected(&world(&text), &found.commands[0], "new");
    let node = after.nodes.iter().find(|node| node.name == "n1").unwrap();
    assert_eq!((node.stage, node.pods.len(), after.nodes.len()), (NodeStage::Rebooting, 1, 10));
}

#[test]
fn j3_what_holds_a_replacement_holds_a_reboot() {
    let text = |words: &str, pod: &str| ten(&format!("{SICK} reboots {words}"), pod);
    assert!(kept("n1", &text("no-repair", "")).contains("do-not-repair"));
    assert!(!kept("n1", &text("", "keep=true")).is_empty());
    assert!(decided(&text("bound=30", "keep=true")).commands[0].is_reboot());
    assert!(decided(&text("bounded-drain", "keep=true")).commands[0].is_reboot());
    let closed = text("", "").replace("after=Never", "after=Never budget=0@Unhealthy");
    assert!(kept("n1", &closed).contains("allows 0 of 10"));
    let many = text("", "")
        .replace("node m1 is=mid", "node m1 sick=1 is=mid")
        .replace("node m2 is=mid", "node m2 sick=1 is=mid");
    assert!(kept("n1", &many).contains("3 of 10 nodes"));
}

#[test]
fn j3_a_node_that_was_rebooted_too_often_is_replaced() {
    let found = decided(&ten(&format!("{SICK} reboots bound=30 rebooted-often"), ""));
    assert_eq!(told(&found.commands[0]), "repair: n1 => web/mid/on-demand | p1>#0");
    let repair = found.commands[0].repair.clone().unwrap();
    assert_eq!((repair.action, repair.drain_bound), (RepairAction::ReplaceNode, Some(Duration::from_secs(30))));
}

#[test]
fn j3_a_static_node_is_rebooted_whatever_its_limit() {
    let text = fixed("limit:nodes=2", "").replace("sick=1000", "sick=1000 reboots");
    assert_eq!(told(&decided(&text).commands[0]), "repair: n1");
}

#[test]
fn j2_the_node_that_is_due_for_longest_goes_first_then_the_one_whose_pods_lose_least() {
    let text = |first: &str, second: &str, pod: &str| {
        ten(first, pod).replace("node m1 is=mid zone=a pool=web", &format!("node m1 is=mid zone=a pool=web {second}"))
    };
    let goes = |text: &str| decided(text).commands[0].removed[0].node.clone();
    assert_eq!(goes(&text("sick=1000", "sick=1001", "")), "m1");
    assert_eq!(goes(&text("sick=1001", "sick=1000", "")), "n1");
    assert_eq!(goes(&text(SICK, SICK, "")), "m1", "by name");
    assert_eq!(goes(&text(SICK, SICK, "cost=-67108864")), "n1");
    assert_eq!(goes(&text("sick=1000 expires=7200", SICK, "")), "n1", "not much is left of its life");
    let found = decided(&text("sick=1000", "sick=1001", ""));
    let why = reasons(&found).into_iter().find(|why| why.starts_with("n1 repair")).unwrap();
    assert_eq!(why, "n1 repair: the node can be disrupted after node m1 (repair)");
}

#[test]
fn j2_a_node_without_a_pool_is_not_repaired_and_a_pod_without_a_place_holds_one() {
    let found = kept("n1", &ten(SICK, "").replace("n1 is=mid zone=a pool=web", "n1 is=mid zone=a pool=old"));
    assert!(found.contains("NodePool old does not exist"), "{found}");
    assert!(kept("n1", &ten(SICK, "need:zone=In:nowhere")).contains("pod default/p1 would be unschedulable"));
}

#[test]
fn j2_a_broken_node_goes_before_all_others() {
    let text =
        ten(SICK, "").replace("node m1 is=mid zone=a pool=web keep", "node m1 is=mid zone=a pool=web drifted=90");
    let found = decided(&text);
    assert_eq!(told(&found.commands[0]), "repair: n1 => web/mid/on-demand | p1>#0");
    assert!(reasons(&found).contains(&"m1 drift: the node can be disrupted after node n1 (repair)".to_owned()));
}

#[test]
fn j2_a_repair_whose_replacement_failed_waits_until_something_changes() {
    let mut snapshot = world(&ten(SICK, ""));
    let command = decide(&snapshot).commands.remove(0);
    snapshot.disruption.failed.insert("n1".to_owned(), command.fingerprint);
    assert!(decide(&snapshot).commands.is_empty());
    for pool in &mut snapshot.pools {
        std::sync::Arc::make_mut(pool).revision = "2/".to_owned();
    }
    assert_eq!(decide(&snapshot).commands.len(), 1, "the pool, its class or its template is another");
}

fn fixed(limit: &str, more: &str) -> String {
    format!(
        "gate node-repair\ntype mid cpu=4 memory=16Gi price=2 zone=a\npool web replicas=2 {limit}\n\
         node n1 is=mid zone=a pool=web sick=1000\nbound p1 on=n1 cpu=3\nnode n2 is=mid zone=a pool=web\n{more}"
    )
}

#[test]
fn j2_a_static_pool_makes_one_for_one_within_its_limit() {
    expect(&fixed("", ""), &["repair: n1 => web/template"]);
    expect(&fixed("limit:nodes=3", ""), &["repair: n1 => web/template"]);
    assert!(kept("n1", &fixed("limit:nodes=2", "")).contains("is at its limit"));
    assert!(kept("n1", &fixed("", "node n3 is=mid zone=a pool=web")).contains("more nodes than spec.replicas"));
}

#[test]
fn j5_a_broken_node_goes_first_only_with_its_gate_at_the_limit_of_a_static_pool() {
    let found = decided(&fixed("limit:nodes=2", "gate terminate-first-repair"));
    assert_eq!(found.commands[0].terminate_first.unwrap().as_str(), "static-at-limit");
    assert_eq!(told(&found.commands[0]), "repair: n1");
    assert!(kept("n1", &fixed("limit:nodes=2", "gate terminate-first-drift")).contains("is at its limit"));
    let free = decided(&fixed("limit:nodes=3", "gate terminate-first-repair"));
    assert_eq!(free.commands[0].terminate_first, None);
}

#[test]
fn j5_a_broken_node_goes_first_where_only_its_own_reserved_capacity_would_do() {
    let text = |left: u32, more: &str| {
        format!(
            "gate node-repair\ntype mid cpu=4 memory=16Gi price=2 zone=a\n\
             offering mid price=0.1 zone=a capacity-type=reserved id=r left={left}\npool web after=Never\n\
             node n1 is=mid zone=a kind=reserved pool=web sick=1000 label:example.com/reservation-id=r\n\
             bound p1 on=n1 cpu=3 need:capacity-type=In:reserved\n{more}"
        )
    };
    assert!(kept("n1", &text(0, "")).contains("would be unschedulable"));
    assert!(kept("n1", &text(0, "gate terminate-first-drift")).contains("would be unschedulable"));
    let found = decided(&text(0, "gate terminate-first-repair"));
    assert_eq!(found.commands[0].terminate_first.unwrap().as_str(), "no-reserved-capacity");
    let room = decided(&text(1, "gate terminate-first-repair"));
    assert_eq!(room.commands[0].terminate_first, None, "another one can be had first");
}
