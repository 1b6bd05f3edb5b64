//! Reads a finished plan again and says what is wrong with it. It knows nothing of how plans are made, and is slow and
//! plain on purpose.

use std::collections::BTreeMap;
use std::fmt;

use tenon_model::{InstanceType, NewNode, Plan, Pod, PodKey, Pool, Quantity, Resources, Snapshot, Taint};

use crate::hosts::footprint;
use crate::labels;

/// A rule the plan breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Everything that is wrong with a plan for this snapshot; nothing, if it is sound.
pub fn check(snapshot: &Snapshot, plan: &Plan) -> Vec<Violation> {
    let mut checker = Checker { snapshot, plan, violations: Vec::new() };
    checker.every_pod_is_spoken_of_once();
    checker.placements_fit();
    checker.new_nodes_carry_their_pods();
    checker.hosts_hold_their_vms();
    checker.limits_hold();
    checker.violations
}

struct Checker<'a> {
    snapshot: &'a Snapshot,
    plan: &'a Plan,
    violations: Vec<Violation>,
}

impl<'a> Checker<'a> {
    fn expect(&mut self, holds: bool, rule: impl FnOnce() -> String) {
        if !holds {
            self.violations.push(Violation(rule()));
        }
    }

    fn pod(&self, key: &PodKey) -> Option<&'a Pod> {
        self.snapshot.pods.iter().find(|pod| pod.key == *key)
    }

    fn pool(&self, node: &NewNode) -> Option<&'a Pool> {
        self.snapshot.pools.iter().find(|pool| pool.name == node.pool)
    }

    fn size(&self, node: &NewNode) -> Option<&'a InstanceType> {
        self.snapshot.types.iter().find(|size| size.name == node.instance_type)
    }

    fn every_pod_is_spoken_of_once(&mut self) {
        let mut times = BTreeMap::<&PodKey, usize>::new();
        let plan = self.plan;
        let on_new = plan.new_nodes.iter().flat_map(|node| &node.pods);
        let elsewhere = plan.placements.iter().map(|placement| &placement.pod);
        let waiting = plan.unplaced.iter().map(|unplaced| &unplaced.pod);
        for key in on_new.chain(elsewhere).chain(waiting) {
            *times.entry(key).or_default() += 1;
        }
        for pod in &self.snapshot.pods {
            let count = times.remove(&pod.key).unwrap_or_default();
            self.expect(count == 1, || format!("pod {} is spoken of {count} times", pod.key));
        }
        self.expect(times.is_empty(), || format!("pods nobody asked about: {:?}", times.keys()));
    }

    fn placements_fit(&mut self) {
        let mut left: BTreeMap<&str, Resources> =
            self.snapshot.nodes.iter().map(|node| (node.name.as_str(), node.room.clone())).collect();
        for placement in &self.plan.placements {
            let node = self.snapshot.nodes.iter().find(|node| node.name == placement.node);
            let (Some(pod), Some(node)) = (self.pod(&placement.pod), node) else {
                self.expect(false, || format!("pod {} is on a node that is not there", placement.pod));
                continue;
            };
            self.expect(pod.unsupported.is_none(), || format!("pod {} asks for what is not judged", pod.key));
            self.expect(is_tolerated(pod, &node.taints), || format!("pod {} does not tolerate {}", pod.key, node.name));
            let meets = pod.alternatives.is_empty()
                || pod.alternatives.iter().any(|wanted| node.labels.meet(wanted, |_| false).is_ok());
            self.expect(meets, || format!("pod {} wants other labels than {} has", pod.key, node.name));
            let room = left.entry(node.name.as_str()).or_default();
            let short = pod.requests.shortage_in(room);
            *room = room.without(&pod.requests);
            self.expect(short.is_none(), || format!("node {} is overfull with pod {}", node.name, pod.key));
        }
    }

    fn new_nodes_carry_their_pods(&mut self) {
        for (number, node) in self.plan.new_nodes.iter().enumerate() {
            let (Some(pool), Some(size)) = (self.pool(node), self.size(node)) else {
                self.expect(false, || format!("new node {number} has an unknown pool or size"));
                continue;
            };
            self.expect(pool.not_ready.is_none(), || {
                format!("new node {number} is of pool {}, which is not ready", pool.name)
            });
            self.expect(pool.places.contains(&node.place), || {
                format!("new node {number} is where its pool has no place")
            });
            self.expect(!node.pods.is_empty(), || format!("new node {number} is for nobody"));
            let mut needed = Resources::default();
            for key in &node.pods {
                let Some(pod) = self.pod(key) else { continue };
                needed.add(&pod.requests);
                self.pod_suits(pod, node, pool);
            }
            let short = needed.shortage_in(&size.allocatable());
            self.expect(short.is_none(), || format!("new node {number} is too small: {short:?}"));
            let short = needed.shortage_in(&node.requests);
            self.expect(short.is_none(), || format!("new node {number} asks for less than its pods: {short:?}"));
        }
    }

    /// Whether the pod may be on a node with just the labels this one will have.
    fn pod_suits(&mut self, pod: &Pod, node: &NewNode, pool: &Pool) {
        self.expect(pod.unsupported.is_none(), || format!("pod {} asks for what is not judged", pod.key));
        self.expect(is_tolerated(pod, &pool.taints), || {
            format!("pod {} does not tolerate pool {}", pod.key, pool.name)
        });
        let meets = pod.alternatives.is_empty()
            || pod.alternatives.iter().any(|wanted| node.requirements.meet(wanted, |_| false).is_ok());
        self.expect(meets, || format!("pod {} wants other labels than its new node will have", pod.key));
        let agrees = node.requirements.intersect(&pool.requirements).is_ok()
            && node.requirements.intersect(&labels::of_place(&node.place)).is_ok();
        self.expect(agrees, || format!("a new node for pod {} contradicts its pool or place", pod.key));
    }

    fn hosts_hold_their_vms(&mut self) {
        for host in &self.snapshot.hosts {
            let mut needed = Resources::default();
            let here: Vec<&NewNode> = self.plan.new_nodes.iter().filter(|node| node.place == host.place).collect();
            here.iter().filter_map(|node| self.size(node)).for_each(|size| needed.add(&footprint(size)));
            self.expect(host.closed.is_none() || here.is_empty(), || {
                format!("host {} cannot be used", host.place.host)
            });
            let short = needed.shortage_in(&host.free);
            self.expect(short.is_none(), || format!("host {} is overfull: {short:?}", host.place.host));
        }
        for node in &self.plan.new_nodes {
            let is_known = self.snapshot.hosts.iter().any(|host| host.place == node.place);
            self.expect(is_known, || format!("host {} is not known", node.place.host));
        }
    }

    fn limits_hold(&mut self) {
        for pool in &self.snapshot.pools {
            let new: Vec<&NewNode> = self.plan.new_nodes.iter().filter(|node| node.pool == pool.name).collect();
            let mut used = pool.used.clone();
            new.iter().filter_map(|node| self.size(node)).for_each(|size| used.add(&size.capacity));
            used.add(
                &Resources::default().with("nodes", Quantity::whole(i64::try_from(new.len()).unwrap_or(i64::MAX))),
            );
            let passed = pool.limits.iter().find(|(resource, limit)| used.get(resource) > *limit);
            // A pool that was over its limit before is not the plan's doing.
            self.expect(new.is_empty() || passed.is_none(), || {
                format!("pool {} passes its limit: {passed:?}", pool.name)
            });
        }
    }
}

fn is_tolerated(pod: &Pod, taints: &[Taint]) -> bool {
    taints.iter().all(|taint| !taint.is_a_bar() || taint.is_tolerated_by(&pod.tolerations))
}
