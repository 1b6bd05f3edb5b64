//! Elections over an API server in memory that can fall silent, in a time of our own.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::time::Instant;
use tower::BoxError;

use super::decide::Lost;
use super::driver::{Bid, Election, LeaseName};
use super::fence::Fence;
use super::timing::Timing;
use crate::clock::Clock;

/// The one Lease of a cluster, and whether its server answers.
#[derive(Clone, Default)]
struct Server {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    lease: Option<Lease>,
    version: u64,
    is_silent: bool,
}

impl Server {
    fn silence(&self, is_silent: bool) {
        self.state.lock().unwrap().is_silent = is_silent;
    }

    fn spec(&self) -> (String, i32, i32) {
        let state = self.state.lock().unwrap();
        let spec = state.lease.clone().unwrap().spec.unwrap();
        (spec.holder_identity.unwrap(), spec.lease_duration_seconds.unwrap(), spec.lease_transitions.unwrap())
    }

    /// Status and body of an answer; nothing if there is none.
    fn answer(&self, method: &Method, body: &[u8]) -> Option<(u16, Vec<u8>)> {
        let mut state = self.state.lock().unwrap();
        if state.is_silent {
            return None;
        }
        let status = |code: u16, reason: &str| {
            let details = json!({ "kind": "leases", "name": "lead" });
            let status = json!({ "kind": "Status", "status": "Failure", "code": code, "reason": reason,
                "message": reason, "details": details });
            Some((code, status.to_string().into_bytes()))
        };
        if *method != Method::GET {
            let mut lease: Lease = serde_json::from_slice(body).unwrap();
            let version = state.lease.as_ref().and_then(|lease| lease.metadata.resource_version.clone());
            if version != lease.metadata.resource_version {
                return status(409, "Conflict");
            }
            state.version += 1;
            lease.metadata.resource_version = Some(state.version.to_string());
            state.lease = Some(lease);
        }
        match &state.lease {
            Some(lease) => Some((200, serde_json::to_vec(lease).unwrap())),
            None => status(404, "NotFound"),
        }
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let Some((status, body)) = server.answer(&head.method, &body) else {
                    return std::future::pending().await;
                };
                Ok::<_, BoxError>(Response::builder().status(status).body(Body::from(body))?)
            }
        });
        Client::new(service, "default")
    }

    fn election(&self, identity: &str) -> (Election, Fence) {
        let clock = Clock::Runtime { epoch: Timestamp::from_second(1_800_000_000).unwrap(), origin: Instant::now() };
        let fence = Fence::closed(clock);
        let at = LeaseName { namespace: "kube-system".to_owned(), name: "lead".to_owned() };
        let bid = Bid { at, identity: identity.to_owned(), timing: Timing::default() };
        (Election::new(self.client(), bid, fence.clone()), fence)
    }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_nobody_wants_is_won_at_once() {
    let server = Server::default();
    let (mut first, fence) = server.election("first");
    assert!(!fence.is_open());
    let begun = Instant::now();
    first.win(|| panic!("nobody is there to wait for")).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert!(fence.is_open());
    assert_eq!(server.spec(), ("first".to_owned(), 15, 0));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_renews_leads_and_one_that_died_is_followed() {
    let server = Server::default();
    let ((mut first, first_fence), (mut second, second_fence)) = (server.election("first"), server.election("second"));
    first.win(|| ()).await;
    tokio::select! {
        biased;
        lost = first.keep() => panic!("{lost}"),
        () = second.win(|| ()) => panic!("two lead"),
        () = tokio::time::sleep(seconds(600)) => {}
    }
    assert!(first_fence.is_open() && !second_fence.is_open());
    let died = Instant::now();
    second.win(|| assert!(!second_fence.is_open())).await;
    // It may have seen the last renewal up to a retry period late.
    assert!((seconds(12)..=seconds(15)).contains(&died.elapsed()), "{:?}", died.elapsed());
    assert!(second_fence.is_open() && !first_fence.is_open());
    assert_eq!(server.spec(), ("second".to_owned(), 15, 1));
    // The first comes back from the dead.
    assert_eq!(first.keep().await, Lost::Taken("second".to_owned()));
    assert!(!first_fence.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_server_is_silent_ends_before_another_may_begin() {
    let server = Server::default();
    let (mut first, fence) = server.election("first");
    first.win(|| ()).await;
    let won = Instant::now();
    server.silence(true);
    let lost = first.keep().await;
    assert_eq!(won.elapsed(), seconds(10));
    assert!(matches!(&lost, Lost::NotRenewed { last, .. } if last.starts_with("no answer within")), "{lost}");
    assert!(!fence.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_for_a_while_costs_nothing() {
    let server = Server::default();
    let (mut first, fence) = server.election("first");
    first.win(|| ()).await;
    let pauses = async {
        for _ in 0..10 {
            server.silence(true);
            tokio::time::sleep(seconds(6)).await;
            server.silence(false);
            tokio::time::sleep(seconds(5)).await;
            assert!(fence.is_open());
        }
    };
    tokio::select! {
        biased;
        lost = first.keep() => panic!("{lost}"),
        () = pauses => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_slept_goes_on_only_if_nobody_came() {
    let server = Server::default();
    let (mut first, fence) = server.election("first");
    first.win(|| ()).await;
    // Nothing polls it: as good as frozen.
    tokio::time::advance(seconds(60)).await;
    assert!(!fence.is_open());
    tokio::select! {
        biased;
        lost = first.keep() => panic!("{lost}"),
        () = tokio::time::sleep(seconds(30)) => {}
    }
    assert!(fence.is_open());
    assert_eq!(server.spec(), ("first".to_owned(), 15, 0));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_given_back_is_taken_at_the_next_look() {
    let server = Server::default();
    let ((mut first, fence), (mut second, _)) = (server.election("first"), server.election("second"));
    first.win(|| ()).await;
    tokio::select! {
        biased;
        () = second.win(|| ()) => panic!("two lead"),
        () = tokio::time::sleep(seconds(3)) => {}
    }
    second.release().await;
    assert_eq!(server.spec(), ("first".to_owned(), 15, 0), "who waits has nothing to give back");
    first.release().await;
    assert_eq!(server.spec(), (String::new(), 1, 0));
    assert!(!fence.is_open());
    let begun = Instant::now();
    second.win(|| ()).await;
    assert!(begun.elapsed() < seconds(2), "{:?}", begun.elapsed());
    assert_eq!(server.spec(), ("second".to_owned(), 15, 1));
}
