//! How an answer becomes bytes: JSON, the reason phrase, the habits of the two formatters, gzip.

use std::time::Duration;

use axum::body::Body;
use futures::StreamExt as _;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Collected};
use hyper::ext::ReasonPhrase;
use serde_json::{Value, json};

use crate::wire::{Refusal, Reply, Shape};

/// From the last byte of an answer that is cut to its end.
const CUT_PAUSE: Duration = Duration::from_millis(10);

/// How the caller wants to be answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// The formatter of PVE's own web interface: always 200, the outcome inside.
    pub(crate) extjs: bool,
    pub(crate) gzip: bool,
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

pub(crate) fn render_reply(reply: &Reply, close: bool, manner: Manner) -> Response<Body> {
    let mut body = json!({ "data": reply.data });
    // A count of zero is left out.
    if let Some(total @ 1..) = reply.total {
        body["total"] = total.into();
    }
    if manner.extjs {
        body["success"] = 1.into();
    }
    if !manner.gzip {
        return finish(StatusCode::OK, body.to_string(), true, close);
    }
    let mut response = finish(StatusCode::OK, String::new(), true, close);
    response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    *response.body_mut() = Body::from(gzip(body.to_string().as_bytes()));
    response
}

fn error_body(refusal: &Refusal) -> Value {
    let mut body = json!({ "data": null, "message": format!("{}\n", refusal.reason) });
    if !refusal.errors.is_empty() {
        body["errors"] = json!(refusal.errors);
    }
    body
}

pub(crate) fn render_refusal(refusal: &Refusal, manner: Manner) -> Response<Body> {
    let is_json = matches!(refusal.shape, Shape::Json | Shape::JsonBare);
    if manner.extjs && is_json {
        let mut body = error_body(refusal);
        body["success"] = 0.into();
        body["status"] = refusal.status.into();
        return finish(StatusCode::OK, body.to_string(), true, false);
    }
    let reason = &refusal.reason;
    let body = match refusal.shape {
        Shape::Json => error_body(refusal).to_string(),
        Shape::JsonBare => json!({ "data": null, "message": reason }).to_string(),
        Shape::Plain => reason.clone(),
        Shape::PlainLine => format!("{reason}\n"),
        Shape::Empty => String::new(),
    };
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = finish(status, body, is_json, true);
    let phrase: Vec<u8> = reason.bytes().map(|b| if b.is_ascii_control() { b' ' } else { b }).collect();
    if let Ok(phrase) = ReasonPhrase::try_from(phrase) {
        response.extensions_mut().insert(phrase);
    }
    response
}

/// The same answer, whose connection breaks in the middle of the body.
pub(crate) async fn cut(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    // A body that was made in memory can always be read.
    let whole = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let half = whole.slice(..whole.len() / 2);
    head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(whole.len().max(1)));
    let broken = async {
        // What is written so far leaves while the rest is awaited; without a pause nothing would.
        tokio::time::sleep(CUT_PAUSE).await;
        Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
    };
    let parts = futures::stream::iter([Ok(half)]).chain(futures::stream::once(broken));
    Response::from_parts(head, Body::from_stream(parts))
}

/// A gzip file of stored blocks: what every client can unpack, without a library to pack it.
fn gzip(data: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 0xffff;
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let blocks = data.len().div_ceil(BLOCK).max(1);
    for n in 0..blocks {
        let block = &data[n * BLOCK..data.len().min((n + 1) * BLOCK)];
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(n + 1 == blocks));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    let length = u32::try_from(data.len() % (1 << 32)).unwrap_or(0);
    out.extend(crc32(data).to_le_bytes());
    out.extend(length.to_le_bytes());
    out
}

fn crc32(data: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !data.iter().fold(!0u32, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}
