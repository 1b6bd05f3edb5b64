//! Where may a pod go because of other pods, and where would it rather go? Judged as kube-scheduler judges it.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use tenon_api::kube_objects::Node;
use tenon_api::pod;
use tenon_model::{Pod as Wanted, PodAffinityTerm, Spread, WhenUnsatisfiable};

use super::board::{Board, has_ended};
use super::scheduler::{barring, matches};

type Labels = BTreeMap<String, String>;

/// Pods on nodes, and the labels of namespaces.
pub(super) struct Neighbours<'b> {
    nodes: &'b [Node],
    namespaces: BTreeMap<String, Labels>,
    pods: Vec<Neighbour>,
}

struct Neighbour {
    /// The place of its node in the list.
    node: usize,
    pod: Wanted,
    is_terminating: bool,
}

/// What others demand of the node of one pod.
pub(super) struct Rules {
    spreads: Vec<SpreadRule>,
    /// Values of labels where pods are that do not want this one.
    kept_away: BTreeSet<(String, String)>,
    /// Values of labels where pods are that this one does not want.
    apart: BTreeSet<(String, String)>,
    /// Labels, and their values where pods are that this one wants. If there are none, the pod may be the first.
    together: Vec<(String, BTreeSet<String>)>,
    may_be_first: bool,
    wishes: Vec<Wish>,
}

struct SpreadRule {
    label: String,
    /// Pods by value of the label.
    counts: BTreeMap<String, u32>,
    /// The most pods a value may have before this one.
    most: i64,
}

/// A wish, and what a node with one of these values is worth.
struct Wish {
    label: String,
    worth: BTreeMap<String, i64>,
}

impl<'b> Neighbours<'b> {
    pub(super) fn new(board: &'b Board) -> Neighbours<'b> {
        let numbers: BTreeMap<String, usize> =
            board.nodes.iter().enumerate().map(|(number, node)| (node.name_any(), number)).collect();
        let pods = board.pods.iter().filter(|pod| !has_ended(pod)).filter_map(|found| {
            let node = *numbers.get(found.node_name()?)?;
            let is_terminating = found.metadata.deletion_timestamp.is_some();
            Some(Neighbour { node, pod: pod::to_model(&found.clone().into()), is_terminating })
        });
        let namespaces = board.namespaces.iter().map(|found| (found.name_any(), found.labels().clone()));
        Neighbours { nodes: &board.nodes, namespaces: namespaces.collect(), pods: pods.collect() }
    }

    /// A pod was bound.
    pub(super) fn add(&mut self, node: &str, pod: Wanted) {
        if let Some(node) = self.nodes.iter().position(|known| known.name_any() == node) {
            self.pods.push(Neighbour { node, pod, is_terminating: false });
        }
    }

    /// What a pod has to obey.
    pub(super) fn rules(&self, wanted: &Wanted) -> Rules {
        let is_hard = |spread: &&Spread| spread.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule;
        let hard: Vec<&Spread> = wanted.spreads.iter().filter(is_hard).collect();
        let counts = |spread: &&Spread| self.counts(wanted, spread, &hard);
        let spreads = hard.iter().map(|spread| SpreadRule::new(wanted, spread, counts(spread)));
        let (together, may_be_first) = self.together(wanted);
        Rules {
            spreads: spreads.collect(),
            kept_away: self.kept_away(wanted),
            apart: wanted.pod_anti_affinity.iter().flat_map(|term| self.values(term)).collect(),
            together,
            may_be_first,
            wishes: self.wishes(wanted),
        }
    }

    /// How many pods each value of the label has, of nodes that count.
    fn counts(&self, wanted: &Wanted, spread: &Spread, hard: &[&Spread]) -> BTreeMap<String, u32> {
        let counts_node = |node: &Node| {
            let has_all = hard.iter().all(|other| node.labels().contains_key(&other.label));
            let is_wanted = !spread.nodes.that_are_wanted || matches(wanted, node);
            let is_tolerated = !spread.nodes.that_are_tolerated || barring(wanted, node).is_none();
            has_all && is_wanted && is_tolerated
        };
        let value = |node: &Node| node.labels().get(&spread.label).filter(|_| counts_node(node)).cloned();
        let values: Vec<Option<String>> = self.nodes.iter().map(value).collect();
        let mut counts: BTreeMap<String, u32> = values.iter().flatten().map(|value| (value.clone(), 0)).collect();
        for neighbour in self.pods.iter().filter(|neighbour| !neighbour.is_terminating) {
            let is_near = neighbour.pod.key.namespace == wanted.key.namespace;
            let is_one = spread.selector.as_ref().is_some_and(|selector| selector.chooses(&neighbour.pod.labels));
            if let Some(value) = values[neighbour.node].as_ref().filter(|_| is_near && is_one) {
                *counts.entry(value.clone()).or_default() += 1;
            }
        }
        counts
    }

    /// Whether a term speaks of a pod.
    fn chooses(&self, term: &PodAffinityTerm, pod: &Wanted) -> bool {
        let choice = &term.namespaces;
        let nothing = Labels::new();
        let labels = self.namespaces.get(&*pod.key.namespace).unwrap_or(&nothing);
        let is_near = choice.names.contains(&*pod.key.namespace)
            || choice.selector.as_ref().is_some_and(|selector| selector.chooses(labels));
        is_near && term.selector.as_ref().is_some_and(|selector| selector.chooses(&pod.labels))
    }

    /// The label of a term, with each value that a node with a pod of it has.
    fn values(&self, term: &PodAffinityTerm) -> Vec<(String, String)> {
        let chosen = self.pods.iter().filter(|neighbour| self.chooses(term, &neighbour.pod));
        chosen.filter_map(|neighbour| self.value(neighbour, &term.label)).collect()
    }

    fn value(&self, neighbour: &Neighbour, label: &str) -> Option<(String, String)> {
        Some((label.to_owned(), self.nodes[neighbour.node].labels().get(label)?.clone()))
    }

    fn kept_away(&self, wanted: &Wanted) -> BTreeSet<(String, String)> {
        let mut values = BTreeSet::new();
        for neighbour in &self.pods {
            let terms = neighbour.pod.pod_anti_affinity.iter().filter(|term| self.chooses(term, wanted));
            values.extend(terms.filter_map(|term| self.value(neighbour, &term.label)));
        }
        values
    }

    /// Only pods that all terms choose count. Without any, a pod that its own terms choose may go anywhere.
    fn together(&self, wanted: &Wanted) -> (Vec<(String, BTreeSet<String>)>, bool) {
        let are_all = |pod: &Wanted| wanted.pod_affinity.iter().all(|term| self.chooses(term, pod));
        let mates: Vec<&Neighbour> = match wanted.pod_affinity.is_empty() {
            true => Vec::new(),
            false => self.pods.iter().filter(|neighbour| are_all(&neighbour.pod)).collect(),
        };
        let values = |term: &PodAffinityTerm| {
            mates.iter().filter_map(|mate| self.value(mate, &term.label)).map(|(_, value)| value).collect()
        };
        let together: Vec<(String, BTreeSet<String>)> =
            wanted.pod_affinity.iter().map(|term| (term.label.clone(), values(term))).collect();
        let is_nowhere = together.iter().all(|(_, values)| values.is_empty());
        (together, is_nowhere && are_all(wanted))
    }

    fn wishes(&self, wanted: &Wanted) -> Vec<Wish> {
        let with = wanted.preferred_pod_affinity.iter().map(|wish| (i64::from(wish.weight), &wish.term));
        let without = wanted.preferred_pod_anti_affinity.iter().map(|wish| (-i64::from(wish.weight), &wish.term));
        let company = with.chain(without).map(|(weight, term)| {
            let worth = self.values(term).into_iter().map(|(_, value)| (value, weight)).collect();
            Wish { label: term.label.clone(), worth }
        });
        let soft =
            wanted.spreads.iter().filter(|spread| spread.when_unsatisfiable == WhenUnsatisfiable::ScheduleAnyway);
        let even = soft.map(|spread| {
            let counts = self.counts(wanted, spread, &[]);
            Wish {
                label: spread.label.clone(),
                worth: counts.into_iter().map(|(value, count)| (value, -i64::from(count))).collect(),
            }
        });
        company.chain(even).collect()
    }
}

impl SpreadRule {
    fn new(wanted: &Wanted, spread: &Spread, counts: BTreeMap<String, u32>) -> SpreadRule {
        let is_short = spread.min_domains.is_some_and(|wanted| counts.len() < wanted as usize);
        let fewest = counts.values().min().map_or(i64::from(u32::MAX), |fewest| i64::from(*fewest));
        let least = if is_short { 0 } else { fewest };
        let itself = spread.selector.as_ref().is_some_and(|selector| selector.chooses(&wanted.labels));
        let most = i64::from(spread.max_skew) + least - i64::from(itself);
        SpreadRule { label: spread.label.clone(), counts, most }
    }
}

impl Rules {
    /// Why a node with these labels does not do, in kube-scheduler's words.
    pub(super) fn refusal(&self, labels: &Labels) -> Option<&'static str> {
        for spread in &self.spreads {
            let Some(value) = labels.get(&spread.label) else {
                return Some("node(s) didn't match pod topology spread constraints (missing required label)");
            };
            if i64::from(spread.counts.get(value).copied().unwrap_or_default()) > spread.most {
                return Some("node(s) didn't match pod topology spread constraints");
            }
        }
        let has =
            |values: &BTreeSet<(String, String)>| values.iter().any(|(label, value)| labels.get(label) == Some(value));
        let is_among = |(label, values): &(String, BTreeSet<String>)| {
            labels.get(label).is_some_and(|value| self.may_be_first || values.contains(value))
        };
        if !self.together.iter().all(is_among) {
            return Some("node(s) didn't match pod affinity rules");
        }
        if has(&self.apart) {
            return Some("node(s) didn't match pod anti-affinity rules");
        }
        has(&self.kept_away).then_some("node(s) didn't satisfy existing pods anti-affinity rules")
    }

    /// How much a node with these labels is wished for.
    pub(super) fn worth(&self, labels: &Labels) -> i64 {
        let worth = |wish: &Wish| wish.worth.get(labels.get(&wish.label)?).copied();
        self.wishes.iter().filter_map(worth).sum()
    }
}
