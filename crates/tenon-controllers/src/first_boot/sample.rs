//! A VM that does not exist, and what it would join: first-boot data is tried with it.

use kube::ResourceExt;
use tenon_api::{NodeClaim, NodeClaimSpec, NodeClassRef, ProxmoxNodeClass, names};
use tenon_cloudinit::{Bootstrap, BootstrapToken};
use tenon_model::VmId;

use super::seed::VmFacts;

/// The version of the API server.
pub const VERSION: &str = "v1.36.0";
const NAME: &str = "sample";
const ID: u32 = 100;
const UUID: &str = "00000000-0000-4000-8000-000000000000";
const CA: &str = "-----BEGIN CERTIFICATE-----\nc2FtcGxl\n-----END CERTIFICATE-----\n";
const TOKEN: &str = "sample.0123456789abcdef";
/// An address that documents use and nobody has.
const SERVER: &str = "https://192.0.2.1:6443";

/// Others of both, to see whether they matter.
const OTHER_TOKEN: &str = "other0.fedcba9876543210";
pub(super) const OTHER_SERVER: &str = "https://192.0.2.2:6443";

pub(super) fn other_token() -> Option<BootstrapToken> {
    OTHER_TOKEN.parse().ok()
}

/// What the VM joins with.
pub fn bootstrap() -> Option<Bootstrap> {
    Some(Bootstrap { api_server: SERVER.to_owned(), ca_pem: CA.to_owned(), token: TOKEN.parse().ok()? })
}

/// The VM, on a host of a region.
pub fn vm(region: &str, host: &str) -> Option<VmFacts> {
    let vmid = VmId::try_from(ID).ok()?;
    Some(VmFacts { vmid, uuid: UUID.to_owned(), region: region.to_owned(), host: host.to_owned() })
}

/// The claim of the VM, without a NodePool.
pub fn claim(class: &ProxmoxNodeClass) -> NodeClaim {
    let spec = NodeClaimSpec {
        taints: None,
        startup_taints: None,
        requirements: Vec::new(),
        resources: None,
        node_class_ref: NodeClassRef {
            group: names::PROXMOX.to_owned(),
            kind: "ProxmoxNodeClass".to_owned(),
            name: class.name_any(),
        },
        termination_grace_period: None,
        expire_after: "Never".to_owned(),
    };
    let mut claim = NodeClaim::new(NAME, spec);
    let labels = [names::LABEL_NODEPOOL, names::LABEL_INSTANCE_TYPE, names::LABEL_ZONE, names::LABEL_REGION];
    claim.metadata.labels = Some(labels.map(|label| (label.to_owned(), NAME.to_owned())).into());
    claim
}
