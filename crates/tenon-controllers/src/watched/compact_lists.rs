//! Lists of pods in the compact format, where the API server has it: a large cluster's pods are then read in a fraction of the
//! time. Everything else is asked and answered as before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tenon_api::protobuf::{self, ProtobufFault};

/// The path of all pods.
const PODS: &str = "/api/v1/pods";

/// A server that does not have the first answers with the second.
const FORMATS: &str = "application/vnd.kubernetes.protobuf,application/json";

/// Why a list could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the list of pods: {0}; asking for JSON")]
struct Unreadable(ProtobufFault);

/// The same client, but for the format of lists of pods.
pub(super) fn with_compact_lists(client: &Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let client = client.clone();
    let is_unreadable = Arc::new(AtomicBool::default());
    let send = move |request| send(client.clone(), request, is_unreadable.clone());
    Client::new(tower::service_fn(send), namespace)
}

async fn send(
    client: Client,
    mut request: Request<Body>,
    is_unreadable: Arc<AtomicBool>,
) -> Result<Response<Body>, kube::Error> {
    if !is_list(&request) || is_unreadable.load(Ordering::Relaxed) {
        return client.send(request).await;
    }
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(FORMATS));
    let (mut parts, body) = client.send(request).await?.into_parts();
    let is_compact = parts.headers.get(CONTENT_TYPE).is_some_and(|format| format == protobuf::MEDIA_TYPE);
    if !is_compact {
        return Ok(Response::from_parts(parts, body));
    }
    let json = protobuf::pod_list_to_json(&body.collect_bytes().await?).map_err(|fault| {
        is_unreadable.store(true, Ordering::Relaxed);
        kube::Error::Service(Box::new(Unreadable(fault)))
    })?;
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.remove(http::header::CONTENT_LENGTH);
    Ok(Response::from_parts(parts, Body::from(json)))
}

fn is_list(request: &Request<Body>) -> bool {
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
    request.method() == Method::GET && request.uri().path() == PODS && !is_watch
}
