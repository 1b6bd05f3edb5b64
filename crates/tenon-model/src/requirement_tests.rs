//! The algebra of one demand: what it allows, what two of them leave, how it is written.

use proptest::prelude::*;

use crate::requirement::{Operator, Requirement};
use crate::requirements::Requirements;
use crate::written_requirement::WrittenRequirement;

pub(crate) fn requirement(operator: Operator, values: &[&str]) -> Requirement {
    Requirement::new(operator, values.iter().map(ToString::to_string)).unwrap()
}

fn within(gte: Option<&str>, lte: Option<&str>, excluded: &[&str]) -> Requirement {
    let mut both = requirement(Operator::NotIn, excluded);
    for (operator, bound) in [(Operator::Gte, gte), (Operator::Lte, lte)] {
        if let Some(bound) = bound {
            both = both.and(&requirement(operator, &[bound]));
        }
    }
    both
}

#[test]
fn what_one_pod_says_of_a_label_together_keeps_it_needed() {
    let (red, blue) = (Requirement::is("red"), Requirement::is("blue"));
    let not_red = requirement(Operator::NotIn, &["red"]);
    for (one, other, is_impossible) in [
        (Requirement::anything(), not_red.clone(), false),
        (not_red.clone(), requirement(Operator::Gte, &["1"]), false),
        (red.clone(), not_red.clone(), true),
        (red.clone(), blue.clone(), true),
        (requirement(Operator::Gte, &["5"]), requirement(Operator::Lte, &["4"]), true),
        (red.clone(), Requirement::absent(), true),
    ] {
        for joined in [one.joined(&other), other.joined(&one), one.joined(&other).and(&not_red)] {
            assert!(!joined.permits_absence(), "{one} with {other}");
            assert_eq!(joined.is_impossible(), is_impossible, "{one} with {other}");
        }
        assert_eq!(one.joined(&other).operator(), one.and(&other).operator(), "it reads as it always did");
    }
    assert!(not_red.joined(&Requirement::absent()).permits_absence());
    assert_eq!(Requirement::anything().joined(&red), red);
    let words: Vec<Operator> =
        Requirement::anything().joined(&not_red).written("k").iter().map(|demand| demand.operator).collect();
    assert_eq!(words, [Operator::NotIn, Operator::Exists], "whoever reads it back needs both");
}

#[test]
fn bounds_admit_numbers_only() {
    let above = requirement(Operator::Gt, &["4"]);
    assert!(above.has("5") && !above.has("4") && !above.has("five") && !above.has(""));
    assert!(above.has("+5") && above.has("007"), "numbers are read as Go reads them");
    let below = requirement(Operator::Lt, &["4"]);
    assert!(below.has("3") && !below.has("4"));
    let both = above.and(&requirement(Operator::Lte, &["6"]));
    assert!(both.has("5") && both.has("6") && !both.has("7"));
    assert_eq!(above.and(&below), Requirement::absent());
    assert!(!above.intersects(&below));
}

#[test]
fn a_bound_that_is_no_number_is_no_requirement() {
    for values in [vec![], vec!["1", "2"], vec!["-1"], vec!["x"], vec![""], vec!["9223372036854775808"]] {
        for operator in [Operator::Gt, Operator::Lt, Operator::Gte, Operator::Lte] {
            let values = values.iter().map(ToString::to_string);
            assert_eq!(Requirement::new(operator, values), None);
        }
    }
}

#[test]
fn absence_is_allowed_by_not_in_and_does_not_exist_alone() {
    assert!(requirement(Operator::NotIn, &["a"]).permits_absence());
    assert!(Requirement::absent().permits_absence());
    assert!(!Requirement::anything().permits_absence());
    assert!(!requirement(Operator::Gte, &["1"]).permits_absence());
    assert!(!Requirement::is("a").permits_absence());
}

#[test]
fn every_operator_reads_as_what_it_means() {
    for (operator, values, reads_as, size) in [
        (Operator::In, vec!["a", "b"], Operator::In, 2),
        (Operator::In, vec![], Operator::DoesNotExist, 0),
        (Operator::NotIn, vec!["a"], Operator::NotIn, i64::MAX as u64 - 1),
        (Operator::NotIn, vec![], Operator::Exists, i64::MAX as u64),
        (Operator::Exists, vec![], Operator::Exists, i64::MAX as u64),
        (Operator::DoesNotExist, vec![], Operator::DoesNotExist, 0),
        (Operator::Gt, vec!["1"], Operator::Exists, i64::MAX as u64),
        (Operator::Lt, vec!["1"], Operator::Exists, i64::MAX as u64),
        (Operator::Gte, vec!["1"], Operator::Exists, i64::MAX as u64),
        (Operator::Lte, vec!["1"], Operator::Exists, i64::MAX as u64),
    ] {
        let read = requirement(operator, &values);
        assert_eq!((read.operator(), read.size()), (reads_as, size), "{operator} {values:?}");
        assert_eq!(operator.to_string().parse(), Ok(operator));
    }
    assert!("in".parse::<Operator>().is_err() && "Equals".parse::<Operator>().is_err());
}

#[test]
fn two_demands_leave_what_the_reference_leaves() {
    let number = |operator, value: &str| requirement(operator, &[value]);
    let set = |values: &[&str]| requirement(Operator::In, values);
    let not = |values: &[&str]| requirement(Operator::NotIn, values);
    for (a, b, left) in [
        (set(&["a", "b"]), not(&["b"]), set(&["a"])),
        (Requirement::anything(), set(&["a"]), set(&["a"])),
        (set(&["a"]), set(&["b"]), Requirement::absent()),
        (not(&["a"]), not(&["b"]), not(&["a", "b"])),
        (not(&["a"]), Requirement::absent(), Requirement::absent()),
        // Non-numbers fail the bound, and a concrete set forgets it.
        (number(Operator::Gt, "1"), set(&["1", "2", "x"]), set(&["2"])),
        (number(Operator::Gt, "5"), number(Operator::Lt, "6"), Requirement::absent()),
        (number(Operator::Gte, "3"), number(Operator::Lte, "3"), within(Some("3"), Some("3"), &[])),
        (not(&["1", "9"]), number(Operator::Gt, "5"), within(Some("6"), None, &["9"])),
        (
            set(&["a"]).with_min_values(Some(2)),
            Requirement::anything().with_min_values(Some(5)),
            set(&["a"]).with_min_values(Some(5)),
        ),
        (
            number(Operator::Gt, "5").with_min_values(Some(2)),
            number(Operator::Lt, "3"),
            Requirement::absent().with_min_values(Some(2)),
        ),
    ] {
        assert_eq!(a.and(&b), left, "{a} and {b}");
        assert_eq!(b.and(&a), left, "{b} and {a}");
    }
    assert_eq!(number(Operator::Gt, "9223372036854775807"), Requirement::absent());
}

#[test]
fn a_demand_is_written_with_its_bounds_and_with_what_they_leave_out() {
    let written = |requirement: &Requirement| -> Vec<String> {
        requirement.written("k").iter().map(ToString::to_string).collect()
    };
    assert_eq!(written(&within(Some("3"), Some("3"), &[])), ["k Gte [3]", "k Lte [3]"]);
    assert_eq!(written(&within(Some("6"), None, &["9"])), ["k Gte [6]", "k NotIn [9]"]);
    assert_eq!(written(&requirement(Operator::Lt, &["0"])), ["k Lt [0]"]);
    assert_eq!(written(&requirement(Operator::In, &["b", "a"])), ["k In [a, b]"]);
    assert_eq!(written(&Requirement::anything()), ["k Exists"]);
    assert_eq!(written(&Requirement::absent()), ["k DoesNotExist"]);
    let counted = within(Some("1"), Some("9"), &["5"]).with_min_values(Some(3));
    assert!(counted.written("k").iter().all(|demand| demand.min_values == Some(3)));
}

#[test]
fn nothing_is_counted_above_the_largest_number() {
    let beyond = WrittenRequirement {
        label: "k".to_owned(),
        operator: Operator::Gt,
        values: vec![i64::MAX.to_string()],
        min_values: Some(3),
    };
    assert_eq!(beyond.requirement(), Ok(Requirement::absent()));
}

#[test]
fn any_value_is_always_the_same_allowed_one() {
    assert_eq!(requirement(Operator::In, &["b", "a"]).any().as_deref(), Some("a"));
    assert_eq!(Requirement::anything().any().as_deref(), Some("0"));
    assert_eq!(requirement(Operator::NotIn, &["0", "1"]).any().as_deref(), Some("2"));
    assert_eq!(within(Some("3"), Some("4"), &["3"]).any().as_deref(), Some("4"));
    assert_eq!(within(Some("3"), Some("3"), &["3"]).any(), None);
    assert_eq!(requirement(Operator::Lt, &["0"]).any(), None);
    assert_eq!(Requirement::absent().any(), None);
}

#[test]
fn each_operator_has_the_values_it_allows() {
    let universe = ["", "0", "1", "2", "3", "9", "a", "b"];
    for (operator, values, allowed) in [
        (Operator::In, vec!["a", "2"], vec!["2", "a"]),
        (Operator::NotIn, vec!["a", "2"], vec!["", "0", "1", "3", "9", "b"]),
        (Operator::Exists, vec![], universe.to_vec()),
        (Operator::DoesNotExist, vec![], vec![]),
        (Operator::Gt, vec!["2"], vec!["3", "9"]),
        (Operator::Lt, vec!["2"], vec!["0", "1"]),
        (Operator::Gte, vec!["2"], vec!["2", "3", "9"]),
        (Operator::Lte, vec!["2"], vec!["0", "1", "2"]),
    ] {
        let asked = requirement(operator, &values);
        let found: Vec<&str> = universe.into_iter().filter(|value| asked.has(value)).collect();
        assert_eq!(found, allowed, "{operator} {values:?}");
    }
}

#[test]
fn each_operator_prints_as_it_is_meant() {
    for (operator, values, text) in [
        (Operator::In, vec!["b", "a"], "In [a, b]"),
        (Operator::NotIn, vec!["b", "a"], "NotIn [a, b]"),
        (Operator::Exists, vec![], "Exists"),
        (Operator::DoesNotExist, vec![], "DoesNotExist"),
        (Operator::Gt, vec!["4"], "Exists >= 5"),
        (Operator::Lt, vec!["4"], "Exists <= 3"),
        (Operator::Gte, vec!["4"], "Exists >= 4"),
        (Operator::Lte, vec!["4"], "Exists <= 4"),
    ] {
        assert_eq!(requirement(operator, &values).to_string(), text);
    }
    assert_eq!(within(Some("1"), Some("9"), &["5"]).to_string(), "NotIn [5] >= 1 <= 9");
}

#[test]
fn each_operator_is_written_and_read_back_as_itself() {
    for (operator, values) in [
        (Operator::In, vec!["a"]),
        (Operator::NotIn, vec!["a"]),
        (Operator::Exists, vec![]),
        (Operator::DoesNotExist, vec![]),
        (Operator::Gt, vec!["4"]),
        (Operator::Lt, vec!["4"]),
        (Operator::Gte, vec!["4"]),
        (Operator::Lte, vec!["4"]),
    ] {
        let asked = requirement(operator, &values).with_min_values(Some(2));
        let read = Requirements::read(&asked.written("k")).unwrap();
        assert_eq!(read.get("k"), Some(&asked), "{operator}");
    }
}

/// Every operator with every kind of value: none, one, several, numbers and words.
fn samples() -> Vec<Requirement> {
    let sets: [&[&str]; 7] = [&[], &["a"], &["b"], &["a", "b"], &["1"], &["9"], &["1", "9", "a"]];
    let named =
        [Operator::In, Operator::NotIn].into_iter().flat_map(|operator| sets.map(|set| requirement(operator, set)));
    let bounds = Operator::ALL.into_iter().filter(|operator| operator.is_bound());
    let bounded = bounds.flat_map(|operator| ["0", "1", "8", "9"].map(|bound| requirement(operator, &[bound])));
    named.chain([Requirement::anything(), Requirement::absent()]).chain(bounded).collect()
}

#[test]
fn every_pair_of_operators_leaves_what_both_allow() {
    let universe = ["", "0", "1", "2", "5", "8", "9", "10", "a", "b", "c"];
    let mut pairs = 0;
    for a in &samples() {
        for b in &samples() {
            let both = a.and(b);
            for value in universe {
                assert_eq!(both.has(value), a.has(value) && b.has(value), "{value} of {a} and {b}");
            }
            assert_eq!(both, b.and(a), "{a} and {b}");
            assert_eq!(a.intersects(b), both.size() > 0, "{a} and {b}");
            let is_open = |one: &Requirement| matches!(one.operator(), Operator::Exists | Operator::NotIn);
            let may_be_open = is_open(a) && is_open(b);
            assert!(may_be_open || !is_open(&both), "{a} and {b} are not an open set: {both}");
            pairs += 1;
        }
    }
    assert!(pairs > 700, "{pairs}");
}

#[test]
fn every_pair_of_operators_keeps_the_larger_number_of_values() {
    for a in &samples() {
        for b in &samples() {
            for (mine, theirs, kept) in
                [(None, None, None), (Some(2), None, Some(2)), (None, Some(3), Some(3)), (Some(3), Some(5), Some(5))]
            {
                let both = a.clone().with_min_values(mine).and(&b.clone().with_min_values(theirs));
                assert_eq!(both.min_values(), kept, "{a} and {b}");
                assert_eq!(both.with_min_values(None), a.and(b), "the number changes nothing else");
            }
        }
    }
}

#[test]
fn it_does_not_matter_in_which_order_three_demands_are_joined() {
    let samples = samples();
    for a in &samples {
        for b in &samples {
            let both = a.and(b);
            for c in &samples {
                assert_eq!(both.and(c), a.and(&b.and(c)), "{a}, {b}, {c}");
            }
        }
    }
}

pub(crate) fn any_requirement() -> impl Strategy<Value = Requirement> {
    let values = || proptest::collection::btree_set("[0-5ab]", 0..4);
    let bound = (0_i64..7, 0..4_usize).prop_map(|(number, operator)| {
        let operators = [Operator::Gt, Operator::Lt, Operator::Gte, Operator::Lte];
        requirement(operators[operator], &[&number.to_string()])
    });
    let plain = prop_oneof![
        values().prop_map(|values| Requirement::new(Operator::In, values).unwrap()),
        values().prop_map(|values| Requirement::new(Operator::NotIn, values).unwrap()),
        Just(Requirement::anything()),
        Just(Requirement::absent()),
        bound.clone(),
    ];
    let bounded = (values(), bound.clone(), bound)
        .prop_map(|(values, low, high)| Requirement::new(Operator::NotIn, values).unwrap().and(&low).and(&high));
    (prop_oneof![4 => plain, 1 => bounded], proptest::option::of(1_u32..5))
        .prop_map(|(requirement, min_values)| requirement.with_min_values(min_values))
}

proptest! {
    #[test]
    fn both_allow_what_each_allows(a in any_requirement(), b in any_requirement(), value in "[0-7abc]") {
        prop_assert_eq!(a.and(&b).has(&value), a.has(&value) && b.has(&value));
    }

    #[test]
    fn order_and_repetition_do_not_matter(a in any_requirement(), b in any_requirement(), c in any_requirement()) {
        prop_assert_eq!(a.and(&b), b.and(&a));
        prop_assert_eq!(a.and(&a), a.clone());
        let both = a.and(&b);
        prop_assert_eq!(both.and(&b), both.clone());
        prop_assert_eq!(both.and(&c), a.and(&b.and(&c)));
        prop_assert_eq!(a.and(&Requirement::anything()), a.clone());
        prop_assert_eq!(a.and(&Requirement::absent()).operator(), Operator::DoesNotExist);
    }

    /// Two open sets count as sharing a value even where the bounds leave only excluded ones, as in the reference.
    #[test]
    fn to_intersect_is_to_leave_something(a in any_requirement(), b in any_requirement()) {
        let left = a.and(&b);
        prop_assert_eq!(a.intersects(&b), left.size() > 0);
        prop_assert_eq!(a.intersects(&b), b.intersects(&a));
    }

    #[test]
    fn any_is_allowed(a in any_requirement()) {
        if let Some(value) = a.any() {
            prop_assert!(a.has(&value), "{} does not have {}", a, value);
        }
    }

    #[test]
    fn writing_and_reading_agree(a in any_requirement()) {
        let demands = a.written("k");
        let read = Requirements::read(&demands).unwrap();
        prop_assert_eq!(read.get("k"), Some(&a));
        prop_assert_eq!(read.written(), demands);
    }
}
