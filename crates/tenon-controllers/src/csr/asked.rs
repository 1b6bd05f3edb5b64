//! What does a request of a bootstrap token ask for? For whoever tells a person what to do about the request.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;

use super::judge::client_certificate;
use super::request::{ParsedRequest, Signer};

/// A request for a client certificate, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked(Option<ParsedRequest>);

impl Asked {
    pub(crate) fn read(request: &CertificateSigningRequest) -> Asked {
        Asked(ParsedRequest::read(Signer::Client, request))
    }

    /// What is wrong with it, if its kubelet is to become this Node.
    pub(crate) fn fault(&self, node: &str) -> Option<String> {
        match &self.0 {
            Some(parsed) => client_certificate(parsed, node).err().map(|refusal| refusal.cause()),
            None => Some("neither a bootstrap token nor a Node asks for it".to_owned()),
        }
    }

    /// As the kubelet of a Node asks.
    #[cfg(test)]
    pub(crate) fn of_node(node: &str) -> Asked {
        Asked::read(&super::test_requests::Ask::first("abcdef", node).object("a"))
    }
}
