//! Which pods belong together: what Services and controllers select.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{Resource, ResourceExt};
use tenon_model::WrittenRequirement;

use super::version_cache::{Changes, VersionCache};
use crate::kube_objects::{Pod as KubePod, ReplicaSet, ReplicationController, Service, StatefulSet};
use crate::objects::{Kind, Objects};
use crate::pod_affinity::selector;

/// Follows Services and the controllers of pods.
#[derive(Debug, Default)]
pub(super) struct SpreadSources {
    service_versions: VersionCache<Service>,
    replica_set_versions: VersionCache<ReplicaSet>,
    stateful_set_versions: VersionCache<StatefulSet>,
    controller_versions: VersionCache<ReplicationController>,
    /// What Services select, by namespace and name. One that says nothing selects nothing.
    services: BTreeMap<String, BTreeMap<String, Labels>>,
    /// What controllers select, by namespace, kind and name.
    controllers: BTreeMap<(String, Kind, String), Selected>,
}

type Labels = BTreeMap<String, String>;

/// Which pods a controller has.
#[derive(Debug, Clone, Default)]
pub(super) struct Selected {
    /// Labels they have.
    pub(super) labels: Labels,
    /// What else is asked of their labels.
    pub(super) expressions: Vec<WrittenRequirement>,
}

impl SpreadSources {
    /// Takes note of what changed. Returns the namespaces it changed in.
    pub(super) fn look(&mut self, objects: &Objects) -> BTreeSet<String> {
        let mut touched = BTreeSet::new();
        let Changes { removed, added } = self.service_versions.look(&objects.services);
        for service in removed {
            if let Some(services) = self.services.get_mut(&namespace(&*service)) {
                services.remove(&service.name_any());
            }
            touched.insert(namespace(&*service));
        }
        for service in added {
            if let Some(labels) = service.spec.as_ref().and_then(|spec| spec.selector.clone()) {
                self.services.entry(namespace(&*service)).or_default().insert(service.name_any(), labels);
            }
            touched.insert(namespace(&*service));
        }
        self.services.retain(|_, services| !services.is_empty());
        let sets = self.replica_set_versions.look(&objects.replica_sets);
        touched.extend(self.look_at(Kind::ReplicaSet, sets, |set| of_set(set.spec.selector.as_ref())));
        let sets = self.stateful_set_versions.look(&objects.stateful_sets);
        touched.extend(self.look_at(Kind::StatefulSet, sets, |set| of_set(set.spec.selector.as_ref())));
        let controllers = self.controller_versions.look(&objects.replication_controllers);
        touched.extend(self.look_at(Kind::ReplicationController, controllers, |controller| Selected {
            labels: controller.spec.selector.clone().unwrap_or_default(),
            expressions: Vec::new(),
        }));
        touched
    }

    fn look_at<K>(&mut self, kind: Kind, changes: Changes<K>, read: impl Fn(&K) -> Selected) -> BTreeSet<String>
    where
        K: Resource<DynamicType = ()>,
    {
        let Changes { removed, added } = changes;
        let key = |found: &Arc<K>| (namespace(found.as_ref()), kind, found.name_any());
        removed.iter().for_each(|found| drop(self.controllers.remove(&key(found))));
        added.iter().for_each(|found| drop(self.controllers.insert(key(found), read(found))));
        removed.iter().chain(&added).map(|found| namespace(found.as_ref())).collect()
    }

    /// Labels that the Services selecting a pod have in their selectors; the last Service by name decides. An empty selector
    /// selects every pod and adds none.
    pub(super) fn of_services(&self, pod: &KubePod) -> Labels {
        let services = self.services.get(pod.namespace()).into_iter().flat_map(BTreeMap::values);
        let selects = |labels: &&Labels| labels.iter().all(|(label, value)| pod.labels().get(label) == Some(value));
        services.filter(selects).flatten().map(|(label, value)| (label.clone(), value.clone())).collect()
    }

    /// Which pods the controller of a pod has, if it is known and one of those that select their pods.
    pub(super) fn of_controller(&self, pod: &KubePod) -> Option<&Selected> {
        let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true))?;
        let kinds = [Kind::ReplicationController, Kind::ReplicaSet, Kind::StatefulSet];
        let kind = Kind::find(&owner.api_version, &owner.kind).filter(|kind| kinds.contains(kind))?;
        self.controllers.get(&(pod.namespace().to_owned(), kind, owner.name.clone()))
    }
}

fn namespace<K: Resource>(found: &K) -> String {
    found.meta().namespace.clone().unwrap_or_default()
}

fn of_set(chosen: Option<&LabelSelector>) -> Selected {
    Selected {
        labels: Labels::new(),
        expressions: chosen.map(|chosen| selector(chosen).requirements).unwrap_or_default(),
    }
}
