//! Whom does the cluster vouch for?
//!
//! One authority signs the server's certificate and those of clients. Its key comes from the seed, so that the same seed
//! gives the same cluster; nothing here keeps a secret from anybody.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertificateSigningRequestParams, DnType, DnValue,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};

use super::identity::{User, user_of_subject};
use super::object::{self, list, text};
use super::state::State;
use crate::chance::Chance;
use crate::hosts::fingerprint;
use crate::serve::{Tls, TlsError};

const KUBELET_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const SERVING_SIGNER: &str = "kubernetes.io/kubelet-serving";
const CLIENT_AUTH: &str = "client auth";
const SERVER_AUTH: &str = "server auth";

/// What a signer signs.
struct Signer {
    name: &'static str,
    usage: &'static str,
    is_for_nodes: bool,
}

const SIGNERS: [Signer; 3] = [
    Signer { name: KUBELET_SIGNER, usage: CLIENT_AUTH, is_for_nodes: true },
    Signer { name: SERVING_SIGNER, usage: SERVER_AUTH, is_for_nodes: true },
    Signer { name: "kubernetes.io/kube-apiserver-client", usage: CLIENT_AUTH, is_for_nodes: false },
];

impl Signer {
    /// Why it does not sign a request, as the real one says.
    fn fault(&self, request: &Value, asked: &CertificateParams) -> Option<String> {
        let user = subject(asked);
        let names = &asked.subject_alt_names;
        let is_plain = |name: &SanType| matches!(name, SanType::DnsName(_) | SanType::IpAddress(_));
        let mut usages: Vec<&str> = list(request, "/spec/usages").iter().filter_map(Value::as_str).collect();
        usages.retain(|usage| *usage != "key encipherment");
        usages.sort_unstable();
        let fault = match self.name {
            _ if !self.is_for_nodes => return None,
            _ if !user.is_in("system:nodes") => "subject organization is not system:nodes",
            SERVING_SIGNER if !names.iter().any(is_plain) => "DNS or IP subjectAltName is required",
            KUBELET_SIGNER if !names.is_empty() => "subjectAltNames are not allowed",
            _ if !names.iter().all(is_plain) => "Email and URI subjectAltNames are not allowed",
            _ if !user.name.starts_with("system:node:") => "subject common name does not begin with system:node:",
            _ if usages != [self.usage, "digital signature"] && usages != ["digital signature", self.usage] => {
                "usages did not match"
            }
            _ => return None,
        };
        Some(fault.to_owned())
    }
}
/// What stands before the 32 bytes of an Ed25519 key in PKCS #8.
const ED25519: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// The cluster's certificate authority.
#[derive(Debug)]
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Certificate,
}

impl Authority {
    pub(crate) fn new(chance: &mut Chance) -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, "kubernetes");
        valid(&mut params);
        let key = seeded_key(chance)?;
        let certificate = params.self_signed(&key)?;
        Ok(Self { issuer: Issuer::new(params, key), certificate })
    }

    pub(crate) fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// A certificate for the server, which asks clients for theirs.
    pub(crate) fn server(&self, chance: &mut Chance) -> Result<Tls, TlsError> {
        let names = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc"].map(String::from);
        let mut leaf = CertificateParams::new(names)?;
        leaf.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        valid(&mut leaf);
        let key = seeded_key(chance)?;
        let certificate = leaf.signed_by(&key, &self.issuer)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.der().clone())?;
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        // Without a certificate there may still be a token.
        let clients =
            clients.allow_unauthenticated().build().map_err(|error| rustls::Error::General(error.to_string()))?;
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients)
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )?;
        Ok(Tls::new(config, self.pem(), fingerprint(certificate.der())))
    }

    /// The certificate a request asks for, and whose it is.
    fn sign(
        &self,
        mut request: CertificateSigningRequestParams,
        usage: &str,
    ) -> Result<(Certificate, User), rcgen::Error> {
        let purpose = if usage == SERVER_AUTH {
            ExtendedKeyUsagePurpose::ServerAuth
        } else {
            ExtendedKeyUsagePurpose::ClientAuth
        };
        request.params.extended_key_usages = vec![purpose];
        request.params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        request.params.is_ca = IsCa::ExplicitNoCa;
        valid(&mut request.params);
        let user = subject(&request.params);
        Ok((request.signed_by(&self.issuer)?, user))
    }
}

/// Whom a certificate would be for.
fn subject(params: &CertificateParams) -> User {
    let subject = &params.distinguished_name;
    let common_name = subject.get(&DnType::CommonName).map(spelled).unwrap_or_default();
    let organizations: Vec<String> = subject.get(&DnType::OrganizationName).map(spelled).into_iter().collect();
    user_of_subject(&common_name, &organizations)
}

/// Long before and after every clock a test may run on.
fn valid(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(4000, 1, 1);
}

fn seeded_key(chance: &mut Chance) -> Result<KeyPair, rcgen::Error> {
    let seed = (0..4).flat_map(|_| chance.next().to_be_bytes());
    let der: Vec<u8> = ED25519.into_iter().chain(seed).collect();
    KeyPair::try_from(&PrivatePkcs8KeyDer::from(der))
}

fn spelled(value: &DnValue) -> String {
    match value {
        DnValue::Utf8String(text) => text.clone(),
        DnValue::PrintableString(text) => text.as_str().to_owned(),
        DnValue::Ia5String(text) => text.as_str().to_owned(),
        other => format!("{other:?}"),
    }
}

impl State {
    /// Approves what kubelets ask for, if somebody here does, and signs what is approved. What its signer does not sign is told in
    /// the status.
    pub(crate) fn answer_request(&mut self, request: &Arc<Value>) {
        let Some(signer) = SIGNERS.iter().find(|signer| signer.name == text(request, "/spec/signerName")) else {
            return;
        };
        let is_answered = !text(request, "/status/certificate").is_empty() || has_condition(request, "Failed");
        if is_answered || has_condition(request, "Denied") {
            return;
        }
        let pem = STANDARD.decode(text(request, "/spec/request")).ok().and_then(|pem| String::from_utf8(pem).ok());
        let asked = CertificateSigningRequestParams::from_pem(&pem.unwrap_or_default());
        let fault =
            asked.as_ref().map_or_else(|error| Some(error.to_string()), |asked| signer.fault(request, &asked.params));
        let mut new = (**request).clone();
        if !has_condition(request, "Approved") && asked.is_ok() {
            let is_approved = self.config.stock_approver && self.is_approved_by_itself(request);
            if signer.name != KUBELET_SIGNER || !is_approved || fault.is_some() {
                return;
            }
            let told = "Auto approving kubelet client certificate after SubjectAccessReview.";
            self.tell(&mut new, ["Approved", "AutoApproved", told]);
        }
        let signed = match (fault, asked) {
            (None, Ok(asked)) => self.authority.sign(asked, signer.usage).map_err(|error| error.to_string()),
            (fault, _) => Err(fault.unwrap_or_default()),
        };
        match signed {
            Ok((certificate, user)) => {
                if signer.usage == CLIENT_AUTH {
                    self.issued.insert(fingerprint(certificate.der()), user);
                }
                let encoded = STANDARD.encode(certificate.pem());
                object::with_part(&mut new, "status", |status| {
                    object::set(status, "certificate", Some(encoded.into()));
                });
            }
            Err(why) => self.tell(&mut new, ["Failed", "SignerValidationFailure", &why]),
        }
        self.store.put(&("certificates.k8s.io".into(), "certificatesigningrequests".into()), new);
    }

    fn tell(&self, request: &mut Value, [kind, reason, message]: [&str; 3]) {
        let now = self.stamp(0);
        let condition = json!({
            "type": kind, "status": "True", "reason": reason, "message": message,
            "lastUpdateTime": now, "lastTransitionTime": now,
        });
        object::with_part(request, "status", |status| {
            object::default(status, "conditions", json!([]));
            if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
                conditions.push(condition);
            }
        });
    }
}

fn has_condition(request: &Value, kind: &str) -> bool {
    list(request, "/status/conditions").iter().any(|told| text(told, "/type") == kind)
}
