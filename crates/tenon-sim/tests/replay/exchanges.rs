//! Sends the recorded requests one after the other and holds each answer to the recorded one.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use axum::body::Body;
use http::{Request, header};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tenon_sim::Estate;

use crate::replay::compare::{same, same_log};
use crate::replay::names::Names;
use crate::replay::prelude::{self, Step};
use crate::replay::recording::Row;
use crate::replay::world::{self, Got, SECRET};

/// Long enough for every broadcast and every leftover of the request before.
const PAUSE: Duration = Duration::from_secs(41);
/// Where the recorded images were downloaded from.
const THEIR_SERVER: &str = "127.0.0.1:9799";
/// Checksums of files whose content was not recorded.
const THEIR_SUMS: [&str; 2] = [
    "b346b392fd3746db70c04c82ca92e2c71b48e0a353d471ea8f427508d120ccde",
    "0f5247e502c7edc2f9619d40915d49994b8da243c76705ccde776d4abfeee9e7",
];

/// Lengths of the image that was downloaded then and of the one that is now; no other number is equal to ours.
const THEIR_IMAGE: usize = 105_185_280;
const OUR_IMAGE: usize = 104_729;

struct Replay {
    estate: Estate,
    names: Names,
    /// Texts of the recording and what they are here.
    aliases: Vec<(String, String)>,
    last_upid: String,
}

/// What became of each exchange, in order.
pub(crate) async fn replay(rows: &[Row]) -> Vec<(String, Result<(), String>)> {
    let server = serve_images();
    let sums = [image(), upload_bytes("x.iso", 370_000)].map(|data| hex(&Sha256::digest(&data)));
    let sums = THEIR_SUMS.iter().map(ToString::to_string).zip(sums);
    let aliases = [
        (THEIR_SERVER.to_string(), server),
        ("pid=621".into(), "pid=601".into()),
        (THEIR_IMAGE.to_string(), OUR_IMAGE.to_string()),
    ];
    let aliases = aliases.into_iter().chain(sums).collect();
    let mut replay = Replay { estate: world::estate(), names: Names::default(), aliases, last_upid: String::new() };
    let steps = prelude::steps();
    for id in steps.keys() {
        assert!(rows.iter().any(|row| row.id == *id), "the prelude has steps for `{id}`, which is not recorded");
    }
    let mut outcomes = Vec::new();
    for row in rows {
        let before = steps.get(&row.id).cloned().unwrap_or_default();
        if let Some(request) = &row.request {
            outcomes.push((row.id.clone(), replay.exchange(row, request, before).await));
        }
    }
    outcomes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A qcow2 file with a disk of 512 MiB in it.
fn image() -> Vec<u8> {
    let mut data = b"QFI\xfb\0\0\0\x03".to_vec();
    data.extend([0; 16]);
    data.extend(536_870_912u64.to_be_bytes());
    data.resize(OUR_IMAGE, 0);
    data
}

/// What an uploaded file of this name and length has inside.
fn upload_bytes(name: &str, size: usize) -> Vec<u8> {
    let mut data = if name.ends_with(".qcow2") { b"QFI\xfb".to_vec() } else { b"iso ".to_vec() };
    data.resize(size, 0);
    data
}

/// A web server as the recording had one, on a port of its own.
fn serve_images() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 1024];
            let read = stream.read(&mut head).unwrap();
            let wanted = String::from_utf8_lossy(&head[..read]).into_owned();
            let body = if wanted.contains("/bad.qcow2") { vec![b'x'; 1200] } else { image() };
            let status = if wanted.contains(".qcow2") { "200 OK" } else { "404 Not Found" };
            let head = format!("HTTP/1.0 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(&[head.as_bytes(), &body].concat()).unwrap();
        }
    });
    address
}

impl Replay {
    async fn exchange(&mut self, row: &Row, request: &Map<String, Value>, before: Vec<Step>) -> Result<(), String> {
        if !before.iter().any(|step| matches!(step, Step::AtOnce)) {
            tokio::time::sleep(PAUSE).await;
        }
        let mut beside = Vec::new();
        for step in before {
            self.prepare(step, &mut beside).await;
        }
        let request = self.build(row, request).await;
        let estate = self.estate.clone();
        let others = futures::future::join_all(beside.iter().map(|(m, p, f)| world::call(&estate, false, (m, p, f))));
        let (_, got) = tokio::join!(biased; others, world::send(&estate, request));
        if let Some(upid) = got.body["data"].as_str().filter(|data| data.starts_with("UPID:")) {
            self.last_upid = upid.to_string();
        }
        self.compare(row, got).await
    }

    async fn prepare(&mut self, step: Step, beside: &mut Vec<(String, String, String)>) {
        match step {
            Step::Call { root, wait, method, path, form } => {
                let (path, form) = (self.names.translate(&path), self.names.translate(&form));
                let got = world::call(&self.estate, root, (&method, &path, &form)).await;
                assert_eq!(got.status, 200, "{method} {path} {form}: {got:?}");
                if let Some(upid) = got.body["data"].as_str().filter(|data| data.starts_with("UPID:")) {
                    self.last_upid = upid.to_string();
                    if wait {
                        let (status, log) = world::finished(&self.estate, upid).await;
                        assert_eq!(status["exitstatus"], "OK", "{method} {path} {form}: {log:?}");
                    }
                }
            }
            Step::Beside { method, path, form } => beside.push((method, path, form)),
            Step::Upload { name, size } => {
                let file = serde_json::json!({ "part": "filename", "filename": name, "size": size });
                let parts =
                    serde_json::json!({ "fields": [["content", "iso"]], "file": file, "order": "fields-first" });
                let request = Request::post("/api2/json/nodes/pve1/storage/local/upload")
                    .header("authorization", format!("PVEAPIToken=root@pam!test={SECRET}"))
                    .header(header::CONTENT_TYPE, "multipart/form-data; boundary=recboundary7d1f")
                    .body(Body::from(self.multipart(&parts, true)))
                    .unwrap();
                let upid = world::send(&self.estate, request).await.body["data"].as_str().unwrap().to_string();
                world::finished(&self.estate, &upid).await;
            }
            Step::Bind(theirs) => self.names.bind(&theirs, &self.last_upid),
            Step::Kill => assert!(self.estate.kill_worker(&self.last_upid)),
            Step::Wait(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
            Step::AtOnce => {}
        }
    }

    fn ours(&self, text: &str) -> String {
        let text = self.aliases.iter().fold(text.to_string(), |text, (theirs, ours)| text.replace(theirs, ours));
        self.names.translate(&expand(&text))
    }

    fn theirs(&self, text: &str) -> String {
        self.aliases.iter().fold(text.to_string(), |text, (theirs, ours)| text.replace(ours, theirs))
    }

    async fn build(&self, row: &Row, request: &Map<String, Value>) -> Request<Body> {
        let path = request["path"].as_str().unwrap();
        let path = self.ours(&percent_decode_upids(path));
        let uri = path.strip_prefix('!').map_or_else(|| format!("/api2/json{path}"), str::to_owned);
        let mut builder = Request::builder().method(request["method"].as_str().unwrap()).uri(uri);
        let headers = request["headers"].as_object().unwrap();
        for (name, value) in headers.iter().filter(|(name, _)| *name != "auth") {
            builder = builder.header(name, expand(value.as_str().unwrap()));
        }
        for (name, value) in self.credentials(headers["auth"].as_str().unwrap()).await {
            builder = builder.header(name, value);
        }
        let body = if let Some(form) = request.get("form").and_then(Value::as_object) {
            let form = self.with_digest(&path, form).await;
            let pairs = form.iter().flat_map(|(key, value)| values(value).into_iter().map(move |v| (key, v)));
            let pairs = pairs.map(|(key, value)| (key, self.ours(&value)));
            form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish().into_bytes()
        } else if let Some(json) = request.get("json") {
            self.ours(&json.to_string()).into_bytes()
        } else if let Some(raw) = request.get("raw_body").and_then(Value::as_str) {
            raw.as_bytes().to_vec()
        } else if let Some(multipart) = request.get("multipart") {
            self.multipart(multipart, !row.note.contains("without closing boundary"))
        } else {
            Vec::new()
        };
        if !body.is_empty() {
            builder = builder.header(header::CONTENT_LENGTH, body.len());
        }
        builder.body(Body::from(body)).unwrap()
    }

    /// A checksum that was read in between stands for the one that is right now.
    async fn with_digest(&self, path: &str, form: &Map<String, Value>) -> Map<String, Value> {
        let mut form = form.clone();
        let is_real = |text: &str| text.len() == 40 && text.bytes().any(|b| b != b'0');
        if form.get("digest").and_then(Value::as_str).is_some_and(is_real) && path.ends_with("/config") {
            let config = world::call(&self.estate, false, ("GET", path, "")).await;
            form.insert("digest".into(), config.body["data"]["digest"].clone());
        }
        form
    }

    fn multipart(&self, parts: &Value, closed: bool) -> Vec<u8> {
        let boundary = "recboundary7d1f";
        let mut fields = Vec::new();
        for field in parts["fields"].as_array().unwrap() {
            let (name, value) = (field[0].as_str().unwrap(), self.ours(field[1].as_str().unwrap()));
            fields.extend(
                format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").bytes(),
            );
        }
        let (part, name) = (parts["file"]["part"].as_str().unwrap(), parts["file"]["filename"].as_str().unwrap());
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{part}\"; filename=\"{name}\"\r\nContent-Type: application/octet-stream\r\n\r\n"
        );
        let mut file = head.into_bytes();
        file.extend(upload_bytes(name, usize::try_from(parts["file"]["size"].as_u64().unwrap()).unwrap()));
        file.extend(b"\r\n");
        let end = if closed { format!("--{boundary}--\r\n") } else { String::new() };
        let order = if parts["order"] == "fields-first" { [fields, file] } else { [file, fields] };
        [order.concat(), end.into_bytes()].concat()
    }

    async fn credentials(&self, kind: &str) -> Vec<(&'static str, String)> {
        let token = |text: String| vec![("authorization", text)];
        match kind {
            "none" => Vec::new(),
            "bad-secret" => token("PVEAPIToken=root@pam!test=00000000-0000-0000-0000-000000000000".into()),
            "unknown-token" => token(format!("PVEAPIToken=root@pam!nope={SECRET}")),
            "unknown-user" => token(format!("PVEAPIToken=ghost@pve!test={SECRET}")),
            "malformed" => token("PVEAPIToken=nonsense".into()),
            "basic" => token("Basic cm9vdDpyb290".into()),
            "lower-scheme" => token(format!("pveapitoken=root@pam!test={SECRET}")),
            "space-scheme" => token(format!("PVEAPIToken root@pam!test={SECRET}")),
            "garbage-cookie" => vec![("cookie", "PVEAuthCookie=garbage".into())],
            "root-ticket" | "root-ticket-nocsrf" => {
                let (ticket, csrf) = world::ticket(&self.estate).await;
                let mut headers = vec![("cookie", format!("PVEAuthCookie={ticket}"))];
                if kind == "root-ticket" {
                    headers.push(("csrfpreventiontoken", csrf));
                }
                headers
            }
            "sep" | "nosep" | "expired" | "token-no-acl" => token(self.minor_token(kind).await),
            _ => token(format!("PVEAPIToken=root@pam!test={SECRET}")),
        }
    }

    /// A token of a user without rights of his own, made when it is first needed.
    async fn minor_token(&self, kind: &str) -> String {
        let path = format!("/access/users/auto@pve/token/{kind}");
        let form = match kind {
            "nosep" => "privsep=0",
            "expired" => "privsep=1&expire=4000000000",
            _ => "privsep=1",
        };
        // Its secret is told only once, so it is made anew each time.
        world::call(&self.estate, false, ("DELETE", &path, "")).await;
        let made = world::call(&self.estate, false, ("POST", &path, form)).await;
        format!("PVEAPIToken=auto@pve!{kind}={}", made.body["data"]["value"].as_str().unwrap())
    }

    async fn compare(&mut self, row: &Row, got: Got) -> Result<(), String> {
        let recorded = &row.response;
        let (status, reason) = (recorded["status"].as_u64().unwrap(), recorded["reason"].as_str().unwrap());
        if status == 0 {
            return if got.status == 0 { Ok(()) } else { Err(format!("recorded a dropped connection, here {got:?}")) };
        }
        if u64::from(got.status) != status
            || !self.names.same(&cut(reason), &cut_like(reason, &self.theirs(&got.reason)))
        {
            return Err(format!("recorded {status} {reason}, here {} {} {}", got.status, got.reason, got.body));
        }
        for name in ["connection", "server", "content-type"] {
            let (theirs, ours) = (recorded["headers"][name].as_str(), got.headers.get(name).map(String::as_str));
            if theirs.is_some() && theirs != ours {
                return Err(format!("header {name}: recorded {theirs:?}, here {ours:?}"));
            }
        }
        let slow = |ms: u128| ms > 2_500;
        let took = u128::from(recorded["elapsed_ms"].as_u64().unwrap_or(0));
        // Two cores under load are no rule for what takes a second or two.
        if slow(took) && !slow(got.elapsed.as_millis()) || !slow(took) && got.elapsed.as_millis() > 4_000 {
            return Err(format!("recorded {took} ms, here {:?}", got.elapsed));
        }
        self.compare_body(row, &recorded["body"], &got)?;
        self.compare_after(row, &got).await
    }

    fn compare_body(&mut self, row: &Row, theirs: &Value, got: &Got) -> Result<(), String> {
        if got.headers.get("content-encoding").is_some_and(|encoding| encoding == "gzip") {
            let packed = theirs.as_str().is_some_and(|text| text.starts_with('\u{1f}'));
            return if packed { Ok(()) } else { Err("here the answer is packed".into()) };
        }
        let ours: Value = serde_json::from_str(&self.theirs(&got.body.to_string())).unwrap();
        // Some listings were cut when they were recorded.
        if let Some(count) = row.note.strip_prefix("first ").and_then(|note| note.split(' ').next()) {
            let count: usize = count.parse().unwrap();
            let (theirs, ours) = (theirs["data"].as_array().unwrap(), ours["data"].as_array().unwrap());
            let known = theirs.iter().take(count).all(|row| ours.contains(row));
            return if known { Ok(()) } else { Err(format!("recorded {theirs:?}, here {ours:?}")) };
        }
        if theirs.to_string().contains(" chars>") {
            return if cut(&theirs.to_string()) == cut_like(&theirs.to_string(), &ours.to_string()) {
                Ok(())
            } else {
                Err(format!("recorded {theirs}, here {ours}"))
            };
        }
        same(&mut self.names, theirs, &ours, "body")
    }

    async fn compare_after(&mut self, row: &Row, got: &Got) -> Result<(), String> {
        // The task first: what was read later was read after its end.
        if let Some(task) = row.after.get("task") {
            let upid = got.body["data"].as_str().filter(|d| d.starts_with("UPID:")).map(str::to_owned);
            let upid = upid.or_else(|| got.body["data"]["upid"].as_str().map(str::to_owned));
            let upid = upid.ok_or_else(|| format!("no task: {}", got.body))?;
            let (status, log) = world::finished(&self.estate, &upid).await;
            let status: Value = serde_json::from_str(&self.theirs(&status.to_string())).unwrap();
            same(&mut self.names, &task["task"], &status, "task")?;
            let lines = task["log"].as_array().cloned().unwrap_or_default();
            let theirs: Vec<String> = lines.iter().map(|line| line.as_str().unwrap_or("").to_string()).collect();
            let ours: Vec<String> = log.iter().map(|line| self.theirs(line)).collect();
            // The recording asked for the first lines of long logs only.
            let ours = if theirs.last().is_some_and(|l| l.starts_with("TASK")) {
                ours
            } else {
                ours.into_iter().take(theirs.len()).collect()
            };
            same_log(&mut self.names, &theirs, &ours)?;
        }
        for (what, theirs) in &row.after {
            if let Some(path) = what.strip_prefix("GET ") {
                let got = world::call(&self.estate, false, ("GET", &self.names.translate(path), "")).await;
                let ours = if theirs.get("status").is_some() && theirs.get("reason").is_some() {
                    serde_json::json!({ "status": got.status, "reason": got.reason, "body": got.body })
                } else {
                    got.body
                };
                let ours: Value = serde_json::from_str(&self.theirs(&ours.to_string())).unwrap();
                same(&mut self.names, theirs, &ours, what)?;
            }
        }
        let Some(keys) = row.after.get("config_keys").and_then(Value::as_object) else { return Ok(()) };
        let path = row.request.as_ref().unwrap()["path"].as_str().unwrap().split('?').next().unwrap();
        let config = world::call(&self.estate, false, ("GET", path, "")).await.body["data"].clone();
        for (key, theirs) in keys {
            let ours = config.get(key).cloned().unwrap_or_else(|| "<absent>".into());
            same(&mut self.names, theirs, &ours, &format!("config {key}"))?;
        }
        Ok(())
    }
}

/// Values of a form field, which may be repeated.
fn values(value: &Value) -> Vec<String> {
    match value {
        Value::Array(all) => all.iter().flat_map(values).collect(),
        Value::String(text) => vec![text.clone()],
        other => vec![other.to_string()],
    }
}

/// Encoded task names as they are, so that they can be translated.
fn percent_decode_upids(path: &str) -> String {
    let Some(at) = path.find("UPID%3A") else { return path.to_string() };
    let end = path[at..].find(['/', '?']).map_or(path.len(), |end| at + end);
    let decoded = percent_decode_str(&path[at..end]).decode_utf8_lossy().into_owned();
    format!("{}{decoded}{}", &path[..at], &path[end..])
}

/// Long texts were cut to their beginning and their length.
fn expand(text: &str) -> String {
    let Some((head, length)) = text.strip_suffix(" chars>").and_then(|text| text.rsplit_once("...<")) else {
        return text.to_string();
    };
    let length: usize = length.parse().unwrap();
    let last = head.chars().last().unwrap();
    format!("{head}{}", last.to_string().repeat(length - head.chars().count()))
}

/// The part of a recorded text before it was cut.
fn cut(text: &str) -> String {
    text.split("...<").next().unwrap_or(text).to_string()
}

fn cut_like(theirs: &str, ours: &str) -> String {
    if theirs.contains("...<") { ours.chars().take(cut(theirs).chars().count()).collect() } else { ours.to_string() }
}
