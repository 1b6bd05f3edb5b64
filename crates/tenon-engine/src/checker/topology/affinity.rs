//! Does every planned pod find the pods it must be with, in an order in which pods can be bound?
//!
//! A pod that must be with others in several respects finds those that all of its terms choose, for each term where its label says.
//!
//! Pods that may be the first of their kind are bound before others of that kind: one order in which pods can be bound is enough.
//! Any other pod is bound once a pod that its term chooses is bound in its domain. When nothing moves any more, one that chooses
//! itself may be the first of its kind, unless there is a pod of that kind where it could have gone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tenon_model::PodKey;

use super::placed::{Domains, Placed};
use super::terms::{Kind, Terms};

struct Replay<'p, 'a> {
    placed: &'p Placed<'a>,
    terms: Terms<'p, 'a>,
    /// Chosen pods that are bound, by term and domain.
    counts: BTreeMap<(usize, usize), usize>,
    /// Pods that need a chosen one, by term and domain.
    waiting: BTreeMap<(usize, usize), Vec<usize>>,
    left: BTreeSet<usize>,
    ready: VecDeque<usize>,
}

/// Pods of the plan that never have the pods they must be with, and why.
pub(super) fn broken<'a>(
    placed: &Placed<'a>,
    domains: &BTreeMap<&'a str, Domains<'_>>,
) -> Vec<(&'a Arc<PodKey>, String)> {
    let terms = Terms::of(placed, domains, placed.planned_classes, Kind::Affinity);
    if terms.all.is_empty() {
        return Vec::new();
    }
    let pods = 0..placed.planned.len();
    let (left, ready) = (pods.clone().collect(), pods.collect());
    let mut replay = Replay { placed, terms, counts: BTreeMap::new(), waiting: BTreeMap::new(), left, ready };
    for bound in placed.bound.iter().filter(|bound| !bound.is_terminating) {
        replay.count(bound.class, bound.node);
    }
    let rivals = replay.rivals();
    replay.bind_all();
    let all = std::mem::replace(&mut replay.counts, rivals);
    let lone: BTreeSet<usize> = replay.left.iter().copied().filter(|pod| replay.is_alone(*pod)).collect();
    replay.counts = all;
    let left = replay
        .left
        .iter()
        .filter(|pod| !lone.contains(pod))
        .map(|pod| (&placed.planned[*pod].pod.key, replay.why(*pod)));
    left.collect()
}

impl Replay<'_, '_> {
    fn bind_all(&mut self) {
        for pod in 0..self.placed.planned.len() {
            if self.unmet(pod).next().is_some() && self.is_first(pod) {
                self.bind(pod);
            }
        }
        loop {
            while let Some(pod) = self.ready.pop_front() {
                self.try_to_bind(pod);
            }
            match self.left.iter().copied().find(|pod| self.is_first(*pod)) {
                Some(first) => self.bind(first),
                None => return,
            }
        }
    }

    fn try_to_bind(&mut self, pod: usize) {
        if !self.left.contains(&pod) {
            return;
        }
        let unmet = self.unmet(pod).next();
        match unmet {
            Some((term, Some(domain))) => self.waiting.entry((term, domain)).or_default().push(pod),
            // Without the label nothing ever helps it.
            Some((_, None)) => {}
            None => self.bind(pod),
        }
    }

    fn bind(&mut self, pod: usize) {
        self.left.remove(&pod);
        let planned = &self.placed.planned[pod];
        self.count(planned.class, planned.node);
    }

    fn count(&mut self, class: usize, node: usize) {
        for term in &self.terms.choosing[class] {
            let Some(domain) = self.terms.all[*term].domains.of_node[node] else { continue };
            *self.counts.entry((*term, domain)).or_default() += 1;
            self.ready.extend(self.waiting.remove(&(*term, domain)).unwrap_or_default());
        }
    }

    /// Terms of a pod that no bound pod meets, each with the pod's domain.
    fn unmet(&self, pod: usize) -> impl Iterator<Item = (usize, Option<usize>)> {
        let planned = &self.placed.planned[pod];
        let terms = self.terms.own[planned.class].iter();
        let places = terms.map(|term| (*term, self.terms.all[*term].domains.of_node[planned.node]));
        places.filter(|(term, domain)| domain.is_none_or(|domain| !self.counts.contains_key(&(*term, domain))))
    }

    /// Pods that keep others from being the first: those bound before, and planned ones that would have to be the first themselves.
    fn rivals(&self) -> BTreeMap<(usize, usize), usize> {
        let (mut rivals, mut joined) = (self.counts.clone(), BTreeSet::new());
        for planned in &self.placed.planned {
            let (own, choosing) = (&self.terms.own[planned.class], &self.terms.choosing[planned.class]);
            let place = |term: &usize| Some((*term, self.terms.all[*term].domains.of_node[planned.node]?));
            joined.extend(choosing.iter().filter(|term| !own.contains(term)).filter_map(place));
            own.iter().filter_map(place).for_each(|place| *rivals.entry(place).or_default() += 1);
        }
        rivals.retain(|place, _| self.counts.contains_key(place) || !joined.contains(place));
        rivals
    }

    /// Whether no pod but those in its own domain keeps it from being the first of its kind: then it can be bound before others.
    fn is_alone(&self, pod: usize) -> bool {
        let planned = &self.placed.planned[pod];
        self.terms.own[planned.class].iter().all(|term| {
            let Some(domain) = self.terms.all[*term].domains.of_node[planned.node] else { return false };
            let has_others = self.populated(*term).any(|(other, _)| other != domain);
            self.terms.choosing[planned.class].contains(term) && (!has_others || self.may_found(pod, *term, domain))
        })
    }

    /// Whether a pod may be the first of its kind where it is.
    fn is_first(&self, pod: usize) -> bool {
        self.unmet(pod).all(|(term, domain)| domain.is_some_and(|domain| self.may_found(pod, term, domain)))
    }

    fn may_found(&self, pod: usize, term: usize, domain: usize) -> bool {
        let planned = &self.placed.planned[pod];
        let (asked, domains) = (self.terms.all[term].term, self.terms.all[term].domains);
        let found: Vec<&str> = self.populated(term).map(|(domain, _)| domains.names[domain]).collect();
        // Of several alternatives the one that led here counts; which one that was is not known.
        let leads_only_here = |alternative: &tenon_model::Requirements| {
            alternative.admit(&asked.label, domains.names[domain])
                && !found.iter().any(|other| alternative.admit(&asked.label, other))
        };
        self.terms.choosing[planned.class].contains(&term)
            && (found.is_empty() || planned.pod.alternatives.iter().any(leads_only_here))
    }

    fn populated(&self, term: usize) -> impl Iterator<Item = (usize, usize)> {
        self.counts.range((term, 0)..(term + 1, 0)).map(|((_, domain), count)| (*domain, *count))
    }

    fn why(&self, pod: usize) -> String {
        let Some((term, domain)) = self.unmet(pod).next() else { return String::new() };
        let asked = &self.terms.all[term];
        let (label, what, domains) = (&asked.term.label, asked.words(), asked.domains);
        let Some(domain) = domain else {
            return format!("breaks its required affinity to {what}: its node has no label {label}");
        };
        let found: Vec<String> = self
            .populated(term)
            .take(5)
            .map(|(domain, count)| format!("{} has {count}", domains.names[domain]))
            .collect();
        let elsewhere = if found.is_empty() { "no other domain has any".to_owned() } else { found.join(", ") };
        let name = domains.names[domain];
        format!("breaks its required affinity to {what}: {label}={name} has 0 selected pods besides it ({elsewhere})")
    }
}
