//! Does the loop decide about what appears, once, and leave the rest alone? On the embedded API server and the simulator.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;
use tenon_sim::{ClusterConfig, FaultEffect, FaultMatch, FaultRule};

use super::test_requests::{Ask, subject};
use super::test_site::{NODE, Site};

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
        said.contains(
            "the common name is system:node:default-x8, only system:node:default-x7 is allowed; set hostname"
        ),
        "{said}"
    );
    let said = site.denied("group", &Ask { groups: vec!["system:bootstrappers"], ..first() }).await;
    assert!(said.contains("not in group system:bootstrappers:karpenter:proxmox; correct"), "{said}");
    let said = site.denied("usages", &Ask { usages: vec!["client auth"], ..first() }).await;
    assert!(said.contains("the usages are [client auth], only"), "{said}");
    site.stage.add_node(NODE, json!({})).await;
    let said = site.denied("second", &first()).await;
    assert!(said.contains("has joined already, and a NodeClaim has one Node; if"), "{said}");
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
    assert!(said.contains("is being deleted; nothing to do"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn another_machine_gets_no_certificate_because_the_claim_is_being_deleted() {
    let site = Site::new().await;
    let uid = site.stage.claim(NODE).await.uid().unwrap();
    let owner = json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": NODE, "uid": uid });
    let node = json!({
        "metadata": { "ownerReferences": [owner] }, "status": { "nodeInfo": { "systemUUID": "another" } },
    });
    site.stage.add_node(NODE, node).await;
    site.stage.delete(site.stage.claims_api(), NODE).await;
    for (name, ask) in [("client", Ask::renewal(NODE)), ("serving", Ask::serving(NODE, &[]))] {
        let said = site.denied(name, &ask).await;
        assert!(said.contains("another machine joined under this name; rename or remove Node default-x7"), "{said}");
    }
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
    assert!(said.contains("10.0.0.6 is not an address of the VM; check"), "{said}");
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
