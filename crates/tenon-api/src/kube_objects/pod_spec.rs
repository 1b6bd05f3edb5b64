//! What a pod asks for, and what pods are created from.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Affinity, ContainerPort, PodResourceClaim, ResourceRequirements, Toleration, TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};

use super::meta::or_default;
use super::storage::EphemeralVolumeSource;

/// What a pod asks for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// How many seconds it runs at most.
    pub active_deadline_seconds: Option<i64>,
    /// Where it wants to run, and next to whom.
    pub affinity: Option<Affinity>,
    /// What runs in it. Held once for all pods of a workload, also where something else tells their specs apart.
    #[serde(deserialize_with = "containers")]
    pub containers: Arc<Vec<Container>>,
    /// Whether its ports are ports of the node.
    pub host_network: Option<bool>,
    /// What runs before, or beside, its containers.
    #[serde(deserialize_with = "containers")]
    pub init_containers: Arc<Vec<Container>>,
    /// The node it is bound to. A [`Pod`](super::Pod) has it beside what it shares with others.
    pub(crate) node_name: Option<String>,
    /// Labels its node must have.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// What running it costs besides its containers.
    pub overhead: Option<BTreeMap<String, Quantity>>,
    /// How important it is.
    pub priority: Option<i32>,
    /// The class its priority is from.
    pub priority_class_name: Option<String>,
    /// Devices it claims.
    pub resource_claims: Option<Vec<PodResourceClaim>>,
    /// What it asks for as a whole.
    pub resources: Option<ResourceRequirements>,
    /// What must happen before it is scheduled.
    pub scheduling_gates: Option<Vec<PodSchedulingGate>>,
    /// How long it has to end by itself.
    pub termination_grace_period_seconds: Option<i64>,
    /// Taints it tolerates.
    pub tolerations: Option<Vec<Toleration>>,
    /// How it is spread.
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    /// Its volumes.
    pub volumes: Option<Vec<Volume>>,
}

/// Lists are read into more room than they need, several times more if there is one container.
fn containers<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Vec<Container>>, D::Error> {
    let mut list: Vec<Container> = or_default(from)?;
    list.shrink_to_fit();
    Ok(Arc::new(list))
}

/// A container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Its name in the pod.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Ports it listens on.
    pub ports: Option<Vec<ContainerPort>>,
    /// What it asks for.
    pub resources: Option<ResourceRequirements>,
    /// `Always` makes a sidecar of an init container.
    pub restart_policy: Option<String>,
}

/// Something that must happen before a pod is scheduled.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodSchedulingGate {
    /// What it is called.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
}

/// A volume of a pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume {
    /// Its name in the pod.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Set if its claim is created with the pod.
    pub ephemeral: Option<EphemeralVolumeSource>,
    /// The claim it stands for.
    pub persistent_volume_claim: Option<PersistentVolumeClaimVolumeSource>,
}

/// A claim that a volume stands for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeClaimVolumeSource {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub claim_name: String,
}

/// What pods are created from.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodTemplateSpec {
    /// Their labels and annotations.
    pub metadata: Option<ObjectMeta>,
    /// What they ask for.
    pub spec: Option<PodSpec>,
}

impl PodTemplateSpec {
    /// The node its pods would be bound to.
    pub fn node_name(&self) -> Option<&str> {
        self.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
    }
}
