//! What a new VM joins its cluster with: the API server's address, the cluster CA, and a bootstrap token.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::config::Kubeconfig;
use kube::{Client, ResourceExt};
use serde_json::json;
use tenon_api::NodeClaim;
use tenon_cloudinit::Bootstrap;

use super::{ClaimError, token};
use crate::context::Context;

/// Where every cluster keeps its own CA.
const ROOT_CA: &str = "kube-root-ca.crt";

/// Where kubeadm and others publish where a cluster is.
const INFO: &str = "kube-public/cluster-info";

/// What a claim's VM joins with, or why that cannot be told.
pub(crate) async fn gather(context: &Context, claim: &NodeClaim) -> Result<Result<Bootstrap, NoBootstrap>, ClaimError> {
    let namespace = &context.settings.system_namespace;
    let joined = match cluster(&context.workload, namespace, context.settings.cluster_endpoint.as_deref()).await? {
        Ok(joined) => joined,
        Err(why) => return Ok(Err(NoBootstrap::Missing(why))),
    };
    let Joined { api_server, ca_pem, .. } = joined;
    Ok(match token::read(&context.workload, claim).await? {
        Some(token) => Ok(Bootstrap { api_server, ca_pem, token }),
        None if is_outdated(context, claim).await? => Err(NoBootstrap::Outdated),
        None => Err(NoBootstrap::NoToken),
    })
}

/// What every VM of a cluster joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Where guests reach the API server; empty if that is not known.
    pub api_server: String,
    /// Why that is not known, and the next step; empty if it is.
    pub no_api_server: String,
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
    let roots = match root_ca(client, namespace).await? {
        Ok(roots) => roots,
        Err(why) => return Ok(Err(why)),
    };
    Ok(Ok(match endpoint {
        Some(endpoint) => Joined { api_server: endpoint.to_owned(), no_api_server: String::new(), ca_pem: roots },
        None => published(client).await?.joined(roots),
    }))
}

async fn root_ca(client: &Client, namespace: &str) -> Result<Result<String, String>, ClaimError> {
    let Some(authority) = config_map(client, namespace, ROOT_CA).await? else {
        return Ok(Err(format!("ConfigMap {namespace}/{ROOT_CA} does not exist; check --system-namespace")));
    };
    let pem = authority.data.and_then(|data| data.get("ca.crt").cloned());
    let pem = pem.filter(|pem| pem.contains("-----BEGIN CERTIFICATE-----"));
    Ok(pem.ok_or_else(|| {
        format!("ConfigMap {namespace}/{ROOT_CA} has no certificate in key ca.crt; check --system-namespace")
    }))
}

/// Why what a VM joins with cannot be told.
pub(crate) enum NoBootstrap {
    /// Something is missing: what, and the next step.
    Missing(String),
    /// The claim's token is not there any more.
    NoToken,
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

/// A cluster as it is published: its address or why there is none, and the CA of that address.
struct Published {
    server: Result<String, String>,
    ca_pem: Option<String>,
}

impl Published {
    fn unknown(why: &str) -> Published {
        let why = format!("the address of the API server is unknown: ConfigMap {INFO} {why}; set --cluster-endpoint");
        Published { server: Err(why), ca_pem: None }
    }

    fn joined(self, roots: String) -> Joined {
        // What is published may be behind a balancer with an authority of its own.
        let ca_pem = match self.ca_pem.filter(|own| !contains(&roots, own)) {
            Some(own) => format!("{}\n{}\n", roots.trim_end(), own.trim_end()),
            None => roots,
        };
        let (api_server, no_api_server) = match self.server {
            Ok(server) => (server, String::new()),
            Err(why) => (String::new(), why),
        };
        Joined { api_server, no_api_server, ca_pem }
    }
}

fn contains(roots: &str, own: &str) -> bool {
    let plain = |pem: &str| pem.split_whitespace().collect::<String>();
    plain(roots).contains(&plain(own))
}

/// The cluster as kubeadm and others publish it.
async fn published(client: &Client) -> Result<Published, ClaimError> {
    let info = match config_map(client, "kube-public", "cluster-info").await {
        Err(error) if error.is_forbidden() => {
            return Ok(Published::unknown(&format!("cannot be read ({})", error.full_message())));
        }
        found => found?,
    };
    let text = info.as_ref().and_then(|info| info.data.as_ref()?.get("kubeconfig"));
    Ok(read_published(info.is_some(), text.map(String::as_str)))
}

fn read_published(is_there: bool, text: Option<&str>) -> Published {
    let unknown = Published::unknown;
    let Some(text) = text else {
        return unknown(if is_there { "has no key kubeconfig" } else { "does not exist" });
    };
    let Ok(config) = Kubeconfig::from_yaml(text) else { return unknown("has an invalid kubeconfig") };
    let Some(cluster) = config.clusters.into_iter().find_map(|named| named.cluster) else {
        return unknown("names no cluster");
    };
    let server = cluster.server.unwrap_or_default();
    if !server.starts_with("https://") {
        return unknown("names no server that begins with https://");
    }
    if is_this_computer(&server) {
        return unknown(&format!("names {server}, which VMs cannot reach"));
    }
    Published { server: Ok(server), ca_pem: cluster.certificate_authority_data.and_then(|data| decoded(&data)) }
}

/// Whether an address leads whoever uses it back to itself.
pub fn is_this_computer(server: &str) -> bool {
    let place = server.strip_prefix("https://").unwrap_or(server);
    let host = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => place.split([':', '/']).next().unwrap_or_default(),
    };
    let is_loopback = host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback() || ip.is_unspecified());
    is_loopback || host.eq_ignore_ascii_case("localhost")
}

fn decoded(base64: &str) -> Option<String> {
    let bytes: ByteString = serde_json::from_value(json!(base64)).ok()?;
    String::from_utf8(bytes.0).ok().filter(|pem| pem.contains("-----BEGIN CERTIFICATE-----"))
}

async fn config_map(client: &Client, namespace: &str, name: &str) -> Result<Option<ConfigMap>, ClaimError> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let told = |source| ClaimError::kube(&format!("read ConfigMap {namespace}/{name}"), source);
    maps.get_opt(name).await.map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n";
    const OTHER: &str = "-----BEGIN CERTIFICATE-----\nQg==\n-----END CERTIFICATE-----\n";

    fn info(server: &str, ca_pem: Option<&str>) -> Joined {
        let data = ca_pem.map(|pem| json!(ByteString(pem.as_bytes().to_vec())));
        let cluster = json!({ "server": server, "certificate-authority-data": data });
        let config = json!({ "apiVersion": "v1", "kind": "Config", "clusters": [{ "name": "", "cluster": cluster }] });
        read_published(true, Some(&config.to_string())).joined(ROOT.to_owned())
    }

    #[test]
    fn the_published_server_is_joined_with_its_own_authority_beside_the_clusters() {
        let joined = info("https://api.example:6443", Some(OTHER));
        assert_eq!(joined.api_server, "https://api.example:6443");
        assert_eq!(joined.ca_pem, format!("{ROOT}{OTHER}"));
        assert_eq!(info("https://api.example:6443", Some(ROOT.trim_end())).ca_pem, ROOT);
        assert_eq!(info("https://api.example:6443", None).ca_pem, ROOT);
    }

    #[test]
    fn an_address_that_no_vm_can_reach_is_named_with_the_next_step() {
        for bad in ["https://127.0.0.1:6443", "https://localhost:6443", "https://[::1]:6443", "https://0.0.0.0"] {
            let joined = info(bad, None);
            assert_eq!(joined.api_server, "");
            let said = format!("names {bad}, which VMs cannot reach; set --cluster-endpoint");
            assert!(joined.no_api_server.ends_with(&said), "{}", joined.no_api_server);
        }
        assert!(info("http://api.example", None).no_api_server.contains("begins with https://"));
        assert!(!is_this_computer("https://10.0.0.1:6443") && !is_this_computer("https://[fd00::1]:6443"));
    }

    #[test]
    fn what_is_wrong_with_the_published_cluster_is_named() {
        let said = |is_there, text| read_published(is_there, text).server.unwrap_err();
        assert!(
            said(false, None).contains("ConfigMap kube-public/cluster-info does not exist; set --cluster-endpoint")
        );
        assert!(said(true, None).contains("has no key kubeconfig"));
        assert!(said(true, Some("a: [")).contains("has an invalid kubeconfig"));
        assert!(said(true, Some("apiVersion: v1\nkind: Config\nclusters: []\n")).contains("names no cluster"));
    }
}
