//! The ways a pod can be tried: with all its wishes first, then with one given up after the other.
//!
//! Pods that ask for the same are tried by the same attempt, which remembers where it failed for good.

use std::cmp::Reverse;

use tenon_model::{Effect, HostPort, Options, Pod, PreferencePolicy, Preferred, Requirements, Tolerated, Toleration};

use crate::axes::{Amounts, Axes};
use crate::bits::Bits;
use crate::interner::Interner;

/// All attempts of a plan.
#[derive(Default)]
pub(crate) struct Attempts<'a> {
    demands: Interner<Requirements>,
    tolerations: Interner<Vec<Toleration>>,
    attempts: Interner<Attempt<'a>>,
    chains: Interner<Vec<usize>>,
}

/// One way to try a pod.
pub(crate) struct Attempt<'a> {
    /// What it demands of labels, by number.
    pub(crate) demand: usize,
    /// What it tolerates, by number.
    pub(crate) tolerations: usize,
    pub(crate) amounts: Amounts,
    pub(crate) ports: &'a [HostPort],
    pub(crate) failed: Failed,
}

/// Where an attempt need not be tried again: what is left there only becomes less. Only labels may become more: what one
/// pod says of a label that nobody had heard of is known to the next.
#[derive(Default)]
pub(crate) struct Failed {
    /// Nodes that are there which may still take it; unset before the first try.
    pub(crate) open_nodes: Option<Bits>,
    /// Planned nodes.
    pub(crate) claims: Bits,
    /// How many of the labels that planned nodes came by were looked at since.
    pub(crate) labels_seen: usize,
    /// Pools, for new nodes.
    pub(crate) pools: Bits,
}

/// What decides how a pod is tried.
pub(crate) struct Rules<'r> {
    pub(crate) axes: &'r Axes,
    pub(crate) options: &'r Options,
    /// Whether some pool has a taint that only advises; it counts until everything else was given up.
    pub(crate) has_advice: bool,
}

impl<'a> Attempts<'a> {
    /// The attempts for a pod, in their order.
    pub(crate) fn chain(&mut self, pod: &'a Pod, rules: &Rules<'_>) -> usize {
        let amounts = rules.axes.row(&pod.requests);
        let key = (&amounts, &pod.alternatives, &pod.preferred, &pod.tolerations, &pod.host_ports);
        let Attempts { demands, tolerations, attempts, chains } = self;
        chains.number(&key, || {
            let wanted = demands_of(pod, rules.options.preferences);
            let mut chain: Vec<(Requirements, Vec<Toleration>)> =
                wanted.into_iter().map(|wanted| (wanted, pod.tolerations.clone())).collect();
            if let Some((last, _)) = chain.last().filter(|_| rules.has_advice) {
                let more = Toleration { key: None, value: Tolerated::Exists, effect: Some(Effect::PreferNoSchedule) };
                let patient = pod.tolerations.iter().cloned().chain([more]).collect();
                chain.push((last.clone(), patient));
            }
            let mut enter = |(wanted, tolerated): (Requirements, Vec<Toleration>)| {
                let demand = demands.number(&wanted.clone(), || wanted);
                let tolerations = tolerations.number(&tolerated.clone(), || tolerated);
                attempts.number(&(demand, tolerations, &amounts, &pod.host_ports), || Attempt {
                    demand,
                    tolerations,
                    amounts: amounts.clone(),
                    ports: &pod.host_ports,
                    failed: Failed::default(),
                })
            };
            chain.into_iter().map(&mut enter).collect()
        })
    }

    /// The attempts of a chain.
    pub(crate) fn of_chain(&self, chain: usize) -> Option<&Vec<usize>> {
        self.chains.get(chain)
    }

    /// An attempt, with its demands and tolerations.
    pub(crate) fn open(&mut self, number: usize) -> Option<(&mut Attempt<'a>, &Requirements, &[Toleration])> {
        let attempt = self.attempts.get_mut(number)?;
        let (demand, tolerations) = (self.demands.get(attempt.demand)?, self.tolerations.get(attempt.tolerations)?);
        Some((attempt, demand, tolerations))
    }
}

/// Demands in the order they are tried: the alternatives one after the other, each with the heaviest wish; then the last
/// alternative with one wish after the other given up.
fn demands_of(pod: &Pod, policy: PreferencePolicy) -> Vec<Requirements> {
    let mut wishes: Vec<&Preferred> = pod.preferred.iter().collect();
    // Stable: of equal ones the first that was written is given up first.
    wishes.sort_by_key(|wish| Reverse(wish.weight));
    if policy == PreferencePolicy::Ignore {
        wishes.clear();
    }
    let anything = [Requirements::default()];
    let alternatives = if pod.alternatives.is_empty() { anything.as_slice() } else { pod.alternatives.as_slice() };
    let joined = |wanted: &Requirements, wish: Option<&&Preferred>| {
        let mut joined = wanted.clone();
        wish.into_iter().for_each(|wish| joined.join(&wish.requirements));
        joined
    };
    let mut demands: Vec<Requirements> = alternatives.iter().map(|wanted| joined(wanted, wishes.first())).collect();
    if let Some(last) = alternatives.last() {
        let later = wishes.iter().skip(1).map(Some).chain((!wishes.is_empty()).then_some(None));
        demands.extend(later.map(|wish| joined(last, wish)));
    }
    demands
}
