//! What does the kubelet of a Tenon node read as its configuration?

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Error;
use crate::input::SeedInput;
use crate::kubelet_settings::{KubeletSettings, Taint};
use crate::yaml::to_yaml;

/// What nearly every cluster calls its services; without any, pods could not resolve short names.
const CLUSTER_DOMAIN: &str = "cluster.local";
/// Where containerd listens unless told otherwise.
const CONTAINERD: &str = "unix:///run/containerd/containerd.sock";
/// The only period a kubelet takes without its feature gate.
const USUAL_QUOTA_PERIOD: &str = "100ms";
/// The gate for any other.
const QUOTA_PERIOD_GATE: &str = "CustomCPUCFSQuotaPeriod";

/// The whole file. `client_ca_file` is where the guest keeps the cluster's CA.
pub(crate) fn render(input: &SeedInput, client_ca_file: &str) -> Result<String, Error> {
    let configuration = KubeletConfiguration {
        api_version: "kubelet.config.k8s.io/v1beta1",
        kind: "KubeletConfiguration",
        authentication: Authentication {
            anonymous: Enabled { enabled: false },
            webhook: Enabled { enabled: true },
            x509: X509 { client_ca_file },
        },
        authorization: Authorization { mode: "Webhook" },
        cgroup_driver: "systemd",
        container_runtime_endpoint: CONTAINERD,
        cluster_domain: input.kubelet.cluster_domain.as_deref().unwrap_or(CLUSTER_DOMAIN),
        rotate_certificates: true,
        // Nothing in a plain cluster approves serving certificates; the kubelet signs its own, as it does by default.
        server_tls_bootstrap: false,
        feature_gates: feature_gates(&input.kubelet),
        fields: KubeletFields::of(input),
    };
    to_yaml("the kubelet configuration", &configuration)
}

fn feature_gates(settings: &KubeletSettings) -> BTreeMap<&'static str, bool> {
    let unusual = settings.cpu_cfs_quota_period.as_deref().is_some_and(|period| period != USUAL_QUOTA_PERIOD);
    unusual.then_some((QUOTA_PERIOD_GATE, true)).into_iter().collect()
}

/// The part of the configuration that differs from node to node; `/etc/karpenter.yaml` repeats it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KubeletFields<'a> {
    #[serde(flatten)]
    settings: KubeletSettings,
    #[serde(rename = "providerID", skip_serializing_if = "str::is_empty")]
    provider_id: &'a str,
    register_with_taints: Vec<Taint>,
}

impl KubeletFields<'_> {
    pub(crate) fn of(input: &SeedInput) -> KubeletFields<'_> {
        // What the plan counted on is what the kubelet is told, unless somebody said otherwise.
        let max_pods = input.kubelet.max_pods.or(input.pods);
        KubeletFields {
            settings: KubeletSettings { max_pods, ..input.kubelet.clone() },
            provider_id: &input.identity.provider_id,
            register_with_taints: input.kubelet.taints(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KubeletConfiguration<'a> {
    api_version: &'a str,
    kind: &'a str,
    authentication: Authentication<'a>,
    authorization: Authorization<'a>,
    cgroup_driver: &'a str,
    container_runtime_endpoint: &'a str,
    cluster_domain: &'a str,
    rotate_certificates: bool,
    #[serde(rename = "serverTLSBootstrap")]
    server_tls_bootstrap: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    feature_gates: BTreeMap<&'static str, bool>,
    #[serde(flatten)]
    fields: KubeletFields<'a>,
}

#[derive(Serialize)]
struct Authentication<'a> {
    anonymous: Enabled,
    webhook: Enabled,
    x509: X509<'a>,
}

#[derive(Serialize)]
struct Enabled {
    enabled: bool,
}

#[derive(Serialize)]
struct X509<'a> {
    #[serde(rename = "clientCAFile")]
    client_ca_file: &'a str,
}

#[derive(Serialize)]
struct Authorization<'a> {
    mode: &'a str,
}
