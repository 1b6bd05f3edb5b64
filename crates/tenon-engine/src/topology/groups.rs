//! Which constraints are one? Pods that are counted the same way for the same label are one group, whoever asks for it.

use std::collections::BTreeSet;

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
    selector: Option<Selector>,
    namespaces: Namespaces,
    /// Nodes that count.
    pub(crate) filter: FilterIx,
}

/// Where a group is counted.
pub(crate) struct Scope {
    pub(crate) key: KeyIx,
    pub(crate) filter: FilterIx,
    pub(crate) namespaces: Namespaces,
}

/// Namespaces whose pods are looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
    pub(crate) fn of_spread(spread: &Spread, key: KeyIx, namespace: &str, filter: FilterIx) -> Group {
        let kind = Kind::Spread { max_skew: spread.max_skew, min_domains: spread.min_domains };
        let namespaces = Namespaces::Named([namespace.to_owned()].into());
        Group { kind, key, selector: spread.selector.as_ref().map(canonical), namespaces, filter }
    }

    pub(crate) fn of_term(kind: Kind, term: &PodAffinityTerm, Scope { key, filter, namespaces }: Scope) -> Group {
        Group { kind, key, selector: term.selector.as_ref().map(canonical), namespaces, filter }
    }

    /// Whether pods of a namespace with these labels are counted, or meant. Nobody is, where there is no selector.
    pub(crate) fn selects(&self, namespace: &str, labels: &std::collections::BTreeMap<String, String>) -> bool {
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
