//! Two hundred VMs live at once, over HTTPS: made, configured, started, asked, stopped, destroyed.

use std::fs;
use std::time::Duration;

use axum::body::Body;
use http::{Request, header};
use http_body_util::BodyExt;
use hyper::client::conn::http1::SendRequest;
use serde_json::Value;
use tenon_sim::{Estate, EstateConfig, Pace, Server, TemplateSpec, Tls};

use crate::estate::bench::TOKEN;
use crate::estate::https::{connect, serve};

const LIVES: u32 = 200;
/// What two hundred VMs, their tasks and their ledger may take.
const MEMORY_MIB: u64 = 256;

/// One who lives over a connection of his own, and counts.
struct Client<'a> {
    server: &'a Server,
    tls: &'a Tls,
    sender: SendRequest<Body>,
    requests: u32,
}

impl Client<'_> {
    async fn ask(&mut self, method: &str, path: &str, form: &str) -> Value {
        // The hundredth answer closes a connection; then there is a new one.
        if self.sender.ready().await.is_err() {
            self.sender = connect(self.server, self.tls).await.unwrap();
        }
        let builder =
            Request::builder().method(method).uri(format!("/api2/json{path}")).header(header::HOST, "localhost");
        let builder = builder.header(header::AUTHORIZATION, TOKEN);
        let builder = builder.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = builder.header(header::CONTENT_LENGTH, form.len()).body(Body::from(form.to_string())).unwrap();
        let response = self.sender.send_request(request).await.unwrap();
        self.requests += 1;
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(status, 200, "{method} {path} {form}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice::<Value>(&body).unwrap()["data"].clone()
    }

    /// Makes a call and follows its task to the end.
    async fn run(&mut self, method: &str, path: &str, form: &str) {
        let upid = self.ask(method, path, form).await.as_str().unwrap().to_string();
        for _ in 0..2_000 {
            let status = self.ask("GET", &format!("/nodes/pve1/tasks/{upid}/status"), "").await;
            if status["status"] == "stopped" {
                assert_eq!(status["exitstatus"], "OK", "{method} {path} {form}");
                return;
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        panic!("task {upid} does not end");
    }

    async fn life(&mut self, vmid: u32) {
        let vm = format!("/nodes/pve1/qemu/{vmid}");
        self.run("POST", "/nodes/pve1/qemu/9000/clone", &format!("newid={vmid}&name=vm-{vmid}&pool=tenon")).await;
        let config = self.ask("GET", &format!("{vm}/config"), "").await;
        let form = format!("cores=2&memory=2048&agent=1&digest={}", config["digest"].as_str().unwrap());
        self.ask("PUT", &format!("{vm}/config"), &form).await;
        self.run("PUT", &format!("{vm}/resize"), "disk=scsi0&size=%2B1G").await;
        self.run("POST", &format!("{vm}/status/start"), "").await;
        self.ask("POST", &format!("{vm}/agent/ping"), "").await;
        self.run("POST", &format!("{vm}/status/stop"), "").await;
        self.run("DELETE", &format!("{vm}?purge=1"), "").await;
    }
}

/// Resident memory of this process.
fn memory_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) >> 10
}

#[tokio::test]
async fn two_hundred_vms_live_at_once_over_https() {
    // A guest whose agent is up as soon as it runs, so that nobody has to be asked twice.
    let pace = Pace { agent: Duration::ZERO, start: Duration::from_millis(300), ..Pace::default() };
    let estate = Estate::new(EstateConfig { pace, ..EstateConfig::default() });
    estate.add_template(&TemplateSpec::default()).unwrap();
    let tls = Tls::self_signed().unwrap();
    let server = serve(&estate, &tls).await;
    let before = memory_mib();
    let lives = (5000..5000 + LIVES).map(async |vmid| {
        let sender = connect(&server, &tls).await.unwrap();
        let mut client = Client { server: &server, tls: &tls, sender, requests: 0 };
        client.life(vmid).await;
        client.requests
    });
    let requests: u32 = futures::future::join_all(lives).await.into_iter().sum();
    let grown = memory_mib().saturating_sub(before);
    println!("{LIVES} lives, {:.1} requests a VM, {grown} MiB more memory", f64::from(requests) / f64::from(LIVES));
    assert_eq!(estate.vms().len(), 1, "only the template is left");
    assert!(grown < MEMORY_MIB, "{grown} MiB");
    server.shutdown().await;
}
