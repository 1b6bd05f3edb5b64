//! Nodes that are there or on their way (D5, D6), without their taints, which are in `node_taints.rs`.

use crate::packing::cluster::{cluster, expect, sound_plan};
use crate::packing::laws::carried_out;

const ONE: &str = "type one cpu=8 memory=16Gi price=1\npool default";

#[test]
fn what_fits_on_a_node_on_its_way_needs_no_new_one() {
    let node = "node n cpu=2 memory=8Gi rising pool=default";
    expect(&format!("{ONE}\n{node}\npod a cpu=1\npod b cpu=1"), &["n: a", "n: b"]);
}

#[test]
fn a_node_that_was_just_planned_takes_the_next_pods() {
    let mut after = carried_out(&cluster(&format!("{ONE}\npod a cpu=1")));
    after.pods = cluster(&format!("{ONE}\npod b cpu=7")).pods;
    let plan = sound_plan(&after);
    assert_eq!((plan.new_nodes.len(), plan.placements.len()), (0, 1));
    after.pods = cluster(&format!("{ONE}\npod b cpu=8")).pods;
    assert_eq!(sound_plan(&after).new_nodes.len(), 1);
}

#[test]
fn a_node_on_its_way_is_chosen_by_the_labels_it_will_have() {
    let node = "node n cpu=4 memory=8Gi rising pool=default label:zone=a label:instance-type=one";
    expect(&format!("{ONE}\n{node}\npod p cpu=1 need:zone=In:a need:instance-type=In:one"), &["n: p"]);
    expect(&format!("{ONE}\n{node}\npod p cpu=1 need:zone=NotIn:a"), &["p waits"]);
    let zones = "type one cpu=8 memory=16Gi price=1 zone=a,b\npool default";
    expect(&format!("{zones}\n{node}\npod p cpu=1 need:zone=In:b"), &["default/one: p"]);
}

#[test]
fn what_does_not_fit_on_a_node_on_its_way_gets_a_new_one() {
    let node = "node n cpu=2 memory=8Gi rising pool=default bound:cpu=1";
    expect(&format!("{ONE}\n{node}\npod a cpu=1\npod b cpu=1"), &["n: a", "default/one: b"]);
    expect(&format!("{ONE}\n{node}\npod a cpu=1 memory=9Gi"), &["default/one: a"]);
    expect(&format!("{ONE}\nnode n cpu=2 memory=8Gi pods=1 bound:pods=1\npod a cpu=1"), &["default/one: a"]);
}

#[test]
fn a_node_that_leaves_gets_nothing() {
    expect(&format!("{ONE}\nnode n cpu=4 memory=8Gi leaving\npod p cpu=1"), &["default/one: p"]);
    expect(&format!("{ONE}\nnode n cpu=4 memory=8Gi leaving rising pool=default\npod p cpu=1"), &["default/one: p"]);
}

#[test]
fn nodes_that_are_there_are_filled_before_new_ones_are_made() {
    let nodes = "node n1 cpu=2 memory=8Gi\nnode n2 cpu=2 memory=8Gi rising pool=default";
    let pods = "pod a cpu=2\npod b cpu=2\npod c cpu=2\npod d cpu=2";
    expect(&format!("{ONE}\n{nodes}\n{pods}"), &["n1: a", "n2: b", "default/one: c d"]);
}

#[test]
fn nodes_that_take_pods_are_asked_before_those_that_will() {
    let nodes = "node a cpu=4 memory=8Gi rising pool=default\nnode c cpu=1 memory=8Gi\nnode b cpu=1 memory=8Gi";
    expect(&format!("{ONE}\n{nodes}\npod p cpu=1\npod q cpu=1\npod r cpu=1"), &["b: p", "c: q", "a: r"]);
}

#[test]
fn of_nodes_equally_far_the_first_by_name_is_asked_first() {
    let rising = "node b cpu=1 memory=8Gi rising pool=default\nnode a cpu=1 memory=8Gi rising pool=default";
    expect(&format!("{ONE}\n{rising}\npod p cpu=1"), &["a: p"]);
    expect(&format!("{ONE}\nnode b cpu=1 memory=8Gi\nnode a cpu=1 memory=8Gi\npod p cpu=1"), &["a: p"]);
}

#[test]
fn a_node_that_no_pool_made_is_used_too() {
    expect(&format!("{ONE}\nnode n cpu=2 memory=8Gi\npod a cpu=1"), &["n: a"]);
    expect(&format!("{ONE}\nnode n cpu=2 memory=8Gi\npod a cpu=1\npod b cpu=1"), &["n: a", "n: b"]);
}

#[test]
fn a_label_of_a_node_that_is_there_is_a_fact() {
    let node = format!("{ONE}\nnode n cpu=4 memory=8Gi label:zone=a");
    expect(&format!("{node}\npod p cpu=1 need:zone=In:a"), &["n: p"]);
    expect(&format!("{node}\npod p cpu=1 need:team=NotIn:red"), &["n: p"]);
    // A new node will have this label, and the one that is there does not.
    expect(&format!("{node}\npod p cpu=1 need:arch=In:amd64"), &["default/one: p"]);
}

#[test]
fn a_pod_that_wants_a_label_absent_does_not_make_it_known_for_the_next() {
    let node = format!("{ONE}\nnode n cpu=4 memory=8Gi");
    let two = format!("{node}\npod a cpu=2 need:team=NotIn:red\npod b cpu=1 need:team=In:blue");
    expect(&two, &["n: a", "b waits"]);
}

#[test]
fn room_is_kept_for_daemons_that_are_still_to_come() {
    let node = |more: &str| format!("{ONE}\ndaemon agent cpu=1\nnode n cpu=3 memory=8Gi {more}");
    expect(&format!("{}\npod p cpu=2", node("")), &["n: p"]);
    expect(&format!("{}\npod p cpu=2500m", node("")), &["default/one: p"]);
    expect(&format!("{}\npod p cpu=2", node("rising pool=default")), &["n: p"]);
    expect(&format!("{}\npod p cpu=2500m", node("rising pool=default")), &["default/one: p"]);
}

#[test]
fn a_daemon_that_runs_already_is_not_waited_for() {
    let node = |more: &str| format!("{ONE}\ndaemon agent cpu=1\nnode n cpu=3 memory=8Gi {more}");
    expect(&format!("{}\npod p cpu=2", node("bound:cpu=1 daemons:cpu=1")), &["n: p"]);
    expect(&format!("{}\npod p cpu=2", node("bound:cpu=1")), &["default/one: p"]);
}

#[test]
fn daemons_that_nobody_expected_do_not_count_as_room() {
    let node = |more: &str| format!("{ONE}\ndaemon agent cpu=1\nnode n cpu=3 memory=8Gi {more}");
    expect(&format!("{}\npod p cpu=2", node("bound:cpu=2 daemons:cpu=2")), &["default/one: p"]);
    expect(&format!("{}\npod p cpu=1", node("bound:cpu=2 daemons:cpu=2")), &["n: p"]);
    // More of one resource than was expected makes up for nothing of another.
    let text = "daemon agent cpu=1 memory=4Gi\nnode n cpu=3 memory=8Gi bound:cpu=2 daemons:cpu=2";
    expect(&format!("{ONE}\n{text}\npod p cpu=1 memory=5Gi"), &["default/one: p"]);
}

#[test]
fn only_daemons_that_a_nodes_labels_suit_strictly_are_waited_for() {
    let node = |labels: &str| format!("{ONE}\ndaemon agent cpu=3 need:arch=In:amd64\nnode n cpu=3 memory=8Gi {labels}");
    // A new node may have any architecture; one that is there has the labels it has.
    expect(&format!("{}\npod p cpu=3", node("")), &["n: p"]);
    expect(&format!("{}\npod p cpu=3", node("label:arch=amd64")), &["default/one: p"]);
    let node = |labels: &str| format!("{ONE}\ndaemon agent cpu=3 need:team=In:red\nnode n cpu=3 memory=8Gi {labels}");
    expect(&format!("{}\npod p cpu=3", node("")), &["n: p"]);
    expect(&format!("{}\npod p cpu=3", node("label:team=red")), &["default/one: p"]);
}

#[test]
fn a_daemon_for_nodes_that_are_up_is_waited_for_once_the_node_says_so() {
    let text = |labels: &str| {
        format!("{ONE}\ndaemon agent cpu=3 need:karpenter.sh/initialized=In:true\nnode n cpu=3 memory=8Gi {labels}")
    };
    expect(&format!("{}\npod p cpu=3", text("rising pool=default")), &["n: p"]);
    expect(&format!("{}\npod p cpu=3", text("pool=default label:karpenter.sh/initialized=true")), &["default/one: p"]);
}

#[test]
fn a_daemon_that_does_not_tolerate_a_nodes_taint_is_not_waited_for() {
    let text = "daemon agent cpu=3\nnode n cpu=3 memory=8Gi taint=x:NoSchedule\npod p cpu=3 tolerate=x";
    expect(&format!("{ONE}\n{text}"), &["n: p"]);
    let text = "daemon agent cpu=3 tolerate=x\nnode n cpu=3 memory=8Gi taint=x:NoSchedule\npod p cpu=3 tolerate=x";
    expect(&format!("{ONE}\n{text}"), &["default/one: p"]);
}

#[test]
fn a_node_of_which_too_much_is_used_takes_nothing() {
    expect(&format!("{ONE}\nnode n cpu=4 memory=1Gi bound:memory=2Gi\npod p cpu=1"), &["default/one: p"]);
}

#[test]
fn what_a_node_does_not_report_cannot_be_overdrawn_there() {
    let node = format!("{ONE}\nnode n cpu=4 memory=8Gi bound:cpu=1 bound:gpu=1\ndaemon d hugepages-2Mi=1Gi");
    expect(&format!("{node}\npod p cpu=1"), &["n: p"]);
    expect(&format!("{node}\npod p cpu=1 gpu=1"), &["p waits"]);
}

#[test]
fn pods_with_the_same_host_port_get_different_nodes() {
    expect(
        &format!("{ONE}\npod p cpu=1 port=80\npod q cpu=1 port=80\npod r cpu=1"),
        &["default/one: p r", "default/one: q"],
    );
    let nodes = "node n1 cpu=4 memory=8Gi\nnode n2 cpu=4 memory=8Gi";
    expect(&format!("{ONE}\n{nodes}\npod p cpu=1 port=80\npod q cpu=1 port=80"), &["n1: p", "n2: q"]);
}

#[test]
fn a_host_port_that_a_running_pod_has_is_taken() {
    let node = format!("{ONE}\nnode n cpu=4 memory=8Gi port:x=80");
    expect(&format!("{node}\npod p cpu=1 port=80\npod q cpu=1 port=81"), &["default/one: p", "n: q"]);
}
