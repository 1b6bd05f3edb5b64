//! The checker finds planned pods that are with pods they must not be with, or without those they must be with.

use std::sync::Arc;

use tenon_engine::{CheckedPlan, Subject, Violation, check, sound_part};
use tenon_model::{
    Chosen, NewNode, Offering, Placement, Plan, PodKey, Reason, Requirement, Requirements, Resources, Snapshot,
    Unplaced,
};

use crate::packing::cluster::{cluster, label, told};

/// A plan made by hand: `a,b=n1` puts two pods on a node, `c=+b` puts one on a new node in zone b. All others wait.
pub(crate) fn hand_made(snapshot: &Snapshot, text: &str) -> Plan {
    let mut plan = Plan::default();
    for word in text.split_whitespace() {
        let (names, node) = word.split_once('=').unwrap();
        let keys: Vec<Arc<PodKey>> = names.split(',').map(|name| key(snapshot, name)).collect();
        match node.strip_prefix('+') {
            Some(zone) => plan.new_nodes.push(new_node(snapshot, zone, keys)),
            None => plan.placements.extend(keys.into_iter().map(|pod| Placement { pod, node: node.to_owned() })),
        }
    }
    let is_named = |name: &str| text.split([' ', '=', ',']).any(|word| word == name);
    let rest = snapshot.pods.iter().filter(|pod| !is_named(&pod.key.name));
    plan.unplaced.extend(rest.map(|pod| Unplaced { pod: pod.key.clone(), reason: Reason::NoPools }));
    plan
}

fn key(snapshot: &Snapshot, name: &str) -> Arc<PodKey> {
    snapshot.pods.iter().find(|pod| *pod.key.name == *name).unwrap().key.clone()
}

fn new_node(snapshot: &Snapshot, zone: &str, pods: Vec<Arc<PodKey>>) -> NewNode {
    let is_there = |way: &&Offering| way.requirements.get(&label("zone")).is_some_and(|found| found.has(zone));
    let size = snapshot.pools[0].catalog.find("one").unwrap();
    let way = size.offerings.iter().find(is_there).unwrap();
    let asked = snapshot.pods.iter().filter(|pod| pods.contains(&pod.key));
    let mut requests = Resources::default();
    asked.for_each(|pod| requests.add(&pod.requests));
    let requirements: Requirements = [(label("zone"), Requirement::is(zone))].into_iter().collect();
    let chosen = Chosen {
        instance_type: "one".to_owned(),
        requirements: way.requirements.clone(),
        labels: [(label("zone"), zone.to_owned())].into_iter().collect(),
        price: way.price,
        place: None,
    };
    let (pool, instance_types) = (snapshot.pools[0].name.clone(), ["one".to_owned()].into());
    NewNode { pool, instance_types, chosen, requirements, requests, pods, min_values_relaxed: false, pinning: None }
}

/// What the checker finds.
pub(crate) fn found(snapshot: &Snapshot, plan: &Plan) -> Vec<Violation> {
    check(snapshot, plan)
}

/// A cluster with a size that is offered in zones a, b and c, and a node in each of the first two.
pub(crate) fn lab(lines: &str) -> Snapshot {
    let nodes = "type one cpu=8 memory=16Gi zone=a,b,c\nnode na cpu=8 memory=16Gi label:zone=a
        node nb cpu=8 memory=16Gi label:zone=b";
    cluster(&format!("{nodes}\n{lines}"))
}

/// What is wrong with a plan, each pod with what is said of it. Nothing but those pods may be concerned, and without them
/// nothing may be wrong.
#[track_caller]
pub(crate) fn expect_broken(snapshot: &Snapshot, text: &str, expected: &[(&str, &str)]) {
    let mut plan = hand_made(snapshot, text);
    let violations = found(snapshot, &plan);
    let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (name, words) in expected {
        let pod = key(snapshot, name);
        let of_pod = violations.iter().filter(|violation| violation.concerns() == [Subject::Pod(pod.clone())]);
        assert!(of_pod.map(ToString::to_string).any(|told| told == format!("pod {pod} {words}")), "{told:#?}");
        plan.new_nodes.iter_mut().for_each(|node| node.pods.retain(|other| *other != pod));
        plan.placements.retain(|placement| placement.pod != pod);
        plan.unplaced.push(Unplaced { pod, reason: Reason::NoPools });
    }
    plan.new_nodes.retain(|node| !node.pods.is_empty());
    assert!(found(snapshot, &plan).is_empty(), "{:#?}", found(snapshot, &plan));
}

#[track_caller]
pub(crate) fn expect_sound(snapshot: &Snapshot, text: &str) {
    expect_broken(snapshot, text, &[]);
}

const ZONE: &str = "topology.kubernetes.io/zone";

#[test]
fn a_pod_must_not_be_with_one_that_its_anti_affinity_selects() {
    let snapshot = lab("bound w on=na label:app=web\npod a apart=zone:app=web\npod b apart=hostname:app=web");
    expect_sound(&snapshot, "a=nb b=+a");
    let to_web = "breaks its required anti-affinity to app In [web]:";
    let in_zone = format!("{to_web} {ZONE}=a has 1 selected pod, for example default/w");
    expect_broken(&snapshot, "a=+a b=nb", &[("a", &in_zone)]);
    let on_host = format!("{to_web} kubernetes.io/hostname=na has 1 selected pod, for example default/w");
    expect_broken(&snapshot, "a=+c b=na", &[("b", &on_host)]);
}

#[test]
fn of_pods_that_must_not_be_together_the_first_stays() {
    let snapshot =
        lab("pod a cpu=2 label:app=web apart=hostname:app=web\npod b label:app=web apart=hostname:app=web\n\
         pod c label:app=web apart=hostname:app=web");
    expect_sound(&snapshot, "a=+a b=+a c=nb");
    let on_new = "breaks its required anti-affinity to app In [web]: kubernetes.io/hostname=new node 1 has 1 selected pod, \
                  for example default/a";
    expect_broken(&snapshot, "a,b,c=+a", &[("b", on_new), ("c", on_new)]);
}

#[test]
fn a_pod_must_not_be_with_one_whose_anti_affinity_selects_it() {
    let snapshot = lab("bound w on=na apart=zone:app=web terminating\npod a cpu=1 label:app=web\npod b label:app=web");
    let told = format!(
        "is selected by the required anti-affinity to app In [web] of pod default/w: {ZONE}=a has 1 pod with this term"
    );
    expect_broken(&snapshot, "a=+a b=nb", &[("a", &told)]);
    // The pods ask for nothing themselves, so what is left is what the controller would do.
    let CheckedPlan { plan, violations } = sound_part(&snapshot, hand_made(&snapshot, "a=+a b=nb"));
    assert_eq!(told_of(&plan), ["a waits", "nb: b"]);
    assert_eq!(violations.len(), 1, "{violations:?}");
    let snapshot = lab("pod a cpu=2 apart=zone:app=web\npod b label:app=web");
    let told = told.replace("default/w", "default/a");
    expect_broken(&snapshot, "a=+a b=na", &[("b", &told)]);
}

fn told_of(plan: &Plan) -> Vec<String> {
    let mut told = told(plan);
    told.sort();
    told
}

#[test]
fn a_terminating_pod_keeps_others_away_but_nobody_keeps_away_from_it() {
    let snapshot = lab("bound w on=na label:app=web terminating\npod a apart=zone:app=web\npod b with=zone:app=web");
    let alone = format!(
        "breaks its required affinity to app In [web]: {ZONE}=a has 0 selected pods besides it (no other domain has any)"
    );
    expect_broken(&snapshot, "a=na b=+a", &[("b", &alone)]);
}

#[test]
fn a_pod_that_is_placed_again_is_not_where_it_was() {
    let snapshot =
        lab("node nc cpu=8 memory=16Gi label:zone=c leaving\nbound w on=nc label:app=web apart=zone:app=web\n\
         pod w label:app=web apart=zone:app=web\npod b label:app=web");
    expect_sound(&snapshot, "w=na b=+c");
}

#[test]
fn nodes_without_the_label_share_nothing() {
    let text = "node n1 cpu=8 memory=16Gi\nnode n2 cpu=8 memory=16Gi\nbound w on=n1 label:app=web apart=zone:app=web";
    let snapshot = lab(&format!("{text}\npod a label:app=web apart=zone:app=web\npod b with=zone:app=web"));
    expect_sound(&snapshot, "a=n1");
    let told = format!("breaks its required affinity to app In [web]: its node has no label {ZONE}");
    expect_broken(&snapshot, "a=n1 b=n2", &[("b", &told)]);
}

#[test]
fn namespaces_are_chosen_by_name_by_label_or_all_of_them() {
    let text = |options: &str| {
        lab(&format!(
            "namespace shop label:team=red\nnamespace bank label:team=blue\nbound w on=na ns=shop label:app=web\n\
             pod a apart=zone:app=web{options}"
        ))
    };
    for options in ["", ";in=bank", ";in:team=blue", ";in=bank;in:team=blue"] {
        expect_sound(&text(options), "a=na");
    }
    for options in [";in=shop,bank", ";in:team=red", ";in=*", ";in=bank;in:team=red"] {
        assert_eq!(found(&text(options), &hand_made(&text(options), "a=na")).len(), 1, "{options}");
    }
    // Not even an own namespace that nothing is known of is left out of all.
    expect_sound(&lab("bound w on=na label:app=web\npod a apart=zone:-;in=*"), "a=na");
    let everything = lab("bound w on=na ns=lost\npod a apart=zone:*;in=*");
    assert_eq!(found(&everything, &hand_made(&everything, "a=na")).len(), 1);
}

#[test]
fn a_pod_is_with_one_that_its_affinity_selects_whoever_comes_first() {
    let snapshot =
        lab("bound w on=na label:app=db\npod a cpu=2 with=zone:app=web\npod b label:app=web with=zone:app=db");
    expect_sound(&snapshot, "a=+a b=na");
    let told =
        format!("breaks its required affinity to app In [web]: {ZONE}=c has 0 selected pods besides it (a has 1)");
    expect_broken(&snapshot, "a=+c b=na", &[("a", &told)]);
}

#[test]
fn a_pod_with_several_terms_is_with_pods_that_all_of_them_choose() {
    let there = "bound w on=na label:app=web\nbound f on=na label:tier=front";
    let snapshot = lab(&format!("{there}\npod a with=zone:app=web with=zone:tier=front"));
    let told = format!(
        "breaks its required affinity to app In [web] and to tier In [front]: {ZONE}=a has 0 selected pods besides it (no \
         other domain has any)"
    );
    expect_broken(&snapshot, "a=+a", &[("a", &told)]);
    let both = there.replace("label:app=web", "label:app=web label:tier=front");
    expect_sound(&lab(&format!("{both}\npod a with=zone:app=web with=zone:tier=front")), "a=+a");
    // The first of its kind is chosen by all of its terms.
    let own = "with=zone:app=web with=hostname:tier=front";
    expect_sound(&lab(&format!("pod a label:app=web label:tier=front {own}\npod b {own}")), "a,b=+a");
    let snapshot = lab(&format!("pod a label:app=web {own}"));
    assert_eq!(found(&snapshot, &hand_made(&snapshot, "a=+a")).len(), 1);
}

#[test]
fn pods_that_wait_for_each_other_are_never_bound() {
    let snapshot = lab("pod a label:app=web with=zone:app=db\npod b label:app=db with=zone:app=web");
    let alone = |what: &str| {
        format!(
            "breaks its required affinity to app In [{what}]: {ZONE}=a has 0 selected pods besides it (no other domain has any)"
        )
    };
    expect_broken(&snapshot, "a,b=+a", &[("a", &alone("db")), ("b", &alone("web"))]);
}

#[test]
fn pods_that_select_themselves_found_one_domain() {
    let web = "label:app=web with=zone:app=web";
    let snapshot = lab(&format!("pod a cpu=3 {web}\npod b cpu=2 {web}\npod c {web}"));
    expect_sound(&snapshot, "a=+b b=nb c=+b");
    let told =
        format!("breaks its required affinity to app In [web]: {ZONE}=c has 0 selected pods besides it (b has 2)");
    expect_broken(&snapshot, "a=+b b=+c c=nb", &[("b", &told)]);
    let bound = lab(&format!("bound w on=na label:app=web\npod a {web}"));
    expect_sound(&bound, "a=+a");
    let told = told.replace("(b has 2)", "(a has 1)");
    expect_broken(&bound, "a=+c", &[("a", &told)]);
}

#[test]
fn a_pod_that_cannot_reach_its_like_founds_a_domain_of_its_own() {
    let web = "label:app=web with=zone:app=web";
    expect_sound(&lab(&format!("bound w on=na label:app=web\npod a {web} need:zone=In:b,c")), "a=+c");
    expect_sound(&lab(&format!("bound w on=na label:app=web\npod a {web} or:zone=In:a or:zone=In:c")), "a=+c");
    let snapshot = lab(&format!("bound w on=na label:app=web\npod a {web} need:zone=In:a,c"));
    assert_eq!(found(&snapshot, &hand_made(&snapshot, "a=+c")).len(), 1);
}

#[test]
fn what_pods_prefer_never_breaks_a_plan() {
    let snapshot = lab("bound w on=na label:app=web apart?=5:zone:app=web\n\
         pod a label:app=web with?=1:zone:app=db apart?=5:zone:app=web spread?=zone:1:app=web");
    expect_sound(&snapshot, "a=na");
}
