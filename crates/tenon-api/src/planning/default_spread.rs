//! The operator's own spread constraints, for pods that have none: which pods they count is deduced for each pod, as
//! kube-scheduler does, from the Services that select it and from its controller.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use tenon_model::{Operator, PodKey, Selector, Spread, WrittenRequirement};

use super::spread_sources::SpreadSources;
use super::version_cache::Changes;
use crate::kube_objects::Pod as KubePod;
use crate::objects::Objects;
use crate::pod_affinity::{Asker, demand};
use crate::pod_predicates::{is_terminal, pod_key};

/// Follows what the constraints of pods are deduced from.
#[derive(Debug, Default)]
pub(super) struct DefaultSpread {
    sources: SpreadSources,
    constraints: Vec<TopologySpreadConstraint>,
    /// Pods without constraints of their own, by namespace.
    pods: BTreeMap<String, BTreeMap<Arc<PodKey>, Arc<KubePod>>>,
    /// What was deduced in this look. Pods of one workload give the same answer.
    deduced: BTreeMap<Alike, Arc<[Spread]>>,
}

/// All that a selector is deduced from, of one pod.
type Alike = (String, Option<String>, BTreeMap<String, String>);

impl DefaultSpread {
    /// Takes note of everything that changed, pods too. Returns pods that are the same as before and whose constraints may
    /// not be. Nothing is followed where there are no constraints.
    pub(super) fn look(
        &mut self,
        objects: &Objects,
        constraints: &[TopologySpreadConstraint],
        pods: &Changes<KubePod>,
    ) -> Vec<Arc<KubePod>> {
        if constraints.is_empty() {
            return Vec::new();
        }
        self.constraints = constraints.to_vec();
        self.deduced.clear();
        self.note(pods);
        let touched = self.sources.look(objects);
        let place = |pod: &Arc<KubePod>| Arc::as_ptr(pod).addr();
        let changed: BTreeSet<usize> = pods.added.iter().map(place).collect();
        let theirs = touched.iter().filter_map(|namespace| self.pods.get(namespace)).flat_map(BTreeMap::values);
        theirs.filter(|pod| !changed.contains(&place(pod))).cloned().collect()
    }

    fn note(&mut self, Changes { removed, added }: &Changes<KubePod>) {
        for pod in removed {
            if let Some(pods) = self.pods.get_mut(pod.namespace()) {
                pods.remove(pod_key(pod));
                if pods.is_empty() {
                    self.pods.remove(pod.namespace());
                }
            }
        }
        for pod in added.iter().filter(|pod| !is_terminal(pod) && !is_spread(pod)) {
            self.pods.entry(pod.namespace().to_owned()).or_default().insert(pod_key(pod).clone(), pod.clone());
        }
    }

    /// The constraints of a pod that has none of its own. One that nothing is known to belong to has none.
    pub(super) fn of(&mut self, found: &KubePod) -> Arc<[Spread]> {
        if self.constraints.is_empty() || is_spread(found) {
            return Arc::default();
        }
        let controller = found.owner_references().iter().find(|owner| owner.controller == Some(true));
        let uid = controller.map(|owner| owner.uid.clone());
        let alike = (found.namespace().to_owned(), uid, found.labels().clone());
        if let Some(known) = self.deduced.get(&alike) {
            return known.clone();
        }
        let spreads: Arc<[Spread]> = self.deduce(found).map(|selector| self.with(found, &selector)).unwrap_or_default();
        self.deduced.insert(alike, spreads.clone());
        spreads
    }

    fn with(&self, found: &KubePod, selector: &Selector) -> Arc<[Spread]> {
        let asker = Asker { namespace: found.namespace(), labels: found.labels() };
        let spreads = self.constraints.iter().map(|constraint| asker.spread(constraint));
        spreads.map(|spread| Spread { selector: Some(selector.clone()), ..spread }).collect()
    }

    /// What Services say are equalities, of which the last of a label counts; a ReplicationController overrules them, and
    /// what a ReplicaSet or StatefulSet says is demanded besides.
    fn deduce(&self, found: &KubePod) -> Option<Selector> {
        let mut labels = self.sources.of_services(found);
        let owner = self.sources.of_controller(found);
        labels.extend(owner.iter().flat_map(|owner| owner.labels.clone()));
        let equal = labels.iter().map(|(label, value)| demand(label, Operator::In, vec![value.clone()]));
        let mut requirements: Vec<WrittenRequirement> = equal.collect();
        for more in owner.iter().flat_map(|owner| &owner.expressions) {
            if !requirements.contains(more) {
                requirements.push(more.clone());
            }
        }
        // An empty one would choose every pod of the namespace.
        (!requirements.is_empty()).then_some(Selector { requirements })
    }
}

fn is_spread(pod: &KubePod) -> bool {
    let constraints = pod.spec.as_ref().and_then(|spec| spec.topology_spread_constraints.as_ref());
    constraints.is_some_and(|constraints| !constraints.is_empty())
}
