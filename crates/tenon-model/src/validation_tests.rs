//! Every rule that a pool is held to at run time, by what breaks it.

use crate::labels::{CAPACITY_TYPE, HOSTNAME, NODEPOOL, ZONE};
use crate::requirement::Operator;
use crate::taint::{Effect, Taint};
use crate::validation::{label_faults, pool_requirement_faults, requirement_faults, taint_faults, unknown_values};
use crate::written_requirement::WrittenRequirement;

fn demand(label: &str, operator: Operator, values: &[&str]) -> WrittenRequirement {
    let values = values.iter().map(ToString::to_string).collect();
    WrittenRequirement { label: label.to_owned(), operator, values, min_values: None }
}

fn taint(key: &str, value: &str, effect: Effect) -> Taint {
    Taint { key: key.to_owned(), value: value.to_owned(), effect }
}

/// How many faults there are, and whether one of them says this.
fn assert_fault(faults: &[String], count: usize, words: &str) {
    assert_eq!(faults.len(), count, "{faults:?}");
    assert!(faults.iter().any(|fault| fault.contains(words)), "{words} is not in {faults:?}");
}

fn labels(key: &str, value: &str) -> Vec<String> {
    label_faults([(&key.to_owned(), &value.to_owned())])
}

#[test]
fn labels_of_a_pool_are_labels_and_nobody_elses() {
    assert_eq!(labels("team", "red"), Vec::<String>::new());
    assert_eq!(labels(CAPACITY_TYPE, "spot"), Vec::<String>::new());
    assert_eq!(labels("kubernetes.io/role", ""), Vec::<String>::new());
    assert_fault(&labels(NODEPOOL, "x"), 1, "set by Tenon");
    assert_fault(&labels(HOSTNAME, "x"), 1, "is restricted");
    assert_fault(&labels("karpenter.sh/registered", "x"), 1, "is restricted");
    assert_fault(&labels("a.karpenter.proxmox.sinextra.dev/x", "x"), 1, "is restricted");
    assert_fault(&labels("", "x"), 1, "is empty");
    assert_fault(&labels(&"a".repeat(64), "x"), 1, "more than 63");
    assert_fault(&labels("team", "red team"), 1, "has the invalid value");
    assert_fault(&labels("-", "-"), 2, "is not a valid label key");
}

#[test]
fn taints_of_a_pool_are_there_once() {
    let ok =
        [taint("a", "x", Effect::NoSchedule), taint("a", "x", Effect::NoExecute), taint("b", "", Effect::NoSchedule)];
    assert_eq!(taint_faults(&ok), Vec::<String>::new());
    let twice = [taint("a", "x", Effect::NoSchedule), taint("a", "y", Effect::NoSchedule)];
    assert_fault(&taint_faults(&twice), 1, "twice");
    assert_fault(&taint_faults(&[taint("", "", Effect::NoSchedule)]), 1, "is empty");
    assert_fault(&taint_faults(&[taint("a", "-", Effect::NoSchedule)]), 1, "has the invalid value");
}

#[test]
fn requirements_of_a_pool_say_something() {
    for good in [
        demand("team", Operator::In, &["red"]),
        demand("team", Operator::NotIn, &[]),
        demand("team", Operator::Exists, &["ignored"]),
        demand("cpu", Operator::Gt, &["0"]),
        demand("cpu", Operator::Lte, &["007"]),
        demand(CAPACITY_TYPE, Operator::In, &["spot", "typo"]),
        demand(CAPACITY_TYPE, Operator::NotIn, &["typo"]),
        demand("failure-domain.beta.kubernetes.io/zone", Operator::In, &["a"]),
        demand(ZONE, Operator::Exists, &[]),
    ] {
        assert_eq!(pool_requirement_faults([&good]), Vec::<String>::new(), "{good}");
    }
    for (bad, count, words) in [
        (demand("team", Operator::In, &[]), 1, "at least one value"),
        (demand("a b", Operator::Exists, &[]), 1, "is not a valid label key"),
        (demand("team", Operator::In, &["a b", "-"]), 2, "has the invalid value"),
        (demand("cpu", Operator::Gt, &[]), 1, "exactly one value"),
        (demand("cpu", Operator::Gte, &["1", "1"]), 1, "exactly one value"),
        (demand("cpu", Operator::Lt, &["x"]), 1, "exactly one value"),
        (demand("cpu", Operator::Lt, &["-1"]), 2, "exactly one value"),
        (demand(HOSTNAME, Operator::Exists, &[]), 1, "is restricted"),
        (demand("karpenter.sh/initialized", Operator::Exists, &[]), 1, "is restricted"),
        (demand(NODEPOOL, Operator::In, &["x"]), 1, "cannot require it"),
        (demand(CAPACITY_TYPE, Operator::In, &["typo"]), 1, "none of [typo]"),
    ] {
        assert_fault(&pool_requirement_faults([&bad]), count, words);
    }
    assert_eq!(requirement_faults(&demand(NODEPOOL, Operator::In, &["x"])), Vec::<String>::new(), "a pod may");
}

#[test]
fn enough_known_values_are_there_for_min_values() {
    let counted = |values: &[&str], least| WrittenRequirement {
        min_values: Some(least),
        ..demand(CAPACITY_TYPE, Operator::In, values)
    };
    assert_eq!(requirement_faults(&counted(&["spot", "on-demand"], 2)), Vec::<String>::new());
    assert_fault(&requirement_faults(&counted(&["spot", "typo"], 2)), 1, "has 1 of them");
    assert_fault(&requirement_faults(&counted(&["spot"], 2)), 2, "is greater than");
    assert_eq!(unknown_values(&counted(&["spot", "typo"], 1)), ["typo"]);
    assert_eq!(unknown_values(&demand("team", Operator::In, &["red"])), Vec::<&str>::new());
}
