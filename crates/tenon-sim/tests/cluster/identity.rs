//! Who calls, what they may do, and how kubelets become somebody.

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams, ObjectMeta, PostParams, WatchParams};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};
use tenon_sim::{ApiAccess, Cluster, ClusterConfig, Connect as _, Credential, TlsConnect};

use crate::cluster::{Asker, PODS, cluster, pod, pod_on};

pub(crate) const TOKEN: &str = "abc123.0123456789abcdef";

pub(crate) async fn add_token(cluster: &Cluster, expiration: &str) {
    let secret = json!({
        "metadata": { "name": "bootstrap-token-abc123" }, "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": "abc123", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:tenon", "expiration": expiration,
        },
    });
    Asker(cluster.client()).make("/api/v1/namespaces/kube-system/secrets", secret).await;
}

fn access(cluster: &Cluster, credential: Credential) -> ApiAccess {
    ApiAccess { server: "https://10.0.0.1:6443".into(), ca_pem: cluster.ca_pem(), credential }
}

fn request(node: &str, key: &KeyPair) -> CertificateSigningRequest {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, format!("system:node:{node}"));
    CertificateSigningRequest {
        metadata: ObjectMeta { name: Some(format!("csr-{node}")), ..ObjectMeta::default() },
        spec: CertificateSigningRequestSpec {
            request: ByteString(params.serialize_request(key).unwrap().pem().unwrap().into_bytes()),
            signer_name: "kubernetes.io/kube-apiserver-client-kubelet".into(),
            usages: Some(vec!["digital signature".into(), "client auth".into()]),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    }
}

/// Asks for a node's certificate with a bootstrap token, as a kubelet does.
async fn node_credential(bootstrap: kube::Client, node: &str) -> Credential {
    let key = KeyPair::generate().unwrap();
    let requests: Api<CertificateSigningRequest> = Api::all(bootstrap);
    requests.create(&PostParams::default(), &request(node, &key)).await.unwrap();
    let answered = requests.get(&format!("csr-{node}")).await.unwrap();
    assert_eq!(answered.spec.username.as_deref(), Some("system:bootstrap:abc123"));
    assert!(answered.spec.groups.unwrap().contains(&"system:bootstrappers:tenon".to_owned()));
    let status = answered.status.unwrap();
    assert_eq!(status.conditions.unwrap()[0].type_, "Approved");
    let certificate_pem = String::from_utf8(status.certificate.unwrap().0).unwrap();
    Credential::Certificate { certificate_pem, key_pem: key.serialize_pem() }
}

async fn code(client: kube::Client, method: &str, path: &str, body: Value) -> u16 {
    Asker(client).send(method, path, ("application/json", body)).await.0
}

#[tokio::test]
async fn nobody_is_let_in_without_a_credential() {
    let cluster = cluster();
    let unknown = cluster.connect(&access(&cluster, Credential::Token("nobody".into()))).unwrap();
    let (code, status) = Asker(unknown).get(PODS).await;
    assert_eq!((code, status["reason"].as_str()), (401, Some("Unauthorized")));
}

#[tokio::test]
async fn a_cluster_is_not_reached_by_another_authority() {
    let other = Cluster::new(ClusterConfig { seed: 2, ..ClusterConfig::default() }).unwrap();
    let strange = ApiAccess { ca_pem: other.ca_pem(), ..access(&cluster(), Credential::Token(TOKEN.into())) };
    assert!(cluster().connect(&strange).is_err());
    assert_eq!(cluster().ca_pem(), cluster().ca_pem(), "the same seed gives the same authority");
}

#[tokio::test(start_paused = true)]
async fn a_bootstrap_token_counts_until_it_expires() {
    let cluster = Cluster::new(ClusterConfig { epoch_s: 1_800_000_000, ..ClusterConfig::default() }).unwrap();
    add_token(&cluster, "2027-01-15T09:00:00Z").await;
    let client = cluster.connect(&access(&cluster, Credential::Token(TOKEN.into()))).unwrap();
    assert_eq!(code(client.clone(), "GET", PODS, Value::Null).await, 200);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(code(client, "GET", PODS, Value::Null).await, 401);
    let wrong = cluster.connect(&access(&cluster, Credential::Token("abc123.wrong".into()))).unwrap();
    assert_eq!(code(wrong, "GET", PODS, Value::Null).await, 401);
}

#[tokio::test]
async fn a_kubelet_gets_a_certificate_and_is_its_node() {
    let cluster = Cluster::new(ClusterConfig { rbac: true, ..ClusterConfig::default() }).unwrap();
    cluster.bind_bootstrappers();
    add_token(&cluster, "2100-01-01T00:00:00Z").await;
    let bootstrap = cluster.connect(&access(&cluster, Credential::Token(TOKEN.into()))).unwrap();
    assert_eq!(code(bootstrap.clone(), "GET", PODS, Value::Null).await, 403, "bootstrappers only ask for certificates");
    let credential = node_credential(bootstrap, "n1").await;
    let node = cluster.connect(&access(&cluster, credential)).unwrap();
    let admin = Asker(cluster.client());
    admin.make(PODS, pod_on("own", "n1")).await;
    admin.make(PODS, pod_on("other", "n2")).await;
    let named = |name: &str| json!({ "metadata": { "name": name } });
    assert_eq!(code(node.clone(), "POST", "/api/v1/nodes", named("n1")).await, 201);
    assert_eq!(code(node.clone(), "GET", "/api/v1/pods", Value::Null).await, 200);
    assert_eq!(code(node.clone(), "PUT", &format!("{PODS}/own/status"), pod("own")).await, 200);
    assert_eq!(code(node.clone(), "PUT", &format!("{PODS}/other/status"), pod("other")).await, 403);
    assert_eq!(code(node.clone(), "DELETE", "/api/v1/nodes/n1", Value::Null).await, 403);
    assert_eq!(code(node, "POST", "/api/v1/namespaces", named("x")).await, 403);
}

#[tokio::test]
async fn rights_are_only_asked_when_they_should_be() {
    let open = cluster().client_as("jane", &[]);
    assert_eq!(code(open, "GET", PODS, Value::Null).await, 200);
    let strict = Cluster::new(ClusterConfig { rbac: true, ..ClusterConfig::default() }).unwrap();
    let (code, status) = Asker(strict.client_as("jane", &[])).get(PODS).await;
    assert_eq!(code, 403);
    let told =
        "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"";
    assert_eq!((status["message"].as_str(), &status["details"]), (Some(told), &json!({ "kind": "pods" })));
}

#[tokio::test]
async fn a_request_that_is_none_fails() {
    let asker = Asker(cluster().client());
    let spec = json!({ "request": "bm9uc2Vuc2U=", "signerName": "kubernetes.io/kube-apiserver-client-kubelet" });
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    asker.make(path, json!({ "metadata": { "name": "bad" }, "spec": spec })).await;
    let (_, bad) = asker.get(&format!("{path}/bad")).await;
    assert_eq!(bad["status"]["conditions"][0]["type"], "Failed");
}

#[tokio::test]
async fn the_whole_way_works_over_tls() {
    let cluster = Cluster::new(ClusterConfig { rbac: true, ..ClusterConfig::default() }).unwrap();
    cluster.bind_bootstrappers();
    add_token(&cluster, "2100-01-01T00:00:00Z").await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = cluster.serve(listener, cluster.tls().unwrap());
    let url = format!("https://{}", server.local_addr());
    let over =
        |credential| TlsConnect.connect(&ApiAccess { server: url.clone(), ..access(&cluster, credential) }).unwrap();
    assert_eq!(code(over(Credential::Token("nobody".into())), "GET", PODS, Value::Null).await, 401);
    let credential = node_credential(over(Credential::Token(TOKEN.into())), "n1").await;
    let nodes: Api<Node> = Api::all(over(credential));
    let node: Node = serde_json::from_value(json!({ "metadata": { "name": "n1" } })).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();

    let config: kube::config::Kubeconfig = serde_json::from_str(&cluster.kubeconfig(&url)).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(config, &kube::config::KubeConfigOptions::default()).await.unwrap();
    let admin: Api<Node> = Api::all(kube::Client::try_from(config).unwrap());
    assert_eq!(admin.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let events = admin.watch(&WatchParams::default().timeout(60), "0").await.unwrap();
    drop(events);
    server.shutdown().await;
}

/// A cluster in which nobody may do anything but administrators, a client that brings a bootstrap token, and the admin.
async fn unbound() -> (kube::Client, Asker) {
    let cluster = cluster();
    add_token(&cluster, "2100-01-01T00:00:00Z").await;
    let bootstrap = cluster.connect(&access(&cluster, Credential::Token(TOKEN.into()))).unwrap();
    (bootstrap, Asker(cluster.client()))
}

async fn bind(admin: &Asker, role: &str) {
    let api = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": { "name": role },
        "subjects": [{ "kind": "Group", "name": "system:bootstrappers:tenon", "apiGroup": api }],
        "roleRef": { "kind": "ClusterRole", "name": role, "apiGroup": api },
    });
    admin.make(&format!("/apis/{api}/v1/clusterrolebindings"), binding).await;
}

#[tokio::test]
async fn a_bootstrapper_without_a_binding_may_not_request_a_certificate() {
    let (bootstrap, admin) = unbound().await;
    let requests: Api<CertificateSigningRequest> = Api::all(bootstrap);
    let asked = request("n1", &KeyPair::generate().unwrap());
    let told = requests.create(&PostParams::default(), &asked).await.unwrap_err().to_string();
    assert!(told.contains("User \"system:bootstrap:abc123\" cannot create resource"), "{told}");
    bind(&admin, "system:node-bootstrapper").await;
    requests.create(&PostParams::default(), &asked).await.unwrap();
}

#[tokio::test]
async fn a_request_waits_until_its_group_is_bound_to_be_approved() {
    let (bootstrap, admin) = unbound().await;
    bind(&admin, "system:node-bootstrapper").await;
    let requests: Api<CertificateSigningRequest> = Api::all(bootstrap);
    requests.create(&PostParams::default(), &request("n1", &KeyPair::generate().unwrap())).await.unwrap();
    let is_signed = async || requests.get("csr-n1").await.unwrap().status.is_some_and(|it| it.certificate.is_some());
    assert!(!is_signed().await);
    bind(&admin, "system:certificates.k8s.io:certificatesigningrequests:nodeclient").await;
    assert!(is_signed().await);
}
