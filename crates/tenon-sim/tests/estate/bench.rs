//! A caller for the tests: one call, one answer with everything in it.

use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use hyper::ext::ReasonPhrase;
use serde_json::Value;
use tenon_sim::{Estate, EstateConfig, TemplateSpec};
use tower::ServiceExt;

pub(crate) const TOKEN: &str = "PVEAPIToken=tenon@pve!sim=11111111-2222-3333-4444-555555555555";

/// Parameters of a call.
pub(crate) type Form<'a> = &'a [(&'a str, &'a str)];

/// An answer, completely read.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    pub(crate) lost: bool,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn data(&self) -> Value {
        assert_eq!((self.status, self.reason.as_str()), (200, "OK"), "{}", self.body);
        self.json()["data"].clone()
    }

    pub(crate) fn upid(&self) -> String {
        self.data().as_str().unwrap().to_string()
    }

    /// The whole of a refusal by an API method.
    pub(crate) fn refuses(&self, status: u16, text: &str) {
        let body = serde_json::json!({ "data": null, "message": format!("{text}\n") });
        assert_eq!((self.status, self.reason.as_str(), self.json()), (status, text, body));
        assert_eq!(self.headers["connection"], "close");
    }

    /// The whole of a refusal by the schema.
    pub(crate) fn refuses_fields(&self, fields: &[(&str, &str)]) {
        let errors: serde_json::Map<String, Value> = fields.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        let text = "Parameter verification failed.";
        let body = serde_json::json!({ "data": null, "message": format!("{text}\n"), "errors": errors });
        assert_eq!((self.status, self.reason.as_str(), self.json()), (400, text, body));
    }
}

pub(crate) async fn read(response: Response<Body>) -> Got {
    let status = response.status();
    let phrase =
        response.extensions().get::<ReasonPhrase>().map(|p| String::from_utf8_lossy(p.as_bytes()).into_owned());
    let lost = response.extensions().get::<tenon_sim::ReplyLost>().is_some();
    let headers = response.headers().clone();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let reason = phrase.unwrap_or_else(|| status.canonical_reason().unwrap_or("").to_string());
    Got { status: status.as_u16(), reason, headers, body: String::from_utf8_lossy(&body).into_owned(), lost }
}

pub(crate) async fn send(estate: &Estate, request: Request<Body>) -> Got {
    read(estate.service().oneshot(request).await.unwrap()).await
}

pub(crate) fn request(method: &str, path: &str, body: &str) -> Request<Body> {
    let builder = Request::builder().method(method).uri(format!("/api2/json{path}")).header("authorization", TOKEN);
    let builder =
        if body.is_empty() { builder } else { builder.header("content-type", "application/x-www-form-urlencoded") };
    builder.body(Body::from(body.to_string())).unwrap()
}

pub(crate) async fn call(estate: &Estate, method: &str, path: &str, form: &[(&str, &str)]) -> Got {
    let body: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    if matches!(method, "GET" | "DELETE") && !body.is_empty() {
        return send(estate, request(method, &format!("{path}?{body}"), "")).await;
    }
    send(estate, request(method, path, &body)).await
}

pub(crate) async fn get(estate: &Estate, path: &str) -> Got {
    call(estate, "GET", path, &[]).await
}

pub(crate) async fn put(estate: &Estate, vmid: u32, form: &[(&str, &str)]) -> Got {
    call(estate, "PUT", &format!("/nodes/pve1/qemu/{vmid}/config"), form).await
}

pub(crate) async fn config(estate: &Estate, vmid: u32) -> Value {
    get(estate, &format!("/nodes/pve1/qemu/{vmid}/config")).await.data()
}

/// Waits for a task and gives its exit status.
pub(crate) async fn exit(estate: &Estate, upid: &str) -> String {
    let node = upid.split(':').nth(1).unwrap();
    for _ in 0..100_000 {
        let status = get(estate, &format!("/nodes/{node}/tasks/{upid}/status")).await.data();
        if status["status"] == "stopped" {
            return status["exitstatus"].as_str().unwrap().to_string();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("task {upid} does not end");
}

/// A call that starts a task, and how the task ends.
pub(crate) async fn run(estate: &Estate, method: &str, path: &str, form: &[(&str, &str)]) -> String {
    let upid = call(estate, method, path, form).await.upid();
    exit(estate, &upid).await
}

pub(crate) async fn clone(estate: &Estate, newid: &str, form: &[(&str, &str)]) -> String {
    let form: Vec<(&str, &str)> = [("newid", newid)].into_iter().chain(form.iter().copied()).collect();
    run(estate, "POST", "/nodes/pve1/qemu/9000/clone", &form).await
}

/// The default estate with template 9000 on pve1.
pub(crate) fn estate() -> Estate {
    let estate = Estate::new(EstateConfig::default());
    let spec = TemplateSpec { tags: "K8s tmpl".into(), config: described(), ..TemplateSpec::default() };
    estate.add_template(&spec).unwrap();
    estate
}

fn described() -> std::collections::BTreeMap<String, String> {
    [("description", "golden"), ("onboot", "0"), ("numa", "1")].map(|(k, v)| (k.into(), v.into())).into()
}

/// The same with a stopped clone 2001.
pub(crate) async fn estate_with_vm() -> Estate {
    let estate = estate();
    assert_eq!(clone(&estate, "2001", &[("name", "node-a")]).await, "OK");
    estate
}

pub(crate) fn upload_request(fields: &[(&str, &str)], file: &str, content: &[u8]) -> Request<Body> {
    let mut body = Vec::new();
    for (name, value) in fields {
        body.extend(format!("--b0\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").bytes());
    }
    let head = format!("--b0\r\nContent-Disposition: form-data; name=\"filename\"; filename=\"{file}\"\r\n\r\n");
    body.extend(head.bytes());
    body.extend(content);
    body.extend(b"\r\n--b0--\r\n");
    Request::builder()
        .method("POST")
        .uri("/api2/json/nodes/pve1/storage/shared/upload")
        .header("authorization", TOKEN)
        .header("content-type", "multipart/form-data; boundary=b0")
        .body(Body::from(body))
        .unwrap()
}

pub(crate) async fn upload(estate: &Estate, file: &str, content: &[u8]) -> String {
    let upid = send(estate, upload_request(&[("content", "iso")], file, content)).await.upid();
    exit(estate, &upid).await
}
