//! Reads a finished plan again and says what is wrong with it. It knows nothing of how plans are made, counts in exact
//! quantities, and is plain on purpose: what it finds once for all nodes is what a size has and which pod a key means.

mod host_rules;
mod mentions;
mod nodes;
mod pinning;
mod sizes;
mod sound;
mod sums;
mod topology;
mod violation;
mod volumes;

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_model::{
    CatalogType, HostPort, NewNode, NodeState, Offering, Plan, Pod, PodKey, Pool, Requirements, Resources, Snapshot,
    Taint,
};

pub use sound::{CheckedPlan, sound_part};
pub use violation::{Subject, Violation};

use self::mentions::Mentions;

/// Everything that is wrong with a plan for this snapshot; nothing, if it is sound.
pub fn check(snapshot: &Snapshot, plan: &Plan) -> Vec<Violation> {
    let mut checker = Checker { snapshot, plan, mentions: Mentions::of(snapshot, plan), violations: Vec::new() };
    checker.every_pod_is_spoken_of_once();
    checker.placements_fit();
    checker.new_nodes_carry_their_pods();
    checker.hosts_hold_their_vms();
    checker.host_rules_hold();
    checker.vms_are_bound();
    checker.limits_hold();
    checker.reservations_hold();
    checker.topology_holds();
    checker.violations
}

struct Checker<'a> {
    snapshot: &'a Snapshot,
    plan: &'a Plan,
    mentions: Mentions<'a>,
    violations: Vec<Violation>,
}

impl<'a> Checker<'a> {
    fn expect(&mut self, holds: bool, broken: impl FnOnce() -> (Subject, String)) {
        if !holds {
            let (subject, rule) = broken();
            self.violations.push(Violation::new(vec![subject], rule));
        }
    }

    fn pool(&self, node: &NewNode) -> Option<&'a Pool> {
        self.snapshot.pools.iter().map(AsRef::as_ref).find(|pool: &&Pool| pool.name == node.pool)
    }

    /// The size and the offering a new node is made from.
    fn chosen(&self, node: &NewNode) -> Option<(&'a CatalogType, &'a Offering)> {
        let size = self.pool(node)?.catalog.find(&node.chosen.instance_type)?;
        let is_it = |way: &&Offering| {
            way.requirements == node.chosen.requirements
                && way.price == node.chosen.price
                && way.place == node.chosen.place
        };
        Some((size, size.offerings.iter().find(is_it)?))
    }

    fn placements_fit(&mut self) {
        let placed = std::mem::take(&mut self.mentions.placed);
        let mut by_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
        // A pod that is not known was found before.
        for (placement, pod) in self.plan.placements.iter().zip(placed) {
            by_node.entry(&placement.node).or_default().extend(pod);
        }
        by_node.retain(|_, pods| !pods.is_empty());
        let wanted = self.snapshot.nodes.iter().filter(|node| by_node.contains_key(node.name.as_str()));
        let nodes: BTreeMap<&str, &NodeState> = wanted.rev().map(|node| (node.name.as_str(), node.as_ref())).collect();
        for (name, pods) in by_node {
            match nodes.get(name) {
                Some(node) => self.node_carries(node, &pods),
                None => self.expect(false, || of_node(name, "takes pods, but does not exist")),
            }
        }
    }

    fn node_carries(&mut self, node: &NodeState, pods: &[&Pod]) {
        let name = &node.name;
        self.expect(!node.is_leaving, || of_node(name, "takes pods, but is being deleted"));
        let is_identified = !node.is_unidentified;
        self.expect(is_identified, || of_node(name, "takes pods, but does not say which machine it is"));
        let labels = facts(node);
        let expected = self.snapshot.daemons.iter().filter(|daemon| {
            let runs = |wanted: &Requirements| labels.meet(wanted, |_| false).is_ok();
            is_let_in(daemon, node.lasting_taints()) && daemon.alternatives.iter().any(runs) && self.is_judged(daemon)
        });
        let mut missing = Resources::default();
        expected.for_each(|daemon| missing.add(&daemon.requests));
        let missing = missing.without(&node.bound_daemons);
        let missing: Resources = missing.iter().map(|(name, amount)| (name, amount.at_least_zero())).collect();
        let left = node.allocatable.without(&node.bound).without(&missing);
        // Of what the node does not report there is nothing, whoever asks for it there already.
        let mut left: Resources = left.iter().filter(|(resource, _)| node.allocatable.names(resource)).collect();
        let mut ports: Vec<&HostPort> = node.host_ports.iter().map(|(_, port)| port).collect();
        for pod in pods {
            self.is_placeable(pod);
            self.expect(is_let_in(pod, node.lasting_taints()), || {
                of_pod(&pod.key, &format!("does not tolerate the taints of node {name}"))
            });
            let suits = |wanted: &Requirements| labels.meet(wanted, |_| false).is_ok();
            let meets = pod.alternatives.is_empty() || pod.alternatives.iter().any(suits);
            self.expect(meets, || of_pod(&pod.key, &format!("requires other labels than node {name} has")));
            self.volumes_are_near(pod, suits, &format!("node {name}"));
            let is_free = pod.host_ports.iter().all(|port| !ports.iter().any(|used| used.conflicts_with(port)));
            self.expect(is_free, || of_pod(&pod.key, &format!("needs a host port that is taken on node {name}")));
            ports.extend(&pod.host_ports);
            left = left.without(&pod.requests);
        }
        self.node_attaches(node, pods);
        let short = left.iter().find(|(_, amount)| amount.is_negative());
        self.expect(short.is_none(), || {
            let resource = short.map(|(resource, _)| resource).unwrap_or_default();
            of_node(name, &format!("takes more pods than it has {resource} for"))
        });
    }

    /// Whether everything the pod asks for is known to whoever placed it.
    fn is_placeable(&mut self, pod: &Pod) {
        let is_judged = pod.unsupported.is_none() && pod.storage.refusal().is_none() && self.is_judged(pod);
        self.expect(is_judged, || of_pod(&pod.key, "is placed, but asks for something that is not supported yet"));
    }

    /// Whether nothing it asks for is ignored.
    fn is_judged(&self, pod: &Pod) -> bool {
        pod.resource_claims.is_empty() || !self.snapshot.options.ignore_resource_claims
    }
}

/// A rule that a pod breaks.
fn of_pod(key: &Arc<PodKey>, rule: &str) -> (Subject, String) {
    (Subject::Pod(key.clone()), format!("pod {key} {rule}"))
}

/// A rule that what is put on an existing node breaks.
fn of_node(name: &str, rule: &str) -> (Subject, String) {
    (Subject::ExistingNode(name.to_owned()), format!("node {name} {rule}"))
}

/// The labels of a node, with its name as its host name where nothing else is said.
fn facts(node: &NodeState) -> Requirements {
    let mut labels = Requirements::from_labels(node.labels.iter());
    if labels.get(tenon_model::labels::HOSTNAME).is_none() {
        labels.add(tenon_model::labels::HOSTNAME, &tenon_model::Requirement::is(&node.name));
    }
    labels
}

fn is_let_in<'t>(pod: &Pod, mut taints: impl Iterator<Item = &'t Taint>) -> bool {
    taints.all(|taint| !taint.is_a_bar() || taint.is_tolerated_by(&pod.tolerations))
}
