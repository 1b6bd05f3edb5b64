//! Which constraints are one? Pods that are counted the same way for the same label are one group, whoever asks for it.

use std::collections::{BTreeMap, BTreeSet};

use tenon_model::{PodAffinityTerm, Selector, Spread, WrittenRequirement};

use crate::index::{Bits, DemandIx, DomainIx, FilterIx, GroupIx, KeyIx};

/// What a group asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Pods are spread evenly over domains.
    Spread {
        /// How many pods more one domain may have than the emptiest.
        max_skew: u32,
        /// With fewer domains than this, the emptiest counts as having none.
        min_domains: Option<u32>,
    },
    /// A pod goes where pods of the group are.
    Affinity,
    /// A pod goes where no pod of the group is.
    AntiAffinity,
    /// A pod that is chosen goes where no pod is that must not be with it.
    Inverse,
}

/// A group of pods that are counted by domain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    pub(crate) kind: Kind,
    pub(crate) key: KeyIx,
    choice: Choice,
    /// What else has to choose a pod that is counted. Nothing, but for pods that must be with others in several respects.
    also: Vec<Choice>,
    /// Nodes that count.
    pub(crate) filter: FilterIx,
}

/// Pods by their labels and namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Choice {
    selector: Option<Selector>,
    namespaces: Namespaces,
}

/// Where a group is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope {
    pub(crate) key: KeyIx,
    pub(crate) filter: FilterIx,
}

/// Namespaces whose pods are looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Namespaces {
    /// All of them.
    All,
    /// Those that are named.
    Named(BTreeSet<String>),
}

/// A group as pods of one kind see it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct View {
    pub(crate) group: GroupIx,
    /// Whether the pod itself is counted once it is placed.
    pub(crate) selects_self: bool,
    /// What the pod insists on. Domains that this leaves out do not count for the emptiest.
    pub(crate) strict: DemandIx,
    /// The domains that this leaves. None of a host name.
    pub(crate) pod_domains: Bits<DomainIx>,
}

impl Group {
    pub(crate) fn of_spread(spread: &Spread, namespace: &str, Scope { key, filter }: Scope) -> Group {
        let kind = Kind::Spread { max_skew: spread.max_skew, min_domains: spread.min_domains };
        let namespaces = Namespaces::Named([namespace.to_owned()].into());
        let choice = Choice { selector: spread.selector.as_ref().map(canonical), namespaces };
        Group { kind, key, choice, also: Vec::new(), filter }
    }

    /// The group of one term.
    pub(crate) fn of_term(kind: Kind, choice: Choice, Scope { key, filter }: Scope) -> Group {
        Group { kind, key, choice, also: Vec::new(), filter }
    }

    /// The group of a term of pods that must be with others in several respects: only pods that all of their terms choose are
    /// counted, as kube-scheduler counts them. Karpenter counts for each term those that it alone chooses.
    pub(crate) fn of_terms(mut choices: Vec<Choice>, Scope { key, filter }: Scope) -> Option<Group> {
        choices.sort_unstable();
        choices.dedup();
        let mut choices = choices.into_iter();
        Some(Group { kind: Kind::Affinity, key, choice: choices.next()?, also: choices.collect(), filter })
    }

    /// Whether pods of a namespace with these labels are counted, or meant. Nobody is, where there is no selector.
    pub(crate) fn selects(&self, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
        self.choice.chooses(namespace, labels) && self.also.iter().all(|choice| choice.chooses(namespace, labels))
    }

    /// Whether several terms have to choose a pod that is counted.
    pub(crate) fn is_of_several(&self) -> bool {
        !self.also.is_empty()
    }
}

impl Choice {
    pub(crate) fn of(term: &PodAffinityTerm, namespaces: Namespaces) -> Choice {
        Choice { selector: term.selector.as_ref().map(canonical), namespaces }
    }

    fn chooses(&self, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
        let is_near = match &self.namespaces {
            Namespaces::All => true,
            Namespaces::Named(names) => names.contains(namespace),
        };
        is_near && self.selector.as_ref().is_some_and(|selector| selector.chooses(labels))
    }
}

/// A selector in which neither order nor repetition matters.
fn canonical(selector: &Selector) -> Selector {
    let sorted = |demand: &WrittenRequirement| {
        let mut demand = demand.clone();
        demand.values.sort_unstable();
        demand.values.dedup();
        demand
    };
    let mut requirements: Vec<WrittenRequirement> = selector.requirements.iter().map(sorted).collect();
    requirements.sort_by(|a, b| (&a.label, a.operator, &a.values).cmp(&(&b.label, b.operator, &b.values)));
    requirements.dedup();
    Selector { requirements }
}
