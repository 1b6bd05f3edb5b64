//! Does the approver go on, and say what is wrong, when it may not act, when reads hang, and when somebody asks too much?

use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::ListParams;
use serde_json::json;

use super::test_requests::{Ask, subject};
use super::test_site::{Call, Fault, NODE, Site, without_stock_approver};

const GRANT: &str = "kubectl apply -f examples/csr-approver-rbac.yaml";

#[tokio::test(start_paused = true)]
async fn an_approver_that_may_not_approve_says_what_to_apply() {
    let forbid = |(_, path): &Call<'_>| if path.ends_with("/approval") { Fault::Forbidden } else { Fault::None };
    let site = Site::with_faults(without_stock_approver(), forbid).await;
    let token = site.token().await;
    assert_eq!(site.asked("a", &Ask::first(&token, NODE)).await, (vec![], false));
    site.ask("b", &Ask { subject: subject("other"), ..Ask::first(&token, NODE) }).await;
    site.after(1, "b").await;
    let mut said = site.events("CSRUndecided").await;
    said.sort();
    assert!(said[0].contains("Tenon may not approve it: may not (Kubernetes API, HTTP 403)"), "{said:?}");
    assert!(said[1].contains("Tenon may not deny it") && said.iter().all(|said| said.contains(GRANT)), "{said:?}");
    assert!(site.stage.context.memory.undecided.all()["a"].contains(GRANT));
}

#[tokio::test(start_paused = true)]
async fn an_approver_that_may_not_list_says_what_to_apply_to_claims_that_wait() {
    let forbid = |(method, path): &Call<'_>| match *method == "GET" && path.ends_with("/certificatesigningrequests") {
        true => Fault::Forbidden,
        false => Fault::None,
    };
    let site = Site::with_faults(without_stock_approver(), forbid).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let said = site.events("CSRUndecided").await;
    assert!(said.len() == 1 && said[0].contains("cannot list: may not") && said[0].contains(GRANT), "{said:?}");
    assert!(!site.approver.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_read_that_hangs_holds_up_neither_the_watch_nor_other_requests() {
    let hang = |(_, path): &Call<'_>| if path.contains("/bootstrap-token-") { Fault::Hangs } else { Fault::None };
    let site = Site::with_faults(without_stock_approver(), hang).await;
    let token = site.token().await;
    for number in 0..20 {
        site.ask(&format!("hangs-{number}"), &Ask::first(&token, NODE)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    site.stage.add_node(NODE, json!({})).await;
    assert!(site.asked("renewal", &Ask::renewal(NODE)).await.1);
    assert_eq!(site.after(31, "hangs-0").await, (vec![], false));
    let undecided = site.stage.context.memory.undecided.all();
    assert!(undecided["hangs-0"].contains("longer than 30 s; check the API server"), "{undecided:?}");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_asks_again_and_again_gets_only_so_many_certificates_an_hour() {
    let mut site = Site::new().await;
    let token = site.token().await;
    for number in 0..10 {
        assert!(site.asked(&format!("a{number}"), &Ask::first(&token, NODE)).await.1);
    }
    let said = site.denied("b", &Ask::first(&token, NODE)).await;
    assert!(said.contains("10 client certificates of the NodeClaim were approved within the last hour"), "{said}");
    site.approver.abort();
    site.ask("0-first-of-the-list", &Ask::first(&token, NODE)).await;
    site.restart();
    assert_eq!(site.after(1, "0-first-of-the-list").await.0[0][1], "CSRDenied", "a restart forgets nothing");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(site.asked("c", &Ask::first(&token, NODE)).await.1);
}

#[tokio::test(start_paused = true)]
async fn many_requests_nobody_can_decide_about_do_not_become_a_flood_of_events() {
    let site = Site::new().await;
    site.stage.add_node(NODE, json!({})).await;
    for number in 0..50 {
        site.ask(&format!("a{number}"), &Ask::serving(NODE, &["10.0.0.5"])).await;
    }
    site.after(10, "a0").await;
    let told = site.events("CSRUndecided").await.len();
    assert!((1..30).contains(&told), "{told}");
}

#[tokio::test(start_paused = true)]
async fn what_there_was_no_room_for_is_decided_about_later() {
    let site = Site::new().await;
    site.stage.add_node(NODE, json!({})).await;
    for number in 0..110 {
        site.ask(&format!("a{number}"), &Ask::serving(NODE, &["10.0.0.5"])).await;
    }
    site.after(5, "a0").await;
    site.address("ip=10.0.0.5/24").await;
    site.after(200, "a0").await;
    let requests = site.requests().list(&ListParams::default()).await.unwrap().items;
    let is_open =
        |request: &&CertificateSigningRequest| request.status.as_ref().is_none_or(|told| told.conditions.is_none());
    assert_eq!(requests.iter().filter(is_open).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_late_says_why_tenon_has_not_approved_its_certificate() {
    let forbid = |(_, path): &Call<'_>| if path.ends_with("/approval") { Fault::Forbidden } else { Fault::None };
    let site = Site::with_faults(without_stock_approver(), forbid).await;
    site.ask("a", &Ask::first(&site.token().await, NODE)).await;
    let (reason, message) = site.late().await;
    assert_eq!(reason, "CertificateRequestPending");
    assert!(message.contains("a is not approved yet by Tenon (--csr-approver): Tenon may not approve it"), "{message}");
    assert!(message.contains(GRANT) && !message.contains("certificate approve"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_late_says_what_tenon_denied() {
    let site = Site::new().await;
    let ask = Ask { subject: subject("other"), ..Ask::first(&site.token().await, NODE) };
    let said = site.denied("a", &ask).await;
    let (reason, message) = site.late().await;
    assert_eq!(reason, "CertificateRequestDenied");
    let why = said.split_once("): ").unwrap().1;
    assert_eq!(message, format!("Node default-x7 has not joined: Tenon denied CertificateSigningRequest a: {why}"));
}
