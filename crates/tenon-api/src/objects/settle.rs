//! What an object read from a file lacks and an API server would have filled in; and what it would have refused.

use crate::kube_objects::{Container, PodSpec, PodStatus, WirePod};
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PodCondition, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::{Object, Scope, place, quantities};

/// The namespace of whoever names none.
const DEFAULT_NAMESPACE: &str = "default";

/// Why an object cannot be part of a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectFault {
    /// Nothing tells it from others.
    #[error("metadata.name is required")]
    NoName,
    /// An amount is none, or less than nothing.
    #[error("{field}: {why}")]
    Amount {
        /// Where it stands.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// A field holds what no API server accepts.
    #[error("{field}: {why}")]
    Field {
        /// Where it stands.
        field: String,
        /// What is wrong with it.
        why: String,
    },
}

impl ObjectFault {
    /// Where in the object it stands, if it stands somewhere.
    pub fn field(&self) -> Option<&str> {
        match self {
            ObjectFault::NoName => None,
            ObjectFault::Amount { field, .. } | ObjectFault::Field { field, .. } => Some(field),
        }
    }
}

impl Object {
    /// The object as a plan can use it: with a namespace and a uid, with requests where only limits were given, as
    /// waiting if it is a pod that was never in a cluster, and without what no plan looks at.
    pub fn settled(mut self) -> Result<Object, ObjectFault> {
        let scope = self.kind().scope();
        let meta = self.meta_mut();
        if meta.name.as_deref().unwrap_or_default().is_empty() {
            return Err(ObjectFault::NoName);
        }
        match scope {
            Scope::Cluster => meta.namespace = None,
            Scope::Namespaced if meta.namespace.as_deref().unwrap_or_default().is_empty() => {
                meta.namespace = Some(DEFAULT_NAMESPACE.to_owned());
            }
            Scope::Namespaced => {}
        }
        if meta.uid.as_deref().unwrap_or_default().is_empty() {
            let uid = match place(meta) {
                ("", name) => name.to_owned(),
                (namespace, name) => format!("{namespace}/{name}"),
            };
            meta.uid = Some(uid);
        }
        // Often half of an object that was read from a server, and about its writers, not about itself.
        meta.managed_fields = None;
        // Before limits become requests: what is wrong is told by the name it was written under.
        quantities::check(&self)?;
        if let Some(spec) = self.pod_spec_mut() {
            fill_requests(spec);
        }
        if let Object::Pod(pod) = &mut self {
            wait_if_unborn(pod);
        }
        Ok(self)
    }

    fn pod_spec_mut(&mut self) -> Option<&mut PodSpec> {
        match self {
            Object::Pod(pod) => pod.spec.as_mut(),
            Object::DaemonSet(set) => set.spec.template.spec.as_mut(),
            _ => None,
        }
    }
}

/// Every API server gives a pod a status. Whoever plans for one that has none, or the empty one that kubectl writes into a
/// manifest, wants to know where it would go; a gate keeps it waiting there too.
fn wait_if_unborn(pod: &mut WirePod) {
    let spec = pod.spec.as_ref();
    let has_node = pod.node_name().is_some();
    let is_gated = spec.and_then(|spec| spec.scheduling_gates.as_ref()).is_some_and(|gates| !gates.is_empty());
    let has_status = pod.status.as_ref().is_some_and(|status| *status != PodStatus::default());
    if has_status || has_node || is_gated {
        return;
    }
    let unschedulable = PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some("Unschedulable".to_owned()),
        ..PodCondition::default()
    };
    let (phase, conditions) = (Some("Pending".to_owned()), Some(vec![unschedulable]));
    pod.status = Some(PodStatus { phase, conditions, ..PodStatus::default() });
}

/// A limit without a request counts as a request, for a container first and then for the pod as a whole.
fn fill_requests(spec: &mut PodSpec) {
    let containers = [&mut spec.containers, &mut spec.init_containers].into_iter().flat_map(Arc::make_mut);
    for resources in containers.filter_map(|container| container.resources.as_mut()) {
        fill(resources, |_| true);
    }
    let is_requested = |container: &Container, resource: &str| {
        let requests = container.resources.iter().flat_map(|resources| resources.requests.iter().flatten());
        requests.into_iter().any(|(name, _)| name == resource)
    };
    let (containers, inits) = (&spec.containers, &spec.init_containers);
    if let Some(level) = spec.resources.as_mut() {
        // What containers ask for is already the pod's, so its limit says nothing more.
        fill(level, |resource| {
            !containers.iter().chain(inits.iter()).any(|container| is_requested(container, resource))
        });
    }
}

fn fill(resources: &mut ResourceRequirements, wanted: impl Fn(&str) -> bool) {
    let Some(limits) = &resources.limits else { return };
    let requests: &mut BTreeMap<String, Quantity> = resources.requests.get_or_insert_default();
    for (resource, limit) in limits {
        if wanted(resource) && !requests.contains_key(resource) {
            requests.insert(resource.clone(), limit.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::kube_objects::WirePod;
    use serde_json::{Value, json};

    use super::*;
    use crate::objects::Kind;

    fn settled(kind: Kind, value: Value) -> Result<Object, ObjectFault> {
        kind.read(value).unwrap().settled()
    }

    fn pod(spec: &Value) -> Result<Box<WirePod>, ObjectFault> {
        match settled(Kind::Pod, json!({"metadata": {"name": "a"}, "spec": spec}))? {
            Object::Pod(pod) => Ok(pod),
            other => panic!("{other:?} is no pod"),
        }
    }

    #[test]
    fn what_has_no_namespace_and_no_uid_gets_both() {
        let pod = pod(&json!({"containers": []})).unwrap();
        assert_eq!(pod.metadata.namespace.as_deref(), Some("default"));
        assert_eq!(pod.metadata.uid.as_deref(), Some("default/a"));
        let node = settled(Kind::Node, json!({"metadata": {"name": "n", "namespace": "x", "uid": "u"}})).unwrap();
        assert_eq!(node.key().to_string(), "Node n");
        assert_eq!(node.meta().uid.as_deref(), Some("u"));
        assert_eq!(settled(Kind::Node, json!({"metadata": {}})).unwrap_err(), ObjectFault::NoName);
    }

    #[test]
    fn limits_fill_requests_that_are_missing_and_no_others() {
        let resources = json!({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": 1}});
        let containers = json!([{"name": "c", "resources": resources}]);
        let level = json!({"limits": {"cpu": "8", "hugepages-2Mi": "4Mi"}});
        let spec = json!({"containers": containers, "initContainers": containers, "resources": level});
        let spec = pod(&spec).unwrap().spec.unwrap();
        for container in spec.containers.iter().chain(spec.init_containers.iter()) {
            let requests = container.resources.clone().unwrap().requests.unwrap();
            assert_eq!((requests["cpu"].0.as_str(), requests["memory"].0.as_str()), ("1", "1Gi"));
        }
        let level = spec.resources.unwrap().requests.unwrap();
        assert_eq!(level.keys().collect::<Vec<_>>(), ["hugepages-2Mi"]);
    }

    #[test]
    fn a_request_that_is_no_amount_or_less_than_nothing_is_refused_by_name() {
        for (amount, words) in [("-1", "must not be negative"), ("lots", "is not a quantity")] {
            let containers = json!([{"name": "c"}, {"name": "d", "resources": {"requests": {"cpu": amount}}}]);
            let said = pod(&json!({"containers": containers})).unwrap_err().to_string();
            assert!(said.starts_with("spec.containers[1].resources.requests.cpu") && said.contains(words), "{said}");
        }
        let containers = json!([{"name": "c", "resources": {"limits": {"cpu": "-1"}}}]);
        let fault = pod(&json!({"containers": containers})).unwrap_err();
        assert_eq!(fault.field(), Some("spec.containers[0].resources.limits.cpu"), "{fault}");
        let set = json!({"metadata": {"name": "a"}, "spec": {"selector": {}, "template": {"spec": {"containers": [],
            "overhead": {"memory": "-1"}}}}});
        let said = settled(Kind::DaemonSet, set).unwrap_err().to_string();
        assert!(said.starts_with("spec.template.spec.overhead.memory"), "{said}");
    }

    #[test]
    fn amounts_of_nodes_and_pools_are_checked_too() {
        let node = json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "x"}}});
        assert!(settled(Kind::Node, node).unwrap_err().to_string().starts_with("status.allocatable.cpu"));
        let pool = json!({"metadata": {"name": "p"}, "spec": {"limits": {"cpu": "-5"}, "template": {"spec":
            {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"}}}}});
        assert!(settled(Kind::NodePool, pool).unwrap_err().to_string().starts_with("spec.limits.cpu"));
    }
}
