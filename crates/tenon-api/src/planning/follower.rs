//! What changed since the last look, told to the mirror: only that is read again.
//!
//! Law: however often it looked before, a follower sees what one sees that looks for the first time.

use crate::kube_objects::{CSINode, DaemonSet, Node, Pod as KubePod};
use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use tenon_model::{
    BoundPod, Catalog, LabelTexts, Mirror, Pod, PodKey, PodShape, PodStorage, RepairPolicies, Seconds, Snapshot,
};

use super::Surroundings;
use super::attach_limits::{self, Drivers, Limits};
use super::daemons::{DaemonPods, daemon};
use super::default_spread::DefaultSpread;
use super::namespaces::NamespaceFollower;
use super::nodes::machines;
use super::pod_shapes::PodShapes;
use super::pods::moving;
use super::pools::pool;
use super::version_cache::{Changes, VersionCache};
use super::volumes::VolumeFollower;
use crate::objects::Objects;
use crate::plan_options::{FeatureGates, PlanOptions};
use crate::pod_predicates::{bound_to, is_provisionable, is_terminal, is_terminating, pod_key, pod_worth};
use crate::volumes::has_claims;
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
    texts: LabelTexts,
    pools: BTreeMap<String, Known>,
    volumes: VolumeFollower,
    spread: DefaultSpread,
    namespaces: NamespaceFollower,
    gates: FeatureGates,
    repair: RepairPolicies,
}

/// What a machine was known by at the last look.
#[derive(Debug)]
struct Parts {
    claim: Option<Arc<NodeClaim>>,
    node: Option<Arc<Node>>,
    csi_node: Option<Arc<CSINode>>,
    /// What its instance type says of volumes.
    type_limits: Limits,
}

/// A pool as it was at the last look.
#[derive(Debug)]
struct Known {
    pool: Arc<NodePool>,
    catalog: Arc<Catalog>,
    not_ready: Option<String>,
    launched_from: String,
}

impl Follower {
    /// Everything as the engine sees it now. The options are the same each time, and whatever is around must say the same
    /// of the same objects, but for pools and what nobody may read: there every answer is compared. Hosts are the business
    /// of whoever knows some.
    pub fn look(
        &mut self,
        objects: &Objects,
        around: &dyn Surroundings,
        options: &PlanOptions,
        now: Seconds,
    ) -> Snapshot {
        self.gates = options.feature_gates;
        self.repair = options.repair_policies.clone();
        self.look_at_machines(objects, around);
        let pods = self.pods.look(&objects.pods);
        self.look_at_daemons(objects, &pods);
        let by_volumes = self.volumes.look(objects, around, &pods);
        let by_spread = self.spread.look(objects, &options.default_spread, &pods);
        self.look_at_pods(pods, by_volumes.into_iter().chain(by_spread));
        self.look_at_pools(objects, around);
        let mut snapshot = self.mirror.snapshot(&options.engine(), now);
        for found in moving(objects, &self.mirror.leaving(), now) {
            snapshot.pods.push(Arc::new(self.pod(found, self.volumes.index.storage_of(found))));
        }
        snapshot.pods.sort_by(|a, b| a.key.cmp(&b.key));
        self.namespaces.look(objects, around, &mut snapshot);
        snapshot
    }

    fn look_at_machines(&mut self, objects: &Objects, around: &dyn Surroundings) {
        let mut before = std::mem::take(&mut self.machines);
        let drivers = Drivers::new(objects, around);
        for machine in machines(objects) {
            let parts = Parts {
                claim: machine.claim.cloned(),
                node: machine.node.cloned(),
                csi_node: drivers.of_node(machine.node_name()).cloned(),
                type_limits: drivers.of_type(machine.labels()),
            };
            if !before.remove(&machine.id).is_some_and(|before| before.are(&parts)) {
                match machine.state(around, &self.repair) {
                    Some(mut state) => {
                        state.labels = self.texts.labels(machine.labels().into_iter().flatten());
                        attach_limits::fill(&mut state, parts.csi_node.as_deref(), &parts.type_limits);
                        self.mirror.set_machine(&machine.id, machine.node_name(), state);
                    }
                    None => self.mirror.remove_machine(&machine.id),
                }
            }
            self.machines.insert(machine.id, parts);
        }
        before.keys().for_each(|id| self.mirror.remove_machine(id));
    }

    /// Tells of pods that changed, and of pods that did not but depend on something that did.
    fn look_at_pods(
        &mut self,
        Changes { removed, added }: Changes<KubePod>,
        touched: impl Iterator<Item = Arc<KubePod>>,
    ) {
        removed.iter().for_each(|found| self.mirror.remove_pod(pod_key(found)));
        for found in added.into_iter().chain(touched) {
            if let Some(node) = bound_to(&found).filter(|_| !is_terminal(&found)) {
                let bound = self.bound(&found);
                self.mirror.bind(node, bound);
            } else if is_provisionable(&found) {
                match self.waiting(&found) {
                    Ok(pod) => self.mirror.wait(pod),
                    Err(why) => self.mirror.refuse(pod_key(&found), why),
                }
            }
        }
    }

    /// A pod that needs a node, or why no node can be chosen for it.
    fn waiting(&mut self, found: &KubePod) -> Result<Pod, String> {
        let faults = pod::faults(found);
        if !faults.is_empty() {
            return Err(faults.join("; "));
        }
        match self.volumes.index.storage_of(found) {
            PodStorage::Refused(why) => Err(why),
            storage @ PodStorage::Known(_) => Ok(self.pod(found, storage)),
        }
    }

    /// A pod that needs a node, with what is not written on it.
    fn pod(&mut self, found: &KubePod, storage: PodStorage) -> Pod {
        Pod { storage, ..pod::with_shape(found, self.shape(found)) }
    }

    /// A pod on a node, with what is not written on it.
    fn bound(&mut self, found: &KubePod) -> BoundPod {
        let has_claims = has_claims(found);
        let index = &self.volumes.index;
        BoundPod {
            key: pod_key(found).clone(),
            created: found.metadata.creation_timestamp.as_ref().map(|time| Seconds(time.0.as_second())),
            started: found.start_time.as_ref().map(|time| Seconds(time.0.as_second())),
            is_terminating: is_terminating(found),
            worth: pod_worth(found, self.gates),
            attachments: if has_claims { index.attachments_of(found) } else { Vec::new() },
            storage: has_claims.then(|| Arc::new(index.storage_of(found))),
            shape: self.shape(found),
        }
    }

    fn shape(&mut self, found: &KubePod) -> Arc<PodShape> {
        let spreads = self.spread.of(found);
        self.shapes.of(found, &spreads)
    }

    fn look_at_daemons(&mut self, objects: &Objects, pods: &Changes<KubePod>) {
        let Changes { removed, added } = self.sets.look(&objects.daemon_sets);
        removed.iter().for_each(|set| self.mirror.remove_daemon(&set_key(set)));
        let touched = self.daemon_pods.note(pods);
        let is_touched = |set: &&Arc<DaemonSet>| touched.contains(&*set_key(set).uid);
        for set in added.iter().chain(objects.daemon_sets.iter().filter(is_touched)) {
            let key = set_key(set);
            self.mirror.set_daemon(&key, pod::to_model(&daemon(set, self.daemon_pods.newest(&key.uid))));
        }
    }

    fn look_at_pools(&mut self, objects: &Objects, around: &dyn Surroundings) {
        let mut before = std::mem::take(&mut self.pools);
        let staying = objects.node_pools.iter().filter(|pool| pool.metadata.deletion_timestamp.is_none());
        for found in staying {
            let known = Known {
                pool: found.clone(),
                catalog: around.catalog(found),
                not_ready: around.not_ready(found),
                launched_from: around.launched_from(found),
            };
            if !before.remove(&found.name_any()).is_some_and(|before| before.is(&known)) {
                let Known { catalog, not_ready, launched_from, .. } = &known;
                self.mirror.set_pool(pool(found, catalog.clone(), not_ready.clone(), launched_from));
            }
            self.pools.insert(found.name_any(), known);
        }
        before.keys().for_each(|name| self.mirror.remove_pool(name));
    }
}

impl Parts {
    fn are(&self, other: &Parts) -> bool {
        let is_same_machine =
            is_same(self.claim.as_ref(), other.claim.as_ref()) && is_same(self.node.as_ref(), other.node.as_ref());
        let is_same_csi = is_same(self.csi_node.as_ref(), other.csi_node.as_ref());
        is_same_machine && is_same_csi && self.type_limits == other.type_limits
    }
}

impl Known {
    fn is(&self, other: &Known) -> bool {
        let is_same = Arc::ptr_eq(&self.pool, &other.pool) && Arc::ptr_eq(&self.catalog, &other.catalog);
        is_same && self.not_ready == other.not_ready && self.launched_from == other.launched_from
    }
}

fn is_same<K>(was: Option<&Arc<K>>, is: Option<&Arc<K>>) -> bool {
    match (was, is) {
        (Some(was), Some(is)) => Arc::ptr_eq(was, is),
        (None, None) => true,
        _ => false,
    }
}

fn set_key(set: &DaemonSet) -> PodKey {
    PodKey {
        namespace: set.namespace().unwrap_or_default().into(),
        name: set.name_any().into(),
        uid: set.uid().unwrap_or_default().into(),
    }
}
