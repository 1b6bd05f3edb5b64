//! How many pods does a spread constraint count in each domain?
//!
//! Domains are those of nodes that are there or planned; one that a NodePool could still make does not exist for
//! kube-scheduler. Karpenter counts such domains as empty and takes the lowest count of host names as zero, which is at
//! least as strict. Unlike kube-scheduler, and like Karpenter, nodes that lack a label of another constraint of the pod count.

use std::collections::BTreeMap;

use tenon_model::{Requirements, Spread};

use super::hard;
use super::placed::{Class, Domains, Node, Placed};
use super::terms::Chooser;

/// Equal constraints of pods for which the same nodes count, but for how much skew they allow.
pub(super) struct Group<'p, 'a> {
    pub(super) spread: &'a Spread,
    pub(super) domains: &'p Domains<'p>,
    /// By node: whether pods on it count.
    counts: Vec<bool>,
    /// By domain; none for one without a node that counts.
    pods: Vec<Option<u32>>,
    /// How many domains have so many pods.
    levels: BTreeMap<u32, usize>,
}

/// What a class asks of a group.
pub(super) struct Own {
    pub(super) group: usize,
    pub(super) max_skew: u32,
    /// Whether its pods count themselves.
    pub(super) is_counted: bool,
}

pub(super) struct Groups<'p, 'a> {
    pub(super) all: Vec<Group<'p, 'a>>,
    /// By class: the constraints of its pods.
    pub(super) own: Vec<Vec<Own>>,
    /// By class: the groups that count its pods.
    pub(super) counting: Vec<Vec<usize>>,
}

impl<'p, 'a> Groups<'p, 'a> {
    /// The hard constraints of planned pods on a label, with pods that are bound counted.
    pub(super) fn of(
        placed: &'p Placed<'a>,
        domains: &'p BTreeMap<&'a str, Domains<'p>>,
        label: &str,
    ) -> Groups<'p, 'a> {
        let mut owners: Vec<(&Class<'a>, &Spread)> = Vec::new();
        let mut groups = Groups { all: Vec::new(), own: Vec::new(), counting: Vec::new() };
        groups.own.resize_with(placed.classes.len(), Vec::new);
        groups.counting.resize_with(placed.classes.len(), Vec::new);
        let mut known = BTreeMap::<_, Vec<usize>>::new();
        for (class, owner) in placed.classes.iter().enumerate().take(placed.planned_classes) {
            for spread in hard(owner.shape).filter(|spread| spread.label == label) {
                let Some(domains) = domains.get(spread.label.as_str()) else { continue };
                let key = (owner.namespace, &spread.label, &spread.selector, spread.nodes, spread.min_domains);
                let alike = known.entry(key).or_default();
                let found = alike.iter().copied().find(|group| has_same_nodes(owners[*group], (owner, spread)));
                let group = found.unwrap_or_else(|| {
                    alike.push(groups.all.len());
                    owners.push((owner, spread));
                    groups.all.push(Group::of(placed, (owner, spread), domains));
                    groups.all.len() - 1
                });
                groups.own[class].push(Own { group, max_skew: spread.max_skew, is_counted: false });
            }
        }
        groups.choose(placed, &owners);
        for bound in placed.bound.iter().filter(|bound| !bound.is_terminating) {
            for group in &groups.counting[bound.class] {
                groups.all[*group].add(bound.node);
            }
        }
        groups
    }

    /// Finds the pods that each group counts: those in its owner's namespace.
    fn choose(&mut self, placed: &Placed<'a>, owners: &[(&Class<'a>, &Spread)]) {
        let chooser = Chooser::of(placed);
        for (group, (owner, spread)) in owners.iter().enumerate() {
            for class in chooser.chosen(spread.selector.as_ref(), |namespace| namespace == owner.namespace) {
                self.counting[class].push(group);
                let own = self.own[class].iter_mut().filter(|own| own.group == group);
                own.for_each(|own| own.is_counted = true);
            }
        }
    }
}

impl<'p, 'a> Group<'p, 'a> {
    fn of(placed: &Placed<'a>, owner: (&Class<'a>, &'a Spread), domains: &'p Domains<'p>) -> Group<'p, 'a> {
        let counts: Vec<bool> = placed.nodes.iter().map(|node| is_used(node, owner)).collect();
        let pods = vec![None; domains.names.len()];
        let mut group = Group { spread: owner.1, domains, counts, pods, levels: BTreeMap::new() };
        // A domain that goes with its last node holds nobody back.
        let stays = |place: &usize| !placed.nodes[*place].is_leaving;
        (0..placed.nodes.len()).filter(stays).for_each(|node| group.open(node));
        group
    }

    /// Where a pod on a node is counted.
    pub(super) fn counted_in(&self, node: usize) -> Option<usize> {
        self.domains.of_node[node].filter(|_| self.counts[node])
    }

    /// Makes sure that the domain of a node that counts exists.
    fn open(&mut self, node: usize) {
        let Some(domain) = self.counted_in(node) else { return };
        if self.pods[domain].is_none() {
            self.pods[domain] = Some(0);
            *self.levels.entry(0).or_default() += 1;
        }
    }

    /// Counts a pod on a node. Whether the emptiest domain has more pods than before.
    pub(super) fn add(&mut self, node: usize) -> bool {
        self.open(node);
        let Some(domain) = self.counted_in(node) else { return false };
        let lowest = self.lowest();
        let before = self.pods_in(domain);
        self.pods[domain] = Some(before + 1);
        let rest = self.levels.get(&before).copied().unwrap_or_default().saturating_sub(1);
        if rest == 0 {
            self.levels.remove(&before)
        } else {
            self.levels.insert(before, rest)
        };
        *self.levels.entry(before + 1).or_default() += 1;
        self.lowest() > lowest
    }

    pub(super) fn pods_in(&self, domain: usize) -> u32 {
        self.pods[domain].unwrap_or_default()
    }

    /// How many domains there are.
    pub(super) fn size(&self) -> usize {
        self.levels.values().sum()
    }

    /// Whether there are fewer domains than asked for, so that the emptiest counts as having no pods.
    pub(super) fn has_too_few(&self) -> bool {
        self.spread.min_domains.is_some_and(|least| usize::try_from(least).is_ok_and(|least| self.size() < least))
    }

    /// The number of pods in the emptiest domain.
    pub(super) fn lowest(&self) -> u32 {
        let lowest = self.levels.keys().next().copied().unwrap_or_default();
        if self.has_too_few() { 0 } else { lowest }
    }

    /// The emptiest domain.
    pub(super) fn emptiest(&self) -> Option<&'p str> {
        let exist = self.pods.iter().enumerate().filter_map(|(domain, pods)| Some((*pods.as_ref()?, domain)));
        exist.min().map(|(_, domain)| self.domains.names[domain])
    }
}

/// Whether the same nodes count for two owners of constraints that are alike otherwise.
fn has_same_nodes((one, spread): (&Class<'_>, &Spread), (other, _): (&Class<'_>, &Spread)) -> bool {
    (!spread.nodes.that_are_wanted || one.shape.alternatives == other.shape.alternatives)
        && (!spread.nodes.that_are_tolerated || one.shape.tolerations == other.shape.tolerations)
}

/// Whether a node counts for a constraint.
fn is_used(node: &Node<'_>, (owner, spread): (&Class<'_>, &Spread)) -> bool {
    let (alternatives, tolerations) = (&owner.shape.alternatives, &owner.shape.tolerations);
    let is_tolerated = || node.taints.iter().all(|taint| !taint.is_a_bar() || taint.is_tolerated_by(tolerations));
    let is_wanted = || {
        alternatives.is_empty()
            || alternatives.iter().any(Requirements::is_empty)
            || alternatives.iter().any(|wanted| node.facts().can_meet(wanted, |_| false))
    };
    (!spread.nodes.that_are_tolerated || is_tolerated()) && (!spread.nodes.that_are_wanted || is_wanted())
}
