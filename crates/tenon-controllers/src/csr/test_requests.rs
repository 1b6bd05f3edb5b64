//! Requests for tests, made as a kubelet makes them, with one thing or another changed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::json;
use tenon_api::names;

use super::request::Signer;

/// A request, before it is written.
pub(super) struct Ask {
    pub(super) signer: Signer,
    pub(super) user: String,
    pub(super) groups: Vec<&'static str>,
    pub(super) usages: Vec<&'static str>,
    pub(super) subject: Vec<(DnType, String)>,
    pub(super) names: Vec<SanType>,
}

impl Ask {
    /// The first certificate of a VM.
    pub(super) fn first(token: &str, node: &str) -> Ask {
        Ask {
            signer: Signer::Client,
            user: format!("system:bootstrap:{token}"),
            groups: vec!["system:bootstrappers", names::BOOTSTRAP_GROUP, "system:authenticated"],
            usages: vec!["digital signature", "client auth"],
            subject: subject(node),
            names: vec![],
        }
    }

    /// The next one.
    pub(super) fn renewal(node: &str) -> Ask {
        let groups = vec!["system:nodes", "system:authenticated"];
        Ask { user: format!("system:node:{node}"), groups, ..Ask::first("", node) }
    }

    /// One for the kubelet's own port.
    pub(super) fn serving(node: &str, addresses: &[&str]) -> Ask {
        let addresses = addresses.iter().map(|text| SanType::IpAddress(text.parse().unwrap()));
        Ask {
            signer: Signer::Serving,
            usages: vec!["digital signature", "server auth"],
            names: [dns(node)].into_iter().chain(addresses).collect(),
            ..Ask::renewal(node)
        }
    }

    pub(super) fn pem(&self) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, text) in &self.subject {
            params.distinguished_name.push(kind.clone(), text.as_str());
        }
        params.subject_alt_names = self.names.clone();
        params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
    }

    pub(super) fn object(&self, name: &str) -> CertificateSigningRequest {
        self.object_with(name, self.pem().as_bytes())
    }

    pub(super) fn object_with(&self, name: &str, request: &[u8]) -> CertificateSigningRequest {
        let spec = json!({
            "request": STANDARD.encode(request), "signerName": self.signer.name(), "usages": self.usages,
            "username": self.user, "groups": self.groups,
        });
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
    }
}

pub(super) fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

pub(super) fn subject(node: &str) -> Vec<(DnType, String)> {
    let name = (DnType::CommonName, format!("system:node:{node}"));
    vec![(DnType::OrganizationName, "system:nodes".to_owned()), name]
}
