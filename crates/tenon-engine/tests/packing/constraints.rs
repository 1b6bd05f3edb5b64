//! Which pods a pod must or must not be with, in few words.
//!
//! ```text
//! spread=zone:1:app=web;min=3;taints=honor;affinity=ignore   label, maxSkew, selector; `spread?=` for ScheduleAnyway
//! with=zone:app=web&tier=front                               required affinity
//! with?=5:zone:app=web                                       preferred, with its weight
//! apart=zone:*;in=ns1,ns2;in:team=red                        required anti-affinity; namespaces by name and by label
//! apart?=5:zone:-;in=*                                       no selector at all; every namespace
//! ```

use std::collections::BTreeSet;

use tenon_model::{
    NamespaceChoice, Operator, PodAffinityTerm, Selector, Spread, UseNodes, WeightedPodAffinityTerm, WhenUnsatisfiable,
    WrittenRequirement,
};

use crate::packing::cluster::label;

type Words<'a> = [(&'a str, &'a str)];

/// The constraints of a pod, in the order of its words.
pub(crate) fn spreads(words: &Words<'_>) -> Vec<Spread> {
    let when = |key: &str| match key {
        "spread" => Some(WhenUnsatisfiable::DoNotSchedule),
        "spread?" => Some(WhenUnsatisfiable::ScheduleAnyway),
        _ => None,
    };
    words.iter().filter_map(|(key, value)| Some(spread(when(key)?, value))).collect()
}

/// The terms of a pod under a word.
pub(crate) fn terms(words: &Words<'_>, kind: &str, namespace: &str) -> Vec<PodAffinityTerm> {
    let of_kind = words.iter().filter(|(key, _)| *key == kind);
    of_kind.map(|(_, value)| term(value, namespace)).collect()
}

/// The same, with weights.
pub(crate) fn weighted(words: &Words<'_>, kind: &str, namespace: &str) -> Vec<WeightedPodAffinityTerm> {
    let of_kind = words.iter().filter(|(key, _)| *key == kind);
    let read = |value: &str| {
        let (weight, rest) = value.split_once(':').unwrap();
        WeightedPodAffinityTerm { weight: weight.parse().unwrap(), term: term(rest, namespace) }
    };
    of_kind.map(|(_, value)| read(value)).collect()
}

fn spread(when_unsatisfiable: WhenUnsatisfiable, text: &str) -> Spread {
    let mut parts = text.split(';');
    let mut main = parts.next().unwrap().splitn(3, ':');
    let (key, max_skew, chosen) = (main.next().unwrap(), main.next().unwrap(), main.next().unwrap());
    let mut spread = Spread {
        label: label(key),
        max_skew: max_skew.parse().unwrap(),
        min_domains: None,
        when_unsatisfiable,
        selector: selector(chosen),
        nodes: UseNodes { that_are_wanted: true, that_are_tolerated: false },
    };
    for option in parts {
        match option.split_once('=').unwrap() {
            ("min", least) => spread.min_domains = Some(least.parse().unwrap()),
            ("taints", policy) => spread.nodes.that_are_tolerated = policy == "honor",
            ("affinity", policy) => spread.nodes.that_are_wanted = policy == "honor",
            other => panic!("{other:?} is no option of a spread"),
        }
    }
    spread
}

fn term(text: &str, namespace: &str) -> PodAffinityTerm {
    let mut parts = text.split(';');
    let (key, chosen) = parts.next().unwrap().split_once(':').unwrap();
    let mut choice = NamespaceChoice { names: BTreeSet::new(), selector: None };
    for option in parts {
        match option.split_once('=').unwrap() {
            ("in", "*") => choice.selector = Some(Selector::default()),
            ("in", names) => choice.names.extend(names.split(',').map(str::to_owned)),
            (other, value) => {
                let demand = equal(other.strip_prefix("in:").unwrap(), value);
                choice.selector.get_or_insert_default().requirements.push(demand);
            }
        }
    }
    if choice.names.is_empty() && choice.selector.is_none() {
        choice.names.insert(namespace.to_owned());
    }
    PodAffinityTerm { label: label(key), selector: selector(chosen), namespaces: choice }
}

fn selector(text: &str) -> Option<Selector> {
    let demand = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap();
        equal(key, value)
    };
    match text {
        "-" => None,
        "*" => Some(Selector::default()),
        pairs => Some(Selector { requirements: pairs.split('&').map(demand).collect() }),
    }
}

fn equal(label: &str, value: &str) -> WrittenRequirement {
    let (label, values) = (label.to_owned(), vec![value.to_owned()]);
    WrittenRequirement { label, operator: Operator::In, values, min_values: None }
}
