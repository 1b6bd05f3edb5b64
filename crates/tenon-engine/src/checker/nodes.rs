//! Can each new node be made, and does it carry its pods whatever size it becomes?

use tenon_model::{HostPort, MinValuesPolicy, NewNode, Offering, Pod, Pool, Requirement, Requirements, Resources};

use super::sizes::{Size, Sizes};
use super::violation::missing;
use super::{Checker, Subject, is_let_in, of_pod};

/// A new node of a plan, and what belongs to it.
#[derive(Clone, Copy)]
struct Made<'c> {
    number: usize,
    node: &'c NewNode,
    pool: &'c Pool,
    sizes: &'c Sizes<'c>,
    pods: &'c [&'c Pod],
}

impl Checker<'_> {
    pub(super) fn new_nodes_carry_their_pods(&mut self) {
        let (sizes, pods_of) = (self.sizes_in_use(), std::mem::take(&mut self.mentions.on_new));
        for ((number, node), pods) in self.plan.new_nodes.iter().enumerate().zip(pods_of) {
            let (Some(pool), Some(sizes)) = (self.pool(node), sizes.get(node.pool.as_str())) else {
                self.expect(false, || of_new(number, node, "is of a NodePool that does not exist"));
                continue;
            };
            let is_usable = pool.not_ready.is_none() && pool.replicas.is_none();
            self.expect(is_usable, || of_new(number, node, "is of a NodePool that is static or not ready"));
            self.expect(!node.pods.is_empty(), || of_new(number, node, "has no pods"));
            let most = self.snapshot.options.max_types;
            let is_listed = node.instance_types.contains(&node.chosen.instance_type);
            self.expect(is_listed && node.instance_types.len() <= most, || {
                of_new(number, node, "lists too many instance types, or not the one it is created from")
            });
            let pods: Vec<&Pod> = pods.into_iter().flatten().collect();
            self.every_size_will_do(&Made { number, node, pool, sizes, pods: &pods });
            self.chosen_can_be_made(number, node);
            self.pods_suit(number, node, (pool, &pods));
            self.every_size_attaches(number, node, (pool, &pods));
            self.min_values_hold(number, node, pool);
        }
    }

    fn every_size_will_do(&mut self, made: &Made<'_>) {
        let Made { number, node, sizes, pods, .. } = *made;
        let mut needed = Resources::default();
        pods.iter().for_each(|pod| needed.add(&pod.requests));
        let short = needed.shortage_in(&node.requests);
        self.expect(short.is_none(), || {
            let missing = short.as_ref().map(missing).unwrap_or_default();
            of_new(number, node, &format!("requests less than its pods: {missing}"))
        });
        let with_ports: Vec<&Pod> = pods.iter().copied().filter(|pod| !pod.host_ports.is_empty()).collect();
        for name in node.instance_types.iter() {
            let Some(size) = sizes.find(name) else {
                self.expect(false, || {
                    of_new(number, node, &format!("lists instance type {name}, which does not exist"))
                });
                continue;
            };
            self.expect(size.size.requirements.intersects(&node.requirements), || {
                of_new(number, node, &format!("lists instance type {name}, which does not meet its requirements"))
            });
            self.expect(carries(made, size, &needed), || {
                of_new(number, node, &format!("is too small as {name}, or {name} is not offered as it requires"))
            });
            self.ports_are_free(number, &size.daemons, &with_ports);
        }
    }

    fn ports_are_free(&mut self, number: usize, daemons: &[&Pod], pods: &[&Pod]) {
        if pods.is_empty() {
            return;
        }
        let mut used: Vec<&HostPort> = daemons.iter().flat_map(|daemon| &daemon.host_ports).collect();
        for pod in pods {
            let is_free = pod.host_ports.iter().all(|port| !used.iter().any(|other| other.conflicts_with(port)));
            self.expect(is_free, || {
                of_pod(&pod.key, &format!("needs a host port that is taken on new node {}", number + 1))
            });
            used.extend(&pod.host_ports);
        }
    }

    fn chosen_can_be_made(&mut self, number: usize, node: &NewNode) {
        let Some((size, way)) = self.chosen(node) else {
            self.expect(false, || of_new(number, node, "is created from an offering that does not exist"));
            return;
        };
        let suits = way.requirements.intersects(&node.requirements) && size.requirements.intersects(&node.requirements);
        self.expect(self.snapshot.options.can_launch(way) && suits, || {
            of_new(number, node, "is created from an offering that is unavailable or does not meet its requirements")
        });
    }

    fn pods_suit(&mut self, number: usize, node: &NewNode, (pool, pods): (&Pool, &[&Pod])) {
        self.expect(node.requirements.intersects(&pool.requirements), || {
            of_new(number, node, "contradicts the requirements of its NodePool")
        });
        // What it will be: its own demands, narrowed to what it is made from.
        let mut labels = node.requirements.clone();
        labels.add_all(&node.chosen.requirements);
        if let Some((size, _)) = self.chosen(node) {
            labels.add_all(&size.requirements);
        }
        for pod in pods {
            self.is_placeable(pod);
            self.expect(is_let_in(pod, pool.taints.iter()), || {
                of_pod(&pod.key, &format!("does not tolerate the taints of NodePool {}", pool.name))
            });
            let suits = |wanted: &Requirements| labels.meet(wanted, |label| pool.catalog.is_well_known(label)).is_ok();
            let meets = pod.alternatives.is_empty() || pod.alternatives.iter().any(suits);
            self.expect(meets, || of_pod(&pod.key, &format!("requires other labels than new node {} has", number + 1)));
            self.volumes_are_near(pod, suits, &format!("new node {}", number + 1));
        }
    }

    fn min_values_hold(&mut self, number: usize, node: &NewNode, pool: &Pool) {
        let is_strict = self.snapshot.options.min_values == MinValuesPolicy::Strict;
        self.expect(!is_strict || !node.min_values_relaxed, || of_new(number, node, "relaxes minValues"));
        if !node.requirements.have_min_values() && !pool.requirements.have_min_values() {
            return;
        }
        let asked = node.requirements.iter().map(|(label, demand)| (label, demand.clone()));
        let pools_own = |label: &str| pool.requirements.get(label).and_then(Requirement::min_values);
        let asked: Requirements = asked
            .map(|(label, demand)| {
                let wanted = if node.min_values_relaxed { demand.min_values() } else { pools_own(label) };
                (label.to_owned(), demand.with_min_values(wanted))
            })
            .collect();
        let sizes = node.instance_types.iter().filter_map(|name| pool.catalog.find(name));
        let outcome = asked.min_values_satisfied_by(sizes.map(|size| &size.requirements));
        let is_cut = node.instance_types.len() == self.snapshot.options.max_types && !is_strict;
        // What is made from capacity that was set aside has no choice left that could be counted.
        let is_reserved = self.chosen(node).is_some_and(|(_, way)| way.is_reserved());
        let why = outcome.err().map(|short| short.to_string()).unwrap_or_default();
        self.expect(why.is_empty() || is_cut || is_reserved, || {
            of_new(number, node, &format!("misses minValues: {why}"))
        });
    }
}

/// Whether some offering of a size that suits the node has room for its pods and daemons.
fn carries(made: &Made<'_>, size: &Size<'_>, needed: &Resources) -> bool {
    let mut all = needed.clone();
    all.add(&size.overhead);
    let is_well_known = |label: &str| made.pool.catalog.is_well_known(label);
    let suits = |way: &Offering| made.node.requirements.can_meet(&way.requirements, is_well_known);
    let mut with_room = size.rooms.iter().filter(|room| all.shortage_in(&room.allocatable).is_none());
    with_room.any(|room| room.offerings.iter().filter_map(|way| size.size.offerings.get(*way)).any(suits))
}

/// A rule that a new node breaks.
pub(super) fn of_new(number: usize, node: &NewNode, rule: &str) -> (Subject, String) {
    let words = format!("new node {} (NodePool {}, {}) {rule}", number + 1, node.pool, node.chosen.instance_type);
    (Subject::NewNode(number), words)
}
