//! Taints of nodes that are there or on their way: which ones keep pods off (D5, B6).

use crate::packing::cluster::expect;

const ONE: &str = "type one cpu=8 memory=16Gi price=1\npool default";

/// Where a pod goes that tolerates nothing: to the node, or to a new one because the node's taint keeps it off.
#[track_caller]
fn expect_let_in(taints: &str, stage: &str, is_let_in: bool) {
    let told = if is_let_in { "n: p" } else { "default/one: p" };
    expect(&format!("{ONE}\nnode n cpu=4 memory=8Gi {taints} {stage}\npod p cpu=1"), &[told]);
}

/// Taints that go by themselves while a node comes up.
const PASSING: [&str; 8] = [
    "taint=node.kubernetes.io/not-ready:NoSchedule",
    "taint=node.kubernetes.io/not-ready:NoExecute",
    "taint=node.kubernetes.io/unreachable:NoSchedule",
    "taint=node.cloudprovider.kubernetes.io/uninitialized:NoSchedule",
    "taint=karpenter.sh/unregistered:NoExecute",
    "taint=readiness.k8s.io/network:NoExecute",
    "taint=readiness.k8s.io/network:NoSchedule",
    "taint=karpenter.sh/rebooting:NoSchedule",
];

#[test]
fn a_node_without_taints_takes_any_pod() {
    for stage in ["", "pool=default", "rising pool=default", "rebooting pool=default"] {
        expect_let_in("", stage, true);
    }
}

#[test]
fn taints_that_go_by_themselves_do_not_count_while_a_node_comes_up() {
    for taint in PASSING {
        expect_let_in(taint, "rising pool=default", true);
    }
}

#[test]
fn taints_that_go_by_themselves_do_not_count_while_a_node_is_started_again() {
    for taint in PASSING {
        expect_let_in(taint, "rebooting pool=default", true);
    }
}

#[test]
fn taints_that_should_have_gone_count_once_a_node_is_up() {
    for taint in PASSING {
        expect_let_in(taint, "pool=default", false);
    }
}

#[test]
fn taints_that_go_by_themselves_count_on_nodes_that_are_not_ours() {
    for taint in PASSING {
        expect_let_in(taint, "rising", false);
    }
}

#[test]
fn taints_that_only_look_like_passing_ones_count() {
    for taint in [
        "taint=node.kubernetes.io/unreachable:NoExecute",
        "taint=karpenter.sh/unregistered:NoSchedule",
        "taint=x.readiness.k8s.io/network:NoSchedule",
        "taint=my/readiness.k8s.io/network:NoSchedule",
    ] {
        expect_let_in(taint, "rising pool=default", false);
    }
}

#[test]
fn a_startup_taint_does_not_count_while_a_node_comes_up() {
    expect_let_in("taint=boot:NoSchedule startup=boot:NoSchedule", "rising pool=default", true);
    expect_let_in("taint=boot:NoSchedule startup=boot:NoSchedule", "rebooting pool=default", true);
}

#[test]
fn a_startup_taint_counts_once_a_node_is_up() {
    expect_let_in("taint=boot:NoSchedule startup=boot:NoSchedule", "pool=default", false);
}

#[test]
fn a_taint_is_a_startup_taint_only_with_the_same_effect() {
    expect_let_in("taint=boot:NoSchedule startup=boot:NoExecute", "rising pool=default", false);
}

#[test]
fn a_taint_of_ones_own_always_counts_and_can_be_tolerated() {
    for stage in ["", "pool=default", "rising pool=default"] {
        for effect in ["NoSchedule", "NoExecute"] {
            expect_let_in(&format!("taint=gpu:{effect}"), stage, false);
        }
        expect(
            &format!("{ONE}\nnode n cpu=4 memory=8Gi taint=gpu:NoSchedule {stage}\npod p cpu=1 tolerate=gpu"),
            &["n: p"],
        );
    }
}

#[test]
fn one_taint_that_is_not_tolerated_is_enough() {
    let node = "node n cpu=4 memory=8Gi taint=gpu:NoSchedule taint=ssd:NoSchedule";
    expect(&format!("{ONE}\n{node}\npod p cpu=1 tolerate=gpu"), &["default/one: p"]);
    expect(&format!("{ONE}\n{node}\npod p cpu=1 tolerate=gpu tolerate=ssd"), &["n: p"]);
}
