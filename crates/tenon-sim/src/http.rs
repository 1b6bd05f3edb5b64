//! How a request becomes a call and an answer becomes bytes.
//!
//! The order of the checks is PVE's: method, transfer, token, body, host, parameters, handler.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Collected, Limited};
use hyper::ext::ReasonPhrase;
use percent_encoding::percent_decode_str;
use serde_json::json;

use crate::auth;
use crate::body::{self, Given};
use crate::endpoints::{self, Endpoint};
use crate::estate::Estate;
use crate::faults::{FaultKind, ReplyLost};
use crate::ledger::{LedgerEntry, redact};
use crate::params::{self, Call, Raw, UploadedFile};
use crate::state::State;
use crate::tasks::lock_timeout;
use crate::wire::{Answer, Halt, Refusal, Reply, Shape};

const ROOT: &str = "/api2/json";
const BODY_LIMIT: usize = 512 << 10;
/// More than any seed or image a test uploads.
const UPLOAD_LIMIT: usize = 4 << 30;
/// How often a call that waits for a file lock looks again.
const LOCK_POLL: Duration = Duration::from_millis(50);
/// What PVE waits for a multipart body before it hangs up.
const UPLOAD_PATIENCE: Duration = Duration::from_secs(5);

/// The API of an estate as a tower service.
#[derive(Clone, Debug)]
pub struct EstateService {
    estate: Estate,
}

impl EstateService {
    pub(crate) fn new(estate: Estate) -> Self {
        Self { estate }
    }
}

impl tower::Service<Request<Body>> for EstateService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let estate = self.estate.clone();
        Box::pin(async move { Ok(respond(&estate, request).await) })
    }
}

/// A request whose caller is known.
struct Asked {
    method: String,
    /// Decoded, below `/api2/json`, without double or trailing slashes.
    path: String,
    user: String,
    given: Given,
    file: Option<UploadedFile>,
}

/// What goes back, before it is bytes.
struct Outgoing {
    answer: Result<Reply, Refusal>,
    lost: bool,
    close: bool,
}

async fn respond(estate: &Estate, request: Request<Body>) -> Response<Body> {
    let (method, path) = (request.method().to_string(), decode_path(request.uri().path()));
    let out = match receive(estate, request).await {
        Ok(asked) => execute(estate, asked).await,
        Err(Received::Refused(refusal)) => {
            let path = path.strip_prefix(ROOT).unwrap_or(&path).to_string();
            let asked = Asked { method, path, user: String::new(), given: Given::new(), file: None };
            let answer = Err(refusal);
            estate.with(|state| record(state, &asked, &answer));
            Outgoing { answer, lost: false, close: true }
        }
        Err(Received::HungUp) => {
            tokio::time::sleep(UPLOAD_PATIENCE).await;
            Outgoing { answer: Ok(Reply::null()), lost: true, close: true }
        }
    };
    tokio::time::sleep(out.answer.as_ref().map_or_else(|r| r.delay, |r| r.delay)).await;
    if out.lost {
        let mut response = render_refusal(&Refusal::new(596, "Broken pipe", Shape::Empty));
        response.extensions_mut().insert(ReplyLost);
        return response;
    }
    match &out.answer {
        Ok(reply) => render_reply(reply, out.close),
        Err(refusal) => render_refusal(refusal),
    }
}

enum Received {
    Refused(Refusal),
    /// The server closes the connection without an answer.
    HungUp,
}

impl From<Refusal> for Received {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn decode_path(path: &str) -> String {
    percent_decode_str(path).decode_utf8_lossy().into_owned()
}

fn plain(status: u16, text: impl Into<String>) -> Refusal {
    Refusal::new(status, text, Shape::Plain)
}

async fn receive(estate: &Estate, request: Request<Body>) -> Result<Asked, Received> {
    let (parts, body) = request.into_parts();
    let method = parts.method.as_str().to_string();
    if !matches!(method.as_str(), "GET" | "POST" | "PUT" | "DELETE") {
        return Err(Refusal::new(501, format!("method '{method}' not available"), Shape::Empty).into());
    }
    if header_text(&parts.headers, &header::TRANSFER_ENCODING).is_some_and(|t| t.contains("chunked")) {
        return Err(plain(501, "chunked transfer encoding not supported").into());
    }
    let decoded = decode_path(parts.uri.path());
    let Some(below) = decoded.strip_prefix(ROOT) else {
        return Err(Refusal::new(500, format!("no such file '{decoded}'"), Shape::PlainLine).into());
    };
    let path = format!("/{}", below.split('/').filter(|s| !s.is_empty()).collect::<Vec<_>>().join("/"));
    let token = header_text(&parts.headers, &header::AUTHORIZATION);
    let user = estate.with(|state| {
        let delay = state.config.pace.unauthorized;
        auth::authenticate(state, token).map_err(|text| Refusal::new(401, text, Shape::Empty).after(delay))
    })?;
    let upload = method == "POST" && path.ends_with("/upload");
    let bytes = read_bytes(&method, &parts.headers, body, upload).await?;
    let kind = header_text(&parts.headers, &header::CONTENT_TYPE);
    let (mut given, file) = if upload {
        let boundary = body::boundary(kind).ok_or(Received::HungUp)?;
        let broken = "upload failed at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 1370.";
        body::read_multipart(&bytes, &boundary).ok_or_else(|| Refusal::new(500, broken, Shape::PlainLine))?
    } else if bytes.is_empty() {
        (Given::new(), None)
    } else {
        (body::read_body(kind, &bytes)?, None)
    };
    given.extend(body::read_form(parts.uri.query().unwrap_or("").as_bytes()));
    Ok(Asked { method, path, user, given, file })
}

fn header_text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn read_bytes(method: &str, headers: &HeaderMap, body: Body, upload: bool) -> Result<Bytes, Refusal> {
    let limit = if upload { UPLOAD_LIMIT } else { BODY_LIMIT };
    let announced = header_text(headers, &header::CONTENT_LENGTH).and_then(|l| l.parse::<usize>().ok()).unwrap_or(0);
    let too_large = || plain(501, "for data too large");
    let collected = if announced > limit { None } else { Limited::new(body, limit).collect().await.ok() };
    let bytes = collected.map(Collected::to_bytes);
    if matches!(method, "GET" | "DELETE") && bytes.as_ref().is_none_or(|b| !b.is_empty()) {
        return Err(plain(501, format!("Unexpected content for method '{method}'")));
    }
    bytes.ok_or_else(too_large)
}

async fn execute(estate: &Estate, asked: Asked) -> Outgoing {
    let fault = estate.with(|state| state.take_fault(&asked.method, &asked.path));
    let close = asked.file.is_some();
    let began = tokio::time::Instant::now();
    loop {
        let (answer, patience) = estate.with(|state| {
            let answer = attempt(state, &asked, fault.as_ref());
            let waited_out = began.elapsed() >= state.config.pace.lock_wait;
            let settled = match answer {
                Ok(reply) => Some(Ok(reply)),
                Err(Halt::Refused(refusal)) => Some(Err(refusal)),
                Err(Halt::Busy(vmid)) if waited_out => Some(Err(Refusal::failed(lock_timeout(vmid)))),
                Err(Halt::Busy(_)) => None,
            };
            if let Some(settled) = &settled {
                record(state, &asked, settled);
            }
            (settled, LOCK_POLL)
        });
        match answer {
            Some(answer) => return Outgoing { answer, lost: fault == Some(FaultKind::DropReply), close },
            None => tokio::time::sleep(patience).await,
        }
    }
}

fn attempt(state: &mut State, asked: &Asked, fault: Option<&FaultKind>) -> Answer {
    if let Some(FaultKind::Refuse { status, text }) = fault {
        let shape = if *status == 401 || *status >= 590 { Shape::Empty } else { Shape::Json };
        return Err(Refusal::new(*status, text, shape).into());
    }
    let Some((endpoint, in_path)) = endpoints::find(&asked.method, &asked.path) else {
        return Err(Refusal::not_implemented(&asked.method, &asked.path).into());
    };
    let call = check_call(state, endpoint, asked, in_path)?;
    if let Some(FaultKind::TaskError(text)) = fault {
        state.tasks.next_fault = Some(text.clone());
    }
    let answer = (endpoint.run)(state, &call);
    state.tasks.next_fault = None;
    answer
}

/// Reaches the host first, then checks the parameters, as the proxy in front of each host does.
fn check_call(
    state: &State,
    endpoint: &Endpoint,
    asked: &Asked,
    mut in_path: BTreeMap<String, String>,
) -> Result<Call, Refusal> {
    if let Some(node) = in_path.get_mut("node") {
        if node == "localhost" {
            *node = state.hosts.keys().find(|h| state.is_online(h)).cloned().unwrap_or_default();
        }
        if !state.hosts.contains_key(node) {
            let text = format!(
                "hostname lookup '{node}' failed - failed to get address info for: {node}: Name or service not known"
            );
            return Err(Refusal::failed(text));
        }
        if !state.is_online(node) {
            return Err(Refusal::new(595, "No route to host", Shape::Empty).after(state.config.pace.dead_host));
        }
    }
    let mut given = asked.given.clone();
    for (name, value) in in_path {
        let other = given.insert(name.clone(), Raw::Text(value.clone()));
        if other.is_some_and(|other| other != Raw::Text(value)) {
            let text = "duplicate parameter (already defined in URI) with conflicting values!";
            return Err(Refusal::invalid_field(&name, text));
        }
    }
    let params = params::check(endpoint.fields, endpoint.extra, given)?;
    Ok(Call { user: asked.user.clone(), params, file: asked.file.clone() })
}

fn record(state: &mut State, asked: &Asked, answer: &Result<Reply, Refusal>) {
    let (status, reason, upid) = match answer {
        Ok(reply) => (200, "OK".to_string(), reply.upid.clone()),
        Err(refusal) => (refusal.status, refusal.reason.clone(), None),
    };
    let (method, path, params) = (asked.method.clone(), asked.path.clone(), redact(&asked.given));
    state.record(LedgerEntry { at: state.now, method, path, params, status, reason, upid });
}

fn finish(status: StatusCode, body: String, json: bool, close: bool) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::SERVER, HeaderValue::from_static("pve-api-daemon/3.0"));
    headers.insert(header::CONNECTION, HeaderValue::from_static(if close { "close" } else { "Keep-Alive" }));
    if json {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json;charset=UTF-8"));
    }
    response
}

fn render_reply(reply: &Reply, close: bool) -> Response<Body> {
    let mut body = json!({ "data": reply.data });
    // A count of zero is left out.
    if let Some(total @ 1..) = reply.total {
        body["total"] = total.into();
    }
    finish(StatusCode::OK, body.to_string(), true, close)
}

fn render_refusal(refusal: &Refusal) -> Response<Body> {
    let reason = &refusal.reason;
    let mut json = json!({ "data": null, "message": format!("{reason}\n") });
    if !refusal.errors.is_empty() {
        json["errors"] = json!(refusal.errors);
    }
    let body = match refusal.shape {
        Shape::Json => json.to_string(),
        Shape::JsonBare => json!({ "data": null, "message": reason }).to_string(),
        Shape::Plain => reason.clone(),
        Shape::PlainLine => format!("{reason}\n"),
        Shape::Empty => String::new(),
    };
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = finish(status, body, matches!(refusal.shape, Shape::Json | Shape::JsonBare), true);
    let phrase: Vec<u8> = reason.bytes().map(|b| if b.is_ascii_control() { b' ' } else { b }).collect();
    if let Ok(phrase) = ReasonPhrase::try_from(phrase) {
        response.extensions_mut().insert(phrase);
    }
    response
}
