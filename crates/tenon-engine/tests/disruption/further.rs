//! Where no row of nodes and no single node is left, any two may become one; and a replacement may cost less only as it is planned.

use std::fmt::Write as _;

use tenon_engine::disruption::{confirm, decide};

use super::world::{decided, expect, kept, reasons, world};

/// No row works: n0 comes first, and what it has and a pod more fits on no instance type.
const NODES: &str = "pool web\nnode n0 is=t8 zone=a pool=web\nbound p0 on=n0 cpu=8\nnode n1 is=t1 zone=a pool=web\n\
                     bound p1 on=n1 cpu=1\nnode n2 is=t1 zone=a pool=web\nbound p2 on=n2 cpu=1";

/// Instance types of which the one with two CPUs has this price.
fn types(two: &str) -> String {
    format!(
        "type t1 cpu=1 memory=64Gi price=3 zone=a\ntype t2 cpu=2 memory=64Gi price={two} zone=a\n\
         type t4 cpu=4 memory=64Gi price=9 zone=a\ntype t8 cpu=8 memory=64Gi price=17 zone=a\n"
    )
}

fn nothing(text: &str) {
    expect(text, &[]);
}

#[test]
fn any_two_nodes_become_one_where_nothing_else_is_left() {
    let text = format!("{}{NODES}", types("5"));
    expect(&text, &["multi-node: n1 n2 => web/t2/on-demand | p1>#0 p2>#0"]);
    let snapshot = world(&text);
    let command = decide(&snapshot).commands.remove(0);
    assert_eq!((command.savings, confirm(&command, &snapshot)), (1.0, Ok(command.clone())));
    let others = decided(&text).kept;
    assert_eq!(others.iter().map(|kept| kept.node.as_str()).collect::<Vec<_>>(), ["n0"]);
    assert!(
        others[0].reasons[0].1.to_string().contains("the cheapest replacement, t8, costs 17"),
        "it keeps its reason"
    );
    // A node that can go by itself goes first.
    expect(&format!("{text}\nnode n3 cpu=1"), &["single-node: n1 | p1>n3"]);
}

#[test]
fn two_nodes_become_one_of_the_type_of_one_of_them_only_if_neither_can_go_by_itself() {
    // To delete n1, a pod of n0 would have to make room for p3 first.
    let text = format!(
        "{}pool web\nnode n0 is=t2 zone=a pool=web\nbound p1 on=n0 cpu=1500m\nbound p2 on=n0 cpu=500m\n\
         node n1 is=t1 zone=a pool=web\nbound p3 on=n1 cpu=100m label:app=x apart=hostname:app=x\nbound p4 on=n1 cpu=300m\n\
         node n2 is=t4 zone=a pool=web\nbound p5 on=n2 cpu=1300m\nbound p6 on=n2 cpu=1400m\n\
         bound p7 on=n2 cpu=800m label:app=x apart=hostname:app=x",
        types("5")
    );
    expect(&text, &["multi-node: n0 n1 => web/t2/on-demand | p1>#0 p2>n2 p3>#0 p4>#0"]);
}

#[test]
fn a_pair_saves_a_twentieth_of_what_it_costs_and_keeps_to_policy_and_budget() {
    nothing(&format!("{}{NODES}", types("5.8")));
    for pool in ["budget=1", "policy=WhenEmpty", "policy=Balanced"] {
        nothing(&format!("{}{}", types("5"), NODES.replace("pool web\n", &format!("pool web {pool}\n"))));
    }
    let other = NODES.replace("n1 is=t1 zone=a pool=web", "n1 is=t1 zone=a pool=db");
    let pools = |budget: &str| format!("{}pool db {budget}\n{}", types("5"), other.replace("web\n", "web budget=1\n"));
    expect(&pools("budget=1"), &["multi-node: n1 n2 => web/t2/on-demand | p1>#0 p2>#0"]);
    nothing(&pools("budget=0"));
}

#[test]
fn how_many_pairs_are_tried_does_not_grow_with_the_cluster() {
    // By their size two of these would fit together, and each pod must be alone.
    let mut text = types("5") + "pool web\n";
    for node in 0..60 {
        let _ = writeln!(text, "node n{node} is=t1 zone=a pool=web");
        let _ = writeln!(text, "bound p{node} on=n{node} cpu=1 label:app=x apart=hostname:app=x");
    }
    let found = decided(&text);
    assert!(found.commands.is_empty() && (60..=60 + 64 + 10).contains(&found.simulated), "{}", found.simulated);
    // And none where no pair can save anything.
    let found = decided(&text.replace("price=5 ", "price=6 "));
    assert!(found.commands.is_empty() && found.simulated <= 60 + 10, "{}", found.simulated);
}

/// A node that becomes cheaper in zone a and not in b.
fn cheaper_in_one_zone(price: &str) -> String {
    format!(
        "type big cpu=8 memory=32Gi price=4 zone=a\ntype mid cpu=4 memory=16Gi price=4 zone=b\n\
         offering mid price={price} zone=a capacity-type=on-demand\npool web\nnode n1 is=big zone=a pool=web\nbound p1 on=n1 cpu=3"
    )
}

#[test]
fn a_replacement_that_is_cheaper_only_as_planned_saves_a_twentieth() {
    expect(&cheaper_in_one_zone("3.8"), &["single-node: n1 => web/mid/on-demand | p1>#0"]);
    assert_eq!(
        kept("n1", &cheaper_in_one_zone("3.9")),
        "the replacement, mid, costs 3.9 instead of 4, and in another zone not less; pods are not moved for less than 5 %"
    );
}

#[test]
fn a_replacement_that_is_cheaper_only_as_planned_comes_after_one_that_always_is() {
    let apart = "label:app=x apart=hostname:app=x";
    let text = format!(
        "{} {apart}\ntype tiny cpu=1 memory=4Gi price=1 zone=a\nnode n2 is=big zone=a pool=web\n\
         bound p2 on=n2 cpu=500m cost=134217728 {apart}",
        cheaper_in_one_zone("3").replace("pool web\n", "pool web budget=1\n")
    );
    // By what it saves for its pods, n1 would be first.
    expect(&text, &["single-node: n2 => web/tiny/on-demand | p2>#0"]);
    assert_eq!(reasons(&decided(&text)), ["n1 single-node: the node can be disrupted after node n2 (single-node)"]);
}
