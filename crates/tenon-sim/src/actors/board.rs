//! What does the cluster look like right now? Asked of the API server itself, so that nothing is done twice.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim, Secret};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::api::{Api, ListParams};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tenon_api::kube_objects::{DaemonSet, Deployment, Job, Node, PodDisruptionBudget, ReplicaSet, WirePod as Pod};

use super::owner::{self, Owner};

/// Everything the actors look at.
pub(crate) struct Board {
    pub(crate) client: Client,
    pub(crate) now: Timestamp,
    pub(crate) deployments: Vec<Owner>,
    pub(crate) replica_sets: Vec<Owner>,
    pub(crate) daemon_sets: Vec<Owner>,
    pub(crate) jobs: Vec<Owner>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) claims: Vec<PersistentVolumeClaim>,
    pub(crate) volumes: Vec<PersistentVolume>,
    pub(crate) classes: Vec<StorageClass>,
    pub(crate) csi_nodes: Vec<CSINode>,
    pub(crate) budgets: Vec<Owner>,
    pub(crate) leases: Vec<Lease>,
    pub(crate) tokens: Vec<Secret>,
}

/// What was seen last, for as long as nothing changes.
#[derive(Default)]
pub(crate) struct Looks {
    last: Option<(String, Arc<Board>)>,
}

impl Looks {
    /// Looks at everything, unless nothing changed since the last look: every list has the version of the last change of all.
    pub(crate) async fn look(&mut self, client: &Client, now: Timestamp) -> Result<Arc<Board>, kube::Error> {
        let one = Api::<Namespace>::all(client.clone()).list(&ListParams::default().limit(1)).await?;
        let version = one.metadata.resource_version.unwrap_or_default();
        if let Some((_, board)) = self.last.as_ref().filter(|(known, board)| *known == version && board.now == now) {
            return Ok(board.clone());
        }
        // Taken before the rest: what changes meanwhile is seen by the next look, too.
        let board = Arc::new(Board::look(client, now).await?);
        self.last = Some((version, board.clone()));
        Ok(board)
    }
}

/// What grows old without anybody telling: nodes, their leases, and bootstrap tokens.
pub(crate) struct Ages {
    pub(crate) nodes: Vec<Node>,
    pub(crate) leases: Vec<Lease>,
    pub(crate) tokens: Vec<Secret>,
}

impl Ages {
    pub(crate) async fn look(client: &Client) -> Result<Ages, kube::Error> {
        Ok(Ages { nodes: list(client).await?, leases: list(client).await?, tokens: tokens(client).await? })
    }
}

async fn tokens(client: &Client) -> Result<Vec<Secret>, kube::Error> {
    let mut tokens: Vec<Secret> = list(client).await?;
    tokens.retain(|secret| secret.type_.as_deref() == Some("bootstrap.kubernetes.io/token"));
    Ok(tokens)
}

impl Board {
    /// Looks at everything.
    async fn look(client: &Client, now: Timestamp) -> Result<Board, kube::Error> {
        Ok(Board {
            client: client.clone(),
            now,
            deployments: owner::list::<Deployment>(client).await?,
            replica_sets: owner::list::<ReplicaSet>(client).await?,
            daemon_sets: owner::list::<DaemonSet>(client).await?,
            jobs: owner::list::<Job>(client).await?,
            nodes: list(client).await?,
            pods: list(client).await?,
            namespaces: list(client).await?,
            claims: list(client).await?,
            volumes: list(client).await?,
            classes: list(client).await?,
            csi_nodes: list(client).await?,
            budgets: owner::list::<PodDisruptionBudget>(client).await?,
            leases: list(client).await?,
            tokens: tokens(client).await?,
        })
    }

    /// The time, as objects have it.
    pub(crate) fn time(&self) -> Time {
        Time(Timestamp::from_second(self.now.as_second()).unwrap_or(self.now))
    }

    /// Pods of an owner that have not ended, by name.
    pub(crate) fn pods_of(&self, owner: &Owner) -> Vec<&Pod> {
        let mut pods: Vec<&Pod> = self.pods.iter().filter(|pod| owner.owns(*pod)).collect();
        pods.sort_by_key(|pod| pod.name_any());
        pods
    }
}

async fn list<K>(client: &Client) -> Result<Vec<K>, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    Ok(Api::<K>::all(client.clone()).list(&ListParams::default()).await?.items)
}

/// Whether a pod has ended, well or not.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether a pod says that it is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|told| told.type_ == "Ready" && told.status == "True")
}

/// Whether a selector of plain labels and expressions picks an object with these labels. One that says nothing picks all.
pub(crate) fn selects(selector: &LabelSelector, labels: &std::collections::BTreeMap<String, String>) -> bool {
    let equal = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    let expressions = selector.match_expressions.iter().flatten();
    equal
        && expressions.into_iter().all(|wanted| {
            is_met(&wanted.operator, wanted.values.as_deref().unwrap_or_default(), labels.get(&wanted.key))
        })
}

/// Whether an expression holds of the value of a label.
pub(crate) fn is_met(operator: &str, values: &[String], found: Option<&String>) -> bool {
    let is_listed = found.is_some_and(|found| values.contains(found));
    match operator {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        _ => false,
    }
}
