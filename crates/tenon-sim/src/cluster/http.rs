//! How does a request become a call and an answer become bytes?
//!
//! The order of the checks is a real server's: who, what, whether, how.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::call::{Answer, ApiCall};
use super::failure::{ApiResult, Failure};
use super::handle::Cluster;
use super::identity::User;
use super::protobuf::{self, Unreadable};
use super::query::Query;
use super::{call, discovery};
use crate::serve::PeerCertificate;

/// How most clients written in Go send built-in kinds.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// What a real server takes in one request.
const BODY_LIMIT: usize = 3 << 20;

/// As whom a service calls.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    /// By what the request brings along.
    Request,
    /// By a bearer token, whatever the request says.
    Token(String),
    /// By a certificate, told by its fingerprint.
    Certificate(String),
    /// By its word.
    User(User),
}

/// The API of a cluster as a tower service.
#[derive(Clone, Debug)]
pub struct ClusterService {
    cluster: Cluster,
    caller: Caller,
}

impl ClusterService {
    pub(crate) fn new(cluster: Cluster, caller: Caller) -> Self {
        Self { cluster, caller }
    }
}

impl tower::Service<Request<Body>> for ClusterService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let answer = respond(&service, request).await;
            Ok(answer.map_or_else(|failure| render_failure(&failure), render))
        })
    }
}

async fn respond(service: &ClusterService, request: Request<Body>) -> ApiResult<Answer> {
    let (parts, body) = request.into_parts();
    let path = percent_decode_str(parts.uri.path()).decode_utf8_lossy().into_owned();
    // Who asks whether the server lives need not say who they are.
    if let "/healthz" | "/livez" | "/readyz" = path.as_str() {
        return Ok(Answer::Text("ok"));
    }
    if path == "/version" {
        return Ok(Answer::Json(200, discovery::version()));
    }
    let user = service.cluster.with(|state| match &service.caller {
        Caller::User(user) => Ok(user.clone()),
        Caller::Request => state.authenticate(&parts.headers, parts.extensions.get::<PeerCertificate>()),
        Caller::Token(token) => state.authenticate(&bearer(token), None),
        Caller::Certificate(fingerprint) => {
            let peer = PeerCertificate { fingerprint: fingerprint.clone() };
            state.authenticate(&http::HeaderMap::new(), Some(&peer))
        }
    })?;
    let too_large =
        |_| Failure::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {BODY_LIMIT}"));
    let bytes = Limited::new(body, BODY_LIMIT).collect().await.map_err(too_large)?.to_bytes();
    call::answer(&service.cluster, &user, &asked(&parts, path, bytes))
}

fn bearer(token: &str) -> http::HeaderMap {
    let mut headers = http::HeaderMap::new();
    // A token that cannot stand in a header is nobody's.
    if let Ok(value) = HeaderValue::from_str(&format!("Bearer {token}")) {
        headers.insert(header::AUTHORIZATION, value);
    }
    headers
}

fn asked(parts: &Parts, path: String, bytes: Bytes) -> ApiCall {
    let text = |name: header::HeaderName| {
        let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let content_type = text(header::CONTENT_TYPE);
    ApiCall {
        method: parts.method.clone(),
        path,
        query: Query::parse(parts.uri.query().unwrap_or_default()),
        content_type: content_type.split(';').next().unwrap_or_default().trim().to_owned(),
        as_table: text(header::ACCEPT).contains("as=Table"),
        bytes,
    }
}

fn render(answer: Answer) -> Response<Body> {
    match answer {
        Answer::Json(code, value) => json_response(code, value.to_string().into()),
        Answer::Bytes(bytes) => json_response(200, bytes.into()),
        Answer::Stream(body) => json_response(200, body),
        Answer::Text(text) => {
            let mut response = Response::new(Body::from(text));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
            response
        }
    }
}

fn json_response(code: u16, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn render_failure(failure: &Failure) -> Response<Body> {
    if failure.is_plain {
        let mut response = json_response(failure.code, failure.message().to_owned().into());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        return response;
    }
    let body = failure.body();
    let retry_s = body.pointer("/details/retryAfterSeconds").and_then(Value::as_u64);
    let mut response = json_response(failure.code, body.to_string().into());
    if let Some(retry_s) = retry_s {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry_s));
    }
    response
}

/// An object that is no object is refused where it comes in, so that nobody else has to ask.
pub(crate) fn read_object(kind: &str, asked: &ApiCall) -> ApiResult<Value> {
    let unreadable = |error: &dyn std::fmt::Display| {
        let told =
            format!("the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; {error}");
        Failure::bad_request(told)
    };
    let value: Value = match asked.content_type.as_str() {
        "" | "application/json" | "*/*" => {
            serde_json::from_slice(&asked.bytes).map_err(|error| unreadable(&format!("json parse error: {error}")))?
        }
        PROTOBUF => protobuf::read(&asked.bytes).map_err(|error| match error {
            Unreadable::UnknownKind(_) => unknown_format(),
            _ => unreadable(&error),
        })?,
        _ => return Err(unknown_format()),
    };
    let is_fine =
        value.is_object() && value.get("metadata").is_none_or(|metadata| metadata.is_object() || metadata.is_null());
    if is_fine { Ok(value) } else { Err(unreadable(&json!(value))) }
}

fn unknown_format() -> Failure {
    let told = format!(
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         for built-in kinds also {PROTOBUF}"
    );
    Failure::media_type(told)
}
