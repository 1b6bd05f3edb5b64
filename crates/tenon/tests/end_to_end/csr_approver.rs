//! Do nodes join where nobody but the controller approves their certificates, and only they?

use anyhow::Context as _;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::json;
use tenon_api::names;
use tenon_sim::{ApiAccess, Connect as _, Credential, TlsConnect};

use crate::bench::{eventually, from_json, quick_guests, shared_testbed};
use crate::first_boot::{TEMPLATES, VALUES, add_secret, example, options, values};
use crate::ground::{Ground, Kind, scenarios};
use crate::joining::unbind;
use crate::world::World;

scenarios! {
    without_the_stock_approver_nodes_join_by_ours_and_nobody_else_does,
}

const CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const SERVING: &str = "kubernetes.io/kubelet-serving";

/// What has kube-controller-manager approve.
const APPROVALS: [&str; 2] = [
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
];

impl World {
    /// Nobody approves certificates of kubelets any more.
    pub(crate) async fn remove_stock_approver(&self) -> anyhow::Result<()> {
        unbind(self, &APPROVALS).await
    }

    /// Who approves for the next controller: `external` or `true`.
    pub(crate) async fn use_csr_approver(&mut self, approver: &'static str) -> anyhow::Result<()> {
        match self.ground() {
            Ground::Real(_) => {
                let real = self.real()?;
                real.csr_approver = approver;
                real.grant(approver).await?;
            }
            Ground::Embedded(_) => self.embedded()?.csr_approver = approver,
        }
        Ok(())
    }

    /// A client that has nothing but a token.
    fn with_token(&self, token: String) -> anyhow::Result<Client> {
        let (server, ca_pem) = self.joined_at();
        let access = ApiAccess { server, ca_pem, credential: Credential::Token(token) };
        Ok(match self.ground() {
            Ground::Real(_) => TlsConnect.connect(&access)?,
            Ground::Embedded(embedded) => embedded.cluster.connect(&access)?,
        })
    }

    /// Requests for a signer.
    async fn requests(&self, signer: &str) -> anyhow::Result<Vec<CertificateSigningRequest>> {
        let requests: Api<CertificateSigningRequest> = Api::all(self.admin.clone());
        Ok(requests.list(&ListParams::default().fields(&format!("spec.signerName={signer}"))).await?.items)
    }

    /// The only bootstrap token there is.
    async fn token(&self) -> anyhow::Result<String> {
        let secrets: Api<Secret> = Api::namespaced(self.admin.clone(), "kube-system");
        let ours = ListParams::default().labels(&format!("{}=true", names::LABEL_BOOTSTRAP_TOKEN));
        let secret = secrets.list(&ours).await?.items.pop().context("there is no token")?;
        let data = secret.data.unwrap_or_default();
        let text = |key: &str| data.get(key).map(|value| String::from_utf8_lossy(&value.0).into_owned());
        Ok(format!("{}.{}", text("token-id").unwrap_or_default(), text("token-secret").unwrap_or_default()))
    }
}

/// Reason and message of a decision, by its kind.
fn decision(request: &CertificateSigningRequest, kind: &str) -> Option<(String, String)> {
    let conditions = request.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    Some((found.reason.clone().unwrap_or_default(), found.message.clone().unwrap_or_default()))
}

fn is_signed(request: &CertificateSigningRequest) -> bool {
    request.status.as_ref().is_some_and(|status| status.certificate.is_some())
}

/// A request in the name of another node.
fn greedy() -> anyhow::Result<CertificateSigningRequest> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(DnType::CommonName, "system:node:control-plane-1");
    let pem = params.serialize_request(&KeyPair::generate()?)?.pem()?;
    let mut request: CertificateSigningRequest = from_json(json!({
        "metadata": { "name": "greedy" },
        "spec": { "request": "", "signerName": CLIENT, "usages": ["digital signature", "client auth"] },
    }))?;
    request.spec.request.0 = pem.into_bytes();
    Ok(request)
}

/// Nodes whose kubelets also ask for serving certificates, on VMs whose agents say what addresses they have.
async fn add_rules(world: &World) -> anyhow::Result<()> {
    for (host, vmid) in [("pve1", 9001), ("pve2", 9002), ("pve3", 9003)] {
        world.proxmox("PUT", &format!("/nodes/{host}/qemu/{vmid}/config"), &[("agent", "1")]).await?;
    }
    let mut templates = example(TEMPLATES)?;
    let user_data = templates.get_mut("user-data").context("the example has no user-data")?;
    *user_data =
        user_data.replace("rotateCertificates: true\n", "rotateCertificates: true\n      serverTLSBootstrap: true\n");
    anyhow::ensure!(user_data.contains("serverTLSBootstrap"), "the example has changed:\n{user_data}");
    add_secret(world, TEMPLATES, &templates).await?;
    add_secret(world, VALUES, &values(world)?).await?;
    world.add_template("debian-13").await?;
    world.add_class(options()).await?;
    world.add_pool(json!({})).await
}

async fn without_the_stock_approver_nodes_join_by_ours_and_nobody_else_does(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.remove_stock_approver().await?;
    add_rules(&world).await?;
    // Else the pool would wait for somebody who approves, and make no VM.
    world.use_csr_approver("external").await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    let waiting =
        world.until("a kubelet asks for its certificate", async || Ok(world.requests(CLIENT).await?.pop())).await?;
    assert!(decision(&waiting, "Approved").is_none() && !is_signed(&waiting), "{waiting:#?}");
    // Somebody has got hold of the token.
    let thief: Api<CertificateSigningRequest> = Api::all(world.with_token(world.token().await?)?);
    thief.create(&PostParams::default(), &greedy()?).await?;
    assert!(world.nodes().await?.is_empty());

    world.kill_controller()?;
    world.use_csr_approver("true").await?;
    world.start_controller()?;
    world.until_running("web", 1).await?;
    let node = world.nodes().await?.pop().context("there is no node")?.name_any();
    let requests = world.requests(CLIENT).await?;
    let own = requests.iter().find(|request| request.name_any() != "greedy").context("the kubelet did not ask")?;
    let (reason, message) = decision(own, "Approved").context("it is not approved")?;
    assert_eq!(reason, "CSRApproved");
    assert_eq!(message, format!("Approved client certificate of Node {node} (CSR {})", own.name_any()));
    let refused = format!("the common name is system:node:control-plane-1, only system:node:{node} is allowed");
    let told = world.until_told(("NodeClaim", &node), "CSRDenied", &refused).await?;
    let denied = requests.iter().find(|request| request.name_any() == "greedy").context("it is gone")?;
    assert_eq!((decision(denied, "Denied"), is_signed(denied)), (Some(("CSRDenied".to_owned(), told)), false));

    let serving = world
        .until("the serving certificate is signed", async || {
            Ok(world.requests(SERVING).await?.into_iter().find(is_signed))
        })
        .await?;
    assert_eq!(decision(&serving, "Approved").map(|(reason, _)| reason).as_deref(), Some("CSRApproved"));
    assert_eq!(serving.spec.username, Some(format!("system:node:{node}")));
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

/// The privileges that the guide tells people to give.
const PRIVILEGES: &str = include_str!("../../../../examples/csr-approver-rbac.yaml");
/// Whom the example gives them to.
const ACCOUNT: &str = "system:serviceaccount:kube-system:tenon";

/// A request for a serving certificate that nobody decides about, with a condition that does.
async fn decided(admin: &Client, name: &str, signer: &str) -> anyhow::Result<CertificateSigningRequest> {
    let mut request = greedy()?;
    request.metadata.name = Some(name.to_owned());
    signer.clone_into(&mut request.spec.signer_name);
    let requests: Api<CertificateSigningRequest> = Api::all(admin.clone());
    let mut made = requests.create(&PostParams::default(), &request).await?;
    made.status = Some(from_json(json!({ "conditions": [{ "type": "Denied", "status": "True", "reason": "Told" }] }))?);
    Ok(made)
}

#[tokio::test]
async fn the_privileges_of_the_example_suffice_to_decide_about_kubelets_and_about_nobody_else() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let admin = testbed.admin().await?;
    let manifests: Vec<serde_json::Value> = serde_saphyr::from_multiple(PRIVILEGES)?;
    let [role, binding] = <[_; 2]>::try_from(manifests).map_err(|all| anyhow::anyhow!("not two objects: {all:?}"))?;
    Api::<ClusterRole>::all(admin.clone()).create(&PostParams::default(), &from_json(role)?).await?;
    Api::<ClusterRoleBinding>::all(admin.clone()).create(&PostParams::default(), &from_json(binding)?).await?;
    let kubeconfig = Kubeconfig::read_from(testbed.kubeconfig())?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.auth_info.impersonate = Some(ACCOUNT.to_owned());
    let theirs: Api<CertificateSigningRequest> = Api::all(Client::try_from(config)?);
    let params = ListParams::default().fields(&format!("spec.signerName={SERVING}"));
    eventually("the privileges are known", async || Ok(theirs.list(&params).await.ok())).await?;
    let put = async |request: CertificateSigningRequest| {
        theirs.replace_subresource("approval", &request.name_any(), &PostParams::default(), &request).await
    };
    let told = put(decided(&admin, "privileges-serving", SERVING).await?).await?;
    assert_eq!(decision(&told, "Denied").map(|(reason, _)| reason).as_deref(), Some("Told"));
    let other = decided(&admin, "privileges-other", "kubernetes.io/kube-apiserver-client").await?;
    let refused = put(other).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("forbidden"), "{refused}");
    Ok(())
}
