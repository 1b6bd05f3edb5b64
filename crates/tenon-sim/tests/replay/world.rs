//! The machine the recordings were made on, as the simulator can be told of it; and how its requests are sent.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Request, header};
use http_body_util::BodyExt;
use hyper::ext::ReasonPhrase;
use serde_json::{Value, json};
use tenon_sim::{Estate, EstateConfig, HostSpec, ImageSpec, InterfaceSpec, Pace, StorageSpec, TokenSpec, UserSpec};
use tower::ServiceExt;

pub(crate) const SECRET: &str = "22222222-3333-4444-5555-666666666666";
pub(crate) const PASSWORD: &str = "recorded";
const DISK: u64 = 270_553_174_016;

pub(crate) fn estate() -> Estate {
    let all = ["backup", "images", "import", "iso", "rootdir", "snippets", "vztmpl"];
    let bridge = |name: &str, row: Value| InterfaceSpec {
        row: row.as_object().cloned().unwrap(),
        ..InterfaceSpec::new(name, "bridge")
    };
    let eth9 = json!({ "active": null, "exists": null, "priority": 3 });
    let config = EstateConfig {
        hosts: vec![HostSpec::new("pve1", 2, 25_274_793_984)],
        storages: vec![
            StorageSpec::new("local", &all, DISK).at("/var/lib/vz").serial(),
            StorageSpec::new("local2", &["images", "rootdir"], DISK).at("/var/lib/vz2").serial(),
        ],
        tokens: vec![TokenSpec::new("root@pam!test", SECRET)],
        users: vec![UserSpec::new("root@pam", PASSWORD)],
        pools: vec!["p0".into()],
        bridges: vec!["vmbr0".into(), "vmbr1".into()],
        interfaces: vec![
            InterfaceSpec::new("eth0", "eth"),
            InterfaceSpec { row: eth9.as_object().cloned().unwrap(), ..InterfaceSpec::new("eth9", "eth") },
            bridge("vmbr0", json!({})),
            bridge(
                "vmbr1",
                json!({ "method": "manual", "priority": 5, "address": null, "cidr": null, "netmask": null }),
            ),
        ],
        // A copy is over before anybody looks, except where the recording slowed it down.
        epoch: 1_794_725_000,
        pace: Pace { clone_full: Duration::from_millis(300), ..Pace::default() },
        ..EstateConfig::default()
    };
    let estate = Estate::new(config);
    let image = |disk_bytes, file_bytes, bootable| ImageSpec { disk_bytes, file_bytes, bootable };
    estate.put_image("pve1", "local:import/small.qcow2", &image(536_870_912, 105_185_280, false)).unwrap();
    estate.put_image("pve1", "local:import/smoke.qcow2", &image(1_713_373_184, 203_882_496, true)).unwrap();
    estate.put_iso("pve1", "local:iso/smoke.iso", Bytes::from(vec![0; 358_400])).unwrap();
    estate
}

/// An answer, completely read.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    pub(crate) elapsed: Duration,
}

/// Sends a request and reads the answer. A connection that is dropped has status 0, as in the recording.
pub(crate) async fn send(estate: &Estate, request: Request<Body>) -> Got {
    let began = tokio::time::Instant::now();
    let response = estate.service().oneshot(request).await.unwrap();
    let elapsed = began.elapsed();
    let dropped = response.extensions().get::<tenon_sim::ReplyLost>().is_some();
    let status = response.status();
    let phrase =
        response.extensions().get::<ReasonPhrase>().map(|p| String::from_utf8_lossy(p.as_bytes()).into_owned());
    let reason = phrase.unwrap_or_else(|| status.canonical_reason().unwrap_or("").to_string());
    let headers =
        response.headers().iter().map(|(k, v)| (k.to_string(), v.to_str().unwrap_or("").to_string())).collect();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    let status = if dropped { 0 } else { status.as_u16() };
    Got { status, reason, headers, body, elapsed }
}

/// A request by the root token, or with root's own ticket.
pub(crate) async fn call(estate: &Estate, root: bool, (method, path, form): (&str, &str, &str)) -> Got {
    let has_body = !form.is_empty() && !matches!(method, "GET" | "DELETE");
    let uri =
        if has_body || form.is_empty() { format!("/api2/json{path}") } else { format!("/api2/json{path}?{form}") };
    let mut builder = Request::builder().method(method).uri(uri);
    if root {
        let (ticket, csrf) = ticket(estate).await;
        builder = builder.header(header::COOKIE, format!("PVEAuthCookie={ticket}")).header("CSRFPreventionToken", csrf);
    } else {
        builder = builder.header(header::AUTHORIZATION, format!("PVEAPIToken=root@pam!test={SECRET}"));
    }
    if has_body {
        builder = builder.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    }
    send(estate, builder.body(Body::from(if has_body { form.to_string() } else { String::new() })).unwrap()).await
}

/// A ticket of root and what goes with writes.
pub(crate) async fn ticket(estate: &Estate) -> (String, String) {
    let request = Request::post("/api2/json/access/ticket")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(format!("username=root%40pam&password={PASSWORD}")))
        .unwrap();
    let data = send(estate, request).await.body["data"].clone();
    (data["ticket"].as_str().unwrap().to_string(), data["CSRFPreventionToken"].as_str().unwrap().to_string())
}

/// Waits for the end of a task: its status and its log.
pub(crate) async fn finished(estate: &Estate, upid: &str) -> (Value, Vec<String>) {
    for _ in 0..100_000 {
        let status =
            call(estate, false, ("GET", &format!("/nodes/pve1/tasks/{upid}/status"), "")).await.body["data"].clone();
        if status["status"] == "stopped" {
            let log = call(estate, false, ("GET", &format!("/nodes/pve1/tasks/{upid}/log"), "limit=0")).await;
            let lines = log.body["data"].as_array().cloned().unwrap_or_default();
            return (status, lines.iter().map(|line| line["t"].as_str().unwrap_or("").to_string()).collect());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("task {upid} does not end");
}
