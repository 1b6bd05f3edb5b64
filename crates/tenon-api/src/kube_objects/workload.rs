//! Whoever creates pods, and whoever speaks of them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Deserialize;

use super::meta::{metadata, or_default, resource};
use super::pod_spec::PodTemplateSpec;
use super::status_fields::StatusFields;
use super::storage::PersistentVolumeClaim;

/// A kind with metadata, a spec that is always there, and a status of which only the names of its fields matter.
macro_rules! workload {
    ($kind:ident, $spec:ident, $group:literal, $plural:literal, $doc:literal) => {
        #[doc = $doc]
        #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
        #[serde(default)]
        pub struct $kind {
            /// Its name and owners.
            #[serde(deserialize_with = "metadata")]
            pub metadata: ObjectMeta,
            /// What it asks for.
            #[serde(deserialize_with = "or_default")]
            pub spec: $spec,
            /// What a cluster has said of it.
            pub status: Option<StatusFields>,
        }

        resource!($kind, NamespaceResourceScope, $group, "v1", $plural);
    };
}

workload!(DaemonSet, DaemonSetSpec, "apps", "daemonsets", "Pods on every node.");
workload!(Deployment, DeploymentSpec, "apps", "deployments", "Pods that are replaced step by step.");
workload!(ReplicaSet, ReplicaSetSpec, "apps", "replicasets", "So many pods.");
workload!(
    StatefulSet,
    StatefulSetSpec,
    "apps",
    "statefulsets",
    "So many pods, each with a name and volumes of its own."
);
workload!(Job, JobSpec, "batch", "jobs", "Pods that run to their end.");
workload!(CronJob, CronJobSpec, "batch", "cronjobs", "Jobs at set times.");
workload!(
    ReplicationController,
    ReplicationControllerSpec,
    "",
    "replicationcontrollers",
    "So many pods, as it was asked for before ReplicaSets."
);

/// What a DaemonSet asks for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DaemonSetSpec {
    /// What its pods are created from.
    #[serde(deserialize_with = "or_default")]
    pub template: PodTemplateSpec,
}

/// What a Deployment asks for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DeploymentSpec {
    /// How many pods; one, if it does not say.
    pub replicas: Option<i32>,
    /// Which pods are its own.
    pub selector: Option<LabelSelector>,
    /// What they are created from.
    #[serde(deserialize_with = "or_default")]
    pub template: PodTemplateSpec,
}

/// What a ReplicaSet asks for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ReplicaSetSpec {
    /// How many pods; one, if it does not say.
    pub replicas: Option<i32>,
    /// Which pods are its own.
    pub selector: Option<LabelSelector>,
    /// What they are created from.
    pub template: Option<PodTemplateSpec>,
}

/// What a ReplicationController asks for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ReplicationControllerSpec {
    /// How many pods; one, if it does not say.
    pub replicas: Option<i32>,
    /// Labels of its pods.
    pub selector: Option<BTreeMap<String, String>>,
    /// What they are created from.
    pub template: Option<PodTemplateSpec>,
}

/// What a StatefulSet asks for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSetSpec {
    /// How its pods are numbered.
    pub ordinals: Option<StatefulSetOrdinals>,
    /// How many pods; one, if it does not say.
    pub replicas: Option<i32>,
    /// Which pods are its own.
    pub selector: Option<LabelSelector>,
    /// What they are created from.
    #[serde(deserialize_with = "or_default")]
    pub template: PodTemplateSpec,
    /// The claims each of them gets.
    pub volume_claim_templates: Option<Vec<PersistentVolumeClaim>>,
}

/// How the pods of a StatefulSet are numbered.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct StatefulSetOrdinals {
    /// The number of the first.
    pub start: Option<i32>,
}

/// What a Job asks for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct JobSpec {
    /// How many pods must succeed.
    pub completions: Option<i32>,
    /// How many may run at once.
    pub parallelism: Option<i32>,
    /// Whether it waits.
    pub suspend: Option<bool>,
    /// What its pods are created from.
    #[serde(deserialize_with = "or_default")]
    pub template: PodTemplateSpec,
}

/// What a CronJob asks for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CronJobSpec {
    /// What its Jobs are created from.
    #[serde(deserialize_with = "or_default")]
    pub job_template: JobTemplateSpec,
    /// Whether it waits.
    pub suspend: Option<bool>,
}

/// What Jobs are created from.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct JobTemplateSpec {
    /// What each asks for.
    pub spec: Option<JobSpec>,
}

/// A namespace.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// Its name and labels.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
}

resource!(Namespace, ClusterResourceScope, "", "v1", "namespaces");

/// A service.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Service {
    /// Its name.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Whom it serves.
    pub spec: Option<ServiceSpec>,
}

resource!(Service, NamespaceResourceScope, "", "v1", "services");

/// Whom a service serves.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ServiceSpec {
    /// Labels of its pods.
    pub selector: Option<BTreeMap<String, String>>,
}

/// How many pods may leave at once.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodDisruptionBudget {
    /// Its name.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Which pods, and how many.
    pub spec: Option<PodDisruptionBudgetSpec>,
    /// What Kubernetes says of it.
    pub status: Option<PodDisruptionBudgetStatus>,
}

resource!(PodDisruptionBudget, NamespaceResourceScope, "policy", "v1", "poddisruptionbudgets");

/// What Kubernetes says of a budget.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudgetStatus {
    /// So many pods may leave now.
    pub disruptions_allowed: Option<i32>,
}

/// Which pods may leave, and how many.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudgetSpec {
    /// So many may be missing.
    pub max_unavailable: Option<IntOrString>,
    /// So many must stay.
    pub min_available: Option<IntOrString>,
    /// Labels of its pods.
    pub selector: Option<LabelSelector>,
    /// Whether pods that are not healthy count.
    pub unhealthy_pod_eviction_policy: Option<String>,
}
