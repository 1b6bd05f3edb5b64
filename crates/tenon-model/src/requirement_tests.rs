//! Laws of the requirement algebra.

use proptest::prelude::*;

use crate::requirement::{Operator, Requirement};

fn requirement(operator: Operator, values: &[&str]) -> Requirement {
    Requirement::new(operator, values.iter().map(ToString::to_string)).unwrap()
}

#[test]
fn bounds_admit_numbers_only() {
    let above = requirement(Operator::Gt, &["4"]);
    assert!(above.has("5") && !above.has("4") && !above.has("five"));
    let below = requirement(Operator::Lt, &["4"]);
    assert!(below.has("3") && !below.has("4"));
    let both = above.and(&requirement(Operator::Lte, &["6"]));
    assert!(both.has("5") && both.has("6") && !both.has("7"));
    assert_eq!(above.and(&below), Requirement::absent());
    assert!(!above.intersects(&below));
}

#[test]
fn a_bound_that_is_no_number_is_no_requirement() {
    for values in [vec![], vec!["1", "2"], vec!["-1"], vec!["x"], vec![""]] {
        for operator in [Operator::Gt, Operator::Lt, Operator::Gte, Operator::Lte] {
            let values = values.iter().map(ToString::to_string);
            assert_eq!(Requirement::new(operator, values), None);
        }
    }
    assert_eq!(requirement(Operator::Gt, &["9223372036854775807"]), Requirement::absent());
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
fn a_concrete_set_forgets_the_bounds_it_was_cut_by() {
    let cut = requirement(Operator::In, &["1", "5", "x"]).and(&requirement(Operator::Gte, &["2"]));
    assert_eq!(cut, Requirement::is("5"));
}

fn any_requirement() -> impl Strategy<Value = Requirement> {
    let values = || proptest::collection::btree_set("[0-5ab]", 0..4);
    let number = || 0_i64..6;
    prop_oneof![
        values().prop_map(|values| Requirement::new(Operator::In, values).unwrap()),
        values().prop_map(|values| Requirement::new(Operator::NotIn, values).unwrap()),
        Just(Requirement::anything()),
        number().prop_map(|n| Requirement::new(Operator::Gt, [n.to_string()]).unwrap()),
        number().prop_map(|n| Requirement::new(Operator::Lte, [n.to_string()]).unwrap()),
    ]
}

proptest! {
    #[test]
    fn both_allow_what_each_allows(a in any_requirement(), b in any_requirement(), value in "[0-7abc]") {
        prop_assert_eq!(a.and(&b).has(&value), a.has(&value) && b.has(&value));
    }

    #[test]
    fn order_and_repetition_do_not_matter(a in any_requirement(), b in any_requirement()) {
        prop_assert_eq!(a.and(&b), b.and(&a));
        let both = a.and(&b);
        prop_assert_eq!(both.and(&b), both.clone());
        prop_assert_eq!(a.and(&Requirement::anything()), a);
    }

    #[test]
    fn what_shares_a_value_intersects(a in any_requirement(), b in any_requirement(), value in "[0-7abc]") {
        if a.has(&value) && b.has(&value) {
            prop_assert!(a.intersects(&b));
        }
    }
}
