//! The checker finds planned pods that kube-scheduler never binds where they are, because they would not be evenly spread.

use std::fmt::Write;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tenon_model::{NewNode, Plan};

use crate::packing::topology_checker::{expect_broken, expect_sound, found, hand_made, lab};

const ZONE: &str = "topology.kubernetes.io/zone";
const WEB: &str = "label:app=web spread=zone:1:app=web";

fn too_many(skew: u32, (domain, pods): (&str, u32), minimum: &str) -> String {
    let plural = if pods == 1 { "" } else { "s" };
    format!(
        "exceeds maxSkew {skew} of its topology spread constraint on {ZONE} for app In [web]: {ZONE}={domain} has {pods} \
         selected pod{plural} besides it, and the minimum is {minimum}"
    )
}

#[test]
fn pods_are_bound_as_evenly_as_they_ask_whatever_their_order() {
    // The two largest are in one zone, so the second of them is bound only after the third.
    let snapshot = lab(&format!("pod a cpu=3 {WEB}\npod b cpu=2 {WEB}\npod c cpu=1 {WEB}"));
    expect_sound(&snapshot, "a,b=na c=nb");
    expect_broken(
        &snapshot,
        "a,b,c=na",
        &[("b", &too_many(1, ("a", 1), "0 in b")), ("c", &too_many(1, ("a", 1), "0 in b"))],
    );
}

#[test]
fn domains_are_those_of_nodes_and_not_of_pools() {
    let snapshot = lab(&format!("pod a {WEB}\npod b {WEB}\npod c {WEB}\npod d {WEB}"));
    // Zone c is offered, but has no node.
    expect_sound(&snapshot, "a,b=na c,d=nb");
    // Now it has one.
    expect_broken(
        &lab(&format!("bound w on=na label:app=web\nbound v on=nb label:app=web\npod x\npod a {WEB}")),
        "x=+c a=na",
        &[("a", &too_many(1, ("a", 1), "0 in c"))],
    );
    // One that goes with its node holds nobody back.
    let leaving =
        lab(&format!("node nc cpu=8 memory=16Gi label:zone=c leaving\npod a {WEB}\npod b {WEB}\npod c {WEB}"));
    expect_sound(&leaving, "a,b=na c=nb");
}

#[test]
fn bound_pods_count_unless_they_end() {
    let bound = |words: &str| lab(&format!("bound w on=na {words}\npod a {WEB}"));
    expect_broken(&bound("label:app=web"), "a=na", &[("a", &too_many(1, ("a", 1), "0 in b"))]);
    for words in ["label:app=web terminating", "label:app=db", "label:app=web ns=shop"] {
        expect_sound(&bound(words), "a=na");
    }
    expect_sound(&bound("label:app=web"), "a=+c");
}

#[test]
fn a_pod_that_does_not_count_itself_needs_less_room() {
    let snapshot = lab("bound w on=na label:app=web\npod a spread=zone:1:app=web\npod b spread=zone:1:-");
    expect_sound(&snapshot, "a,b=na");
}

#[test]
fn fewer_domains_than_asked_for_count_as_having_an_empty_one() {
    let text = "bound v on=na label:app=web\nbound w on=nb label:app=web\npod x cpu=1\npod a label:app=web";
    let asks = |least: u32| lab(&format!("{text} spread=zone:1:app=web;min={least}"));
    expect_sound(&asks(2), "a=na");
    let told = too_many(1, ("a", 1), "0, because there are fewer domains (2) than minDomains");
    expect_broken(&asks(3), "a=na", &[("a", &told)]);
    expect_sound(&asks(3), "a=+c");
}

#[test]
fn only_nodes_that_the_pod_may_have_count_if_it_says_so() {
    let zones = "bound w on=na label:app=web\npod a label:app=web need:zone=In:a,c spread=zone:1:app=web";
    expect_sound(&lab(zones), "a=na");
    let ignoring = lab(&format!("{zones};affinity=ignore"));
    expect_broken(&ignoring, "a=na", &[("a", &too_many(1, ("a", 1), "0 in b"))]);
    let tainted = "node nc cpu=8 memory=16Gi label:zone=c taint=x:NoSchedule\nbound w on=na label:app=web\n\
                   bound v on=nb label:app=web\npod a label:app=web spread=zone:1:app=web";
    expect_broken(&lab(tainted), "a=na", &[("a", &too_many(1, ("a", 1), "0 in c"))]);
    expect_sound(&lab(&format!("{tainted};taints=honor")), "a=na");
    let tolerant = lab(&format!("{tainted};taints=honor tolerate=x"));
    expect_broken(&tolerant, "a=na", &[("a", &too_many(1, ("a", 1), "0 in c"))]);
}

#[test]
fn host_names_are_domains_like_others() {
    let web = "label:app=web spread=hostname:1:app=web";
    let snapshot = lab(&format!("pod a {web}\npod b {web}\npod c {web}\npod d {web}"));
    expect_sound(&snapshot, "a=na b=nb c=+a d=+a");
    expect_sound(&snapshot, "a,b=na c=nb");
    let told = "exceeds maxSkew 1 of its topology spread constraint on kubernetes.io/hostname for app In [web]: \
                kubernetes.io/hostname=new node 1 has 1 selected pod besides it, and the minimum is 0 in nb";
    expect_broken(&snapshot, "a=na b,c=+a", &[("c", told)]);
}

#[test]
fn every_constraint_of_a_pod_holds() {
    let web = format!("{WEB} spread=hostname:1:app=web");
    let snapshot = lab(&format!("pod a {web}\npod b {web}\npod c {web}"));
    expect_sound(&snapshot, "a=na b=nb c=+a");
    assert_eq!(found(&snapshot, &hand_made(&snapshot, "a=na b,c=+a")).len(), 2);
}

#[test]
fn a_node_without_the_label_takes_no_pod_that_is_spread_over_it() {
    let snapshot = lab(&format!("node n1 cpu=8 memory=16Gi\npod a {WEB}"));
    let told = format!("breaks its topology spread constraint on {ZONE}: its node has no label {ZONE}");
    expect_broken(&snapshot, "a=n1", &[("a", &told)]);
}

#[test]
fn pods_that_are_only_counted_let_others_go_first() {
    // The largest pod asks for nothing: bound first, it would leave no room for the other one.
    let snapshot = lab(&format!("pod a cpu=4 label:app=web\npod b cpu=1 {WEB}"));
    expect_sound(&snapshot, "a,b=na");
    let bound = lab(&format!("bound w on=na label:app=web\npod a cpu=4 label:app=web\npod b cpu=1 {WEB}"));
    expect_broken(&bound, "a,b=na", &[("b", &too_many(1, ("a", 2), "0 in b"))]);
    expect_sound(&bound, "b=na a=nb");
}

#[test]
fn many_pods_in_the_worst_order_are_checked_at_once() {
    let mut text = String::new();
    for number in 0..6000 {
        writeln!(text, "pod p{number:04} {WEB} spread=hostname:1:app=web").unwrap();
    }
    let mut snapshot = lab(&text);
    let shape = snapshot.pods[0].shape.clone();
    for pod in &mut snapshot.pods {
        std::sync::Arc::make_mut(pod).shape = shape.clone();
    }
    // All of one zone before all of the next; laps over all that are left would look at 6 million pods.
    let one = hand_made(&snapshot, "p0000=+c p0001=+b p0002=+a").new_nodes;
    let keys = snapshot.pods.iter().map(|pod| pod.key.clone()).enumerate();
    let nodes = keys.map(|(number, key)| NewNode { pods: vec![key], ..one[number / 2000].clone() });
    let mut plan = Plan { new_nodes: nodes.collect(), ..Plan::default() };
    assert!(found(&snapshot, &plan).is_empty());
    plan.new_nodes[5999].chosen.labels = plan.new_nodes[0].chosen.labels.clone();
    assert_eq!(found(&snapshot, &plan).len(), 1);
}

/// Whether the pods can be bound one after the other in some order, by trying all: zone and allowed skew of each.
fn can_be_bound(counts: [u32; 3], left: &[(usize, Option<u32>)]) -> bool {
    let lowest = counts.into_iter().min().unwrap_or_default();
    left.is_empty()
        || left.iter().enumerate().any(|(index, (zone, skew))| {
            let fits = skew.is_none_or(|skew| counts[*zone] < lowest + skew);
            let (mut after, mut rest) = (counts, left.to_vec());
            after[*zone] += 1;
            rest.remove(index);
            fits && can_be_bound(after, &rest)
        })
}

/// The same with two constraints of one workload, on zone and on host: pods on four hosts, two in each of two zones.
fn can_be_bound_twice(counts: [u32; 4], left: &[usize], skews: (u32, u32)) -> bool {
    let zones = [counts[0] + counts[1], counts[2] + counts[3]];
    let (lowest_zone, lowest) = (zones[0].min(zones[1]), counts.into_iter().min().unwrap_or_default());
    left.is_empty()
        || left.iter().enumerate().any(|(index, host)| {
            let fits = zones[host / 2] < lowest_zone + skews.0 && counts[*host] < lowest + skews.1;
            let (mut after, mut rest) = (counts, left.to_vec());
            after[*host] += 1;
            rest.remove(index);
            fits && can_be_bound_twice(after, &rest, skews)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(20_261_118), ..ProptestConfig::default() })]

    #[test]
    fn a_plan_with_an_order_for_two_constraints_is_sound(
        bound in proptest::array::uniform4(0..2_u32),
        hosts in proptest::collection::vec(0..4_usize, 1..8),
        skews in (1..3_u32, 1..3_u32),
    ) {
        let names = ["na", "ma", "nb", "mb"];
        let mut text = "node ma cpu=8 memory=16Gi label:zone=a\nnode mb cpu=8 memory=16Gi label:zone=b\n".to_owned();
        for (node, count) in names.into_iter().zip(bound) {
            (0..count).for_each(|number| writeln!(text, "bound w{node}{number} on={node} label:app=web").unwrap());
        }
        let (spread, mut plan) = (format!("spread=zone:{}:app=web spread=hostname:{}:app=web", skews.0, skews.1), String::new());
        for (number, host) in hosts.iter().enumerate() {
            writeln!(text, "pod p{number} label:app=web {spread}").unwrap();
            write!(plan, "p{number}={} ", names[*host]).unwrap();
        }
        let snapshot = lab(&text);
        let broken = found(&snapshot, &hand_made(&snapshot, &plan));
        prop_assert!(broken.is_empty() || !can_be_bound_twice(bound, &hosts, skews), "{:?}", broken);
    }

    #[test]
    fn a_plan_is_sound_if_there_is_any_order_to_bind_its_pods(
        bound in proptest::array::uniform3(0..3_u32),
        pods in proptest::collection::vec((0..3_usize, proptest::option::weighted(0.7, 1..3_u32), 1..5_u32), 1..7),
    ) {
        let mut text = "node nc cpu=8 memory=16Gi label:zone=c\n".to_owned();
        for (zone, count) in ["a", "b", "c"].into_iter().zip(bound) {
            (0..count).for_each(|number| writeln!(text, "bound w{zone}{number} on=n{zone} label:app=web").unwrap());
        }
        let mut plan = String::new();
        for (number, (zone, skew, cpu)) in pods.iter().enumerate() {
            let spread = skew.map(|skew| format!("spread=zone:{skew}:app=web")).unwrap_or_default();
            writeln!(text, "pod p{number} cpu={cpu}00m label:app=web {spread}").unwrap();
            write!(plan, "p{number}=n{} ", ["a", "b", "c"][*zone]).unwrap();
        }
        let snapshot = lab(&text);
        let broken = found(&snapshot, &hand_made(&snapshot, &plan));
        let asked: Vec<(usize, Option<u32>)> = pods.iter().map(|(zone, skew, _)| (*zone, *skew)).collect();
        prop_assert_eq!(broken.is_empty(), can_be_bound(bound, &asked), "{:?}", broken);
    }
}
