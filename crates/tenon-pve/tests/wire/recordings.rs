//! What a real Proxmox VE 9.2 was asked and what it said, read from the file and played back to a client.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::ext::ReasonPhrase;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tenon_pve::{Client, Credentials, Endpoint, Retry, Token, Transport, Tuning};

/// Parameters with their values as texts, sorted.
pub(crate) type Params = Vec<(String, String)>;

/// One exchange.
#[derive(Debug, Clone)]
pub(crate) struct Recording {
    pub(crate) id: String,
    pub(crate) method: String,
    /// Without its query, decoded.
    pub(crate) path: String,
    pub(crate) params: Params,
    /// Whether the body was sent as something that is neither a form nor JSON, or as JSON that is none.
    pub(crate) is_no_form: bool,
    /// The file of an upload: its name and size.
    pub(crate) file: Option<(String, usize)>,
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) body: Value,
}

/// Every line of the file, the ones that only describe something seen included.
pub(crate) fn lines() -> Vec<Value> {
    include_str!("recordings/exchanges.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every exchange, and the looks that were taken after some of them.
pub(crate) fn exchanges() -> Vec<Recording> {
    let mut all = Vec::new();
    for line in lines() {
        let id = line["id"].as_str().unwrap();
        if line["request"].is_object() {
            all.push(exchange(id, &line));
        }
        let Some(after) = line["after"].as_object() else { continue };
        for (key, body) in after.iter().filter(|(_, body)| body.is_object()) {
            let Some(path) = key.strip_prefix("GET ") else { continue };
            // A look that was refused has its status and reason instead of a body.
            let refused = body.get("status").and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok());
            let reason = body.get("reason").and_then(Value::as_str).unwrap_or("OK");
            let request = json!({ "method": "GET", "path": path });
            let body = if refused.is_some() { &body["body"] } else { body };
            let response = json!({ "status": refused.unwrap_or(200), "reason": reason, "body": body });
            all.push(exchange(&format!("{id} then {key}"), &json!({ "request": request, "response": response })));
        }
    }
    all
}

fn exchange(id: &str, row: &Value) -> Recording {
    let (request, response) = (&row["request"], &row["response"]);
    let path = request["path"].as_str().unwrap();
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut params = form(query);
    params.extend(form(request["raw_body"].as_str().unwrap_or_default()));
    for key in ["form", "json"] {
        params.extend(request[key].as_object().into_iter().flatten().flat_map(|(name, value)| pairs(name, value)));
    }
    let upload = &request["multipart"];
    let fields = upload["fields"].as_array().into_iter().flatten();
    params.extend(fields.map(|field| (plain(&field[0]), plain(&field[1]))));
    let file = upload["file"]["filename"]
        .as_str()
        .map(|name| (name.to_owned(), usize::try_from(upload["file"]["size"].as_u64().unwrap()).unwrap()));
    params.sort();
    Recording {
        id: id.to_owned(),
        method: plain(&request["method"]),
        path: percent_decode_str(path).decode_utf8().unwrap().into_owned(),
        params,
        is_no_form: request["raw_body"].is_string()
            && request["headers"]["content-type"] != "application/x-www-form-urlencoded",
        file,
        status: u16::try_from(response["status"].as_u64().unwrap()).unwrap(),
        reason: plain(&response["reason"]),
        body: response["body"].clone(),
    }
}

/// A repeated parameter is recorded as a list.
fn pairs(name: &str, value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Array(values) => values.iter().map(|value| (name.to_owned(), plain(value))).collect(),
        value => vec![(name.to_owned(), plain(value))],
    }
}

pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => u8::from(*flag).to_string(),
        other => other.to_string(),
    }
}

fn form(text: &str) -> Params {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

impl Recording {
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The data of a success.
    pub(crate) fn data(&self) -> &Value {
        &self.body["data"]
    }

    /// The reply, as it came over the wire. `None` if the connection was closed without one.
    pub(crate) fn reply(&self) -> Option<Response<Bytes>> {
        let body = match &self.body {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        (self.status > 0).then(|| reply(self.status, &self.reason, body))
    }
}

/// A reply with a reason phrase of its own.
pub(crate) fn reply(status: u16, reason: &str, body: impl Into<Bytes>) -> Response<Bytes> {
    let mut reply = Response::builder().status(status).body(body.into()).unwrap();
    reply.extensions_mut().insert(ReasonPhrase::try_from(reason.as_bytes()).unwrap());
    reply
}

/// A request the client made.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) params: Params,
    pub(crate) file: Option<(String, usize)>,
    pub(crate) request: http::request::Parts,
    pub(crate) body: Bytes,
}

/// What answers instead of Proxmox: one reply after the other, the last one for ever. `None` breaks the connection.
#[derive(Debug, Clone)]
pub(crate) struct Canned {
    replies: Arc<Mutex<VecDeque<Option<Response<Bytes>>>>>,
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
#[error("closed")]
pub(crate) struct Closed;

impl Canned {
    pub(crate) fn new(replies: impl IntoIterator<Item = Option<Response<Bytes>>>) -> Canned {
        Canned { replies: Arc::new(Mutex::new(replies.into_iter().collect())), seen: Arc::default() }
    }

    /// A client that is answered by this, once for each request.
    pub(crate) fn client(&self) -> Client {
        self.client_of(Token::new("root@pam!test", "0a1b2c3d-secret").unwrap())
    }

    /// The same for somebody else.
    pub(crate) fn client_of(&self, credentials: impl Into<Credentials>) -> Client {
        let once = Tuning { retry: Retry { attempts: 1, ..Retry::default() }, ..Tuning::default() };
        let endpoint = Endpoint::new("https://pve.example:8006").unwrap();
        Client::tuned(vec![endpoint], self.transport(), credentials, once)
    }

    pub(crate) fn transport(&self) -> Transport {
        let this = self.clone();
        let service = tower::service_fn(move |request: Request<Full<Bytes>>| this.clone().answer(request));
        Transport::over(service, |_: &Closed| false)
    }

    async fn answer(self, request: Request<Full<Bytes>>) -> Result<Response<Full<Bytes>>, Closed> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        self.seen.lock().unwrap().push(seen(head, body));
        let mut replies = self.replies.lock().unwrap();
        let reply = if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() };
        reply.flatten().map(|reply| reply.map(Full::new)).ok_or(Closed)
    }
}

fn seen(request: http::request::Parts, body: Bytes) -> Seen {
    let path = request.uri.path().strip_prefix("/api2/json").unwrap();
    let content_type = request.headers.get("content-type").map_or("", |value| value.to_str().unwrap());
    let mut params = form(request.uri.query().unwrap_or_default());
    let mut file = None;
    if let Some(boundary) = content_type.strip_prefix("multipart/form-data; boundary=") {
        (params, file) = multipart(boundary, &String::from_utf8_lossy(&body));
    } else {
        params.extend(form(std::str::from_utf8(&body).unwrap()));
    }
    params.sort();
    let path = percent_decode_str(path).decode_utf8().unwrap().into_owned();
    Seen { method: request.method.to_string(), path, params, file, request, body }
}

fn multipart(boundary: &str, body: &str) -> (Params, Option<(String, usize)>) {
    let (mut params, mut file) = (Params::new(), None);
    let divider = format!("--{boundary}");
    for part in body.split(&divider).filter_map(|part| part.trim_start_matches("\r\n").split_once("\r\n\r\n")) {
        let (head, content) = (part.0, part.1.strip_suffix("\r\n").unwrap());
        let quoted = |sign: &str| Some(head.split_once(sign)?.1.split('"').next()?.to_owned());
        match quoted("filename=\"") {
            Some(name) => file = Some((name, content.len())),
            None => params.push((quoted("name=\"").unwrap(), content.to_owned())),
        }
    }
    (params, file)
}
