//! Lists of pods in the compact format, where the API server has it: a large cluster's pods are then sent and read in a fraction
//! of the time. Everything else is asked and answered as before.
//!
//! A server that does not have the format answers with JSON. One that refuses it, or sends what cannot be read, is asked for
//! JSON at once and from then on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use tenon_api::protobuf;

/// The path of all pods.
const PODS: &str = "/api/v1/pods";

/// A server that does not have the first answers with the second.
const FORMATS: &str = "application/vnd.kubernetes.protobuf,application/json";

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The same client, but for the format of lists of pods.
pub(super) fn with_compact_lists(client: &Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let (client, only_json) = (client.clone(), Arc::new(AtomicBool::default()));
    let send = move |request| send(client.clone(), request, only_json.clone());
    Client::new(tower::service_fn(send), namespace)
}

async fn send(
    client: Client,
    request: Request<Body>,
    only_json: Arc<AtomicBool>,
) -> Result<Response<Body>, kube::Error> {
    if !is_list(&request) || only_json.load(Ordering::Relaxed) {
        return client.send(request).await;
    }
    let (mut parts, _) = request.into_parts();
    let as_before = Request::from_parts(parts.clone(), Body::empty());
    parts.headers.insert(ACCEPT, HeaderValue::from_static(FORMATS));
    let why = match read(client.send(Request::from_parts(parts, Body::empty())).await?).await? {
        Ok(reply) => return Ok(reply),
        Err(why) => why,
    };
    tracing::warn!(error = why, "cannot list pods as protobuf; listing them as JSON");
    only_json.store(true, Ordering::Relaxed);
    client.send(as_before).await
}

/// The reply as JSON, or why it has to be asked for as JSON.
async fn read(reply: Response<Body>) -> Result<Result<Response<Body>, String>, kube::Error> {
    let (mut parts, body) = reply.into_parts();
    if matches!(parts.status, StatusCode::NOT_ACCEPTABLE | StatusCode::UNSUPPORTED_MEDIA_TYPE) {
        return Ok(Err(format!("the API server answered {}", parts.status)));
    }
    let format = parts.headers.get(CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    if !format.starts_with(protobuf::MEDIA_TYPE.as_bytes()) {
        return Ok(Ok(Response::from_parts(parts, body)));
    }
    Ok(protobuf::pod_list_to_json(&body.collect_bytes().await?).map_err(|fault| fault.to_string()).map(|json| {
        parts.headers.insert(CONTENT_TYPE, JSON);
        parts.headers.remove(CONTENT_LENGTH);
        Response::from_parts(parts, Body::from(json))
    }))
}

fn is_list(request: &Request<Body>) -> bool {
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
    request.method() == Method::GET && request.uri().path() == PODS && !is_watch
}

#[cfg(test)]
#[path = "compact_lists_tests.rs"]
mod tests;
