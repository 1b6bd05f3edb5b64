//! What does `/etc/karpenter.yaml` tell the scripts of an image?
//!
//! The keys are those that existing images already read: run together in lower case, except where the interface,
//! resource and kubelet parts have names of their own. What is new stands beside them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Error;
use crate::input::{Identity, Resources, SeedInput, Values};
use crate::kubelet_config::KubeletFields;
use crate::network::Network;
use crate::yaml::to_yaml;

/// Everything known about the VM, secrets included.
pub(crate) fn render(input: &SeedInput) -> Result<String, Error> {
    let bootstrap = input.bootstrap.as_ref();
    let context = Context {
        metadata: Metadata::of(&input.identity),
        network: &input.network,
        resources: input.resources,
        kubernetes: Kubernetes {
            version: &input.kubernetes_version,
            rootca: bootstrap.map(|bootstrap| bootstrap.ca_pem.as_str()).unwrap_or_default(),
            bootstraptoken: bootstrap.map(|bootstrap| bootstrap.token.expose()).unwrap_or_default(),
            apiserver: bootstrap.map(|bootstrap| bootstrap.api_server.as_str()).unwrap_or_default(),
            kubeletconfiguration: KubeletFields::of(input),
            nodelabels: &input.kubelet.node_labels,
        },
        values: &input.values,
    };
    to_yaml("the context", &context)
}

#[derive(Serialize)]
struct Context<'a> {
    metadata: Metadata<'a>,
    network: &'a Network,
    resources: Resources,
    kubernetes: Kubernetes<'a>,
    values: &'a Values,
}

#[derive(Serialize)]
struct Metadata<'a> {
    hostname: &'a str,
    instanceid: String,
    instanceuuid: &'a str,
    instancetype: &'a str,
    providerid: &'a str,
    region: &'a str,
    zone: &'a str,
    tags: &'a [String],
    nodeclass: &'a str,
}

impl Metadata<'_> {
    fn of(identity: &Identity) -> Metadata<'_> {
        Metadata {
            hostname: &identity.node_name,
            instanceid: identity.vmid.to_string(),
            instanceuuid: &identity.instance_uuid,
            instancetype: &identity.instance_type,
            providerid: &identity.provider_id,
            region: &identity.region,
            zone: &identity.zone,
            tags: &identity.tags,
            nodeclass: &identity.node_class,
        }
    }
}

#[derive(Serialize)]
struct Kubernetes<'a> {
    version: &'a str,
    rootca: &'a str,
    bootstraptoken: &'a str,
    apiserver: &'a str,
    kubeletconfiguration: KubeletFields<'a>,
    nodelabels: &'a BTreeMap<String, String>,
}
