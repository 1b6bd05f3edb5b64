//! The wire grammar: bodies, reason phrases, tokens, limits.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use serde_json::json;
use tokio::time::Instant;

use crate::estate::bench::{TOKEN, call, estate, estate_with_vm, get, put, request, send};

#[tokio::test(start_paused = true)]
async fn a_good_call_answers_data_and_keeps_the_connection() {
    let got = get(&estate(), "/version").await;
    assert_eq!(got.data()["version"], "9.2.11");
    assert_eq!(got.data()["release"], "9.2");
    assert_eq!(got.headers["connection"], "Keep-Alive");
    assert_eq!(got.headers["content-type"], "application/json;charset=UTF-8");
    assert_eq!(got.headers["server"], "pve-api-daemon/3.0");
}

#[tokio::test(start_paused = true)]
async fn every_401_takes_three_seconds_and_has_no_body() {
    let estate = estate();
    let cases = [
        (None, "No ticket"),
        (Some("Basic abc"), "No ticket"),
        (Some("pveapitoken=tenon@pve!sim=x"), "No ticket"),
        (Some("PVEAPIToken=tenon@pve!sim=wrong"), "Authentication failed!"),
        (Some("PVEAPIToken=nobody@pve!sim=x"), "Authentication failed!"),
        (Some("PVEAPIToken=garbage"), "Authentication failed!"),
    ];
    for (token, reason) in cases {
        let mut request = Request::builder().uri("/api2/json/version");
        if let Some(token) = token {
            request = request.header("authorization", token);
        }
        let began = Instant::now();
        let got = send(&estate, request.body(Body::empty()).unwrap()).await;
        assert_eq!((got.status, got.reason.as_str(), got.body.as_str()), (401, reason, ""));
        assert_eq!(began.elapsed(), Duration::from_secs(3));
        assert_eq!(got.headers["connection"], "close");
    }
}

#[tokio::test(start_paused = true)]
async fn a_blank_after_the_scheme_is_accepted_and_a_revoked_token_is_not() {
    let estate = estate();
    let spaced = || Request::builder().uri("/api2/json/version").header("authorization", TOKEN.replacen('=', " ", 1));
    assert_eq!(send(&estate, spaced().body(Body::empty()).unwrap()).await.status, 200);
    estate.revoke_token("tenon@pve!sim");
    assert_eq!(send(&estate, spaced().body(Body::empty()).unwrap()).await.reason, "Authentication failed!");
}

#[tokio::test(start_paused = true)]
async fn unknown_paths_and_methods_are_501() {
    let estate = estate();
    let got = get(&estate, "/nonsense").await;
    let text = "Method 'GET /nonsense' not implemented";
    assert_eq!((got.status, got.reason.as_str()), (501, text));
    assert_eq!(got.json(), json!({ "data": null, "message": text }));
    let got = call(&estate, "DELETE", "/nodes/pve1/qemu/9000/config", &[]).await;
    assert_eq!(got.reason, "Method 'DELETE /nodes/pve1/qemu/9000/config' not implemented");
    let got = send(&estate, request("HEAD", "/version", "")).await;
    assert_eq!((got.status, got.reason.as_str(), got.body.as_str()), (501, "method 'HEAD' not available", ""));
    let got = get(&estate, "/nodes/pve1/storage/shared/content/shared%3Aiso%2Fa%20b.iso").await;
    let text = "Method 'GET /nodes/pve1/storage/shared/content/shared:iso/a b.iso' not implemented";
    assert_eq!((got.status, got.reason.as_str()), (501, text));
}

#[tokio::test(start_paused = true)]
async fn extra_slashes_in_the_path_are_ignored() {
    let estate = estate();
    assert_eq!(get(&estate, "//version/").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_body_on_get_or_delete_is_refused_in_plain_text() {
    let estate = estate();
    for method in ["GET", "DELETE"] {
        let got = send(&estate, request(method, "/nodes/pve1/qemu/9000", "a=1")).await;
        let text = format!("Unexpected content for method '{method}'");
        assert_eq!((got.status, &got.reason, &got.body), (501, &text, &text));
        assert!(!got.headers.contains_key("content-type"));
    }
}

#[tokio::test(start_paused = true)]
async fn chunked_and_huge_bodies_are_501() {
    let estate = estate();
    let mut chunked = request("PUT", "/nodes/pve1/qemu/9000/config", "name=x");
    chunked.headers_mut().insert("transfer-encoding", "chunked".parse().unwrap());
    assert_eq!(send(&estate, chunked).await.reason, "chunked transfer encoding not supported");
    let huge = format!("description={}", "x".repeat(600_000));
    let got = send(&estate, request("PUT", "/nodes/pve1/qemu/9000/config", &huge)).await;
    assert_eq!((got.status, got.reason.as_str(), got.body.as_str()), (501, "for data too large", "for data too large"));
}

#[tokio::test(start_paused = true)]
async fn all_bad_parameters_are_named_at_once() {
    let estate = estate();
    let form = [("name", "a_b"), ("full", "true"), ("tags", "x"), ("format", "foo"), ("bwlimit", "abc")];
    let unknown = "property is not defined in schema and the schema does not allow additional properties";
    call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &form).await.refuses_fields(&[
        ("newid", "property is missing and it is not optional"),
        ("name", "invalid format - value does not look like a valid DNS name\n"),
        ("full", "type check ('boolean') failed - got 'true'"),
        ("tags", unknown),
        ("format", "value 'foo' does not have a value in the enumeration 'raw, qcow2, vmdk'"),
        ("bwlimit", "type check ('integer') failed - got 'abc'"),
    ]);
    get(&estate, "/cluster/resources?foo=1").await.refuses_fields(&[("foo", unknown)]);
    let bad_type = "value 'nope' does not have a value in the enumeration 'vm, storage, node, sdn'";
    get(&estate, "/cluster/resources?type=nope").await.refuses_fields(&[("type", bad_type)]);
    get(&estate, "/nodes/pve1/qemu/abc/config")
        .await
        .refuses_fields(&[("vmid", "type check ('integer') failed - got 'abc'")]);
    let low = "invalid format - value does not look like a valid VM ID\n";
    get(&estate, "/nodes/pve1/qemu/0/config").await.refuses_fields(&[("vmid", low)]);
}

#[tokio::test(start_paused = true)]
async fn json_bodies_are_read_and_odd_ones_refused() {
    let estate = estate_with_vm().await;
    let json = |body: &str, kind: &str| {
        let mut request = request("PUT", "/nodes/pve1/qemu/2001/config", body);
        request.headers_mut().insert("content-type", kind.parse().unwrap());
        request
    };
    let kind = "application/json; charset=utf-8";
    assert_eq!(send(&estate, json(r#"{"onboot":true,"cores":"2","ciuser":5}"#, kind)).await.status, 200);
    let config = crate::estate::bench::config(&estate, 2001).await;
    assert_eq!((&config["onboot"], &config["cores"], &config["ciuser"]), (&json!(1), &json!(2), &json!("5")));
    assert_eq!(send(&estate, json(r#"{"tags":null}"#, kind)).await.status, 200);
    assert_eq!(crate::estate::bench::config(&estate, 2001).await["tags"], " ");
    let nested = send(&estate, json(r#"{"ciuser":{}}"#, kind)).await;
    nested.refuses_fields(&[("ciuser", "type check ('string') failed - got HASH")]);
    let got = send(&estate, json("[1]", kind)).await;
    let text = "Not a HASH reference at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 978.";
    assert_eq!((got.status, got.reason.as_str(), got.body), (500, text, format!("{text}\n")));
    let got = send(&estate, json("x", "text/plain")).await;
    assert_eq!((got.status, got.reason.as_str()), (506, "upload 'Content-Type 'text/plain' not implemented"));
}

#[tokio::test(start_paused = true)]
async fn repeated_keys_and_path_parameters_in_the_body_are_checked() {
    let estate = estate_with_vm().await;
    let twice = put(&estate, 2001, &[("ciuser", "a"), ("ciuser", "b")]).await;
    twice.refuses_fields(&[("ciuser", "type check ('string') failed - got ARRAY")]);
    assert_eq!(put(&estate, 2001, &[("tags", "a"), ("tags", "b"), ("node", "pve1")]).await.status, 200);
    let conflict = "duplicate parameter (already defined in URI) with conflicting values!";
    put(&estate, 2001, &[("tags", "a"), ("node", "pve2")]).await.refuses_fields(&[("node", conflict)]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_host_cannot_be_looked_up() {
    let text = "hostname lookup 'pve9' failed - failed to get address info for: pve9: Name or service not known";
    get(&estate(), "/nodes/pve9/status").await.refuses(500, text);
}
