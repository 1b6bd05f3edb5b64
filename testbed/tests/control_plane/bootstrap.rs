//! A node joins as a kubelet does: bootstrap token, certificate signing request, certificate, its own Node.

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::support::{assert_refused, eventually, from_json, shared_testbed};

async fn bootstrap_token(admin: &Client, id: &str, expiration: &str) -> anyhow::Result<String> {
    let secret = "0123456789abcdef";
    let secrets: Api<Secret> = Api::namespaced(admin.clone(), "kube-system");
    let object: Secret = from_json(json!({
        "metadata": { "name": format!("bootstrap-token-{id}") },
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": id,
            "token-secret": secret,
            "expiration": expiration,
            "usage-bootstrap-authentication": "true",
            "usage-bootstrap-signing": "true",
        },
    }))?;
    secrets.create(&PostParams::default(), &object).await?;
    Ok(format!("{id}.{secret}"))
}

fn signing_request(node: &str, key: &rcgen::KeyPair) -> anyhow::Result<CertificateSigningRequest> {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(rcgen::DnType::CommonName, format!("system:node:{node}"));
    let pem = params.serialize_request(key)?.pem()?;
    let mut request: CertificateSigningRequest = from_json(json!({
        "metadata": { "name": format!("csr-{node}") },
        "spec": {
            "request": "",
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "usages": ["digital signature", "client auth"],
        },
    }))?;
    request.spec.request = ByteString(pem.into_bytes());
    Ok(request)
}

#[tokio::test]
async fn a_bootstrap_token_becomes_a_certificate_and_the_certificate_a_node() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let admin = testbed.admin().await?;
    let node = "bootstrap-node";
    let token = bootstrap_token(&admin, "abcdef", "2099-01-01T00:00:00Z").await?;
    let joining = testbed.token("a joining node", &token).await?;
    // The API server learns of a new token a moment after it stored it; until then nobody is known by it (401).
    eventually("the token is known, and may not list Nodes", async || {
        let listed = Api::<Node>::all(joining.clone()).list(&ListParams::default()).await;
        Ok(matches!(listed, Err(kube::Error::Api(status)) if status.code == 403).then_some(()))
    })
    .await?;

    let key = rcgen::KeyPair::generate()?;
    let requests: Api<CertificateSigningRequest> = Api::all(joining);
    requests.create(&PostParams::default(), &signing_request(node, &key)?).await?;
    let certificate = eventually("the request is approved and signed", async || {
        let request = requests.get(&format!("csr-{node}")).await?;
        Ok(request.status.and_then(|status| status.certificate))
    })
    .await?;

    let certificate = String::from_utf8(certificate.0)?;
    let kubelet = testbed.certificate(node, &certificate, &key.serialize_pem()).await?;
    let nodes: Api<Node> = Api::all(kubelet.clone());
    nodes.create(&PostParams::default(), &from_json(json!({ "metadata": { "name": node } }))?).await?;
    let secrets: Api<Secret> = Api::all(kubelet);
    assert_refused(secrets.list(&ListParams::default()).await, 403);
    let other = from_json(json!({ "metadata": { "name": "another-node" } }))?;
    assert_refused(nodes.create(&PostParams::default(), &other).await, 403);
    let label = json!({ "metadata": { "labels": { "node-restriction.kubernetes.io/team": "red" } } });
    assert_refused(nodes.patch(node, &PatchParams::default(), &Patch::Merge(label)).await, 403);
    Ok(())
}

#[tokio::test]
async fn an_expired_bootstrap_token_is_refused_and_removed() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let admin = testbed.admin().await?;
    let token = bootstrap_token(&admin, "expire", "2001-01-01T00:00:00Z").await?;
    let late = testbed.token("a late node", &token).await?;
    assert_refused(Api::<Node>::all(late).list(&ListParams::default()).await, 401);
    let secrets: Api<Secret> = Api::namespaced(admin, "kube-system");
    eventually("the token cleaner removes it", async || {
        Ok(secrets.get_opt("bootstrap-token-expire").await?.is_none().then_some(()))
    })
    .await
}
