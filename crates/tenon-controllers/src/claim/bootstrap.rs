//! What a new VM joins its cluster with: the API server's address, the cluster CA, and a bootstrap token.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::config::Kubeconfig;
use kube::{Client, ResourceExt};
use tenon_api::NodeClaim;
use tenon_cloudinit::Bootstrap;

use super::{ClaimError, token};
use crate::context::Context;

/// Where every cluster keeps its own CA.
const ROOT_CA: &str = "kube-root-ca.crt";

/// What a claim's VM joins with, or why that cannot be told.
pub(crate) async fn gather(context: &Context, claim: &NodeClaim) -> Result<Result<Bootstrap, NoBootstrap>, ClaimError> {
    let namespace = &context.settings.system_namespace;
    let missing = |message: String| Ok(Err(NoBootstrap::Missing(message)));
    let joined = match cluster(&context.workload, namespace, context.settings.cluster_endpoint.as_deref()).await? {
        Ok(joined) => joined,
        Err(why) => return missing(why),
    };
    let Joined { api_server, ca_pem } = joined;
    match token::read(&context.workload, claim).await? {
        Some(token) => Ok(Ok(Bootstrap { api_server, ca_pem, token })),
        None if is_outdated(context, claim).await? => Ok(Err(NoBootstrap::Outdated)),
        None => missing(format!(
            "its bootstrap token was deleted; delete NodeClaim {}, and another is created",
            claim.name_any()
        )),
    }
}

/// What every VM of a cluster joins.
#[derive(Debug, Clone)]
pub struct Joined {
    /// Where guests reach the API server; empty if nobody says so.
    pub api_server: String,
    /// The cluster's root certificates, as PEM.
    pub ca_pem: String,
}

/// What the VMs of a cluster join, or what is missing: `namespace` has the CA, `endpoint` is where guests reach the API
/// server, if that was said.
pub async fn cluster(
    client: &Client,
    namespace: &str,
    endpoint: Option<&str>,
) -> Result<Result<Joined, String>, ClaimError> {
    let Some(authority) = config_map(client, namespace, ROOT_CA).await? else {
        return Ok(Err(format!("ConfigMap {namespace}/{ROOT_CA} does not exist; check --system-namespace")));
    };
    let Some(ca_pem) = authority.data.and_then(|data| data.get("ca.crt").cloned()) else {
        return Ok(Err(format!("ConfigMap {namespace}/{ROOT_CA} has no key ca.crt")));
    };
    let api_server = match endpoint {
        Some(endpoint) => Some(endpoint.to_owned()),
        None => published(client).await?,
    };
    Ok(Ok(Joined { api_server: api_server.unwrap_or_default(), ca_pem }))
}

/// Why what a VM joins with cannot be told.
pub(crate) enum NoBootstrap {
    /// Something is missing: what, and the next step.
    Missing(String),
    /// The claim was changed since it was read: a new leader may have finished the launch and deleted the token.
    Outdated,
}

/// Whether a claim was changed or deleted since it was read.
async fn is_outdated(context: &Context, claim: &NodeClaim) -> Result<bool, ClaimError> {
    let claims: Api<NodeClaim> = Api::all(context.workload.clone());
    let now = claims.get_metadata_opt(&claim.name_any()).await;
    let now = now.map_err(|source| ClaimError::kube("read the NodeClaim", source))?;
    Ok(now.and_then(|now| now.metadata.resource_version) != claim.metadata.resource_version)
}

/// The server as kubeadm and others publish it.
async fn published(client: &Client) -> Result<Option<String>, ClaimError> {
    let info = config_map(client, "kube-public", "cluster-info").await?;
    let text = info.and_then(|info| info.data?.get("kubeconfig").cloned());
    let parsed = text.and_then(|text| Kubeconfig::from_yaml(&text).ok());
    Ok(parsed.and_then(|config| config.clusters.into_iter().find_map(|cluster| cluster.cluster?.server)))
}

async fn config_map(client: &Client, namespace: &str, name: &str) -> Result<Option<ConfigMap>, ClaimError> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let told = |source| ClaimError::kube(&format!("read ConfigMap {namespace}/{name}"), source);
    maps.get_opt(name).await.map_err(told)
}
