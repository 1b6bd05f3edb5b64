//! How does a machine that has nothing but a token become a node?

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};
use testbed::eventually;

use crate::ground::{Ground, wide};
use crate::reply::{condition, text, uid};
use crate::things::{node, with};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const FUTURE: &str = "2100-01-01T00:00:00Z";

/// Six letters no other behaviour has.
fn id(ground: &Ground) -> String {
    let tail: String = ground.name.chars().rev().filter(char::is_ascii_alphanumeric).take(6).collect();
    format!("{tail:a>6}")
}

async fn token(ground: &Ground, expires: &str) -> anyhow::Result<(String, String)> {
    let (id, secret) = (id(ground), "0123456789abcdef");
    let data = json!({
        "token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true", "expiration": expires,
        "auth-extra-groups": "system:bootstrappers:test",
    });
    let name = format!("bootstrap-token-{id}");
    let body = json!({ "metadata": { "name": name }, "type": "bootstrap.kubernetes.io/token", "stringData": data });
    ground.made("/api/v1/namespaces/kube-system/secrets", body).await?;
    Ok((format!("{id}.{secret}"), format!("/api/v1/namespaces/kube-system/secrets/{name}")))
}

/// The same ground as whoever brings a good token, as soon as the server knows it.
async fn bootstrapper(ground: &Ground) -> anyhow::Result<Ground> {
    let (token, _) = token(ground, FUTURE).await?;
    let theirs = ground.with_token(&token).await?;
    eventually("the token is known", async || Ok((theirs.get(REQUESTS).await?.code == 200).then_some(()))).await?;
    Ok(theirs)
}

/// A request for a certificate as a node, and its key.
fn request(ground: &Ground) -> anyhow::Result<(Value, KeyPair)> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, format!("system:node:{}", ground.name));
    let pem = params.serialize_request(&key)?.pem()?;
    let spec = json!({
        "request": STANDARD.encode(pem), "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        "usages": ["digital signature", "client auth"],
    });
    Ok((json!({ "metadata": { "name": ground.name }, "spec": spec }), key))
}

/// The same ground as a node that has got its certificate.
async fn kubelet(ground: &Ground) -> anyhow::Result<Ground> {
    let theirs = bootstrapper(ground).await?;
    let (body, key) = request(ground)?;
    theirs.made(REQUESTS, body).await?;
    let path = format!("{REQUESTS}/{}", ground.name);
    let certificate = eventually("a certificate", async || {
        let found = theirs.get(&path).await?.expect(200)?;
        Ok(Some(text(&found, "/status/certificate").to_owned()).filter(|text| !text.is_empty()))
    })
    .await?;
    let pem = String::from_utf8(STANDARD.decode(certificate)?)?;
    ground.with_certificate(&pem, &key.serialize_pem()).await
}

pub(crate) async fn a_token_that_nobody_made_is_unauthorized(ground: &Ground) -> anyhow::Result<()> {
    let theirs = ground.with_token("aaaaaa.0123456789abcdef").await?;
    theirs.get(REQUESTS).await?.refused(401, "Unauthorized")?;
    Ok(())
}

pub(crate) async fn an_expired_token_is_unauthorized(ground: &Ground) -> anyhow::Result<()> {
    let (token, _) = token(ground, "2020-01-01T00:00:00Z").await?;
    ground.with_token(&token).await?.get(REQUESTS).await?.refused(401, "Unauthorized")?;
    Ok(())
}

pub(crate) async fn a_token_with_another_secret_is_unauthorized(ground: &Ground) -> anyhow::Result<()> {
    bootstrapper(ground).await?;
    let theirs = ground.with_token(&format!("{}.fedcba9876543210", id(ground))).await?;
    theirs.get(REQUESTS).await?.refused(401, "Unauthorized")?;
    Ok(())
}

pub(crate) async fn a_token_ends_with_its_secret(ground: &Ground) -> anyhow::Result<()> {
    let (token, path) = token(ground, FUTURE).await?;
    let theirs = ground.with_token(&token).await?;
    eventually("the token is known", async || Ok((theirs.get(REQUESTS).await?.code == 200).then_some(()))).await?;
    ground.delete(&path, json!(null)).await?.expect(200)?;
    eventually("the token is forgotten", async || Ok((theirs.get(REQUESTS).await?.code == 401).then_some(()))).await
}

pub(crate) async fn a_bootstrapper_may_ask_for_nothing_else(ground: &Ground) -> anyhow::Result<()> {
    let theirs = bootstrapper(ground).await?;
    let told = theirs.get(&ground.here("secrets")).await?.refused(403, "Forbidden")?;
    assert_eq!(told["details"], json!({ "kind": "secrets" }));
    theirs.post(&wide("nodes"), node(&ground.name)).await?.refused(403, "Forbidden")?;
    Ok(())
}

pub(crate) async fn a_request_says_who_asks(ground: &Ground) -> anyhow::Result<()> {
    let theirs = bootstrapper(ground).await?;
    let (body, _) = request(ground)?;
    let made = theirs.made(REQUESTS, body.clone()).await?;
    assert_eq!(text(&made, "/spec/username"), format!("system:bootstrap:{}", id(ground)));
    let mut groups: Vec<&str> =
        made["spec"]["groups"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    groups.sort_unstable();
    assert_eq!(groups, ["system:authenticated", "system:bootstrappers", "system:bootstrappers:test"]);
    theirs.post(REQUESTS, body).await?.refused(409, "AlreadyExists")?;
    Ok(())
}

pub(crate) async fn a_kubelets_request_is_approved_and_signed(ground: &Ground) -> anyhow::Result<()> {
    let theirs = bootstrapper(ground).await?;
    let (body, _) = request(ground)?;
    theirs.made(REQUESTS, body).await?;
    let path = format!("{REQUESTS}/{}", ground.name);
    let signed = eventually("a certificate", async || {
        let found = theirs.get(&path).await?.expect(200)?;
        Ok((!text(&found, "/status/certificate").is_empty()).then_some(found))
    })
    .await?;
    let approved = condition(&signed, "Approved").context("it is approved")?;
    assert_eq!((text(approved, "/status"), text(approved, "/reason")), ("True", "AutoApproved"));
    let pem = String::from_utf8(STANDARD.decode(text(&signed, "/status/certificate"))?)?;
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"), "{pem}");
    Ok(())
}

pub(crate) async fn a_certificate_makes_a_node(ground: &Ground) -> anyhow::Result<()> {
    let theirs = kubelet(ground).await?;
    let made = theirs.made(&wide("nodes"), node(&ground.name)).await?;
    let path = format!("{}/{}", wide("nodes"), ground.name);
    let beat = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }] } });
    let told = theirs.merge(&format!("{path}/status"), beat).await?.expect(200)?;
    assert_eq!(uid(&told), uid(&made));
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    theirs.made(leases, crate::things::lease(&ground.name, &ground.name)).await?;
    Ok(())
}

pub(crate) async fn a_node_may_not_make_another(ground: &Ground) -> anyhow::Result<()> {
    let theirs = kubelet(ground).await?;
    let other = with(node("x"), json!({ "metadata": { "name": format!("{}-other", ground.name) } }));
    let told = theirs.post(&wide("nodes"), other).await?.refused(403, "Forbidden")?;
    assert!(text(&told, "/message").contains("is not allowed to modify node"), "{told:#}");
    theirs.delete(&format!("{}/{}", wide("nodes"), ground.name), json!(null)).await?.refused(403, "Forbidden")?;
    Ok(())
}

pub(crate) async fn a_node_runs_the_pods_bound_to_it(ground: &Ground) -> anyhow::Result<()> {
    let theirs = kubelet(ground).await?;
    theirs.made(&wide("nodes"), node(&ground.name)).await?;
    let made = ground.running_pod("a").await?;
    let query = [("fieldSelector", &*format!("spec.nodeName={}", ground.name))];
    let list = theirs.list(&wide("pods"), &query).await?.expect(200)?;
    assert_eq!(crate::reply::names(&list), ["a"]);
    let path = format!("{}/a", ground.here("pods"));
    let status = json!({ "metadata": { "uid": uid(&made) }, "status": { "podIP": "10.1.0.7", "podIPs": [{ "ip": "10.1.0.7" }] } });
    theirs.merge(&format!("{path}/status"), status).await?.expect(200)?;
    ground.delete(&path, json!(null)).await?.expect(200)?;
    let last = json!({ "gracePeriodSeconds": 0, "preconditions": { "uid": uid(&made) } });
    theirs.delete(&path, last).await?.expect(200)?;
    ground.get(&path).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_new_namespace_gets_an_account_and_the_authority(ground: &Ground) -> anyhow::Result<()> {
    for path in [
        format!("{}/default", ground.here("serviceaccounts")),
        format!("{}/kube-root-ca.crt", ground.here("configmaps")),
    ] {
        eventually(&path, async || Ok((ground.get(&path).await?.code == 200).then_some(()))).await?;
    }
    let roots = ground.get(&format!("{}/kube-root-ca.crt", ground.here("configmaps"))).await?.expect(200)?;
    assert!(text(&roots, "/data/ca.crt").starts_with("-----BEGIN CERTIFICATE-----"), "{roots:#}");
    Ok(())
}

pub(crate) async fn kube_system_has_a_uid_that_names_the_cluster(ground: &Ground) -> anyhow::Result<()> {
    let found = ground.get("/api/v1/namespaces/kube-system").await?.expect(200)?;
    assert_eq!((uid(&found).len(), text(&found, "/status/phase")), (36, "Active"));
    Ok(())
}

pub(crate) async fn a_node_labels_itself_and_renews_its_lease(ground: &Ground) -> anyhow::Result<()> {
    let theirs = kubelet(ground).await?;
    theirs.made(&wide("nodes"), node(&ground.name)).await?;
    let labels =
        json!({ "kubernetes.io/hostname": ground.name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux" });
    let path = format!("{}/{}", wide("nodes"), ground.name);
    let told = theirs.merge(&path, json!({ "metadata": { "labels": labels } })).await?.expect(200)?;
    assert_eq!(text(&told, "/metadata/labels/kubernetes.io~1os"), "linux");
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let renewed = json!({ "spec": { "renewTime": "2026-01-01T00:00:10.000000Z" } });
    theirs.merge(&format!("{leases}/{}", ground.name), renewed.clone()).await?.refused(404, "NotFound")?;
    theirs.made(leases, crate::things::lease(&ground.name, &ground.name)).await?;
    theirs.merge(&format!("{leases}/{}", ground.name), renewed).await?.expect(200)?;
    Ok(())
}

pub(crate) async fn a_node_watches_its_own_pods(ground: &Ground) -> anyhow::Result<()> {
    let theirs = kubelet(ground).await?;
    theirs.made(&wide("nodes"), node(&ground.name)).await?;
    let bound = format!("spec.nodeName={}", ground.name);
    let list = theirs.list(&wide("pods"), &[("fieldSelector", &bound)]).await?.expect(200)?;
    let query = [("fieldSelector", &*bound), ("resourceVersion", text(&list, "/metadata/resourceVersion"))];
    let mut watch = theirs.watch(&wide("pods"), &query).await?;
    ground.pod("a", json!({ "spec": { "nodeName": ground.name } })).await?;
    watch.tells(&["ADDED a"]).await?;
    Ok(())
}

pub(crate) async fn a_request_that_is_not_a_nodes_is_not_signed(ground: &Ground) -> anyhow::Result<()> {
    let theirs = bootstrapper(ground).await?;
    let (body, _) = request(ground)?;
    let other = with(body, json!({ "spec": { "signerName": "kubernetes.io/kube-apiserver-client" } }));
    theirs.made(REQUESTS, other).await?;
    // Whatever signs has seen this one when it has signed a later one.
    let (body, _) = request(ground)?;
    let name = format!("{}-later", ground.name);
    theirs.made(REQUESTS, with(body, json!({ "metadata": { "name": name } }))).await?;
    eventually("the later one is signed", async || {
        let found = theirs.get(&format!("{REQUESTS}/{name}")).await?.expect(200)?;
        Ok((!text(&found, "/status/certificate").is_empty()).then_some(()))
    })
    .await?;
    let left = theirs.get(&format!("{REQUESTS}/{}", ground.name)).await?.expect(200)?;
    assert_eq!((condition(&left, "Approved"), text(&left, "/status/certificate")), (None, ""));
    Ok(())
}

/// A request for the certificate of a kubelet's own port, which nobody approves by itself, and what is said of it.
async fn serving(ground: &Ground, name: &str, names: &[&str]) -> anyhow::Result<(String, Value)> {
    let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, format!("system:node:{}", ground.name));
    let pem = params.serialize_request(&KeyPair::generate()?)?.pem()?;
    let spec = json!({
        "request": STANDARD.encode(pem), "signerName": "kubernetes.io/kubelet-serving",
        "usages": ["digital signature", "server auth"],
    });
    let name = format!("{}-{name}", ground.name);
    let made = ground.made(REQUESTS, json!({ "metadata": { "name": name }, "spec": spec })).await?;
    Ok((format!("{REQUESTS}/{name}"), made))
}

/// The object with one more condition.
fn told(mut object: Value, kind: &str) -> Value {
    let told = json!({ "type": kind, "status": "True", "reason": "Told", "message": "by the test" });
    let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.push(told);
    object["status"]["conditions"] = conditions.into();
    object
}

async fn until_signed(ground: &Ground, path: &str) -> anyhow::Result<Value> {
    eventually("a certificate", async || {
        let found = ground.get(path).await?.expect(200)?;
        Ok((!text(&found, "/status/certificate").is_empty()).then_some(found))
    })
    .await
}

pub(crate) async fn a_serving_request_is_signed_once_somebody_approves_it(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = serving(ground, "a", &["a.example", "192.0.2.7"]).await?;
    assert_eq!((condition(&made, "Approved"), text(&made, "/status/certificate")), (None, ""));
    let approved = ground.put(&format!("{path}/approval"), told(made, "Approved")).await?.expect(200)?;
    let decision = condition(&approved, "Approved").context("it is approved")?;
    assert_eq!((text(decision, "/reason"), text(decision, "/message")), ("Told", "by the test"));
    assert!(!text(decision, "/lastUpdateTime").is_empty() && !text(decision, "/lastTransitionTime").is_empty());
    let signed = until_signed(ground, &path).await?;
    let pem = String::from_utf8(STANDARD.decode(text(&signed, "/status/certificate"))?)?;
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"), "{pem}");
    Ok(())
}

pub(crate) async fn a_denied_request_is_not_signed(ground: &Ground) -> anyhow::Result<()> {
    let (denied, made) = serving(ground, "denied", &["a.example"]).await?;
    let said = ground.put(&format!("{denied}/approval"), told(made, "Denied")).await?.expect(200)?;
    assert_eq!(text(condition(&said, "Denied").context("it is denied")?, "/status"), "True");
    // Whatever signs has seen this one when it has signed a later one.
    let (later, made) = serving(ground, "later", &["a.example"]).await?;
    ground.put(&format!("{later}/approval"), told(made, "Approved")).await?.expect(200)?;
    until_signed(ground, &later).await?;
    let left = ground.get(&denied).await?.expect(200)?;
    assert_eq!((condition(&left, "Approved"), text(&left, "/status/certificate")), (None, ""));
    Ok(())
}

pub(crate) async fn a_request_is_not_both_approved_and_denied(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = serving(ground, "a", &["a.example"]).await?;
    let denied = ground.put(&format!("{path}/approval"), told(made, "Denied")).await?.expect(200)?;
    let both = ground.put(&format!("{path}/approval"), told(denied, "Approved")).await?.refused(422, "Invalid")?;
    assert!(text(&both, "/message").contains("Approved and Denied conditions are mutually exclusive"), "{both:#}");
    Ok(())
}

pub(crate) async fn a_decision_is_not_taken_back(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = serving(ground, "a", &["a.example"]).await?;
    let mut denied = ground.put(&format!("{path}/approval"), told(made, "Denied")).await?.expect(200)?;
    denied["status"] = json!({});
    let said = ground.put(&format!("{path}/approval"), denied).await?.refused(422, "Invalid")?;
    assert!(text(&said, "/message").contains("updates may not remove a condition of type \"Denied\""), "{said:#}");
    Ok(())
}

pub(crate) async fn a_status_of_a_request_decides_nothing(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = serving(ground, "a", &["a.example"]).await?;
    let said = ground.put(&format!("{path}/status"), told(made.clone(), "Approved")).await?.refused(422, "Invalid")?;
    assert!(text(&said, "/message").contains("updates may not add a condition of type \"Approved\""), "{said:#}");
    let whole = ground.put(&path, told(made, "Approved")).await?.expect(200)?;
    assert_eq!(condition(&whole, "Approved"), None, "a write of the whole leaves the status");
    Ok(())
}

pub(crate) async fn an_approval_sets_no_certificate(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = serving(ground, "a", &["a.example"]).await?;
    let mut denied = told(made, "Denied");
    denied["status"]["certificate"] = json!(STANDARD.encode("x"));
    let said = ground.put(&format!("{path}/approval"), denied).await?.expect(200)?;
    assert_eq!(text(&said, "/status/certificate"), "");
    Ok(())
}

pub(crate) async fn an_approval_of_a_stale_version_is_a_conflict(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = serving(ground, "a", &["a.example"]).await?;
    ground.merge(&path, json!({ "metadata": { "labels": { "a": "b" } } })).await?.expect(200)?;
    ground.put(&format!("{path}/approval"), told(made, "Denied")).await?.refused(409, "Conflict")?;
    Ok(())
}

pub(crate) async fn an_approved_request_its_signer_refuses_has_failed(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = serving(ground, "a", &[]).await?;
    ground.put(&format!("{path}/approval"), told(made, "Approved")).await?.expect(200)?;
    let failed = eventually("it has failed", async || {
        let found = ground.get(&path).await?.expect(200)?;
        Ok(condition(&found, "Failed").is_some().then_some(found))
    })
    .await?;
    let failed = condition(&failed, "Failed").context("it has failed")?;
    assert_eq!(text(failed, "/reason"), "SignerValidationFailure");
    assert!(text(failed, "/message").contains("DNS or IP subjectAltName is required"), "{failed}");
    Ok(())
}

pub(crate) async fn requests_are_found_by_signer(ground: &Ground) -> anyhow::Result<()> {
    serving(ground, "a", &["a.example"]).await?;
    let of = async |signer: &str| -> anyhow::Result<bool> {
        let query = [("fieldSelector", &*format!("spec.signerName=kubernetes.io/{signer}"))];
        let list = ground.list(REQUESTS, &query).await?.expect(200)?;
        Ok(crate::reply::names(&list).contains(&format!("{}-a", ground.name).as_str()))
    };
    assert!(of("kubelet-serving").await? && !of("kube-apiserver-client-kubelet").await?);
    Ok(())
}
