//! How a request becomes a call. What is done with it is in `execute`, how its answer becomes bytes in `respond`.
//!
//! The order of the checks is PVE's: method, transfer, who, body, what, rights, host, parameters, handler.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, Response, header};
use http_body_util::{BodyExt, Collected, Limited};
use percent_encoding::percent_decode_str;

use crate::auth::{self, Presented};
use crate::body;
use crate::endpoints;
use crate::estate::Estate;
use crate::execute::{Delivery, Outgoing, execute, record};
use crate::fault::ReplyLost;
use crate::params::UploadedFile;
use crate::respond::{Manner, cut, render_refusal, render_reply};
use crate::rights::forbidden;
use crate::schema::{Given, Rights};
use crate::wire::{Refusal, Reply, Shape};

const ROOT: &str = "/api2/json";
const EXTJS_ROOT: &str = "/api2/extjs";
/// A longer block of headers is never answered.
const HEADER_LIMIT: usize = 8 << 10;
const BODY_LIMIT: usize = 512 << 10;
/// More than any seed or image a test uploads.
const UPLOAD_LIMIT: usize = 4 << 30;
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
pub(crate) struct ParsedRequest {
    pub(crate) method: String,
    /// Decoded, below `/api2/json`, without double or trailing slashes.
    pub(crate) path: String,
    pub(crate) user: String,
    pub(crate) given: Given,
    pub(crate) file: Option<UploadedFile>,
    /// Whether its connection has carried another request before.
    pub(crate) reused: bool,
}

/// Marks a request whose connection has carried another one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reused;

async fn respond(estate: &Estate, request: Request<Body>) -> Response<Body> {
    let (method, path) = (request.method().to_string(), decode_path(request.uri().path()));
    let accepted = request.headers().get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let gzip = accepted.is_some_and(|accepted| accepted.split(',').any(|word| word.trim() == "gzip"));
    let manner = Manner { extjs: path.starts_with(EXTJS_ROOT), gzip };
    let out = match receive(estate, request).await {
        Ok(asked) => execute(estate, asked).await,
        Err(Received::Refused(refusal)) => {
            let below = path.strip_prefix(ROOT).or_else(|| path.strip_prefix(EXTJS_ROOT));
            let path = below.unwrap_or(&path).to_string();
            let asked =
                ParsedRequest { method, path, user: String::new(), given: Given::new(), file: None, reused: false };
            let answer = Err(refusal);
            estate.with(|state| record(state, &asked, &answer));
            Outgoing { answer, delivery: Delivery::Arrives, close: true }
        }
        Err(Received::HungUp) => {
            tokio::time::sleep(UPLOAD_PATIENCE).await;
            Outgoing { answer: Ok(Reply::null()), delivery: Delivery::Lost, close: true }
        }
    };
    tokio::time::sleep(out.answer.as_ref().map_or_else(|r| r.delay, |r| r.delay)).await;
    let response = match &out.answer {
        Ok(reply) => render_reply(reply, out.close, manner),
        Err(refusal) => render_refusal(refusal, manner),
    };
    match out.delivery {
        Delivery::Arrives => response,
        Delivery::Cut => cut(response).await,
        Delivery::Never => std::future::pending().await,
        Delivery::Lost => {
            let mut response = render_refusal(&Refusal::new(596, "Broken pipe", Shape::Empty), Manner::default());
            response.extensions_mut().insert(ReplyLost);
            response
        }
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

async fn receive(estate: &Estate, request: Request<Body>) -> Result<ParsedRequest, Received> {
    let (parts, body) = request.into_parts();
    let method = parts.method.as_str().to_string();
    if !matches!(method.as_str(), "GET" | "POST" | "PUT" | "DELETE") {
        return Err(Refusal::new(501, format!("method '{method}' not available"), Shape::Empty).into());
    }
    let header_bytes: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if header_bytes > HEADER_LIMIT {
        return Err(Received::HungUp);
    }
    if header_text(&parts.headers, &header::TRANSFER_ENCODING).is_some_and(|t| t.contains("chunked")) {
        return Err(plain(501, "chunked transfer encoding not supported").into());
    }
    let decoded = decode_path(parts.uri.path());
    let Some(below) = decoded.strip_prefix(ROOT).or_else(|| decoded.strip_prefix(EXTJS_ROOT)) else {
        return Err(Refusal::new(500, format!("no such file '{decoded}'"), Shape::PlainLine).into());
    };
    let path = format!("/{}", below.split('/').filter(|s| !s.is_empty()).collect::<Vec<_>>().join("/"));
    let user = who(estate, &parts.headers, (&method, &path))?;
    let upload = method == "POST" && path.ends_with("/upload");
    let kind = header_text(&parts.headers, &header::CONTENT_TYPE);
    let (mut given, file) = if upload {
        let boundary = body::boundary(kind).ok_or(Received::HungUp)?;
        let bytes = read_upload(body, &boundary).await?;
        body::read_multipart(&bytes, &boundary)?
    } else {
        let bytes = read_bytes(&method, &parts.headers, body).await?;
        let given = if bytes.is_empty() { Given::new() } else { body::read_body(kind, &bytes)? };
        (given, None)
    };
    given.extend(body::read_form(parts.uri.query().unwrap_or("").as_bytes()));
    let reused = parts.extensions.get::<Reused>().is_some();
    Ok(ParsedRequest { method, path, user, given, file, reused })
}

/// Who calls. Some calls are open to the world, above all the one that gives out tickets.
fn who(estate: &Estate, headers: &HeaderMap, (method, path): (&str, &str)) -> Result<String, Refusal> {
    let cookies: Vec<&str> = headers.get_all(header::COOKIE).iter().filter_map(|c| c.to_str().ok()).collect();
    let presented = Presented {
        authorization: header_text(headers, &header::AUTHORIZATION),
        cookies: &cookies.join(";"),
        csrf: headers.get("csrfpreventiontoken").and_then(|value| value.to_str().ok()),
        writes: method != "GET",
    };
    estate.with(|state| {
        let open =
            endpoints::find(state.config.version, method, path).is_some_and(|(e, _)| e.spec.rights == Rights::World);
        match auth::authenticate(state, &presented) {
            // Tokens are for callers that cannot log in; they get no tickets.
            Ok(user) if user.contains('!') && path == "/access/ticket" && method == "POST" => {
                let text = format!("URI '{path}' not available with API token, need proper ticket.");
                Err(forbidden(Some(&text)))
            }
            Ok(user) => Ok(user),
            Err(_) if open => Ok(String::new()),
            Err(text) => Err(Refusal::new(401, text, Shape::Empty).after(state.config.pace.unauthorized)),
        }
    })
}

fn header_text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn read_bytes(method: &str, headers: &HeaderMap, body: Body) -> Result<Bytes, Refusal> {
    let announced = header_text(headers, &header::CONTENT_LENGTH).and_then(|l| l.parse::<usize>().ok()).unwrap_or(0);
    let collected = if announced > BODY_LIMIT { None } else { Limited::new(body, BODY_LIMIT).collect().await.ok() };
    let bytes = collected.map(Collected::to_bytes);
    if matches!(method, "GET" | "DELETE") && bytes.as_ref().is_none_or(|b| !b.is_empty()) {
        return Err(plain(501, format!("Unexpected content for method '{method}'")));
    }
    bytes.ok_or_else(|| plain(501, "for data too large"))
}

/// The closing boundary ends an upload; what is announced beyond it is not awaited.
async fn read_upload(mut body: Body, boundary: &str) -> Result<Bytes, Refusal> {
    let end = format!("--{boundary}--");
    let mut bytes = BytesMut::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Some(data) = frame.data_ref() else { continue };
        let from = bytes.len().saturating_sub(end.len());
        bytes.extend_from_slice(data);
        if bytes.len() > UPLOAD_LIMIT {
            return Err(plain(501, "for data too large"));
        }
        if bytes[from..].windows(end.len()).any(|window| window == end.as_bytes()) {
            break;
        }
    }
    Ok(bytes.freeze())
}
