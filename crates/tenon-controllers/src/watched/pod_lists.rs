//! Lists of pods, read as they come and in the compact format where the API server can: the pods of a large cluster are then read
//! in a fraction of the time, and never held as they were sent.
//!
//! The watch of pods asks for lists through a client that answers itself. Its answers have no pods; those wait here, already made
//! small, until the list is whole. Three ways are tried, and one that failed is not tried again: pods told one by one
//! (`sendInitialEvents`, Kubernetes 1.32 and later), pages in the compact format, pages as JSON, which are passed on as they are.

mod streamed;

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tenon_api::kube_objects::{Pod, WirePod};
use tenon_api::protobuf::{self, PodList, PodReader};

use self::streamed::streamed;
use crate::patience::is_watch;

/// The path of all pods.
const PODS: &str = "/api/v1/pods";

/// A server that does not have the first answers with the second.
const FORMATS: &str = "application/vnd.kubernetes.protobuf,application/json";

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// How pods are asked for, the fastest first.
const STREAM: u8 = 0;
const PAGES: u8 = 1;
const JSON_PAGES: u8 = 2;

/// The pods of the list that is being read.
#[derive(Debug, Default)]
pub(super) struct PodLists {
    way: AtomicU8,
    read: Mutex<Reading>,
}

#[derive(Debug, Default)]
struct Reading {
    reader: PodReader,
    listed: Vec<Pod>,
}

impl PodLists {
    /// A pod that came as JSON.
    pub(super) fn small(&self, sent: WirePod) -> Pod {
        self.reading().reader.from_json(sent)
    }

    /// The pods of the list, which is whole.
    pub(super) fn take(&self) -> Vec<Pod> {
        std::mem::take(&mut self.reading().listed)
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, pods are asked for in this way.
    fn turn_to(&self, way: u8) {
        self.way.fetch_max(way, Ordering::Relaxed);
    }
}

/// The same client, but for lists of all pods.
pub(super) fn listing(client: &Client, lists: &Arc<PodLists>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let (client, lists) = (client.clone(), lists.clone());
    let send = move |request| send(client.clone(), request, lists.clone());
    Client::new(tower::service_fn(send), namespace)
}

async fn send(client: Client, request: Request<Body>, lists: Arc<PodLists>) -> Result<Response<Body>, kube::Error> {
    if !is_list(&request) {
        return client.send(request).await;
    }
    let is_first = !request.uri().query().unwrap_or_default().contains("continue=");
    if is_first {
        // The list before this one broke off.
        lists.take();
    }
    if is_first && lists.way.load(Ordering::Relaxed) == STREAM {
        match streamed(&client, &lists).await {
            Ok(version) => return reply(&version, ""),
            Err(why) => {
                lists.take();
                lists.turn_to(PAGES);
                tracing::info!(error = why, "API server does not stream pods; listing them in pages");
            }
        }
    }
    if lists.way.load(Ordering::Relaxed) == JSON_PAGES {
        return client.send(request).await;
    }
    let (mut parts, _) = request.into_parts();
    let as_before = Request::from_parts(parts.clone(), Body::empty());
    parts.headers.insert(ACCEPT, HeaderValue::from_static(FORMATS));
    match page(client.send(Request::from_parts(parts, Body::empty())).await?, &lists).await? {
        Ok(reply) => Ok(reply),
        Err(why) => {
            lists.turn_to(JSON_PAGES);
            tracing::warn!(error = why, "cannot list pods as protobuf; listing them as JSON");
            client.send(as_before).await
        }
    }
}

/// The answer to who asked for a page, or why it has to be asked for as JSON.
async fn page(sent: Response<Body>, lists: &PodLists) -> Result<Result<Response<Body>, String>, kube::Error> {
    let (mut parts, body) = sent.into_parts();
    if matches!(parts.status, StatusCode::NOT_ACCEPTABLE | StatusCode::UNSUPPORTED_MEDIA_TYPE) {
        return Ok(Err(format!("the API server answered {}", parts.status)));
    }
    let format = parts.headers.get(CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    if !format.starts_with(protobuf::MEDIA_TYPE.as_bytes()) {
        return Ok(Ok(Response::from_parts(parts, body)));
    }
    let message = body.collect_bytes().await?;
    let mut reading = lists.reading();
    match reading.reader.list(&message) {
        Ok(PodList::Page(page)) => {
            reading.listed.extend(page.pods);
            reply(&page.version, &page.next).map(Ok)
        }
        Ok(PodList::Refusal(json)) => {
            parts.headers.insert(CONTENT_TYPE, JSON);
            parts.headers.remove(CONTENT_LENGTH);
            Ok(Ok(Response::from_parts(parts, Body::from(json))))
        }
        Err(fault) => Ok(Err(fault.to_string())),
    }
}

/// A list without pods.
fn reply(version: &str, next: &str) -> Result<Response<Body>, kube::Error> {
    let list = json!({ "metadata": { "resourceVersion": version, "continue": next }, "items": [] });
    let reply = Response::builder().header(CONTENT_TYPE, JSON).body(Body::from(list.to_string().into_bytes()));
    reply.map_err(kube::Error::HttpError)
}

fn is_list(request: &Request<Body>) -> bool {
    request.method() == Method::GET && request.uri().path() == PODS && !is_watch(request)
}

#[cfg(test)]
#[path = "pod_lists_tests.rs"]
mod tests;
