//! How does a kubelet come by its certificate?
//!
//! TLS bootstrap as kubelets do it: a key, a certificate signing request with the bootstrap credential, and patience.
//! What comes of it stays on the disk, so that the next boot asks nobody.

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use kube::api::{Api, ObjectMeta, PostParams};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::access::{ApiAccess, Credential};
use super::boot::Kubelet;
use super::disk::File;
use super::image::{kubeconfig, read_kubeconfig};
use super::machine::Machine;
use super::trouble::Trouble;

const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const CERTIFICATE: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";
const KEY: &str = "/var/lib/kubelet/pki/kubelet-client.key";
/// The key of a request that is under way.
const PENDING_KEY: &str = "/var/lib/kubelet/pki/kubelet-client.key.tmp";

/// The access of a node: what an earlier boot left, or a new certificate.
pub(crate) async fn obtain(machine: &Machine, kubelet: &Kubelet) -> Result<ApiAccess, Trouble> {
    let own = &kubelet.command.kubeconfig;
    if machine.disk(|disk| disk.file(own).is_some()) {
        return machine.disk(|disk| read_kubeconfig(disk, own, "--kubeconfig"));
    }
    let path = kubelet.command.bootstrap_kubeconfig.as_deref();
    let path = path.ok_or(Trouble::NoFlag("--bootstrap-kubeconfig"))?;
    let bootstrap = machine.disk(|disk| read_kubeconfig(disk, path, "--bootstrap-kubeconfig"))?;
    let requests: Api<CertificateSigningRequest> = Api::all(machine.client(&bootstrap)?);

    let key = pending_key(machine)?;
    let request = signing_request(&kubelet.node_name, &key)?;
    let name = request.metadata.name.clone().unwrap_or_default();
    let created = machine.ask("request a certificate", requests.create(&PostParams::default(), &request)).await;
    match created {
        // An earlier try got through.
        Err(trouble) if trouble.code() == Some(409) => {}
        other => drop(other?),
    }
    machine.say(format!("requested a certificate with {name}"));
    let certificate = await_certificate(machine, &requests, &name).await?;
    machine.say("received a certificate");
    let credential = Credential::Certificate { certificate_pem: certificate, key_pem: key.serialize_pem() };
    let access = ApiAccess { credential, ..bootstrap };
    keep(machine, own, &access);
    Ok(access)
}

/// The next kubelet asks anew: what the one before it got, or was still asking for, is forgotten.
pub(crate) fn forget(machine: &Machine, kubelet: &Kubelet) {
    machine.disk(|disk| {
        disk.remove(&kubelet.command.kubeconfig);
        disk.remove(PENDING_KEY);
    });
}

/// The key is the same until its request is answered, so that a repeated request is the same request.
fn pending_key(machine: &Machine) -> Result<KeyPair, Trouble> {
    if let Some(pem) = machine.disk(|disk| disk.text(PENDING_KEY).map(str::to_owned)) {
        return Ok(KeyPair::from_pem(&pem)?);
    }
    let key = KeyPair::generate()?;
    machine.disk(|disk| disk.write(PENDING_KEY, File::secret(key.serialize_pem())));
    Ok(key)
}

fn signing_request(node: &str, key: &KeyPair) -> Result<CertificateSigningRequest, Trouble> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, format!("system:node:{node}"));
    let pem = params.serialize_request(key)?.pem()?;
    let digest: String = Sha256::digest(key.public_key_raw()).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(CertificateSigningRequest {
        metadata: ObjectMeta { name: Some(format!("node-csr-{digest}")), ..ObjectMeta::default() },
        spec: CertificateSigningRequestSpec {
            request: ByteString(pem.into_bytes()),
            signer_name: SIGNER.into(),
            usages: Some(vec!["digital signature".into(), "client auth".into()]),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    })
}

/// Waits for what was asked for.
pub(crate) async fn await_certificate(
    machine: &Machine,
    requests: &Api<CertificateSigningRequest>,
    name: &str,
) -> Result<String, Trouble> {
    let after = machine.config.certificate_wait;
    let asking = async {
        loop {
            let request = machine.ask("look for the certificate", requests.get(name)).await?;
            let status = request.status.unwrap_or_default();
            if let Some(certificate) = status.certificate {
                return String::from_utf8(certificate.0).map_err(|error| Trouble::unreadable(name, error.to_string()));
            }
            let mut conditions = status.conditions.iter().flatten();
            if conditions.any(|condition| matches!(condition.type_.as_str(), "Denied" | "Failed")) {
                // The next try needs a new key: this request has been answered.
                machine.disk(|disk| disk.remove(PENDING_KEY));
                return Err(Trouble::Denied(name.to_owned()));
            }
            tokio::time::sleep(machine.config.certificate_poll).await;
        }
    };
    let unsigned = |_| Trouble::Unsigned { name: name.to_owned(), after };
    tokio::time::timeout(after, asking).await.map_err(unsigned)?
}

/// Leaves certificate, key and kubeconfig where the next boot finds them.
fn keep(machine: &Machine, path: &str, access: &ApiAccess) {
    let Credential::Certificate { certificate_pem, key_pem } = &access.credential else { return };
    let user = json!({ "client-certificate": CERTIFICATE, "client-key": KEY });
    machine.disk(|disk| {
        disk.write(CERTIFICATE, File::secret(certificate_pem.as_str()));
        disk.write(KEY, File::secret(key_pem.as_str()));
        disk.write(path, File::secret(kubeconfig(&access.server, &access.ca_pem, &user)));
        disk.remove(PENDING_KEY);
    });
}
