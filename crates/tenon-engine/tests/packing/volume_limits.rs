//! How many volumes nodes attach: on nodes that are there (D8) and on new ones (J8).

use crate::packing::cluster::{cluster, expect, reason, sizes, sound_plan, told};

/// A small size that attaches two volumes of driver d, and a large one that attaches five.
const TWO: &str =
    "type small cpu=10 memory=20Gi price=1 attach-limit:d=2\ntype large cpu=20 memory=40Gi price=2 attach-limit:d=5";

#[test]
fn j8_a_new_node_keeps_the_sizes_that_attach_all_volumes() {
    let pod = |name: &str| format!("\npod {name} cpu=1 attach=d/{name}-x attach=d/{name}-y");
    assert_eq!(sizes(&format!("{TWO}{}", pod("a"))), ["small", "large"]);
    assert_eq!(sizes(&format!("{TWO}{}{}", pod("a"), pod("b"))), ["large"]);
    let three = format!("{TWO}{}{}{}", pod("a"), pod("b"), pod("c"));
    expect(&three, &["default/large: a b", "default/small: c"]);
}

#[test]
fn j8_a_volume_that_pods_share_counts_once() {
    let pod = |name: &str| format!("\npod {name} cpu=1 attach=d/x attach=d/y");
    expect(&format!("{TWO}{}{}{}", pod("a"), pod("b"), pod("c")), &["default/small: a b c"]);
}

#[test]
fn j8_a_driver_without_a_limit_has_none() {
    let pod = |name: &str| format!("\npod {name} cpu=1 attach=e/{name}-x attach=e/{name}-y attach=e/{name}-z");
    expect(&format!("{TWO}{}{}", pod("a"), pod("b")), &["default/small: a b"]);
    let one = "type one cpu=10 memory=20Gi attach-limit:d=2\ntype two cpu=10 memory=20Gi";
    assert_eq!(sizes(&format!("{one}\npod p attach=d/x attach=d/y attach=d/z")), ["two"]);
}

#[test]
fn j8_every_driver_has_a_limit_of_its_own() {
    let types = "type one cpu=10 memory=20Gi attach-limit:d=2 attach-limit:e=1";
    let pods =
        "pod a cpu=1 attach=d/1 attach=e/1\npod b cpu=1 attach=d/2\npod c cpu=1 attach=d/3\npod e cpu=1 attach=e/2";
    expect(&format!("{types}\n{pods}"), &["default/one: a b", "default/one: c e"]);
}

#[test]
fn j8_a_pod_with_more_volumes_than_any_size_attaches_waits_and_says_so() {
    let volumes: String = (0..6).map(|number| format!(" attach=d/{number}")).collect();
    let why = reason(&format!("{TWO}\npod p cpu=1{volumes}"));
    let words = "would exceed volume limit for all instance type options, CSI driver d: the pod needs 6 volumes, but an \
                 instance type attaches at most 5";
    assert!(why.contains(words), "{why}");
    // The other size would attach them, and the pod excludes it.
    let why = reason(&format!("{TWO}\npod p cpu=1 attach=d/1 attach=d/2 attach=d/3 need:instance-type=In:small"));
    assert!(why.contains("the pod needs 3 volumes, but an instance type attaches at most 2"), "{why}");
}

#[test]
fn j8_pods_that_differ_only_in_their_volumes_do_not_answer_for_each_other() {
    // All pods ask for the same. The first has too many volumes for the planned node, and the others do not.
    let types = "type one cpu=20 memory=40Gi attach-limit:d=3";
    let pods =
        "pod a cpu=1 attach=d/1 attach=d/2\npod b cpu=1 attach=d/3 attach=d/4\npod c cpu=1 attach=d/5\npod e cpu=1";
    expect(&format!("{types}\n{pods}"), &["default/one: a c", "default/one: b e"]);
}

#[test]
fn j8_a_new_node_is_no_copy_of_one_for_a_pod_with_fewer_volumes() {
    // The port keeps them on different nodes.
    let pods =
        "pod a cpu=1 port=80 attach=d/1\npod b cpu=1 port=80 attach=d/2 attach=d/3 attach=d/4\npod c cpu=1 port=80";
    expect(&format!("{TWO}\n{pods}"), &["default/small: a", "default/large: b", "default/small: c"]);
}

#[test]
fn j8_min_values_count_only_sizes_that_attach_the_volumes() {
    let text = format!("{TWO}\npool default need:instance-type=Exists:+min=2");
    let pods = "\npod a cpu=1 attach=d/1 attach=d/2\npod b cpu=1 attach=d/3\npod c cpu=1";
    expect(&format!("{text}{pods}"), &["default/small: a c", "default/small: b"]);
    let why = reason(&format!("{text}\npod a cpu=1 attach=d/1 attach=d/2 attach=d/3"));
    assert!(why.contains("minValues requirement is not met"), "{why}");
}

#[test]
fn d8_a_node_that_is_there_attaches_as_many_volumes_as_its_limit() {
    let node = "node n cpu=9 memory=9Gi attach-limit:d=2";
    let pods = "pod a cpu=1 attach=d/1\npod b cpu=1 attach=d/2\npod c cpu=1 attach=d/3\npod e cpu=1";
    expect(&format!("{TWO}\n{node}\n{pods}"), &["n: a", "n: b", "default/small: c", "n: e"]);
    let bound = "bound x on=n attach=d/8 attach=d/9";
    expect(&format!("{TWO}\n{node}\n{bound}\npod a cpu=1 attach=d/1\npod b cpu=1"), &["default/small: a", "n: b"]);
}

#[test]
fn d8_a_volume_that_is_attached_already_needs_no_place() {
    let node = "node n cpu=9 memory=9Gi attach-limit:d=1\nbound x on=n attach=d/shared";
    expect(&format!("{TWO}\n{node}\npod a cpu=1 attach=d/shared\npod b cpu=1 attach=d/shared"), &["n: a", "n: b"]);
}

#[test]
fn d8_drivers_that_the_node_does_not_limit_are_not_counted() {
    let node = "node n cpu=9 memory=9Gi attach-limit:d=1";
    let pods: String = (0..4).map(|number| format!("\npod p{number} cpu=1 attach=nfs/{number}")).collect();
    expect(&format!("{TWO}\n{node}{pods}"), &["n: p0", "n: p1", "n: p2", "n: p3"]);
    let all = "pod a cpu=1 attach=d/1 attach=d/2\npod b cpu=1 attach=d/3";
    expect(&format!("{TWO}\nnode n cpu=9 memory=9Gi\n{all}"), &["n: a", "n: b"]);
}

#[test]
fn d8_pods_that_do_not_fit_go_over_several_nodes() {
    let nodes = "node n1 cpu=9 memory=9Gi attach-limit:d=1\nnode n2 cpu=9 memory=9Gi attach-limit:d=2";
    let pods: String = (0..4).map(|number| format!("\npod p{number} cpu=1 attach=d/{number}")).collect();
    expect(&format!("{TWO}\n{nodes}{pods}"), &["n1: p0", "n2: p1", "n2: p2", "default/small: p3"]);
}

#[test]
fn d8_a_limit_of_nothing_attaches_nothing() {
    let text = "type one cpu=9 memory=9Gi attach-limit:d=0\nnode n cpu=9 memory=9Gi attach-limit:d=0";
    let why = reason(&format!("{text}\npod a cpu=1 attach=d/1"));
    assert!(why.contains("the pod needs 1 volume, but an instance type attaches at most 0"), "{why}");
}

#[test]
fn a_stateful_set_gets_as_many_nodes_as_its_volumes_need() {
    let pods: String = (0..60).map(|number| format!("\npod p{number} cpu=100m attach=d/{number}")).collect();
    let plan = sound_plan(&cluster(&format!("type one cpu=20 memory=40Gi attach-limit:d=5{pods}")));
    assert_eq!((plan.new_nodes.len(), plan.unplaced.len()), (12, 0), "{:?}", told(&plan));
}

#[test]
fn nodes_that_are_full_are_not_asked_again_for_every_pod() {
    let judgements = |pods: usize, first: &str| {
        let lines: String = (0..pods).map(|number| format!("\npod p{number} cpu=1m attach=d/{number}")).collect();
        let snapshot = cluster(&format!("{first}\ntype one cpu=20 memory=40Gi attach-limit:d=5{lines}"));
        tenon_engine::Engine::of(&snapshot).measure(false).1.judgements
    };
    assert!(judgements(400, "pool default") < 1_200);
    let nodes: Vec<String> =
        (0..80).map(|number| format!("node n{number} cpu=9 memory=9Gi attach-limit:d=5")).collect();
    assert!(judgements(400, &nodes.join("\n")) < 1_200);
}
