//! With what a new VM finds its cluster: the server, its authority, and a token.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::config::Kubeconfig;
use tenon_api::NodeClaim;
use tenon_cloudinit::Bootstrap;

use super::{ClaimError, token};
use crate::context::Context;

/// Where every cluster keeps its own authority.
const ROOT_CA: &str = "kube-root-ca.crt";

/// What a claim's VM joins with, or what is missing and the next move.
pub(crate) async fn facts(context: &Context, claim: &NodeClaim) -> Result<Result<Bootstrap, String>, ClaimError> {
    let namespace = &context.settings.system_namespace;
    let Some(authority) = config_map(context, namespace, ROOT_CA).await? else {
        return Ok(Err(format!("there is no ConfigMap {namespace}/{ROOT_CA}; is --system-namespace right?")));
    };
    let Some(ca_pem) = authority.data.and_then(|data| data.get("ca.crt").cloned()) else {
        return Ok(Err(format!("ConfigMap {namespace}/{ROOT_CA} has no key ca.crt")));
    };
    let api_server = match &context.settings.cluster_endpoint {
        Some(endpoint) => endpoint.clone(),
        None => match published(context).await? {
            Some(server) => server,
            None => {
                return Ok(Err("nobody says where nodes find the API server: there is no ConfigMap \
                                   kube-public/cluster-info with a kubeconfig in it; give --cluster-endpoint"
                    .to_owned()));
            }
        },
    };
    match token::read(context, claim).await? {
        Some(token) => Ok(Ok(Bootstrap { api_server, ca_pem, token })),
        None => Ok(Err("its bootstrap token is gone; delete this claim, and another is made".to_owned())),
    }
}

/// The server as kubeadm and others publish it.
async fn published(context: &Context) -> Result<Option<String>, ClaimError> {
    let info = config_map(context, "kube-public", "cluster-info").await?;
    let text = info.and_then(|info| info.data?.get("kubeconfig").cloned());
    let parsed = text.and_then(|text| Kubeconfig::from_yaml(&text).ok());
    Ok(parsed.and_then(|config| config.clusters.into_iter().find_map(|cluster| cluster.cluster?.server)))
}

async fn config_map(context: &Context, namespace: &str, name: &str) -> Result<Option<ConfigMap>, ClaimError> {
    let maps: Api<ConfigMap> = Api::namespaced(context.workload.clone(), namespace);
    let told = |source| ClaimError::kube(&format!("read ConfigMap {namespace}/{name}"), source);
    maps.get_opt(name).await.map_err(told)
}
