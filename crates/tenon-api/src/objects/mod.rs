//! The Kubernetes objects a plan is made from: plain lists of what was read, wherever it was read from.
//!
//! An object is read by its kind, settled once (names, uids, requests, amounts that make sense) and then only looked at.
//! What the objects mean together is not decided here.

mod lenient;
mod quantities;
mod settle;

use crate::kube_objects::{
    CSINode, CronJob, DaemonSet, Deployment, Job, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod,
    PodDisruptionBudget, ReplicaSet, ReplicationController, Service, StatefulSet, StorageClass, VolumeAttachment,
    WirePod,
};
use std::sync::Arc;

use kube::Resource;
use kube::core::ObjectMeta;
use serde::{Deserialize, Deserializer};

use crate::{NodeClaim, NodeOverlay, NodePool};

pub use lenient::made_good;
pub use settle::ObjectFault;

/// Whether objects of a kind live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Each has a namespace.
    Namespaced,
    /// They belong to the cluster.
    Cluster,
}

/// From the table of kinds: the kind, one object of any kind as it is sent, and the lists of all as they are kept.
macro_rules! kinds {
    ($($kind:ident, $sent:ident, $list:ident, $scope:ident, $doc:literal;)*) => {
        /// A kind of object that matters to a plan.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $(#[doc = $doc] $kind,)*
        }

        /// One object, of whichever kind.
        #[derive(Debug, Clone)]
        pub enum Object {
            $(#[doc = $doc] $kind(Box<$sent>),)*
        }

        /// What a plan is made from.
        #[derive(Debug, Clone, Default)]
        pub struct Objects {
            $(#[doc = $doc] pub $list: Vec<Arc<$kind>>,)*
        }

        impl Kind {
            /// Every kind there is.
            pub const ALL: &[Kind] = &[$(Kind::$kind,)*];

            /// Its name, as it stands under `kind`.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$kind => stringify!($kind),)* }
            }

            /// The API version it is read in.
            pub fn api_version(self) -> String {
                match self { $(Kind::$kind => $sent::api_version(&()).into_owned(),)* }
            }

            /// Where its objects live.
            pub fn scope(self) -> Scope {
                match self { $(Kind::$kind => Scope::$scope,)* }
            }

            /// Reads one object of this kind. What it says of its own kind and version must agree.
            pub fn read<'de, D: Deserializer<'de>>(self, from: D) -> Result<Object, D::Error> {
                match self { $(Kind::$kind => Box::<$sent>::deserialize(from).map(Object::$kind),)* }
            }
        }

        impl Object {
            /// Its kind.
            pub fn kind(&self) -> Kind {
                match self { $(Object::$kind(_) => Kind::$kind,)* }
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                match self { $(Object::$kind(object) => object.meta_mut(),)* }
            }

            fn meta(&self) -> &ObjectMeta {
                match self { $(Object::$kind(object) => object.meta(),)* }
            }
        }

        impl Objects {
            /// Adds an object to the list of its kind.
            pub fn add(&mut self, object: Object) {
                match object { $(Object::$kind(object) => self.$list.push(Arc::new((*object).into())),)* }
            }

            /// Puts every list in order of namespace and name, which is how they are meant to be looked at.
            pub fn sort(&mut self) {
                $(self.$list.sort_by(|a, b| a.place().cmp(&b.place()));)*
            }

            /// How many objects there are of a kind.
            pub fn count(&self, kind: Kind) -> usize {
                match kind { $(Kind::$kind => self.$list.len(),)* }
            }
        }

        $(impl From<$sent> for Object {
            fn from(object: $sent) -> Object {
                Object::$kind(Box::new(object))
            }
        })*
    };
}

kinds! {
    Pod, WirePod, pods, Namespaced, "Pods: those that wait, and those that run.";
    Node, Node, nodes, Cluster, "Nodes that are there.";
    NodePool, NodePool, node_pools, Cluster, "Pools that nodes may be made from.";
    NodeClaim, NodeClaim, node_claims, Cluster, "Nodes that are there or on their way.";
    NodeOverlay, NodeOverlay, node_overlays, Cluster, "What some instance types cost or have besides.";
    DaemonSet, DaemonSet, daemon_sets, Namespaced, "What runs on every node.";
    ReplicaSet, ReplicaSet, replica_sets, Namespaced, "Owners of pods: replica sets.";
    Deployment, Deployment, deployments, Namespaced, "Owners of replica sets: deployments.";
    StatefulSet, StatefulSet, stateful_sets, Namespaced, "Owners of pods: stateful sets.";
    Job, Job, jobs, Namespaced, "Owners of pods: jobs.";
    CronJob, CronJob, cron_jobs, Namespaced, "Owners of jobs: cron jobs.";
    ReplicationController, ReplicationController, replication_controllers, Namespaced, "Owners of pods: replication controllers.";
    PersistentVolume, PersistentVolume, persistent_volumes, Cluster, "Volumes, and where they can be used.";
    PersistentVolumeClaim, PersistentVolumeClaim, persistent_volume_claims, Namespaced, "What pods ask of volumes.";
    StorageClass, StorageClass, storage_classes, Cluster, "How volumes are made, and where.";
    CSINode, CSINode, csi_nodes, Cluster, "How many volumes a node takes.";
    VolumeAttachment, VolumeAttachment, volume_attachments, Cluster, "Volumes that are attached to nodes.";
    Namespace, Namespace, namespaces, Cluster, "Namespaces and their labels.";
    Service, Service, services, Namespaced, "Services, which say what pods belong together.";
    PodDisruptionBudget, PodDisruptionBudget, disruption_budgets, Namespaced, "How many pods may leave at once.";
}

/// What an object is found by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty for what belongs to the cluster.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let divide = if self.namespace.is_empty() { "" } else { "/" };
        write!(f, "{} {}{divide}{}", self.kind.name(), self.namespace, self.name)
    }
}

impl Kind {
    /// The kind that goes by this name in this version of the API, if it matters to a plan.
    pub fn find(api_version: &str, name: &str) -> Option<Kind> {
        Kind::named(name).filter(|kind| kind.api_version() == api_version)
    }

    /// The kind of this name, in whichever version.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

impl Object {
    /// What it is found by.
    pub fn key(&self) -> ObjectKey {
        let (namespace, name) = place(self.meta());
        ObjectKey { kind: self.kind(), namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

fn place(meta: &ObjectMeta) -> (&str, &str) {
    (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

/// What is found by a namespace and a name.
trait Placed {
    fn place(&self) -> (&str, &str);
}

impl<K: Resource> Placed for K {
    fn place(&self) -> (&str, &str) {
        place(self.meta())
    }
}

impl Placed for Pod {
    fn place(&self) -> (&str, &str) {
        (self.namespace(), self.name())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: serde_json::Value) -> Result<Object, serde_json::Error> {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        Kind::find(&text("apiVersion"), &text("kind")).unwrap().read(value)
    }

    #[test]
    fn every_kind_is_found_by_its_own_name_and_version_only() {
        for kind in Kind::ALL {
            assert_eq!(Kind::find(&kind.api_version(), kind.name()), Some(*kind));
            assert_eq!(Kind::find("example.com/v1", kind.name()), None);
        }
        assert_eq!(Kind::find("v1", "Secret"), None);
        assert_eq!(Kind::NodePool.api_version(), "karpenter.sh/v1");
    }

    #[test]
    fn lists_are_in_order_of_namespace_and_name() {
        let mut objects = Objects::default();
        for (namespace, name) in [("b", "a"), ("a", "z"), ("a", "b")] {
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name}});
            objects.add(read(pod).unwrap());
        }
        objects.sort();
        let names: Vec<_> = objects.pods.iter().map(|pod| pod.place()).collect();
        assert_eq!(names, [("a", "b"), ("a", "z"), ("b", "a")]);
        assert_eq!((objects.count(Kind::Pod), objects.count(Kind::Node)), (3, 0));
    }

    #[test]
    fn a_field_of_the_wrong_type_is_refused() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": 5}});
        assert!(read(pod).unwrap_err().to_string().contains("invalid type"));
    }
}
