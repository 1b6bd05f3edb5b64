//! Where is every pod once the plan is carried out, and which domain of a label is that?

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenon_model::labels::{HOSTNAME, NODEPOOL};
use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{
    NewNode, NodeLabels, NodeState, Operator, Plan, Pod, PodKey, PodShape, Pool, Requirement, Requirements, Snapshot,
    Taint,
};

impl Node<'_> {
    /// Its labels as facts.
    pub(super) fn facts(&self) -> Requirements {
        let mut facts = Requirements::from_labels(self.labels.iter());
        facts.replace(HOSTNAME, Requirement::is(self.host.as_ref()));
        facts
    }
}

/// All nodes and pods that topology rules look at.
pub(super) struct Placed<'a> {
    pub(super) snapshot: &'a Snapshot,
    /// Nodes that are there, and then those of the plan in its order.
    pub(super) nodes: Vec<Node<'a>>,
    /// Pods that the plan puts somewhere, in the order in which they are taken: the largest first.
    pub(super) planned: Vec<Planned<'a>>,
    /// Pods that are on nodes and stay there.
    pub(super) bound: Vec<Bound<'a>>,
    /// Pods are alike if they share a shape and a namespace.
    pub(super) classes: Vec<Class<'a>>,
    /// How many of the classes, the first ones, have planned pods.
    pub(super) planned_classes: usize,
}

/// A node, with what it is once it takes pods.
pub(super) struct Node<'a> {
    pub(super) labels: NodeLabels,
    pub(super) taints: Vec<&'a Taint>,
    pub(super) is_leaving: bool,
    /// Its domain of the host name, whether or not it has that label.
    host: Cow<'a, str>,
}

pub(super) struct Planned<'a> {
    pub(super) pod: &'a Pod,
    pub(super) class: usize,
    pub(super) node: usize,
}

pub(super) struct Bound<'a> {
    pub(super) key: &'a Arc<PodKey>,
    pub(super) class: usize,
    pub(super) node: usize,
    pub(super) is_terminating: bool,
}

pub(super) struct Class<'a> {
    pub(super) namespace: &'a str,
    pub(super) shape: &'a PodShape,
}

/// The values of one label that nodes have.
#[derive(Default)]
pub(super) struct Domains<'p> {
    pub(super) names: Vec<&'p str>,
    /// By node. A node without the label is in no domain.
    pub(super) of_node: Vec<Option<usize>>,
}

impl<'a> Placed<'a> {
    pub(super) fn of(snapshot: &'a Snapshot, plan: &'a Plan) -> Placed<'a> {
        let mut classes = Classes::default();
        let mut nodes: Vec<Node<'a>> = snapshot.nodes.iter().map(|node| existing(node)).collect();
        let new = plan.new_nodes.iter().enumerate();
        nodes.extend(new.map(|(index, node)| created(index, node, pool(snapshot, node))));
        let planned = planned(snapshot, plan, &mut classes);
        let planned_classes = classes.all.len();
        // Whoever is to be placed again is no longer where it was.
        let moving: BTreeSet<&Arc<PodKey>> = snapshot.pods.iter().map(|pod| &pod.key).collect();
        let mut bound = Vec::new();
        for (node, state) in snapshot.nodes.iter().enumerate() {
            for pod in state.pods.iter().filter(|pod| !moving.contains(&pod.key)) {
                let class = classes.of(&pod.key.namespace, &pod.shape);
                bound.push(Bound { key: &pod.key, class, node, is_terminating: pod.is_terminating });
            }
        }
        Placed { snapshot, nodes, planned, bound, classes: classes.all, planned_classes }
    }

    /// The domains of a label.
    pub(super) fn domains(&self, label: &str) -> Domains<'_> {
        let mut domains = Domains::default();
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        for node in &self.nodes {
            let value = if label == HOSTNAME { Some(node.host.as_ref()) } else { node.labels.get(label) };
            domains.of_node.push(value.map(|value| {
                *known.entry(value).or_insert_with(|| {
                    domains.names.push(value);
                    domains.names.len() - 1
                })
            }));
        }
        domains
    }
}

/// Pods of the plan, with the places of their nodes among all nodes. What is unknown or nowhere was found before.
fn planned<'a>(snapshot: &'a Snapshot, plan: &'a Plan, classes: &mut Classes<'a>) -> Vec<Planned<'a>> {
    let pods: BTreeMap<&Arc<PodKey>, &'a Pod> = snapshot.pods.iter().map(|pod| (&pod.key, pod.as_ref())).collect();
    let names: BTreeMap<&str, usize> =
        snapshot.nodes.iter().enumerate().map(|(place, node)| (node.name.as_str(), place)).collect();
    let on_existing = plan.placements.iter().filter_map(|put| Some((&put.pod, *names.get(put.node.as_str())?)));
    let first = snapshot.nodes.len();
    let new = plan.new_nodes.iter().enumerate();
    let on_new = new.flat_map(|(index, node)| node.pods.iter().map(move |key| (key, first + index)));
    let mut planned: Vec<Planned<'a>> = on_existing
        .chain(on_new)
        .filter_map(|(key, node)| {
            let pod: &'a Pod = pods.get(key).copied()?;
            Some(Planned { pod, class: classes.of(&pod.key.namespace, &pod.shape), node })
        })
        .collect();
    planned.sort_by_cached_key(|planned| {
        let (pod, requests) = (planned.pod, &planned.pod.requests);
        (Reverse(requests.get(CPU)), Reverse(requests.get(MEMORY)), pod.created, &pod.key.uid, &pod.key)
    });
    planned
}

fn existing(node: &NodeState) -> Node<'_> {
    let host = node.labels.get(HOSTNAME).unwrap_or(&node.name);
    Node {
        labels: node.labels.clone(),
        taints: node.lasting_taints().collect(),
        is_leaving: node.is_leaving,
        host: Cow::Borrowed(host),
    }
}

/// A new node has the labels of which one value is left. Its host name is its own, whatever that will be.
fn created<'a>(index: usize, node: &'a NewNode, pool: Option<&'a Pool>) -> Node<'a> {
    let mut labels: BTreeMap<String, String> = BTreeMap::from([(NODEPOOL.to_owned(), node.pool.clone())]);
    for (label, demand) in node.requirements.iter().filter(|(_, demand)| demand.operator() == Operator::In) {
        let mut values = demand.values().iter();
        if let (Some(value), None) = (values.next(), values.next()) {
            labels.insert(label.to_owned(), value.clone());
        }
    }
    // Of a label that nobody asked for, only what is offered decides, and what is offered may change until the launch. Whoever
    // counts such pods counts them in the next plan, as Karpenter does.
    let named = |label: &str| node.requirements.get(label).is_some_and(|demand| demand.operator() == Operator::In);
    let chosen = node.chosen.labels.iter().filter(|(label, _)| named(label));
    labels.extend(chosen.map(|(label, value)| (label.clone(), value.clone())));
    let host = format!("new node {}", index + 1);
    let taints = pool.map(|pool| pool.taints.iter().collect()).unwrap_or_default();
    Node { labels: labels.into_iter().collect(), taints, is_leaving: false, host: Cow::Owned(host) }
}

fn pool<'a>(snapshot: &'a Snapshot, node: &NewNode) -> Option<&'a Pool> {
    snapshot.pools.iter().map(AsRef::as_ref).find(|pool: &&Pool| pool.name == node.pool)
}

/// Pods that are alike, numbered in the order in which they are met.
#[derive(Default)]
struct Classes<'a> {
    all: Vec<Class<'a>>,
    /// By the address of the shape, which pods of one workload share.
    known: BTreeMap<(usize, &'a str), usize>,
}

impl<'a> Classes<'a> {
    fn of(&mut self, namespace: &'a str, shape: &'a Arc<PodShape>) -> usize {
        *self.known.entry((Arc::as_ptr(shape).addr(), namespace)).or_insert_with(|| {
            self.all.push(Class { namespace, shape });
            self.all.len() - 1
        })
    }
}
