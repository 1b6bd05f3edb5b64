//! How does a kubelet come by the certificate of its own port?
//!
//! With `serverTLSBootstrap` it asks the cluster, for its name and its address, until somebody approves. Nothing here is served
//! with it: what counts is who would sign what.

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

use super::certificate::await_certificate;
use super::disk::File;
use super::join::Member;
use super::node;
use super::trouble::Trouble;

const SIGNER: &str = "kubernetes.io/kubelet-serving";
const CERTIFICATE: &str = "/var/lib/kubelet/pki/kubelet-server-current.pem";

/// Sees to it that there is a certificate, if the kubelet is told to.
pub(crate) async fn keep(member: &Member, client: &Client) {
    let machine = &member.machine;
    let is_there = machine.disk(|disk| disk.file(CERTIFICATE).is_some());
    if member.kubelet.config.server_tls_bootstrap && !is_there {
        let certificate = machine.insist(|| obtain(member, client)).await;
        machine.disk(|disk| disk.write(CERTIFICATE, File::secret(certificate)));
        machine.say("received a serving certificate");
    }
}

async fn obtain(member: &Member, client: &Client) -> Result<String, Trouble> {
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let request = signing_request(&member.kubelet.node_name, &node::address(&member.machine))?;
    let params = PostParams::default();
    let asking = requests.create(&params, &request);
    let made = member.machine.ask("request a serving certificate", asking).await?;
    let name = made.metadata.name.unwrap_or_default();
    member.machine.say(format!("requested a serving certificate with {name}"));
    await_certificate(&member.machine, &requests, &name).await
}

fn signing_request(node: &str, address: &str) -> Result<CertificateSigningRequest, Trouble> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, format!("system:node:{node}"));
    params.subject_alt_names = vec![SanType::DnsName(node.try_into()?)];
    params.subject_alt_names.extend(address.parse().map(SanType::IpAddress));
    let pem = params.serialize_request(&KeyPair::generate()?)?.pem()?;
    Ok(CertificateSigningRequest {
        metadata: ObjectMeta { generate_name: Some("csr-".into()), ..ObjectMeta::default() },
        spec: CertificateSigningRequestSpec {
            request: ByteString(pem.into_bytes()),
            signer_name: SIGNER.into(),
            usages: Some(vec!["digital signature".into(), "server auth".into()]),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    })
}
