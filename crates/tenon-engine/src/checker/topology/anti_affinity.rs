//! Does a planned pod share a domain with a pod it must not be with, or that must not be with it?
//!
//! Pods are added one after the other, so of two that must not be together only the later one is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_model::PodKey;

use super::placed::{Domains, Placed};
use super::terms::{Kind, Terms, pods};

/// Who is in a domain of a term: the first of them, and how many there are.
#[derive(Default)]
struct Those<'a> {
    first: Option<&'a Arc<PodKey>>,
    count: usize,
}

impl<'a> Those<'a> {
    fn add(&mut self, key: &'a Arc<PodKey>) {
        self.first.get_or_insert(key);
        self.count += 1;
    }
}

/// By term and domain.
struct Tally<'p, 'a> {
    terms: Terms<'p, 'a>,
    chosen: BTreeMap<(usize, usize), Those<'a>>,
    owners: BTreeMap<(usize, usize), Those<'a>>,
}

/// Pods of the plan that break a required anti-affinity, and how.
pub(super) fn broken<'a>(
    placed: &Placed<'a>,
    domains: &BTreeMap<&'a str, Domains<'_>>,
) -> Vec<(&'a Arc<PodKey>, String)> {
    let terms = Terms::of(placed, domains, placed.classes.len(), Kind::AntiAffinity);
    if terms.all.is_empty() {
        return Vec::new();
    }
    let mut tally = Tally { terms, chosen: BTreeMap::new(), owners: BTreeMap::new() };
    for bound in &placed.bound {
        // A pod that ends soon is nothing to keep away from, but until then it keeps others away.
        tally.add(bound.key, bound.class, bound.node, !bound.is_terminating);
    }
    let mut broken = Vec::new();
    for planned in &placed.planned {
        let key = &planned.pod.key;
        match tally.conflict(planned.class, planned.node) {
            Some(rule) => broken.push((key, rule)),
            None => tally.add(key, planned.class, planned.node, true),
        }
    }
    broken
}

impl<'a> Tally<'_, 'a> {
    fn add(&mut self, key: &'a Arc<PodKey>, class: usize, node: usize, is_counted: bool) {
        for term in self.terms.choosing[class].iter().filter(|_| is_counted) {
            if let Some(domain) = self.terms.all[*term].domains.of_node[node] {
                self.chosen.entry((*term, domain)).or_default().add(key);
            }
        }
        for term in &self.terms.own[class] {
            if let Some(domain) = self.terms.all[*term].domains.of_node[node] {
                self.owners.entry((*term, domain)).or_default().add(key);
            }
        }
    }

    fn conflict(&self, class: usize, node: usize) -> Option<String> {
        let place = |term: &usize| Some((*term, self.terms.all[*term].domains.of_node[node]?));
        let own = self.terms.own[class].iter().filter_map(place);
        let selected = own.into_iter().find_map(|place| Some((place, self.chosen.get(&place)?)));
        if let Some((place, those)) = selected {
            let (what, domain) = self.words(place);
            let (selected, first) = (pods(those.count, "selected "), those.first?);
            return Some(format!(
                "breaks its required anti-affinity to {what}: {domain} has {selected}, for example {first}"
            ));
        }
        let choosing = self.terms.choosing[class].iter().filter_map(place);
        let (place, those) = choosing.into_iter().find_map(|place| Some((place, self.owners.get(&place)?)))?;
        let (what, domain) = self.words(place);
        let (owners, first) = (pods(those.count, ""), those.first?);
        Some(format!(
            "is selected by the required anti-affinity to {what} of pod {first}: {domain} has {owners} with this term"
        ))
    }

    /// What a term selects, and a domain of its label.
    fn words(&self, (term, domain): (usize, usize)) -> (String, String) {
        let asked = &self.terms.all[term];
        (asked.words(), format!("{}={}", asked.term.label, asked.domains.names[domain]))
    }
}
