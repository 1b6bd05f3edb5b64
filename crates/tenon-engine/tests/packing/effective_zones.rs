//! Which zones waiting pods are for (the table of D10).

use std::collections::BTreeMap;

use tenon_engine::Engine;

use crate::packing::cluster::cluster;

const ONE: &str = "type one cpu=8 memory=16Gi price=1 zone=a,b,c";

/// Zones and how many pods are for them.
#[track_caller]
fn expect_zones(pods: &str, expected: &[(&str, u64)]) {
    let expected: BTreeMap<String, u64> = expected.iter().map(|(zone, count)| ((*zone).to_owned(), *count)).collect();
    let snapshot = cluster(&format!("{ONE}\n{pods}"));
    assert_eq!(Engine::of(&snapshot).effective_zones(&snapshot), expected, "{pods}");
}

#[test]
fn a_pod_that_asks_for_no_zone_is_flexible() {
    expect_zones("pod p pending", &[("flexible", 1)]);
    expect_zones("pod p pending need:arch=In:amd64\npod q pending", &[("flexible", 2)]);
}

#[test]
fn a_pod_that_asks_for_one_zone_counts_there() {
    expect_zones(
        "pod p pending need:zone=In:b\npod q pending need:zone=In:b\npod r pending need:zone=In:b",
        &[("b", 3)],
    );
}

#[test]
fn pods_for_different_zones_are_counted_apart() {
    let pods = "pod p pending need:zone=In:a\npod q pending need:zone=In:b\npod r pending";
    expect_zones(pods, &[("a", 1), ("b", 1), ("flexible", 1)]);
}

#[test]
fn a_pod_for_several_zones_is_flexible_whether_they_are_named_or_ruled_out() {
    for need in ["In:a,b", "NotIn:a", "NotIn:a,b", "Exists", "Gt:1"] {
        expect_zones(&format!("pod p pending need:zone={need}"), &[("flexible", 1)]);
    }
}

#[test]
fn demands_on_the_zone_are_taken_together() {
    expect_zones("pod p pending need:zone=In:a,b or:zone=NotIn:a", &[("b", 1)]);
    expect_zones("pod p pending need:failure-domain.beta.kubernetes.io/zone=In:a", &[("a", 1)]);
}

#[test]
fn a_pod_whose_demands_leave_no_zone_is_for_none() {
    expect_zones("pod p pending need:zone=In:a or:zone=In:b", &[("none", 1)]);
    expect_zones("pod p pending need:zone=DoesNotExist", &[("none", 1)]);
}

#[test]
fn a_wish_for_a_zone_does_not_count() {
    expect_zones("pod p pending prefer:9:zone=In:a", &[("flexible", 1)]);
    expect_zones("pod p pending need:zone=In:b prefer:9:zone=In:a", &[("b", 1)]);
}

#[test]
fn of_several_terms_the_first_counts() {
    expect_zones("pod p pending or:zone=In:a or:zone=In:b", &[("a", 1)]);
}

#[test]
fn a_zone_that_nothing_is_offered_in_counts_all_the_same() {
    expect_zones("pod p pending need:zone=In:nowhere", &[("nowhere", 1)]);
}

#[test]
fn pods_that_run_already_and_pods_that_ask_for_what_cannot_be_are_not_counted() {
    expect_zones("pod moves need:zone=In:a", &[]);
    expect_zones("pod p pending need:hostname=In:x\npod q pending need:nodepool=DoesNotExist", &[]);
}

#[test]
fn a_pod_is_for_the_zones_of_its_volumes_that_it_allows() {
    for (words, zone) in [
        ("volume=zone:b", "b"),
        ("volume=zone:a|zone:b", "flexible"),
        ("volume=zone:a,b", "flexible"),
        ("volume=zone:a|zone:b need:zone=In:b", "b"),
        ("volume=zone:a need:zone=In:b", "none"),
        ("volume=zone:a need:zone=NotIn:b", "a"),
        ("volume=rack:r1", "flexible"),
        ("volume=rack:r1|zone:a", "flexible"),
        ("attach=driver/vol", "flexible"),
    ] {
        expect_zones(&format!("pod p pending {words}"), &[(zone, 1)]);
    }
}

#[test]
fn without_pods_nothing_is_counted() {
    expect_zones("", &[]);
}

/// Two pods of an app in zone a, one in zone b; nodes in every zone.
const WEB: &str = "node na cpu=8 label:zone=a\nnode nb cpu=8 label:zone=b\nnode nc cpu=8 label:zone=c\n\
    bound w1 on=na label:app=web\nbound w2 on=na label:app=web\nbound w3 on=nb label:app=web";

#[test]
fn a_pod_is_for_the_zones_that_other_pods_leave_it() {
    for (words, zone) in [
        ("label:app=web spread=zone:1:app=web", "c"),
        ("label:app=web spread=zone:2:app=web", "flexible"),
        ("label:app=web spread=zone:1:app=web need:zone=In:a,b", "b"),
        ("label:app=web spread=zone:1:app=web need:zone=In:a", "a"),
        ("with=zone:app=web", "flexible"),
        ("with=zone:app=web need:zone=In:b,c", "b"),
        ("with=zone:app=web need:zone=In:c", "none"),
        ("with=zone:app=other", "none"),
        ("label:app=other with=zone:app=other", "flexible"),
        ("apart=zone:app=web", "c"),
        ("apart=zone:app=web need:zone=In:a,b", "none"),
        ("apart=zone:app=other", "flexible"),
        ("apart=zone:app=web label:app=web spread=zone:1:app=web", "c"),
        ("with=zone:app=web volume=zone:b", "b"),
        ("with=zone:app=web volume=zone:b|zone:c", "b"),
        ("with=zone:app=web volume=zone:c", "none"),
    ] {
        expect_zones(&format!("{WEB}\npod p pending {words}"), &[(zone, 1)]);
    }
}

#[test]
fn pods_that_keep_others_away_count_too() {
    let alone = "node na cpu=8 label:zone=a\nbound alone on=na label:app=db apart=zone:app=web";
    expect_zones(&format!("{alone}\npod p pending label:app=web need:zone=In:a,b"), &[("b", 1)]);
    expect_zones(&format!("{alone}\npod p pending label:app=other need:zone=In:a,b"), &[("flexible", 1)]);
}

#[test]
fn wishes_about_other_pods_and_what_concerns_hosts_do_not_count() {
    for words in ["spread?=zone:1:app=web", "with?=5:zone:app=web", "apart?=5:zone:app=web", "apart=hostname:app=web"] {
        expect_zones(&format!("{WEB}\npod p pending label:app=web {words}"), &[("flexible", 1)]);
    }
}
