//! Packs pods onto nodes that are there, nodes that are planned, and new ones, in that order.

use std::cmp::Reverse;

use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{
    Node, Placement, Plan, Pod, Pool, PoolRefusal, Quantity, Reason, Requirements, Resources, Snapshot, Taint, Unplaced,
};

use crate::eligibility::{barring_taint, joined};
use crate::open_node::{Desk, OpenNode};

/// The key of a limit that counts nodes.
const NODES: &str = "nodes";

/// Decides what is to be made for the pods that fit nowhere. The order of the snapshot's lists does not matter.
pub fn plan(snapshot: &Snapshot) -> Plan {
    let mut packing = Packing::new(snapshot);
    for pod in in_order(&snapshot.pods) {
        packing.place(pod);
    }
    packing.close()
}

/// Large pods first, because small ones fit into what they leave; then by name.
fn in_order(pods: &[Pod]) -> Vec<&Pod> {
    let mut pods: Vec<&Pod> = pods.iter().collect();
    pods.sort_by(|a, b| {
        let size = |pod: &Pod| (pod.requests.get(CPU), pod.requests.get(MEMORY));
        Reverse(size(a)).cmp(&Reverse(size(b))).then_with(|| a.key.cmp(&b.key))
    });
    pods
}

struct Packing<'a> {
    desk: Desk<'a>,
    existing: Vec<Room<'a>>,
    pools: Vec<&'a Pool>,
    open: Vec<OpenNode<'a>>,
    plan: Plan,
}

/// What is left on a node that is there.
struct Room<'a> {
    name: &'a str,
    labels: &'a Requirements,
    taints: &'a [Taint],
    left: Resources,
}

impl<'a> Room<'a> {
    fn of(node: &'a Node) -> Room<'a> {
        Room { name: &node.name, labels: &node.labels, taints: &node.taints, left: node.room.clone() }
    }

    /// Labels of a node that is there are facts: what is not known of it, it does not have.
    fn takes(&self, pod: &Pod) -> bool {
        barring_taint(pod, self.taints).is_none()
            && joined(self.labels, pod, |_| false).any(|outcome| outcome.is_ok())
            && pod.requests.shortage_in(&self.left).is_none()
    }
}

impl<'a> Packing<'a> {
    fn new(snapshot: &'a Snapshot) -> Packing<'a> {
        let mut existing: Vec<Room<'a>> = snapshot.nodes.iter().map(Room::of).collect();
        existing.sort_by_key(|room| room.name);
        let mut pools: Vec<&Pool> = snapshot.pools.iter().collect();
        pools.sort_by(|a, b| Reverse(a.weight).cmp(&Reverse(b.weight)).then_with(|| a.name.cmp(&b.name)));
        Packing { desk: Desk::new(snapshot), existing, pools, open: Vec::new(), plan: Plan::default() }
    }

    fn place(&mut self, pod: &Pod) {
        let outcome = match &pod.unsupported {
            Some(what) => Err(Reason::Unsupported(what.clone())),
            None if self.place_on_existing(pod) || self.place_on_open(pod) => Ok(()),
            None => self.place_on_new(pod),
        };
        if let Err(reason) = outcome {
            self.plan.unplaced.push(Unplaced { pod: pod.key.clone(), reason });
        }
    }

    fn place_on_existing(&mut self, pod: &Pod) -> bool {
        let Some(room) = self.existing.iter_mut().find(|room| room.takes(pod)) else { return false };
        room.left = room.left.without(&pod.requests);
        self.plan.placements.push(Placement { pod: pod.key.clone(), node: room.name.to_owned() });
        true
    }

    fn place_on_open(&mut self, pod: &Pod) -> bool {
        for index in 0..self.open.len() {
            let Some(pool) = self.open.get(index).map(OpenNode::pool) else { continue };
            let allowance = self.allowance(pool, Some(index));
            let added = self.open.get_mut(index).is_some_and(|node| node.try_add(&mut self.desk, pod, &allowance));
            if added {
                return true;
            }
        }
        false
    }

    fn place_on_new(&mut self, pod: &Pod) -> Result<(), Reason> {
        let mut refusals = Vec::new();
        for pool in self.pools.clone() {
            match self.open_in(pool, pod) {
                Ok(()) => return Ok(()),
                Err(refusal) => refusals.push((pool.name.clone(), refusal)),
            }
        }
        Err(if refusals.is_empty() { Reason::NoPools } else { Reason::Refused(refusals) })
    }

    fn open_in(&mut self, pool: &'a Pool, pod: &Pod) -> Result<(), PoolRefusal> {
        let allowance = self.allowance(pool, None);
        let counts_nodes = pool.limits.iter().find(|(resource, _)| *resource == NODES);
        if let Some((resource, limit)) = counts_nodes.filter(|_| allowance.get(NODES) < Quantity::whole(1)) {
            return Err(PoolRefusal::Limit { resource: resource.to_owned(), limit });
        }
        let node = OpenNode::open(&mut self.desk, pool, pod, &allowance)?;
        self.open.push(node);
        Ok(())
    }

    /// What the pool's limits leave for one more node, or for the planned node at this index.
    fn allowance(&self, pool: &Pool, without: Option<usize>) -> Resources {
        let mut used = pool.used.clone();
        let others = self
            .open
            .iter()
            .enumerate()
            .filter(|(index, node)| Some(*index) != without && node.pool().name == pool.name);
        for (_, node) in others {
            used.add(node.capacity());
            used.add(&Resources::default().with(NODES, Quantity::whole(1)));
        }
        pool.limits.without(&used)
    }

    fn close(self) -> Plan {
        let mut plan = self.plan;
        plan.new_nodes = self.open.into_iter().map(OpenNode::close).collect();
        plan
    }
}
