//! Demands on several labels: who can meet whom, what is said if not, and how many values stay possible.

use proptest::prelude::*;

use crate::labels::{HOSTNAME, WELL_KNOWN, ZONE, is_well_known};
use crate::requirement::{Operator, Requirement};
use crate::requirement_tests::{any_requirement, requirement};
use crate::requirements::{Incompatible, Requirements};

fn set(demands: &[(&str, Operator, &[&str])]) -> Requirements {
    let demand =
        |(label, operator, values): &(&str, Operator, &[&str])| ((*label).to_owned(), requirement(*operator, values));
    demands.iter().map(demand).collect()
}

fn nothing_is_open(_: &str) -> bool {
    false
}

#[test]
fn every_old_name_of_a_label_is_its_new_one() {
    for (old, new) in [
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ] {
        let demands = set(&[(old, Operator::In, &["a"])]);
        assert_eq!((demands.get(old), demands.get(new)), (None, Some(&Requirement::is("a"))), "{old}");
    }
}

#[test]
fn what_contradicts_itself_is_met_nowhere() {
    let mut wanted = set(&[("k", Operator::In, &["a"])]);
    wanted.join(&set(&[("k", Operator::In, &["b"])]));
    for offered in
        [Requirements::default(), set(&[("k", Operator::In, &["a"])]), set(&[("k", Operator::NotIn, &["c"])])]
    {
        assert!(!offered.can_meet(&wanted, |_| true) && offered.meet(&wanted, |_| true).is_err(), "{offered}");
    }
}

#[test]
fn compatibility_is_the_references() {
    let nothing = Requirements::default();
    let (one, two) = (set(&[("k", Operator::In, &["a"])]), set(&[("k", Operator::In, &["a", "b"])]));
    let absent = set(&[("k", Operator::DoesNotExist, &[])]);
    let not = set(&[("k", Operator::NotIn, &["a"])]);
    for wanted in [&one, &set(&[("k", Operator::Exists, &[])]), &set(&[("k", Operator::Gt, &["1"])])] {
        let refused = Incompatible::Unknown { label: "k".to_owned(), hint: None };
        assert_eq!(nothing.meet(wanted, nothing_is_open), Err(refused));
    }
    assert_eq!(nothing.meet(&not, nothing_is_open), Ok(()));
    assert_eq!(nothing.meet(&absent, nothing_is_open), Ok(()));
    assert!(one.meet(&not, nothing_is_open).is_err());
    assert_eq!(absent.meet(&not, nothing_is_open), Ok(()), "both allow absence");
    assert!(absent.meet(&set(&[("k", Operator::Exists, &[])]), nothing_is_open).is_err());
    assert_eq!(two.meet(&set(&[("k", Operator::In, &["b", "c"])]), nothing_is_open), Ok(()));
    assert_eq!(nothing.meet(&set(&[(ZONE, Operator::In, &["a"])]), is_well_known), Ok(()));
    assert!(nothing.meet(&set(&[(ZONE, Operator::In, &["a"])]), nothing_is_open).is_err());
}

#[test]
fn a_label_that_looks_like_a_slip_is_pointed_at() {
    let offered = set(&[("example.com/team", Operator::In, &["red"])]);
    for (label, hint) in [
        ("zone", Some(ZONE)),
        ("topology.kubernetesio/zone", Some(ZONE)),
        ("topology.kubernetes.io/zon", Some(ZONE)),
        ("example.com/tea", Some("example.com/team")),
        ("example.org/team", Some("example.com/team")),
        ("colour", None),
        ("x/", None),
    ] {
        let refused = offered.meet(&set(&[(label, Operator::Exists, &[])]), is_well_known).unwrap_err();
        let expected = Incompatible::Unknown { label: label.to_owned(), hint: hint.map(str::to_owned) };
        assert_eq!(refused, expected);
        assert_eq!(refused.to_string().contains("did you mean"), hint.is_some());
    }
}

#[test]
fn demands_on_one_label_are_joined_under_its_new_name() {
    let old = "failure-domain.beta.kubernetes.io/zone";
    let both = set(&[(ZONE, Operator::In, &["a", "b"]), (old, Operator::NotIn, &["a"])]);
    assert_eq!(both.get(ZONE), Some(&Requirement::is("b")));
    assert_eq!(both.get(old), None);
    let error = both.meet(&set(&[(old, Operator::In, &["a"])]), nothing_is_open).unwrap_err();
    assert_eq!(error.to_string(), format!("label {ZONE}: required In [a], available In [b]"));
    let labels = [(old.to_owned(), "c".to_owned())];
    let facts = Requirements::from_labels(labels.iter().map(|(label, value)| (label, value)));
    assert_eq!(facts.get(ZONE), Some(&Requirement::is("c")));
}

#[test]
fn what_nobody_speaks_of_is_free() {
    let asked = set(&[("k", Operator::In, &["a"])]);
    assert!(asked.admit("k", "a") && !asked.admit("k", "b") && asked.admit("other", "b"));
}

#[test]
fn every_old_name_is_read_as_the_new_one() {
    for (old, new) in [
        ("failure-domain.beta.kubernetes.io/zone", ZONE),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ] {
        let asked = set(&[(old, Operator::In, &["a"])]);
        assert_eq!((asked.get(old), asked.get(new)), (None, Some(&Requirement::is("a"))));
    }
}

#[test]
fn it_prints_the_same_whatever_order_it_was_made_in() {
    let demands: [(&str, Operator, &[&str]); 3] =
        [("c", Operator::In, &["2", "1"]), ("a", Operator::Exists, &[]), ("b", Operator::Lt, &["4"])];
    let mut turned = demands;
    turned.reverse();
    assert_eq!(set(&demands).to_string(), "a Exists, b Exists <= 3, c In [1, 2]");
    assert_eq!(set(&demands).to_string(), set(&turned).to_string());
}

#[test]
fn it_prints_sorted_and_without_the_host_name() {
    let asked =
        set(&[("z", Operator::Gt, &["4"]), (HOSTNAME, Operator::In, &["n"]), ("a", Operator::NotIn, &["2", "1"])]);
    assert_eq!(asked.to_string(), "a NotIn [1, 2], z Exists >= 5");
}

#[test]
fn enough_values_need_the_shortest_run_of_types_that_has_them() {
    let offered = |zones: &[&str], sizes: &[&str]| set(&[(ZONE, Operator::In, zones), ("size", Operator::In, sizes)]);
    let types = [offered(&["a"], &["s"]), offered(&["a", "c"], &["s"]), offered(&["b"], &["m"])];
    let mut wanted = set(&[(ZONE, Operator::In, &["a", "b"])]);
    assert_eq!(wanted.min_values_satisfied_by(&types), Ok(0), "nothing is asked");
    wanted.replace(ZONE, requirement(Operator::In, &["a", "b"]).with_min_values(Some(1)));
    assert_eq!(wanted.min_values_satisfied_by(&types), Ok(1));
    wanted.replace(ZONE, requirement(Operator::In, &["a", "b"]).with_min_values(Some(2)));
    assert_eq!(wanted.min_values_satisfied_by(&types), Ok(3), "c does not count: it is not allowed");
    wanted.add("size", &Requirement::anything().with_min_values(Some(3)));
    let short = wanted.min_values_satisfied_by(&types).unwrap_err();
    assert_eq!(short.reached.into_iter().collect::<Vec<_>>(), [("size".to_owned(), 2)]);
}

#[test]
fn a_zone_that_a_volume_rules_out_does_not_count() {
    let types = [set(&[(ZONE, Operator::In, &["a", "b"])])];
    let mut wanted = Requirements::default();
    wanted.add(ZONE, &Requirement::anything().with_min_values(Some(2)));
    assert_eq!(wanted.min_values_satisfied_by(&types), Ok(1));
    wanted.add(ZONE, &Requirement::is("a"));
    assert_eq!(wanted.min_values_satisfied_by(&types).unwrap_err().reached[ZONE], 1);
}

fn any_requirements() -> impl Strategy<Value = Requirements> {
    let labels = prop_oneof![Just("k"), Just("l"), Just(ZONE), Just(WELL_KNOWN[0])];
    proptest::collection::vec((labels.prop_map(str::to_owned), any_requirement()), 0..4)
        .prop_map(|demands| demands.into_iter().collect())
}

proptest! {
    #[test]
    fn the_short_answer_is_the_long_one(a in any_requirements(), b in any_requirements()) {
        for open in [nothing_is_open, is_well_known] {
            prop_assert_eq!(a.can_meet(&b, open), a.meet(&b, open).is_ok());
        }
        prop_assert_eq!(a.intersects(&b), a.intersect(&b).is_ok());
        prop_assert_eq!(a.intersects(&b), b.intersects(&a));
    }

    #[test]
    fn what_meets_a_demand_meets_less_of_it(a in any_requirements(), b in any_requirements(), c in any_requirements()) {
        prop_assert!(a.can_meet(&Requirements::default(), nothing_is_open));
        if a.can_meet(&b, nothing_is_open) {
            prop_assert!(a.can_meet(&b, is_well_known), "whoever needs no leave does not mind it");
            prop_assert!(a.intersects(&b));
        }
        let mut both = b.clone();
        both.add_all(&c);
        prop_assert_eq!(&b.and(&c), &both);
        let labels_apart = b.iter().all(|(label, _)| c.get(label).is_none());
        if labels_apart {
            let each = a.can_meet(&b, nothing_is_open) && a.can_meet(&c, nothing_is_open);
            prop_assert_eq!(a.can_meet(&both, nothing_is_open), each);
        }
    }

    /// A node whose labels are known meets a demand if each of its values is allowed and what it lacks may be absent.
    #[test]
    fn facts_meet_what_allows_each_of_them(wanted in any_requirements(), k in "[0-5ab]", zone in proptest::option::of("[0-5ab]")) {
        let mut facts = Requirements::default();
        facts.add("k", &Requirement::is(&k));
        if let Some(zone) = &zone {
            facts.add(ZONE, &Requirement::is(zone));
        }
        let expected = wanted.iter().all(|(label, asked)| match (label, &zone) {
            ("k", _) => asked.has(&k),
            (ZONE, Some(zone)) => asked.has(zone),
            _ => asked.permits_absence(),
        });
        prop_assert_eq!(facts.can_meet(&wanted, nothing_is_open), expected);
    }

    #[test]
    fn writing_and_reading_agree(a in any_requirements()) {
        let read = Requirements::read(&a.written()).unwrap();
        prop_assert_eq!(&read, &a);
    }
}
