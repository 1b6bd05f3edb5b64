//! Pod affinity and anti-affinity: pods that must be together, and pods that must not.
//!
//! The groups E10 and E11 are those of the behaviour checklist.

use crate::packing::cluster::{cluster, expect, reason, sound_plan, told};

const ZONES: &str = "type one cpu=10 memory=40Gi zone=a,b,c";

/// The zones and pods of new nodes, as `zone: pods`; no pod may wait.
#[track_caller]
fn zoned(text: &str) -> Vec<String> {
    let plan = sound_plan(&cluster(text));
    assert!(plan.unplaced.is_empty(), "{:?}\n{text}", told(&plan));
    let mut told: Vec<String> = plan
        .new_nodes
        .iter()
        .map(|node| {
            let zone = node.chosen.labels.get("topology.kubernetes.io/zone").cloned().unwrap_or_default();
            let pods: Vec<&str> = node.pods.iter().map(|pod| &*pod.name).collect();
            format!("{zone}: {}", pods.join(" "))
        })
        .collect();
    told.sort();
    told
}

/// Names of pods that wait.
fn waiting(text: &str) -> Vec<String> {
    sound_plan(&cluster(text)).unplaced.iter().map(|unplaced| unplaced.pod.name.to_string()).collect()
}

#[test]
fn e10_pods_go_to_the_node_of_the_pods_they_must_be_with() {
    let text = format!("{ZONES}\npod a cpu=6 label:app=web\npod b cpu=5\npod c cpu=1 with=hostname:app=web");
    expect(&text, &["default/one: a c", "default/one: b"]);
}

#[test]
fn few_nodes_are_asked_in_the_order_of_karpenter_also_where_pods_care_about_others() {
    let text = format!(
        "{ZONES}\npod a cpu=3 label:app=web apart=hostname:app=web\npod b cpu=3 label:app=web apart=hostname:app=web\n\
         pod c cpu=2\npod d cpu=2\npod e cpu=1"
    );
    // Both nodes have two pods when the last one comes; the second node came to that later.
    expect(&text, &["default/one: a c", "default/one: b d e"]);
}

#[test]
fn pods_on_a_node_that_does_not_say_yet_which_machine_it_is_keep_others_away() {
    let text = format!(
        "{ZONES}\nnode n1 cpu=9 memory=9Gi label:zone=a unidentified\nbound x on=n1 cpu=1 apart=zone:app=web\n\
         pod p cpu=1 label:app=web need:zone=In:a"
    );
    assert_eq!(waiting(&text), ["p"]);
    expect(&text.replace("apart=zone", "apart=rack"), &["default/one: p"]);
}

#[test]
fn e10_pods_that_want_to_be_together_found_one_domain() {
    let text = format!(
        "{ZONES}\npod a cpu=6 label:app=web with=zone:app=web\npod b cpu=6 label:app=web with=zone:app=web\npod c cpu=6 label:app=web with=zone:app=web"
    );
    assert_eq!(zoned(&text), ["a: a", "a: b", "a: c"]);
    let text = text.replace("cpu=6", "cpu=1").replace("with=zone", "with=hostname");
    assert_eq!(zoned(&text).len(), 1);
}

#[test]
fn e10_a_domain_that_was_founded_is_not_founded_again() {
    // The node cannot take a second pod, and no other host name has one.
    let text = format!(
        "{ZONES}\npod a cpu=6 label:app=web with=hostname:app=web\npod b cpu=6 label:app=web with=hostname:app=web"
    );
    assert_eq!(waiting(&text), ["b"]);
}

#[test]
fn e10_pods_join_those_that_run_already() {
    let text = format!(
        "{ZONES}\nnode n1 cpu=1 memory=1Gi label:zone=b\nbound x on=n1 cpu=1 label:app=web\n\
         pod a cpu=6 label:app=web with=zone:app=web\npod b cpu=6 with=zone:app=web"
    );
    assert_eq!(zoned(&text), ["b: a", "b: b"]);
}

/// The node was made for them and is not there yet: nobody runs on it.
#[test]
fn d7_pods_that_want_to_be_together_go_to_the_node_that_was_made_for_them() {
    for label in ["hostname", "zone"] {
        let node = "node n cpu=4 memory=8Gi rising pool=default label:zone=b label:instance-type=one";
        let pods = ["p", "q"].map(|name| format!("pod {name} cpu=1 label:app=web with={label}:app=web"));
        expect(&format!("{ZONES}\n{node}\n{}", pods.join("\n")), &["n: p", "n: q"]);
    }
}

#[test]
fn e10_a_pod_whose_zones_have_none_of_its_like_founds_one_there() {
    let text = format!(
        "{ZONES}\nnode n1 cpu=1 memory=1Gi label:zone=b\nbound x on=n1 cpu=1 label:app=web\n\
         pod a cpu=6 label:app=web need:zone=In:c with=zone:app=web"
    );
    assert_eq!(zoned(&text), ["c: a"]);
}

#[test]
fn e10_a_pod_that_must_be_with_nobody_there_waits() {
    let text = format!("{ZONES}\npod a cpu=1 with=zone:app=nobody\npod b cpu=1");
    assert_eq!(waiting(&text), ["a"]);
    let why = reason(&text);
    assert!(
        why.contains("pod affinity, key=topology.kubernetes.io/zone: no pod to be with runs in a (0 pods)"),
        "{why}"
    );
    let why = reason(&text.replace("with=zone", "with=hostname"));
    assert!(why.contains("pod affinity, key=kubernetes.io/hostname"), "{why}");
}

#[test]
fn e10_a_wish_to_be_with_nobody_there_is_given_up() {
    expect(&format!("{ZONES}\npod a cpu=1 with?=5:zone:app=nobody"), &["default/one: a"]);
}

#[test]
fn e10_chains_of_pods_are_placed_in_several_rounds() {
    // The largest is tried first and has to wait for the others.
    let text = format!(
        "{ZONES}\npod c cpu=3 label:app=c with=hostname:app=b\npod b cpu=2 label:app=b with=hostname:app=a\npod a cpu=1 label:app=a"
    );
    expect(&text, &["default/one: a b c"]);
}

#[test]
fn e10_namespaces_are_chosen_by_name_and_by_label() {
    let there = "node n1 cpu=1 memory=1Gi label:zone=b\nbound x on=n1 cpu=1 label:app=web ns=shop\nnamespace shop label:team=red\nnamespace default";
    let text = |term: &str| format!("{ZONES}\n{there}\npod a cpu=6 with=zone:app=web{term}");
    assert_eq!(waiting(&text("")), ["a"], "its own namespace has none");
    for term in [";in=shop", ";in:team=red", ";in=*"] {
        assert_eq!(zoned(&text(term)), ["b: a"], "{term}");
    }
    assert_eq!(waiting(&text(";in:team=blue")), ["a"]);
}

#[test]
fn e10_pods_that_must_share_an_architecture_may_be_on_two_nodes() {
    let sizes = "type x cpu=8 memory=16Gi arch=amd64\ntype y cpu=8 memory=16Gi arch=arm64";
    let web = "label:app=web spread=hostname:1:app=web";
    let text = format!("{sizes}\npod a cpu=2 {web} need:arch=In:arm64\npod b cpu=1 {web} with=arch:app=web");
    expect(&text, &["default/y: a", "default/y: b"]);
    let text = text.replace("with=arch", "apart=arch");
    expect(&text, &["default/x: b", "default/y: a"]);
}

/// Zone a has a pod of each kind, zone b one of both kinds at once.
const MATES: &str = "node n1 cpu=2 memory=2Gi label:zone=a\nbound w on=n1 cpu=1 label:app=web\n\
    bound f on=n1 cpu=1 label:tier=front\nnode n2 cpu=1 memory=1Gi label:zone=b\n\
    bound both on=n2 cpu=1 label:app=web label:tier=front";

#[test]
fn e10_of_several_required_terms_only_pods_that_all_of_them_choose_count() {
    let text = |words: &str| format!("{ZONES}\n{MATES}\npod p cpu=6 {words}");
    assert_eq!(zoned(&text("with=zone:app=web")), ["a: p"]);
    assert_eq!(zoned(&text("with=zone:app=web with=zone:tier=front")), ["b: p"]);
    assert_eq!(zoned(&text("with=zone:tier=front with=zone:app=web")), ["b: p"]);
    assert_eq!(waiting(&text("with=zone:app=web with=zone:tier=front need:zone=In:a")), ["p"]);
    let why = reason(&text("with=zone:app=web with=zone:app=db"));
    let none =
        "pod affinity, key=topology.kubernetes.io/zone: no pod that matches all required terms runs in a (0 pods)";
    assert!(why.contains(none), "{why}");
}

#[test]
fn e10_terms_on_several_labels_are_met_by_pods_that_all_of_them_choose() {
    // The node has a pod for the one term, its zone one for the other, and nobody is both.
    let there = "node n1 cpu=4 memory=4Gi label:zone=a\nbound f on=n1 cpu=1 label:tier=front\n\
         node n2 cpu=1 memory=1Gi label:zone=a\nbound w on=n2 cpu=1 label:app=web";
    let text = format!("{ZONES}\n{there}\npod p cpu=1 with=zone:app=web with=hostname:tier=front");
    assert_eq!(waiting(&text), ["p"]);
    let why = reason(&text);
    let none = "key=kubernetes.io/hostname: a new node has no pod that matches all required terms";
    assert!(why.contains(none), "{why}");
    expect(&text.replace("label:tier=front\n", "label:tier=front label:app=web\n"), &["n1: p"]);
}

#[test]
fn e10_only_a_pod_that_all_of_its_terms_choose_founds_a_domain() {
    let own = "with=zone:app=web with=hostname:tier=front";
    let pod = |name: &str, labels: &str| format!("pod {name} cpu=1 {labels} {own}");
    let (one, two) = (pod("p", "label:app=web label:tier=front"), pod("q", "label:app=web label:tier=front"));
    expect(&format!("{ZONES}\n{one}\n{two}"), &["default/one: p q"]);
    assert_eq!(waiting(&format!("{ZONES}\n{}", pod("p", "label:app=web"))), ["p"]);
    // Whoever waits follows one that founded.
    expect(&format!("{ZONES}\n{one}\n{}", pod("q", "label:app=web")), &["default/one: p q"]);
}

#[test]
fn e10_a_wish_to_be_with_others_is_judged_apart_from_what_is_required() {
    let there = "node n1 cpu=1 memory=1Gi label:zone=a\nbound w on=n1 cpu=1 label:app=web\n\
         node n2 cpu=2 memory=2Gi label:zone=b\nbound x on=n2 cpu=1 label:app=web\nbound d on=n2 cpu=1 label:app=db";
    let text = |wish: &str| format!("{ZONES}\n{there}\npod p cpu=6 with=zone:app=web {wish}");
    assert_eq!(zoned(&text("")), ["a: p"]);
    assert_eq!(zoned(&text("with?=5:zone:app=db")), ["b: p"]);
    assert_eq!(zoned(&text("with?=5:zone:app=nobody")), ["a: p"]);
    // Two wishes that nobody meets at once.
    assert_eq!(zoned(&format!("{ZONES}\n{there}\npod p cpu=6 with?=5:zone:app=web with?=3:zone:app=db")), ["b: p"]);
}

#[test]
fn e10_selectors_that_exclude_each_other_need_two_nodes() {
    let text =
        format!("{ZONES}\npod a cpu=1 label:app=a apart=hostname:app=b\npod b cpu=1 label:app=b apart=hostname:app=a");
    expect(&text, &["default/one: a", "default/one: b"]);
}

#[test]
fn e11_pods_that_must_be_alone_get_nodes_of_their_own() {
    let pods: String =
        (0..4).map(|number| format!("\npod p{number} cpu=1 label:app=web apart=hostname:app=web")).collect();
    let plan = sound_plan(&cluster(&format!("{ZONES}{pods}\npod other cpu=1")));
    assert_eq!((plan.new_nodes.len(), plan.unplaced.len()), (4, 0));
}

#[test]
fn e11_pods_kept_apart_by_zone_wait_where_zones_are_open() {
    // The first node may still be made in any zone, so all of them are taken.
    let pods: String = (0..4).map(|number| format!("\npod p{number} cpu=1 label:app=web apart=zone:app=web")).collect();
    assert_eq!(waiting(&format!("{ZONES}{pods}")), ["p1", "p2", "p3"]);
    let pinned: String = ["a", "b", "c"]
        .map(|zone| format!("\npod {zone} cpu=1 label:app=web need:zone=In:{zone} apart=zone:app=web"))
        .concat();
    assert_eq!(zoned(&format!("{ZONES}{pinned}")), ["a: a", "b: b", "c: c"]);
}

#[test]
fn e11_who_runs_alone_keeps_others_away() {
    let text = |words: &str| {
        format!(
            "{ZONES}\nnode n1 cpu=9 memory=9Gi label:zone=a\nbound x on=n1 label:app=db apart=hostname:app=web\npod p cpu=1 {words}"
        )
    };
    expect(&text("label:app=web"), &["default/one: p"]);
    expect(&text("label:app=other"), &["n1: p"]);
    expect(&text("label:app=web ns=other"), &["n1: p"]);
}

#[test]
fn e11_who_runs_alone_in_a_zone_keeps_others_out_of_it() {
    let text = format!(
        "{ZONES}\npool web need:zone=In:a\nnode n1 cpu=9 memory=9Gi label:zone=a\nbound x on=n1 label:app=db apart=zone:app=web\npod p cpu=1 label:app=web"
    );
    let why = reason(&text);
    assert!(why.contains("pod anti-affinity of another pod, key=topology.kubernetes.io/zone"), "{why}");
}

#[test]
fn e11_a_planned_pod_keeps_later_ones_away() {
    // The larger pod says that it must be alone; the smaller one says nothing.
    let text = format!("{ZONES}\npod a cpu=2 apart=hostname:app=web\npod b cpu=1 label:app=web\npod c cpu=1");
    expect(&text, &["default/one: a c", "default/one: b"]);
}

#[test]
fn e11_pods_of_a_node_that_leaves_are_placed_again_and_do_not_count_there() {
    let text = format!(
        "{ZONES}\nnode n1 cpu=9 memory=9Gi label:zone=a leaving\nbound p on=n1 cpu=1 label:app=web apart=zone:app=web\n\
         pod p cpu=1 label:app=web need:zone=In:a apart=zone:app=web"
    );
    assert_eq!(zoned(&text), ["a: p"]);
}

#[test]
fn e11_a_wish_to_be_alone_is_given_up_where_it_cannot_be_had() {
    let text = format!(
        "{ZONES}\npool web need:zone=In:a\npod a cpu=1 label:app=web apart?=5:zone:app=web\npod b cpu=1 label:app=web apart?=5:zone:app=web"
    );
    expect(&text, &["web/one: a b"]);
}

#[test]
fn wishes_that_are_ignored_are_not_looked_at() {
    let text = format!(
        "option preferences=Ignore\n{ZONES}\npod a cpu=1 label:app=web apart?=5:hostname:app=web spread?=hostname:1:app=web\n\
         pod b cpu=1 label:app=web apart?=5:hostname:app=web spread?=hostname:1:app=web"
    );
    expect(&text, &["default/one: a b"]);
}
