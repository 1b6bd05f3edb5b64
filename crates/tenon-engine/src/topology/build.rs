//! Which constraints are there, and how many pods are where before anything is placed?

use std::collections::BTreeSet;
use std::sync::Arc;

use tenon_model::{NamespaceChoice, NodeState, PodAffinityTerm, PodKey, Snapshot, Spread};

use super::bound::{Counting, Repelling, filtered, is_hostname, values};
use super::counts::Counts;
use super::domains::{Key, Provider};
use super::groups::{Choice, Group, Kind, Namespaces, Scope, View};
use super::node_filter::{Meanings, NodeFilter};
use crate::base::PodClass;
use crate::index::{Bits, FilterIx, GroupIx, Interner, KeyIx, NodeIx, PodClassIx, Table, ViewIx};

/// All constraints, and where pods are.
#[derive(Debug, Default)]
pub(crate) struct Topology {
    pub(crate) keys: Table<KeyIx, Key>,
    pub(crate) groups: Table<GroupIx, Group>,
    pub(crate) filters: Table<FilterIx, NodeFilter>,
    /// Nodes that are there and count.
    filtered: Table<FilterIx, Bits<NodeIx>>,
    pub(crate) views: Table<ViewIx, View>,
    /// Pods that are on nodes already.
    pub(crate) counts: Counts,
}

/// Constraints, collected while classes of pods are made.
#[derive(Debug)]
pub(crate) struct Build<'s> {
    snapshot: &'s Snapshot,
    keys: Interner<KeyIx, String>,
    groups: Interner<GroupIx, Group>,
    filters: Interner<FilterIx, NodeFilter>,
    /// Whether some pool has a taint: without one, tolerations make no difference between domains.
    pub(crate) has_taints: bool,
}

/// What is there, besides constraints.
pub(crate) struct World<'w> {
    pub(crate) nodes: &'w Table<NodeIx, Arc<NodeState>>,
    pub(crate) providers: Vec<Provider<'w>>,
    pub(crate) meanings: Meanings<'w>,
}

impl<'s> Build<'s> {
    pub(crate) fn new(snapshot: &'s Snapshot) -> Build<'s> {
        Build {
            snapshot,
            keys: Interner::default(),
            groups: Interner::default(),
            filters: Interner::default(),
            has_taints: snapshot.pools.iter().any(|pool| !pool.taints.is_empty()),
        }
    }

    /// The group of a spread that pods of a namespace ask for.
    pub(crate) fn spread(&mut self, spread: &Spread, namespace: &str, filter: NodeFilter) -> GroupIx {
        let scope = self.scope(&spread.label, filter);
        self.groups.number(Group::of_spread(spread, namespace, scope))
    }

    /// The group of a term of affinity or anti-affinity that is judged alone.
    pub(crate) fn term(&mut self, kind: Kind, term: &PodAffinityTerm, filter: NodeFilter) -> GroupIx {
        let (scope, choice) = (self.scope(&term.label, filter), self.choice(term));
        self.groups.number(Group::of_term(kind, choice, scope))
    }

    /// The groups of the required terms of affinity of a pod: a pod is counted if all of them choose it.
    pub(crate) fn together(&mut self, terms: &[PodAffinityTerm], filter: &NodeFilter) -> Vec<GroupIx> {
        let choices: Vec<Choice> = terms.iter().map(|term| self.choice(term)).collect();
        let mut groups = Vec::with_capacity(terms.len());
        for term in terms {
            let scope = self.scope(&term.label, filter.clone());
            let group = Group::of_terms(choices.clone(), scope).map(|group| self.groups.number(group));
            groups.extend(group.filter(|group| !groups.contains(group)));
        }
        groups
    }

    fn scope(&mut self, label: &str, filter: NodeFilter) -> Scope {
        Scope { key: self.keys.number(label.to_owned()), filter: self.filters.number(filter) }
    }

    fn choice(&self, term: &PodAffinityTerm) -> Choice {
        Choice::of(term, self.namespaces(&term.namespaces))
    }

    /// Namespaces that are named, and those with the labels.
    fn namespaces(&self, choice: &NamespaceChoice) -> Namespaces {
        match &choice.selector {
            Some(selector) if selector.requirements.is_empty() => Namespaces::All,
            Some(selector) => {
                let chosen = self.snapshot.namespaces.iter().filter(|(_, labels)| selector.chooses(labels));
                Namespaces::Named(chosen.map(|(name, _)| name).chain(&choice.names).cloned().collect())
            }
            None => Namespaces::Named(choice.names.clone()),
        }
    }

    /// Groups of pods on nodes that must not be with others: what they keep away, and where they are.
    fn repelling(&mut self) -> Vec<Repelling<'s>> {
        let placed_again = placed_again(self.snapshot);
        let mut found = Vec::new();
        for node in &self.snapshot.nodes {
            for pod in node.pods.iter().filter(|pod| !pod.shape.pod_anti_affinity.is_empty()) {
                if placed_again.contains(&*pod.key) {
                    continue;
                }
                // Karpenter does not know pods on a node that does not say what it is. By a label that the node lacks, kube-scheduler
                // keeps nobody away from them.
                let has = |label: &str| is_hostname(label) || node.labels.get(label).is_some();
                let terms = pod.shape.pod_anti_affinity.iter().filter(|term| !node.is_unidentified || has(&term.label));
                let groups = terms.map(|term| self.term(Kind::Inverse, term, NodeFilter::default())).collect();
                found.push((node.as_ref(), pod.as_ref(), groups));
            }
        }
        found
    }

    fn key(&self, label: &str, world: &World<'_>) -> Key {
        if is_hostname(label) {
            return Key::hostname(label);
        }
        let not_asked = self.snapshot.nodes.iter().filter(|node| !node.takes_pods());
        let others = values(not_asked, label).flatten();
        Key::new(label, values(world.nodes.iter(), label), &world.providers, others)
    }
}

impl Topology {
    /// Everything that is known before anything is placed. Each class learns which groups its pods are counted in, and each of
    /// its steps which domains it is allowed.
    pub(crate) fn new<'s>(
        mut build: Build<'s>,
        classes: &mut Table<PodClassIx, PodClass>,
        world: &World<'s>,
    ) -> Topology {
        let repelling = build.repelling();
        let keys: Table<KeyIx, Key> = build.keys.things().iter().map(|label| build.key(label, world)).collect();
        let Build { snapshot, groups, filters, .. } = build;
        let (groups, filters) = (groups.into_things(), filters.into_things());
        let numbers = world.nodes.pairs().map(|(number, node)| (node.name.as_str(), number)).collect();
        let counting = Counting { snapshot, world, keys: &keys, groups: &groups, filters: &filters, numbers };
        let counts = counting.counts(&repelling);
        let filtered = filters.iter().map(|filter| filtered(world, filter)).collect();
        let mut views: Interner<ViewIx, View> = Interner::default();
        let known = (&keys, &groups);
        classes.iter_mut().for_each(|class| class.see(known, world.meanings, &mut views));
        Topology { filtered, views: views.into_things(), keys, groups, filters, counts }
    }

    /// Whether anybody cares where pods are.
    pub(crate) fn is_used(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Whether one of these nodes, of a domain, counts for a group.
    pub(crate) fn counts_any(&self, group: GroupIx, mut nodes: Bits<NodeIx>) -> bool {
        nodes.keep(&self.filtered[self.groups[group].filter]);
        !nodes.is_empty()
    }

    /// Whether a node that is there counts for a group.
    pub(crate) fn counts_node(&self, group: GroupIx, node: NodeIx) -> bool {
        self.filtered[self.groups[group].filter].has(node)
    }
}

/// Pods on nodes that are placed again, because their node leaves.
pub(super) fn placed_again(snapshot: &Snapshot) -> BTreeSet<&PodKey> {
    let moves = snapshot.nodes.iter().any(|node| node.is_leaving);
    snapshot.pods.iter().filter(|_| moves).map(|pod| &*pod.key).collect()
}
