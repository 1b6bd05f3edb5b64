//! What changed since the last look, told to the mirror: only that is read again.
//!
//! Law: however often it looked before, a follower sees what one sees that looks for the first time.

use crate::kube_objects::{DaemonSet, Node, Pod as KubePod};
use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use tenon_model::{BoundPod, Catalog, Mirror, PodKey, PodShape, Seconds, Snapshot};

use super::Surroundings;
use super::daemons::{DaemonPods, daemon};
use super::nodes::{Machine, machines};
use super::pod_shapes::PodShapes;
use super::pods::{moving, with_default_spread};
use super::pools::pool;
use super::version_cache::{Changes, VersionCache};
use crate::objects::Objects;
use crate::plan_options::PlanOptions;
use crate::pod_predicates::{bound_to, is_provisionable, is_terminal, is_terminating, pod_key, pod_worth};
use crate::{NodeClaim, NodePool, pod};

/// Follows a cluster from look to look.
#[derive(Debug, Default)]
pub struct Follower {
    mirror: Mirror,
    pods: VersionCache<KubePod>,
    shapes: PodShapes,
    sets: VersionCache<DaemonSet>,
    daemon_pods: DaemonPods,
    machines: BTreeMap<String, Parts>,
    pools: BTreeMap<String, Known>,
}

/// What a machine was known by at the last look.
type Parts = (Option<Arc<NodeClaim>>, Option<Arc<Node>>);

/// A pool as it was at the last look.
#[derive(Debug)]
struct Known {
    pool: Arc<NodePool>,
    catalog: Arc<Catalog>,
    not_ready: Option<String>,
}

impl Follower {
    /// Everything as the engine sees it now. Whatever is around must say the same of the same objects each time, but for
    /// pools: there every answer is compared. Hosts are the business of whoever knows some.
    pub fn look(
        &mut self,
        objects: &Objects,
        around: &dyn Surroundings,
        options: &PlanOptions,
        now: Seconds,
    ) -> Snapshot {
        self.look_at_machines(objects, around);
        let pods = self.pods.look(&objects.pods);
        self.look_at_daemons(objects, &pods);
        self.look_at_pods(pods);
        self.look_at_pools(objects, around);
        let mut snapshot = self.mirror.snapshot(&options.engine(), now);
        snapshot.pods.extend(moving(objects, &self.mirror.leaving(), now));
        with_default_spread(&mut snapshot.pods, objects, options);
        snapshot.pods.sort_by(|a, b| a.key.cmp(&b.key));
        snapshot
    }

    fn look_at_machines(&mut self, objects: &Objects, around: &dyn Surroundings) {
        let mut before = std::mem::take(&mut self.machines);
        for Machine { id, claim, node } in machines(objects) {
            let is_same = before.remove(&id).is_some_and(|(was_claim, was_node)| {
                is_same(was_claim.as_ref(), claim) && is_same(was_node.as_ref(), node)
            });
            let machine = Machine { id, claim, node };
            if !is_same {
                match machine.state(around) {
                    Some(state) => self.mirror.set_machine(&machine.id, machine.node_name(), state),
                    None => self.mirror.remove_machine(&machine.id),
                }
            }
            self.machines.insert(machine.id, (claim.cloned(), node.cloned()));
        }
        before.keys().for_each(|id| self.mirror.remove_machine(id));
    }

    fn look_at_pods(&mut self, Changes { removed, added }: Changes<KubePod>) {
        removed.iter().for_each(|found| self.mirror.remove_pod(&pod_key(found)));
        for found in added {
            if let Some(node) = bound_to(&found).filter(|_| !is_terminal(&found)) {
                self.mirror.bind(node, bound(&found, self.shapes.of(&found)));
            } else if is_provisionable(&found) {
                match pod::faults(&found).as_slice() {
                    [] => self.mirror.wait(pod::with_shape(&found, self.shapes.of(&found))),
                    faults => self.mirror.refuse(&pod_key(&found), faults.join("; ")),
                }
            }
        }
    }

    fn look_at_daemons(&mut self, objects: &Objects, pods: &Changes<KubePod>) {
        let Changes { removed, added } = self.sets.look(&objects.daemon_sets);
        removed.iter().for_each(|set| self.mirror.remove_daemon(&set_key(set)));
        let touched = self.daemon_pods.note(pods);
        let is_touched = |set: &&Arc<DaemonSet>| touched.contains(&set_key(set).uid);
        for set in added.iter().chain(objects.daemon_sets.iter().filter(is_touched)) {
            let key = set_key(set);
            self.mirror.set_daemon(&key, pod::to_model(&daemon(set, self.daemon_pods.newest(&key.uid))));
        }
    }

    fn look_at_pools(&mut self, objects: &Objects, around: &dyn Surroundings) {
        let mut before = std::mem::take(&mut self.pools);
        let staying = objects.node_pools.iter().filter(|pool| pool.metadata.deletion_timestamp.is_none());
        for found in staying {
            let known =
                Known { pool: found.clone(), catalog: around.catalog(found), not_ready: around.not_ready(found) };
            if !before.remove(&found.name_any()).is_some_and(|before| before.is(&known)) {
                self.mirror.set_pool(pool(found, known.catalog.clone(), known.not_ready.clone()));
            }
            self.pools.insert(found.name_any(), known);
        }
        before.keys().for_each(|name| self.mirror.remove_pool(name));
    }
}

impl Known {
    fn is(&self, other: &Known) -> bool {
        let is_same = Arc::ptr_eq(&self.pool, &other.pool) && Arc::ptr_eq(&self.catalog, &other.catalog);
        is_same && self.not_ready == other.not_ready
    }
}

fn is_same<K>(was: Option<&Arc<K>>, is: Option<&Arc<K>>) -> bool {
    match (was, is) {
        (Some(was), Some(is)) => Arc::ptr_eq(was, is),
        (None, None) => true,
        _ => false,
    }
}

/// A pod on a node, for the engine.
fn bound(found: &KubePod, shape: Arc<PodShape>) -> BoundPod {
    BoundPod {
        key: Arc::new(pod_key(found)),
        shape,
        started: found.start_time.as_ref().map(|time| Seconds(time.0.as_second())),
        is_terminating: is_terminating(found),
        worth: pod_worth(found),
    }
}

fn set_key(set: &DaemonSet) -> PodKey {
    PodKey { namespace: set.namespace().unwrap_or_default(), name: set.name_any(), uid: set.uid().unwrap_or_default() }
}
