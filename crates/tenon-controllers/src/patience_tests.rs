//! Requests to servers that answer, never answer, or stop in the middle, on a clock that jumps.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream;
use http::{Request, Response};
use http_body::Frame;
use kube::api::{Api, ListParams};
use kube::client::{Body, ClientBuilder};
use kube::runtime::watcher::{self, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tenon_api::kube_objects::Namespace;
use tokio::time::Instant;

use crate::kube_error;
use crate::patience::{Patient, is_watch};

const WITHIN: Duration = Duration::from_secs(30);

/// What a server does with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    Answers,
    /// It takes the request and never answers.
    Silent,
    /// It answers, and then nothing comes.
    Stops,
    /// It does not even take the connection.
    Refuses,
}

#[derive(Debug, thiserror::Error)]
#[error("connection refused")]
struct Refused;

/// A client of servers that are asked one after the other, a new one after each time connections are made. How often
/// connections were made, and how many requests were sent.
fn client(servers: [Server; 2]) -> (Client, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (made, sent) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, asked) = (made.clone(), sent.clone());
    let make = move || {
        let first = count.fetch_add(1, Ordering::SeqCst);
        let asked = asked.clone();
        tower::service_fn(move |request: Request<Body>| {
            let number = asked.fetch_add(1, Ordering::SeqCst);
            let server = if servers[0] == Server::Refuses { servers[number.min(1)] } else { servers[first.min(1)] };
            let (is_watch, path) = (is_watch(&request), request.uri().path().to_owned());
            async move { answer(server, is_watch, &path).await }
        })
    };
    let patient = Patient::new(make, |_: &Refused| true, WITHIN);
    (ClientBuilder::new(patient, "default").build(), made, sent)
}

type Piece = Result<Frame<Bytes>, Refused>;

async fn answer(
    server: Server,
    is_watch: bool,
    path: &str,
) -> Result<Response<impl http_body::Body<Data = Bytes, Error = Refused> + Unpin + use<>>, Refused> {
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "a", "resourceVersion": "1" } });
    let is_list = path.ends_with("/namespaces") && !is_watch;
    let text = if is_list {
        json!({ "apiVersion": "v1", "kind": "NamespaceList", "metadata": { "resourceVersion": "1" }, "items": [namespace] })
    } else {
        namespace
    };
    let whole: Piece = Ok(Frame::data(Bytes::from(text.to_string())));
    let half: Piece = Ok(Frame::data(Bytes::from_static(b"{")));
    let body = match server {
        Server::Refuses => return Err(Refused),
        Server::Silent => std::future::pending().await,
        Server::Answers if is_watch => stream::pending().boxed(),
        Server::Answers => stream::iter([whole]).boxed(),
        Server::Stops => stream::iter([half]).chain(stream::pending()).boxed(),
    };
    Ok(Response::new(http_body_util::StreamBody::new(body)))
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_reply_fails_in_time_and_the_next_uses_a_new_connection() {
    for silent in [Server::Silent, Server::Stops] {
        let (client, made, _) = client([silent, Server::Answers]);
        let namespaces: Api<Namespace> = Api::all(client);
        let begun = Instant::now();
        let error = namespaces.get("a").await.unwrap_err();
        assert_eq!(begun.elapsed().as_secs(), 30, "{silent:?}");
        assert_eq!(kube_error::message(&error), "no reply from the Kubernetes API within 30 s");
        assert_eq!(made.load(Ordering::SeqCst), 2);
        namespaces.get("a").await.unwrap();
        assert_eq!((begun.elapsed().as_secs(), made.load(Ordering::SeqCst)), (30, 2), "a good connection is kept");
    }
}

#[tokio::test(start_paused = true)]
async fn many_requests_that_go_unanswered_together_make_new_connections_once() {
    let (client, made, _) = client([Server::Silent, Server::Answers]);
    let namespaces: Api<Namespace> = Api::all(client);
    let all = futures::future::join_all((0..20).map(|_| namespaces.get("a"))).await;
    assert!(all.iter().all(Result::is_err));
    assert_eq!(made.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_is_sent_again_at_once() {
    let (client, made, sent) = client([Server::Refuses, Server::Answers]);
    let namespaces: Api<Namespace> = Api::all(client);
    namespaces.delete("a", &kube::api::DeleteParams::default()).await.unwrap();
    assert_eq!((made.load(Ordering::SeqCst), sent.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_every_connection_is_not_asked_for_ever() {
    let (client, _, sent) = client([Server::Refuses, Server::Refuses]);
    let error = Api::<Namespace>::all(client).list(&ListParams::default()).await.unwrap_err();
    assert_eq!(kube_error::message(&error), "connection refused");
    assert_eq!(sent.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_watch_must_begin_in_time_and_may_then_be_quiet() {
    let (client, made, _) = client([Server::Silent, Server::Answers]);
    let begun = Instant::now();
    let config = watcher::Config::default();
    let mut watch = watcher(Api::<Namespace>::all(client), config).boxed();
    assert!(matches!(watch.next().await, Some(Ok(watcher::Event::Init))));
    let failed = watch.next().await.unwrap().unwrap_err();
    assert_eq!(kube_error::of_watch(&failed), "cannot list: no reply from the Kubernetes API within 30 s");
    assert_eq!((begun.elapsed().as_secs(), made.load(Ordering::SeqCst)), (30, 2));
    let listed = watch.by_ref().filter_map(|event| async move {
        match event {
            Ok(watcher::Event::InitApply(namespace)) => Some(namespace.name_any()),
            _ => None,
        }
    });
    assert_eq!(listed.boxed().next().await.unwrap(), "a");
    // Nothing happens for longer than a request may take.
    let next = tokio::time::timeout(Duration::from_secs(200), async {
        while !matches!(watch.next().await, Some(Err(_)) | None) {}
    });
    assert!(next.await.is_err(), "a quiet watch is not a dead one");
}
