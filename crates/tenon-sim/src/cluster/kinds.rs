//! Which kinds does the server know, and what is special about each?

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

/// Where objects of a resource lie: group and plural.
pub(crate) type ShelfName = (String, String);

/// One resource in one version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) is_namespaced: bool,
    pub(crate) has_status: bool,
    /// Whether changes of what is wanted are counted.
    pub(crate) has_generation: bool,
    /// Whether a PUT must name the version it was made from.
    pub(crate) needs_version: bool,
    pub(crate) scale: Option<ScalePaths>,
    /// Set for custom resources.
    pub(crate) custom: Option<Custom>,
}

/// Where a scale's numbers stand in its object, as JSON pointers.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
}

/// What a definition says of its resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct Custom {
    pub(crate) schema: Value,
    pub(crate) columns: Vec<Value>,
}

impl Kind {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `deployments.apps`.
    pub(crate) fn qualified(&self) -> String {
        dotted(&self.resource, &self.group)
    }

    /// `Deployment.apps`.
    pub(crate) fn qualified_kind(&self) -> String {
        dotted(&self.kind, &self.group)
    }

    pub(crate) fn details(&self, name: &str) -> Value {
        details(name, &self.group, &self.resource)
    }

    pub(crate) fn kind_details(&self, name: &str) -> Value {
        details(name, &self.group, &self.kind)
    }

    /// The two names of events lead to the same place.
    pub(crate) fn shelf(&self) -> ShelfName {
        let group = if self.is_new_event() { "" } else { self.group.as_str() };
        (group.to_owned(), self.resource.clone())
    }

    pub(crate) fn is_new_event(&self) -> bool {
        self.group == "events.k8s.io"
    }

    /// Whether it is a built-in of this name.
    pub(crate) fn is(&self, group: &str, resource: &str) -> bool {
        self.group == group && self.resource == resource
    }

    pub(crate) fn is_pod(&self) -> bool {
        self.is("", "pods")
    }

    pub(crate) fn is_definition(&self) -> bool {
        self.is("apiextensions.k8s.io", "customresourcedefinitions")
    }

    pub(crate) fn is_signing_request(&self) -> bool {
        self.is("certificates.k8s.io", "certificatesigningrequests")
    }
}

fn dotted(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

fn details(name: &str, group: &str, kind: &str) -> Value {
    let mut details = json!({ "name": name, "kind": kind });
    if !group.is_empty() {
        details["group"] = group.into();
    }
    details
}

/// All kinds, by group, version and plural.
#[derive(Debug, Default)]
pub(crate) struct Kinds(BTreeMap<(String, String, String), Arc<Kind>>);

impl Kinds {
    /// The kinds that need no definition.
    pub(crate) fn built_in() -> Self {
        let mut kinds = Self::default();
        ROWS.iter().for_each(|row| kinds.add(row.kind()));
        kinds
    }

    pub(crate) fn add(&mut self, kind: Kind) {
        let key = (kind.group.clone(), kind.version.clone(), kind.resource.clone());
        self.0.insert(key, Arc::new(kind));
    }

    /// Forgets a custom resource in all its versions.
    pub(crate) fn forget(&mut self, group: &str, resource: &str) {
        self.0.retain(|_, kind| kind.custom.is_none() || !kind.is(group, resource));
    }

    pub(crate) fn find(&self, group: &str, version: &str, resource: &str) -> Option<Arc<Kind>> {
        self.0.get(&(group.to_owned(), version.to_owned(), resource.to_owned())).cloned()
    }

    /// The kind under whose name objects of a shelf are written.
    pub(crate) fn of_shelf(&self, shelf: &ShelfName) -> Option<Arc<Kind>> {
        self.all().find(|kind| kind.shelf() == *shelf && !kind.is_new_event()).cloned()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.0.values()
    }
}

const NAMESPACED: u8 = 1;
const STATUS: u8 = 2;
const GENERATION: u8 = 4;
/// Updates must name the version they were made from.
const VERSIONED: u8 = 8;
const SCALE: u8 = 16;
/// Part of what `kubectl get all` shows.
const ALL: u8 = 32;
const WORKLOAD: u8 = NAMESPACED | STATUS | GENERATION | ALL;

struct Row {
    group: &'static str,
    resource: &'static str,
    kind: &'static str,
    short: &'static str,
    traits: u8,
}

const fn row(group: &'static str, names: [&'static str; 3], traits: u8) -> Row {
    let [resource, kind, short] = names;
    Row { group, resource, kind, short, traits }
}

const APPS: &str = "apps";
const STORAGE: &str = "storage.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Every built-in is served in version `v1` only.
const ROWS: [Row; 30] = [
    row("", ["namespaces", "Namespace", "ns"], STATUS),
    row("", ["pods", "Pod", "po"], WORKLOAD),
    row("", ["nodes", "Node", "no"], STATUS),
    row("", ["secrets", "Secret", ""], NAMESPACED),
    row("", ["configmaps", "ConfigMap", "cm"], NAMESPACED),
    row("", ["serviceaccounts", "ServiceAccount", "sa"], NAMESPACED),
    row("", ["services", "Service", "svc"], NAMESPACED | STATUS | ALL),
    row("", ["persistentvolumeclaims", "PersistentVolumeClaim", "pvc"], NAMESPACED | STATUS),
    row("", ["persistentvolumes", "PersistentVolume", "pv"], STATUS),
    row("", ["replicationcontrollers", "ReplicationController", "rc"], WORKLOAD | SCALE),
    row("", ["events", "Event", "ev"], NAMESPACED),
    row("events.k8s.io", ["events", "Event", "ev"], NAMESPACED),
    row(APPS, ["deployments", "Deployment", "deploy"], WORKLOAD | SCALE),
    row(APPS, ["replicasets", "ReplicaSet", "rs"], WORKLOAD | SCALE),
    row(APPS, ["statefulsets", "StatefulSet", "sts"], WORKLOAD | SCALE),
    row(APPS, ["daemonsets", "DaemonSet", "ds"], WORKLOAD),
    row("batch", ["jobs", "Job", ""], WORKLOAD),
    row("policy", ["poddisruptionbudgets", "PodDisruptionBudget", "pdb"], NAMESPACED | STATUS | GENERATION | VERSIONED),
    row("coordination.k8s.io", ["leases", "Lease", ""], NAMESPACED | VERSIONED),
    row(STORAGE, ["volumeattachments", "VolumeAttachment", ""], STATUS | VERSIONED),
    row(STORAGE, ["csinodes", "CSINode", ""], VERSIONED),
    row(STORAGE, ["storageclasses", "StorageClass", "sc"], 0),
    row("certificates.k8s.io", ["certificatesigningrequests", "CertificateSigningRequest", "csr"], STATUS),
    row(RBAC, ["roles", "Role", ""], NAMESPACED),
    row(RBAC, ["rolebindings", "RoleBinding", ""], NAMESPACED),
    row(RBAC, ["clusterroles", "ClusterRole", ""], 0),
    row(RBAC, ["clusterrolebindings", "ClusterRoleBinding", ""], 0),
    row("scheduling.k8s.io", ["priorityclasses", "PriorityClass", "pc"], GENERATION),
    row(
        "apiextensions.k8s.io",
        ["customresourcedefinitions", "CustomResourceDefinition", "crd"],
        STATUS | GENERATION | VERSIONED,
    ),
    row("networking.k8s.io", ["networkpolicies", "NetworkPolicy", "netpol"], NAMESPACED | GENERATION),
];

impl Row {
    fn kind(&self) -> Kind {
        let has = |flag| self.traits & flag != 0;
        let short = Some(self.short.to_owned()).filter(|short| !short.is_empty());
        let pointer = |path: &str| path.to_owned();
        Kind {
            group: self.group.into(),
            version: "v1".into(),
            resource: self.resource.into(),
            singular: self.kind.to_ascii_lowercase(),
            kind: self.kind.into(),
            list_kind: format!("{}List", self.kind),
            short_names: short.into_iter().collect(),
            categories: if has(ALL) { vec!["all".into()] } else { Vec::new() },
            is_namespaced: has(NAMESPACED),
            has_status: has(STATUS),
            has_generation: has(GENERATION),
            needs_version: has(VERSIONED),
            scale: has(SCALE).then(|| ScalePaths {
                spec: pointer("/spec/replicas"),
                status: pointer("/status/replicas"),
                selector: None,
            }),
            custom: None,
        }
    }
}
