//! Nodes that are not what their NodePool says any more are replaced, whatever that costs.

use super::world::{decided, expect, kept, told};

const TYPES: &str = "type mid cpu=4 memory=16Gi price=2 zone=a\n";

fn with(lines: &str) -> String {
    format!("{TYPES}{lines}")
}

#[test]
fn h6_the_node_that_drifted_first_goes_first_and_empty_nodes_before_all_others() {
    let nodes = "pool web after=Never\nnode n1 is=mid zone=a pool=web drifted=60\nbound p1 on=n1 cpu=3\n\
                 node n2 is=mid zone=a pool=web drifted=90\nbound p2 on=n2 cpu=3\n";
    expect(&with(nodes), &["drift: n2 => web/mid/on-demand | p2>#0"]);
    let empty = format!("{nodes}node n3 is=mid zone=a pool=web drifted=10");
    expect(&with(&empty), &["drift: n3"]);
    let found = decided(&with(nodes));
    assert_eq!(found.kept[0].reasons[0].1.to_string(), "the node can be disrupted after node n2 (drift)");
}

#[test]
fn h6_pods_of_one_node_may_need_several_new_ones() {
    let text = "type mid cpu=4 memory=16Gi price=2 zone=a\ntype big cpu=8 memory=32Gi price=4 zone=a\n\
                pool web need:instance-type=In:mid after=Never\nnode n1 is=big zone=a pool=web drifted=60\n\
                bound p1 on=n1 cpu=3\nbound p2 on=n1 cpu=3";
    expect(text, &["drift: n1 => web/mid/on-demand web/mid/on-demand | p1>#0 p2>#1"]);
}

#[test]
fn h6_a_node_whose_pods_find_no_place_waits_and_the_next_one_goes() {
    let text = with(
        "pool web after=Never\nnode n1 is=mid zone=a pool=web drifted=90\nbound p1 on=n1 cpu=3 need:zone=In:b\n\
                     node n2 is=mid zone=a pool=web drifted=60\nbound p2 on=n2 cpu=3",
    );
    let found = decided(&text);
    assert_eq!(told(&found.commands[0]), "drift: n2 => web/mid/on-demand | p2>#0");
    assert!(found.kept[0].reasons[0].1.to_string().contains("pod default/p1 would be unschedulable"));
}

#[test]
fn h6_budgets_count_what_is_being_disrupted_already() {
    let text = |more: &str| {
        with(&format!(
            "pool web after=Never budget=1@Drifted\nnode n1 is=mid zone=a pool=web drifted=90\nbound p1 on=n1 cpu=3\n\
             node n2 is=mid zone=a pool=web {more}\nbound p2 on=n2 cpu=3"
        ))
    };
    assert_eq!(decided(&text("")).commands.len(), 1);
    assert!(
        kept("n1", &text("in-progress")).contains("allows 1 of 2 nodes to be disrupted at once for Drifted, and 1 is")
    );
}

#[test]
fn h6_pods_that_will_not_leave_hold_a_node_unless_its_drain_is_bounded() {
    let world = |node: &str, pod: &str| {
        with(&format!(
            "pool web after=Never\nnode n1 is=mid zone=a pool=web drifted=60 {node}\nbound p1 on=n1 cpu=3 {pod}\nbound p2 on=n1 cpu=500m"
        ))
    };
    for pod in ["keep=true", "pdb=always", "pdb=several", "keep=2h started=60"] {
        assert!(!kept("n1", &world("", pod)).is_empty(), "{pod}");
        // No capacity is made for a pod that will not leave before its time.
        expect(&world("bounded-drain", pod), &["drift: n1 => web/mid/on-demand | p2>#0"]);
    }
    expect(&world("bounded-drain", "pdb=now"), &["drift: n1 => web/mid/on-demand | p1>#0 p2>#0"]);
    expect(&world("", "keep=30s started=60"), &["drift: n1 => web/mid/on-demand | p1>#0 p2>#0"]);
}

#[test]
fn h6_policy_and_consolidate_after_do_not_matter_to_drift() {
    let text =
        with("pool web policy=WhenEmpty after=20m\nnode n1 is=mid zone=a pool=web drifted=60\nbound p1 on=n1 cpu=3");
    expect(&text, &["drift: n1 => web/mid/on-demand | p1>#0"]);
}

#[test]
fn h13_nodes_of_a_static_pool_are_replaced_one_for_one_within_budget_and_limit() {
    let world = |pool: &str, third: &str| {
        with(&format!(
            "pool web replicas=3 {pool}\nnode n1 is=mid zone=a pool=web drifted=60\nbound p1 on=n1 cpu=1\n\
             node n2 is=mid zone=a pool=web drifted=90\nnode n3 is=mid zone=a pool=web {third}"
        ))
    };
    let both = ["static-drift: n2 => web/template", "static-drift: n1 => web/template"];
    expect(&world("", ""), &both);
    expect(&world("limit:nodes=5", ""), &both);
    expect(&world("limit:nodes=4", ""), &both[..1]);
    expect(&world("budget=1", ""), &both[..1]);
    expect(&world("budget=34%", ""), &both);
    assert!(kept("n1", &world("limit:nodes=3", "")).contains("raise spec.limits.nodes"));
    assert!(kept("n1", &world("budget=0", "")).contains("allows 0 of 3 nodes"));
    let over = world("", "").replace("replicas=3", "replicas=2");
    assert!(kept("n1", &over).contains("more nodes than spec.replicas"));
    let none = world("", "").replace("replicas=3", "replicas=0");
    assert!(kept("n1", &none).contains("more nodes than spec.replicas"));
    // What goes already is not counted as a node the pool has, but its limit counts it.
    expect(&world("replicas=2 limit:nodes=4", "deleting").replace("replicas=3 replicas=2", "replicas=2"), &both[..1]);
}

#[test]
fn h13_a_static_pool_at_its_limit_goes_first_only_with_the_gate() {
    let text = with(
        "pool web replicas=1 limit:nodes=1\nnode n1 is=mid zone=a pool=web drifted=60\ngate terminate-first-drift",
    );
    let found = decided(&text);
    assert_eq!(told(&found.commands[0]), "static-drift: n1");
    assert_eq!(found.commands[0].terminate_first.unwrap().as_str(), "static-at-limit");
    assert!(kept("n1", &text.replace("gate terminate-first-drift", "")).contains("raise spec.limits.nodes"));
}

#[test]
fn h6_a_node_on_a_full_reservation_goes_first_only_with_the_gate_and_where_nothing_else_helps() {
    let world = |types: &str, gate: &str| {
        format!(
            "type mid cpu=4 memory=16Gi price=2 zone=a {types}\noffering mid price=0.1 zone=a capacity-type=reserved id=r left=0\n\
             pool web after=Never\nnode n1 is=mid zone=a kind=reserved pool=web drifted=60 label:example.com/reservation-id=r\n\
             bound p1 on=n1 cpu=3 need:capacity-type=In:reserved\n{gate}"
        )
    };
    let gate = "gate terminate-first-drift";
    assert!(kept("n1", &world("", "")).contains("pod default/p1 would be unschedulable"));
    let found = decided(&world("", gate));
    assert_eq!(told(&found.commands[0]), "drift: n1");
    assert_eq!(found.commands[0].terminate_first.unwrap().as_str(), "no-reserved-capacity");
    let flexible = world("", gate).replace(" need:capacity-type=In:reserved", "");
    expect(&flexible, &["drift: n1 => web/mid/on-demand | p1>#0"]);
    let two = format!("{}\nbound p2 on=n1 cpu=2 need:capacity-type=In:reserved", world("", gate));
    assert!(kept("n1", &two).contains("would be unschedulable"), "one node more is proven, not two");
}

#[test]
fn h13_each_static_pool_has_its_own_budget() {
    let text = with(
        "pool a replicas=1 budget=1\npool b replicas=1 budget=1\nnode n1 is=mid zone=a pool=a drifted=60\n\
                     node n2 is=mid zone=a pool=b drifted=90",
    );
    expect(&text, &["static-drift: n2 => b/template", "static-drift: n1 => a/template"]);
}
