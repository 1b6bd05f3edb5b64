//! Nodes that are there or on their way (D5, D6, D7).

use crate::cluster::expect;

const ONE: &str = "type one cpu=8 memory=16Gi price=1\npool default";

#[test]
fn what_fits_on_a_node_that_is_there_needs_no_new_one() {
    expect(&format!("{ONE}\nnode n cpu=2 memory=8Gi\npod a cpu=1\npod b cpu=1"), &["n: a", "n: b"]);
    expect(
        &format!("{ONE}\nnode n cpu=2 memory=8Gi bound:cpu=1\npod a cpu=1\npod b cpu=1"),
        &["n: a", "default/one: b"],
    );
}

#[test]
fn a_label_of_a_node_that_is_there_is_a_fact() {
    let node = format!("{ONE}\nnode n cpu=4 memory=8Gi label:zone=a");
    expect(&format!("{node}\npod p cpu=1 need:zone=In:a"), &["n: p"]);
    expect(&format!("{node}\npod p cpu=1 need:arch=In:amd64"), &["default/one: p"]);
    expect(&format!("{node}\npod p cpu=1 need:team=NotIn:red"), &["n: p"]);
    // A pod that wants the label absent does not make it known for the next one.
    let two = format!("{node}\npod a cpu=2 need:team=NotIn:red\npod b cpu=1 need:team=In:blue");
    expect(&two, &["n: a", "b waits"]);
}

#[test]
fn nodes_that_take_pods_are_asked_before_those_that_will_and_then_by_name() {
    let nodes = "node a cpu=4 memory=8Gi rising pool=default\nnode c cpu=1 memory=8Gi\nnode b cpu=1 memory=8Gi";
    expect(&format!("{ONE}\n{nodes}\npod p cpu=1\npod q cpu=1\npod r cpu=1"), &["b: p", "c: q", "a: r"]);
}

#[test]
fn a_node_that_leaves_gets_nothing() {
    expect(&format!("{ONE}\nnode n cpu=4 memory=8Gi leaving\npod p cpu=1"), &["default/one: p"]);
}

#[test]
fn taints_that_go_by_themselves_count_only_where_they_stay() {
    for (taint, rising) in [
        ("taint=node.kubernetes.io/not-ready:NoSchedule", "n: p"),
        ("taint=readiness.k8s.io/x:NoExecute", "n: p"),
        ("taint=karpenter.sh/rebooting:NoSchedule", "n: p"),
        ("taint=boot:NoSchedule startup=boot:NoSchedule", "n: p"),
        ("taint=boot:NoSchedule startup=boot:NoExecute", "default/one: p"),
        ("taint=gpu:NoSchedule", "default/one: p"),
    ] {
        let node = |more: &str| format!("{ONE}\nnode n cpu=4 memory=8Gi {taint} {more}\npod p cpu=1");
        expect(&node("rising pool=default"), &[rising]);
        expect(&node("rebooting pool=default"), &[rising]);
        expect(&node("pool=default"), &["default/one: p"]);
        expect(&node("rising"), &["default/one: p"]);
    }
}

#[test]
fn room_is_kept_for_daemons_that_are_still_to_come() {
    let node = |more: &str| format!("{ONE}\ndaemon agent cpu=1\nnode n cpu=3 memory=8Gi {more}");
    expect(&format!("{}\npod p cpu=2", node("")), &["n: p"]);
    expect(&format!("{}\npod p cpu=2500m", node("")), &["default/one: p"]);
    expect(&format!("{}\npod p cpu=2", node("bound:cpu=1 daemons:cpu=1")), &["n: p"]);
    // More daemons than were expected leave nothing over.
    expect(&format!("{}\npod p cpu=2", node("bound:cpu=2 daemons:cpu=2")), &["default/one: p"]);
}

#[test]
fn only_daemons_that_run_there_are_waited_for() {
    let text = "daemon agent cpu=3 need:team=In:red\nnode n cpu=3 memory=8Gi\npod p cpu=3";
    expect(&format!("{ONE}\n{text}"), &["n: p"]);
    let text = "daemon agent cpu=3 need:team=In:red\nnode n cpu=3 memory=8Gi label:team=red\npod p cpu=3";
    expect(&format!("{ONE}\n{text}"), &["default/one: p"]);
    let text = "daemon agent cpu=3\nnode n cpu=3 memory=8Gi taint=x:NoSchedule\npod p cpu=3 tolerate=x";
    expect(&format!("{ONE}\n{text}"), &["n: p"]);
}

#[test]
fn a_node_of_which_too_much_is_used_takes_nothing() {
    expect(&format!("{ONE}\nnode n cpu=4 memory=1Gi bound:memory=2Gi\npod p cpu=1"), &["default/one: p"]);
}

#[test]
fn a_port_is_taken_once() {
    let node = format!("{ONE}\nnode n cpu=4 memory=8Gi port:x=80");
    expect(&format!("{node}\npod p cpu=1 port=80\npod q cpu=1 port=81"), &["default/one: p", "n: q"]);
    expect(
        &format!("{ONE}\npod p cpu=1 port=80\npod q cpu=1 port=80\npod r cpu=1"),
        &["default/one: p r", "default/one: q"],
    );
}
