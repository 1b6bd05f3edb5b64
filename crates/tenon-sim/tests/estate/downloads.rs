//! Files that come from a URL, in their time and with everything that can go wrong on the way.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use tenon_sim::{
    Cluster, ClusterConfig, Estate, EstateConfig, FaultEffect, FaultMatch, FaultRule, Tls, VolumeView, WebCertificate,
    WebFile,
};
use tokio::net::TcpListener;

use crate::estate::bench::{Form, call, estate, exit, get, run, send};

const URL: &str = "https://images.example.com/debian-13.qcow2";
const DOWNLOAD: &str = "/nodes/pve1/storage/local/download-url";
const VOLUME: &str = "local:import/debian-13.qcow2";
const PATH: &str = "/var/lib/vz/import/debian-13.qcow2";
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// An image of 320 MiB: ten rows of dots.
fn image() -> WebFile {
    WebFile::image("13.1", 3 * GIB, 320 * MIB)
}

fn publishing(file: WebFile) -> Estate {
    let estate = estate();
    estate.publish(URL, file);
    estate
}

async fn begin(estate: &Estate, more: Form<'_>) -> String {
    let form: Vec<(&str, &str)> = [("content", "import"), ("filename", "debian-13.qcow2"), ("url", URL)]
        .into_iter()
        .chain(more.to_vec())
        .collect();
    call(estate, "POST", DOWNLOAD, &form).await.upid()
}

async fn downloaded(estate: &Estate, more: Form<'_>) -> String {
    let upid = begin(estate, more).await;
    exit(estate, &upid).await
}

async fn log(estate: &Estate, upid: &str) -> Vec<String> {
    let rows = get(estate, &format!("/nodes/pve1/tasks/{upid}/log?limit=0")).await.data();
    rows.as_array().unwrap().iter().map(|row| row["t"].as_str().unwrap().to_string()).collect()
}

fn files(estate: &Estate) -> Vec<VolumeView> {
    estate.volumes().into_iter().filter(|volume| volume.volid.starts_with("local:import/")).collect()
}

async fn listed(estate: &Estate) -> Value {
    let mut rows = get(estate, "/nodes/pve1/storage/local/content").await.data();
    rows.as_array_mut().unwrap().retain(|row| row["volid"].as_str().unwrap().contains("import/"));
    rows
}

#[tokio::test(start_paused = true)]
async fn a_file_comes_over_a_slow_link_and_is_not_listed_before_it_is_complete() {
    let estate = publishing(image().over(4 * MIB));
    let began = estate.elapsed();
    let upid = begin(&estate, &[("checksum-algorithm", "sha256"), ("checksum", &image().sha256())]).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let seen = log(&estate, &upid).await;
    assert_eq!(seen.last().unwrap(), " 32768K ........ ........ ........ ........ 20% 4.00M 64s", "{seen:#?}");
    assert_eq!(listed(&estate).await, json!([]));
    assert_eq!(files(&estate)[0].used, 64 * MIB, "what has come takes room");
    assert_eq!(exit(&estate, &upid).await, "OK");
    let took = estate.elapsed() - began;
    assert!(took >= Duration::from_secs(80) && took < Duration::from_secs(82), "{took:?}");
    let seen = log(&estate, &upid).await;
    let pid = u32::from_str_radix(upid.split(':').nth(2).unwrap(), 16).unwrap();
    let start = [
        format!("downloading {URL} to {PATH}"),
        seen[1].clone(),
        "Resolving images.example.com (images.example.com)... 192.0.2.80".into(),
        "Connecting to images.example.com (images.example.com)|192.0.2.80|:443... connected.".into(),
        "HTTP request sent, awaiting response... 200 OK".into(),
        "Length: 335544320 (320M) [application/octet-stream]".into(),
        format!("Saving to: '{PATH}.tmp_dwnl.{pid}'"),
    ];
    assert_eq!(seen[..7], start);
    assert!(seen[seen.len() - 4].contains("(4.00 MB/s)"), "{seen:#?}");
    assert_eq!(
        seen[seen.len() - 3..],
        [
            "calculating checksum...OK, checksum verified".to_string(),
            format!("download of '{URL}' to '{PATH}' finished"),
            "TASK OK".into()
        ]
    );
    let row = &listed(&estate).await[0];
    assert_eq!((&row["volid"], &row["size"]), (&json!(VOLUME), &json!(320 * MIB)));
    assert_eq!(files(&estate)[0].bytes, 3 * GIB, "the disk inside is larger than the file");
}

#[tokio::test(start_paused = true)]
async fn a_server_must_prove_its_name_unless_the_caller_does_not_care() {
    let cases = [
        (WebCertificate::UnknownIssuer, "ERROR: The certificate of 'images.example.com' doesn't have a known issuer."),
        (WebCertificate::Expired, "ERROR: The certificate of 'images.example.com' has expired."),
        (WebCertificate::WrongName, "The certificate's owner does not match hostname 'images.example.com'"),
    ];
    for (certificate, told) in cases {
        let estate = publishing(image().certificate(certificate));
        assert_eq!(downloaded(&estate, &[]).await, format!("download failed: {told}"));
        assert_eq!(downloaded(&estate, &[("verify-certificates", "1")]).await, format!("download failed: {told}"));
        assert!(files(&estate).is_empty());
        let upid = begin(&estate, &[("verify-certificates", "0")]).await;
        assert_eq!(exit(&estate, &upid).await, "OK");
        let warned = told.replace("ERROR", "WARNING");
        assert!(log(&estate, &upid).await.contains(&warned), "{certificate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_not_what_was_wanted_does_not_stay() {
    let estate = publishing(image());
    let zeros = "0".repeat(64);
    let text = format!("checksum mismatch: got '{}' != expect '{zeros}'", image().sha256());
    assert_eq!(downloaded(&estate, &[("checksum-algorithm", "sha256"), ("checksum", &zeros)]).await, text);
    estate.publish(URL, WebFile::new(vec![b'x'; 1200]));
    let upid = begin(&estate, &[]).await;
    let text = exit(&estate, &upid).await;
    assert!(text.starts_with(&format!("failed to verify file: qemu-img: Could not open '{PATH}.tmp_dwnl.")), "{text}");
    assert!(text.ends_with("': Image is not in qcow2 format"), "{text}");
    assert!(files(&estate).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_says_that_it_has_no_such_file() {
    let estate = publishing(image());
    let other = [("content", "import"), ("filename", "x.qcow2"), ("url", "https://images.example.com/none.qcow2")];
    let upid = call(&estate, "POST", DOWNLOAD, &other).await.upid();
    assert_eq!(exit(&estate, &upid).await, "download failed: exit code 8");
    let seen = log(&estate, &upid).await;
    assert!(seen.iter().any(|line| line.ends_with("ERROR 404: Not Found.")), "{seen:#?}");
    estate.publish(URL, WebFile { refused: Some((503, "Service Unavailable".into())), ..image() });
    assert_eq!(downloaded(&estate, &[]).await, "download failed: exit code 8");
    assert!(estate.unpublish(URL) && !estate.unpublish(URL));
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_there_is_kept_and_proved_by_its_checksum() {
    let estate = publishing(image());
    assert_eq!(downloaded(&estate, &[]).await, "OK");
    assert_eq!(downloaded(&estate, &[]).await, format!("refusing to override existing file '{PATH}'"));
    let sum = image().sha256();
    assert_eq!(downloaded(&estate, &[("checksum-algorithm", "sha256"), ("checksum", &sum)]).await, "OK");
}

#[tokio::test(start_paused = true)]
async fn a_full_storage_ends_a_download_and_frees_what_had_come() {
    let estate = publishing(image());
    estate.set_storage_free("local", 100 * MIB).unwrap();
    let upid = begin(&estate, &[]).await;
    let text = exit(&estate, &upid).await;
    assert!(text.starts_with(&format!("download failed: Cannot write to '{PATH}.tmp_dwnl.")), "{text}");
    assert!(text.ends_with("' (No space left on device)."), "{text}");
    assert_eq!(log(&estate, &upid).await.iter().filter(|line| line.contains("K ........")).count(), 3);
    assert!(files(&estate).is_empty());
    estate.set_storage_free("local", GIB).unwrap();
    let when = FaultMatch::call("POST", "**/download-url").times(1);
    estate.add_fault(FaultRule::new(when, FaultEffect::FullStorage));
    assert!(downloaded(&estate, &[]).await.ends_with("(No space left on device)."));
    assert_eq!(downloaded(&estate, &[]).await, "OK");
}

#[tokio::test(start_paused = true)]
async fn a_killed_download_leaves_half_a_file_that_nobody_sees() {
    let estate = publishing(image().over(MIB));
    let upid = begin(&estate, &[]).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(estate.kill_worker(&upid));
    assert_eq!(exit(&estate, &upid).await, "unexpected status");
    let left = files(&estate);
    assert_eq!((left.len(), left[0].content.as_str(), left[0].used), (1, "temporary", 96 * MIB));
    assert_eq!(listed(&estate).await, json!([]));
    let name = left[0].volid.strip_prefix("local:").unwrap();
    let path = format!("/nodes/pve1/storage/local/content/{}", name.replace('/', "%2F"));
    let text = format!("unable to parse directory volume name '{name}'");
    call(&estate, "DELETE", &path, &[]).await.refuses(500, &text);
    // The next attempt has a file of its own.
    estate.publish(URL, image());
    assert_eq!(downloaded(&estate, &[]).await, "OK");
    assert_eq!(files(&estate).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_download_leaves_nothing_and_a_dead_host_half_a_file() {
    let estate = publishing(image().over(MIB));
    let upid = begin(&estate, &[]).await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    call(&estate, "DELETE", &format!("/nodes/pve1/tasks/{upid}"), &[]).await.data();
    assert_eq!(exit(&estate, &upid).await, "download failed: received interrupt");
    assert!(files(&estate).is_empty());
    begin(&estate, &[]).await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    estate.set_host_online("pve1", false).unwrap();
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert_eq!(files(&estate)[0].content, "temporary");
}

#[tokio::test(start_paused = true)]
async fn slow_storage_slows_downloads() {
    let estate = publishing(image().over(32 * MIB));
    let when = FaultMatch::call("POST", "**/download-url");
    estate.add_fault(FaultRule::new(when, FaultEffect::SlowStorage { factor: 10.0 }));
    let began = estate.elapsed();
    assert_eq!(downloaded(&estate, &[]).await, "OK");
    assert!(estate.elapsed() - began >= Duration::from_secs(100));
}

#[tokio::test(start_paused = true)]
async fn a_download_needs_rights_on_the_storage_and_to_the_network() {
    let estate = publishing(image());
    let make: [(&str, &str, Form<'_>); 4] = [
        ("POST", "/access/users", &[("userid", "few@pve")]),
        ("POST", "/access/roles", &[("roleid", "Uploader"), ("privs", "Datastore.AllocateTemplate")]),
        ("POST", "/access/roles", &[("roleid", "Browser"), ("privs", "Sys.AccessNetwork")]),
        ("POST", "/access/users/few@pve/token/tt", &[("privsep", "0")]),
    ];
    let mut secret = Value::Null;
    for (method, path, form) in make {
        secret = call(&estate, method, path, form).await.data()["value"].clone();
    }
    let token = format!("PVEAPIToken=few@pve!tt={}", secret.as_str().unwrap());
    let ask = async || {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("content", "import"), ("filename", "debian-13.qcow2"), ("url", URL)])
            .finish();
        let request = Request::post(format!("/api2/json{DOWNLOAD}")).header("authorization", &token);
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(Body::from(body));
        send(&estate, request.unwrap()).await
    };
    let grant = async |path: &str, role: &str| {
        let form = [("path", path), ("roles", role), ("users", "few@pve")];
        call(&estate, "PUT", "/access/acl", &form).await.data();
    };
    assert_eq!(ask().await.status, 403);
    grant("/storage/local", "Uploader").await;
    assert_eq!(ask().await.status, 403, "reaching the network is another right");
    grant("/nodes/pve1", "Browser").await;
    let upid = ask().await.upid();
    assert_eq!(exit(&estate, &upid).await, "OK");
}

async fn secured(url_host: &str, download_ca: Option<String>, tls: &Tls, more: Form<'_>) -> String {
    let files = Cluster::new(ClusterConfig::default()).unwrap();
    let server = files.serve(TcpListener::bind("127.0.0.1:0").await.unwrap(), tls.clone());
    let estate = Estate::new(EstateConfig { download_ca, ..EstateConfig::default() });
    let url = format!("https://{url_host}:{}/healthz", server.local_addr().port());
    let form: Vec<(&str, &str)> =
        [("content", "iso"), ("filename", "x.iso"), ("url", &url)].into_iter().chain(more.to_vec()).collect();
    let ended = run(&estate, "POST", DOWNLOAD, &form).await;
    if ended == "OK" {
        assert_eq!(estate.read_volume("local:iso/x.iso").unwrap(), "ok");
    }
    server.shutdown().await;
    ended
}

#[tokio::test]
async fn a_real_server_is_trusted_by_the_authority_the_estate_knows() {
    let tls = Tls::self_signed().unwrap();
    let ca = || Some(tls.ca_pem().to_string());
    assert_eq!(secured("localhost", ca(), &tls, &[]).await, "OK");
    let text = "download failed: ERROR: The certificate of 'localhost' doesn't have a known issuer.";
    assert_eq!(secured("localhost", None, &tls, &[]).await, text);
    let another = Some(Tls::self_signed().unwrap().ca_pem().to_string());
    assert_eq!(secured("localhost", another.clone(), &tls, &[]).await, text);
    assert_eq!(secured("localhost", another, &tls, &[("verify-certificates", "0")]).await, "OK");
    let expired = Tls::expired().unwrap();
    let text = "download failed: ERROR: The certificate of 'localhost' has expired.";
    assert_eq!(secured("localhost", Some(expired.ca_pem().into()), &expired, &[]).await, text);
}
