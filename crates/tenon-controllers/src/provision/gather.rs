//! One look at everything a plan is made from.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, ListParams};
use tenon_api::{NodeClaim, NodePool, ProxmoxNodeClass};
use tenon_model::{InstanceType, VmIdRange};

use crate::status::Estate;

/// What provisioning works with.
pub struct ProvisionContext {
    /// The cluster whose pods need nodes.
    pub workload: Client,
    /// A client for each Proxmox cluster, by region.
    pub regions: BTreeMap<String, tenon_pve::Client>,
    /// Sizes of VMs.
    pub types: Vec<InstanceType>,
    /// Ids new VMs are given.
    pub ids: VmIdRange,
}

/// Everything at one moment.
#[derive(Debug, Default)]
pub struct Gathered {
    /// All pods.
    pub pods: Vec<Pod>,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// All DaemonSets.
    pub daemons: Vec<DaemonSet>,
    /// All pools.
    pub pools: Vec<NodePool>,
    /// All classes.
    pub classes: Vec<ProxmoxNodeClass>,
    /// All claims.
    pub claims: Vec<NodeClaim>,
    /// Every Proxmox cluster.
    pub estate: Estate,
}

/// Looks. Nodes are read before pods: a pod that was bound in between is then counted on a node that is known.
pub async fn gather(context: &ProvisionContext) -> Result<Gathered, kube::Error> {
    let client = &context.workload;
    let claims = list(client).await?;
    let nodes = list(client).await?;
    let pods = list(client).await?;
    Ok(Gathered {
        claims,
        nodes,
        pods,
        daemons: list(client).await?,
        pools: list(client).await?,
        classes: list(client).await?,
        estate: Estate::look(&context.regions).await,
    })
}

async fn list<K>(client: &Client) -> Result<Vec<K>, kube::Error>
where
    K: kube::Resource<DynamicType = ()> + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    Ok(Api::<K>::all(client.clone()).list(&ListParams::default()).await?.items)
}
