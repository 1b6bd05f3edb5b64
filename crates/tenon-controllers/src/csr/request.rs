//! What does a CertificateSigningRequest ask for, and who asks?
//!
//! User name and groups are the API server's word. What is asked for stands in PKCS #10, which whoever asks has written:
//! it is read strictly, so that the signer cannot find anything in it that was not judged.

use std::collections::BTreeSet;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, ParsedExtension, X509Extension};
use x509_parser::oid_registry::{
    OID_PKCS9_EXTENSION_REQUEST, OID_X509_COMMON_NAME, OID_X509_EXT_SUBJECT_ALT_NAME, OID_X509_ORGANIZATION_NAME,
};
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Name;

/// How the user name of a kubelet begins; the name of its Node follows.
pub(super) const NODE_USER: &str = "system:node:";
/// How the user name of a bootstrap token begins; its id follows.
const BOOTSTRAP_USER: &str = "system:bootstrap:";

const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----";
const END: &str = "-----END CERTIFICATE REQUEST-----";

/// The two signers of kubelets' certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signer {
    /// For talking to the API server.
    Client,
    /// For being talked to by the API server.
    Serving,
}

impl Signer {
    /// As it stands in a request.
    pub(super) fn name(self) -> &'static str {
        match self {
            Signer::Client => "kubernetes.io/kube-apiserver-client-kubelet",
            Signer::Serving => "kubernetes.io/kubelet-serving",
        }
    }

    /// As people and metrics call it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Signer::Client => "client",
            Signer::Serving => "serving",
        }
    }
}

/// Who asks, as the API server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Requester {
    /// A bootstrap token, by its id.
    Token(String),
    /// A kubelet that has a certificate, by the name of its Node.
    Node(String),
}

/// A request of a kubelet, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParsedRequest {
    pub(super) signer: Signer,
    pub(super) requester: Requester,
    pub(super) groups: BTreeSet<String>,
    pub(super) usages: BTreeSet<String>,
    /// What is asked for, or why it cannot be read.
    pub(super) wanted: Result<Wanted, &'static str>,
}

/// What a certificate is asked to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) common_name: String,
    pub(super) organizations: Vec<String>,
    pub(super) dns_names: BTreeSet<String>,
    pub(super) addresses: BTreeSet<IpAddr>,
    /// Names of kinds no kubelet asks for: e-mail, URI and the like.
    pub(super) other_names: usize,
}

impl ParsedRequest {
    /// Reads a request for this signer. `None`: neither a bootstrap token nor a kubelet asks.
    pub(super) fn read(signer: Signer, request: &CertificateSigningRequest) -> Option<ParsedRequest> {
        let spec = &request.spec;
        let user = spec.username.as_deref().unwrap_or_default();
        let requester = match (user.strip_prefix(BOOTSTRAP_USER), user.strip_prefix(NODE_USER)) {
            (Some(id), _) => Requester::Token(id.to_owned()),
            (_, Some(name)) => Requester::Node(name.to_owned()),
            _ => return None,
        };
        (spec.signer_name == signer.name()).then(|| ParsedRequest {
            signer,
            requester,
            groups: spec.groups.iter().flatten().cloned().collect(),
            usages: spec.usages.iter().flatten().cloned().collect(),
            wanted: wanted(&spec.request.0),
        })
    }
}

fn wanted(pem: &[u8]) -> Result<Wanted, &'static str> {
    let der = der(pem)?;
    let (rest, request) =
        X509CertificationRequest::from_der(&der).map_err(|_| "it is not a PKCS #10 certificate request")?;
    if !rest.is_empty() {
        return Err("something follows the PKCS #10 certificate request");
    }
    let info = &request.certification_request_info;
    let mut wanted = subject(&info.subject)?;
    let mut extensions: Vec<&X509Extension<'_>> = Vec::new();
    let mut requests = 0;
    for attribute in info.attributes().iter().filter(|attribute| attribute.oid == OID_PKCS9_EXTENSION_REQUEST) {
        requests += 1;
        match attribute.parsed_attribute() {
            ParsedCriAttribute::ExtensionRequest(asked) => extensions.extend(&asked.extensions),
            _ => return Err("its extensions cannot be read"),
        }
    }
    extensions.retain(|extension| extension.oid == OID_X509_EXT_SUBJECT_ALT_NAME);
    match extensions.as_slice() {
        // Two of a kind are read differently by different programs.
        _ if requests > 1 => Err("it has its extensions twice"),
        [] => Ok(wanted),
        [names] => alternative_names(names, &mut wanted).map(|()| wanted),
        _ => Err("it has its alternative names twice"),
    }
}

/// One block and nothing else: programs differ in which of several blocks they read.
fn der(pem: &[u8]) -> Result<Vec<u8>, &'static str> {
    let text = str::from_utf8(pem).ok();
    let block = text.and_then(|text| text.trim().strip_prefix(BEGIN)?.strip_suffix(END));
    let body: String =
        block.ok_or("it is not one PEM block of a certificate request")?.split_ascii_whitespace().collect();
    // A second block would bring dashes, and headers colons: neither is base64.
    STANDARD.decode(body).map_err(|_| "its PEM block is not base64")
}

fn subject(name: &X509Name<'_>) -> Result<Wanted, &'static str> {
    let (mut common_names, mut organizations) = (Vec::new(), Vec::new());
    for attribute in name.iter_attributes() {
        let text = attribute.as_str().map_err(|_| "its subject cannot be read")?.to_owned();
        match attribute.attr_type() {
            kind if *kind == OID_X509_COMMON_NAME => common_names.push(text),
            kind if *kind == OID_X509_ORGANIZATION_NAME => organizations.push(text),
            _ => return Err("its subject has more than a common name and organizations"),
        }
    }
    match <[String; 1]>::try_from(common_names) {
        Ok([common_name]) => Ok(Wanted { common_name, organizations, ..Wanted::default() }),
        Err(_) => Err("its subject has not exactly one common name"),
    }
}

fn alternative_names(extension: &X509Extension<'_>, wanted: &mut Wanted) -> Result<(), &'static str> {
    let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() else {
        return Err("its alternative names cannot be read");
    };
    for name in &names.general_names {
        match name {
            GeneralName::DNSName(name) => drop(wanted.dns_names.insert((*name).to_owned())),
            GeneralName::IPAddress(bytes) => {
                let address = address(bytes).ok_or("one of its addresses is neither IPv4 nor IPv6")?;
                wanted.addresses.insert(address);
            }
            _ => wanted.other_names += 1,
        }
    }
    Ok(())
}

/// An IPv4 address may be written as an IPv6 one.
fn address(bytes: &[u8]) -> Option<IpAddr> {
    let long = |bytes| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from);
    <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from).or_else(|| long(bytes)).map(|address| address.to_canonical())
}
