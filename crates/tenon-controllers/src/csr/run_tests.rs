//! Does the loop decide about what appears, once, and leave the rest alone? On the embedded API server and the simulator.

use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;
use tenon_sim::{Cluster, ClusterConfig, FaultEffect, FaultMatch, FaultRule};

use super::run::run;
use super::test_requests::{Ask, subject};
use crate::claim::test_stage::ClaimStage;
use crate::claim::{make_token, recorded_token};
use crate::settings::{CsrApprover, Settings};
use crate::stop::stop;

const NODE: &str = "default-x7";

struct Site {
    stage: ClaimStage,
    cluster: Cluster,
    _stopper: crate::stop::Stopper,
    approver: tokio::task::JoinHandle<()>,
}

impl Site {
    /// A claim whose VM runs, and the approver.
    async fn new() -> Site {
        Site::with(ClusterConfig { stock_approver: false, ..ClusterConfig::default() }).await
    }

    async fn with(config: ClusterConfig) -> Site {
        let settings = Settings {
            csr_approver: CsrApprover::Tenon,
            cluster_endpoint: Some("https://a:6443".to_owned()),
            ..Settings::default()
        };
        let (stage, cluster) = ClaimStage::on(config, settings).await;
        stage.add_launched(NODE, json!({})).await;
        drop(make_token(&stage.context, &stage.claim(NODE).await).await.unwrap());
        stage.settle().await;
        let (stopper, stop) = stop();
        let approver = tokio::spawn(run(stage.context.clone(), stop));
        Site { stage, cluster, _stopper: stopper, approver }
    }

    async fn token(&self) -> String {
        recorded_token(&self.stage.claim(NODE).await).unwrap().to_owned()
    }

    fn requests(&self) -> Api<CertificateSigningRequest> {
        Api::all(self.stage.client.clone())
    }

    /// Asks, in the name of whoever the request says asks.
    async fn ask(&self, name: &str, ask: &Ask) {
        let groups: Vec<&str> = ask.groups.iter().copied().filter(|group| *group != "system:authenticated").collect();
        let theirs = self.cluster.client_as(&ask.user, &groups);
        let requests: Api<CertificateSigningRequest> = Api::all(theirs);
        requests.create(&PostParams::default(), &ask.object(name)).await.unwrap();
    }

    /// What became of a request after so many seconds: type, reason and message of its condition, and whether it is signed.
    async fn after(&self, seconds: u64, name: &str) -> (Vec<[String; 3]>, bool) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let status = self.requests().get(name).await.unwrap().status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default().into_iter();
        let told =
            conditions.map(|told| [told.type_, told.reason.unwrap_or_default(), told.message.unwrap_or_default()]);
        (told.collect(), status.certificate.is_some())
    }

    async fn asked(&self, name: &str, ask: &Ask) -> (Vec<[String; 3]>, bool) {
        self.ask(name, ask).await;
        self.after(1, name).await
    }

    async fn denied(&self, name: &str, ask: &Ask) -> String {
        let (told, is_signed) = self.asked(name, ask).await;
        assert!(!is_signed);
        let [[kind, reason, message]] = <[[String; 3]; 1]>::try_from(told).unwrap();
        assert_eq!((kind.as_str(), reason.as_str()), ("Denied", "CSRDenied"));
        assert!(self.events("CSRDenied").await.contains(&message), "{message}");
        message
    }

    /// Tells Proxmox which address the VM has.
    async fn address(&self, told: &str) {
        let pve = self.stage.context.region("lab").unwrap();
        let (host, params) = ("pve1".parse().unwrap(), [("ipconfig0", told.to_owned())]);
        pve.configure_vm(&host, 20_000.try_into().unwrap(), &params).await.unwrap();
    }

    async fn is_untouched(&self, name: &str, ask: &Ask) -> bool {
        self.ask(name, ask).await;
        self.after(1200, name).await == (vec![], false)
    }

    async fn events(&self, reason: &str) -> Vec<String> {
        let events = Api::<Event>::all(self.stage.client.clone()).list(&ListParams::default()).await.unwrap().items;
        let ours = events.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
        ours.filter_map(|event| event.note).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn the_right_request_is_approved_signed_counted_and_told_once() {
    let site = Site::new().await;
    let (told, is_signed) = site.asked("a", &Ask::first(&site.token().await, NODE)).await;
    let message = "Approved client certificate of Node default-x7 (CSR a)".to_owned();
    assert_eq!((told, is_signed), (vec![["Approved".to_owned(), "CSRApproved".to_owned(), message.clone()]], true));
    assert_eq!(site.events("CSRApproved").await, [message]);
    let metrics = site.stage.context.metrics.text();
    assert!(metrics.contains("tenon_csr_decisions_total{signer=\"client\",decision=\"Approved\"} 1"), "{metrics}");
    assert!(!site.approver.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_rebooted_before_its_node_joined_may_ask_again() {
    let site = Site::new().await;
    let token = site.token().await;
    for name in ["a", "b"] {
        assert!(site.asked(name, &Ask::first(&token, NODE)).await.1, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_our_token_must_not_get_is_denied_with_the_reason() {
    let site = Site::new().await;
    site.stage.add_launched("default-x8", json!({})).await;
    let token = site.token().await;
    let first = || Ask::first(&token, NODE);
    let said = site.denied("name", &Ask { subject: subject("default-x8"), ..first() }).await;
    assert!(
        said.ends_with("the common name is system:node:default-x8, only system:node:default-x7 is allowed"),
        "{said}"
    );
    let said = site.denied("group", &Ask { groups: vec!["system:bootstrappers"], ..first() }).await;
    assert!(said.ends_with("not in group system:bootstrappers:karpenter:proxmox"), "{said}");
    let said = site.denied("usages", &Ask { usages: vec!["client auth"], ..first() }).await;
    assert!(said.contains("the usages are [client auth], only"), "{said}");
    site.stage.add_node(NODE, json!({})).await;
    let said = site.denied("second", &first()).await;
    assert!(said.ends_with("has joined already, and a NodeClaim has one Node"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_token_without_its_own_secret_counts_for_nothing() {
    let site = Site::new().await;
    let token = site.token().await;
    let secrets: Api<Secret> = Api::namespaced(site.stage.client.clone(), "kube-system");
    let other = json!({ "metadata": { "annotations": { tenon_api::names::ANNOTATION_CLAIM_UID: "another" } } });
    let name = format!("bootstrap-token-{token}");
    site.stage.patch(secrets.clone(), &name, other).await;
    site.denied("another", &Ask::first(&token, NODE)).await;
    site.stage.delete(secrets, &name).await;
    site.denied("gone", &Ask::first(&token, NODE)).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_copies_the_token_of_another_gets_nothing_by_it() {
    let site = Site::new().await;
    let token = site.token().await;
    let copied = json!({ "metadata": { "annotations": { tenon_api::names::ANNOTATION_BOOTSTRAP_TOKEN: token } } });
    site.stage.add_claim("a-thief", copied).await;
    site.denied("thief", &Ask::first(&token, "a-thief")).await;
    assert!(site.asked("own", &Ask::first(&token, NODE)).await.1, "the Secret says whose it is");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_being_deleted_gets_no_certificate() {
    let site = Site::new().await;
    let token = site.token().await;
    site.stage.delete(site.stage.claims_api(), NODE).await;
    let said = site.denied("a", &Ask::first(&token, NODE)).await;
    assert!(said.ends_with("is being deleted"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ours_is_neither_approved_nor_denied() {
    let site = Site::new().await;
    assert!(site.is_untouched("token", &Ask::first("zzzzzz", NODE)).await, "a token of the Go provider, say");
    assert!(site.is_untouched("node", &Ask::renewal("worker-1")).await);
    assert!(site.is_untouched("serving", &Ask::serving("worker-1", &["10.0.0.5"])).await);
    let user = Ask { user: "jane".to_owned(), ..Ask::first("", NODE) };
    assert!(site.is_untouched("user", &user).await);
}

#[tokio::test(start_paused = true)]
async fn a_node_renews_its_certificate_and_serves_on_the_addresses_of_its_vm() {
    let site = Site::new().await;
    site.stage.add_node(NODE, json!({})).await;
    site.address("ip=10.0.0.5/24,gw=10.0.0.1").await;
    assert!(site.asked("renewal", &Ask::renewal(NODE)).await.1);
    assert!(site.asked("serving", &Ask::serving(NODE, &["10.0.0.5"])).await.1);
    let said = site.denied("other", &Ask::serving(NODE, &["10.0.0.5", "10.0.0.6"])).await;
    assert!(said.ends_with("10.0.0.6 is not an address of the VM"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn addresses_of_an_agent_that_does_not_answer_are_waited_for_and_said() {
    let site = Site::new().await;
    site.stage.add_node(NODE, json!({})).await;
    site.ask("a", &Ask::serving(NODE, &["10.0.0.5"])).await;
    assert_eq!(site.after(30, "a").await, (vec![], false));
    let said = site.events("CSRUndecided").await;
    assert!(
        said[0].contains("Cannot decide about CSR a of Node default-x7 yet: the addresses of its VM are not known"),
        "{said:?}"
    );
    assert!(said[0].contains("agent is not running; install and enable the guest agent in the template"), "{said:?}");
    site.address("ip=10.0.0.5/24").await;
    assert!(site.after(61, "a").await.1, "it is decided once that is known");
}

#[tokio::test(start_paused = true)]
async fn a_missing_privilege_is_named_and_the_agent_is_not_blamed() {
    let site = Site::new().await;
    site.stage.add_node(NODE, json!({})).await;
    let text = "Permission check failed (/vms/20000, VM.GuestAgent.Audit)".to_owned();
    let asked = FaultMatch::call("GET", "/nodes/*/qemu/*/agent/*");
    site.stage.estate.add_fault(FaultRule::new(asked, FaultEffect::Refuse { status: 403, text }));
    site.ask("a", &Ask::serving(NODE, &["10.0.0.5"])).await;
    site.after(30, "a").await;
    let said = site.events("CSRUndecided").await;
    assert!(said[0].contains("VM.GuestAgent.Audit") && !said[0].contains("install"), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_nobody_decides_about_is_given_up_when_its_kubelet_does() {
    let site = Site::new().await;
    site.stage.add_node(NODE, json!({})).await;
    site.ask("a", &Ask::serving(NODE, &["10.0.0.5"])).await;
    site.after(1000, "a").await;
    site.address("ip=10.0.0.5/24").await;
    assert_eq!(site.after(300, "a").await, (vec![], false));
    assert!(site.asked("b", &Ask::serving(NODE, &["10.0.0.5"])).await.1, "the next one is decided");
}

#[tokio::test(start_paused = true)]
async fn beside_the_stock_approver_nothing_is_decided_twice() {
    let site = Site::with(ClusterConfig::default()).await;
    let (told, is_signed) = site.asked("a", &Ask::first(&site.token().await, NODE)).await;
    assert!(is_signed && told.len() == 1 && told[0][1] == "AutoApproved", "{told:?}");
    assert_eq!(site.requests().get("a").await.unwrap().name_any(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_requests_is_denied_and_does_not_become_a_flood_of_events() {
    let site = Site::new().await;
    let token = site.token().await;
    for number in 0..50 {
        let ask = Ask { subject: subject(&format!("other-{number}")), ..Ask::first(&token, NODE) };
        site.ask(&format!("flood-{number}"), &ask).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let requests = site.requests().list(&ListParams::default()).await.unwrap().items;
    let decided =
        requests.iter().filter(|request| request.status.as_ref().is_some_and(|told| told.conditions.is_some()));
    assert_eq!(decided.count(), 50);
    let told = site.events("CSRDenied").await.len();
    assert!((1..20).contains(&told), "{told}");
}
