//! How does the server say that it was asked in the wrong way?

use http::{Method, Request};
use kube::client::Body;
use serde_json::json;

use crate::ground::Ground;
use crate::things::config_map;

pub(crate) async fn a_method_that_is_not_served_is_not_allowed(ground: &Ground) -> anyhow::Result<()> {
    let maps = ground.here("configmaps");
    ground.made(&maps, config_map("a")).await?;
    ground.post(&format!("{maps}/a"), config_map("a")).await?.refused(405, "MethodNotAllowed")?;
    ground.put(&maps, config_map("a")).await?.refused(405, "MethodNotAllowed")?;
    ground.merge(&maps, json!({})).await?.refused(405, "MethodNotAllowed")?;
    Ok(())
}

pub(crate) async fn a_namespaced_object_needs_a_namespace(ground: &Ground) -> anyhow::Result<()> {
    ground.post("/api/v1/configmaps", config_map("a")).await?.refused(405, "MethodNotAllowed")?;
    Ok(())
}

pub(crate) async fn a_body_that_is_no_json_is_a_bad_request(ground: &Ground) -> anyhow::Result<()> {
    let request = |text: &str| {
        let request = Request::post(ground.here("configmaps")).header("content-type", "application/json");
        request.body(Body::from(text.as_bytes().to_vec()))
    };
    for text in ["{", "", "[]", "\"a\""] {
        let reply = ground.raw(request(text)?).await?;
        assert_eq!(reply.code, 400, "{text:?}: {reply:?}");
        reply.refused(400, "BadRequest")?;
    }
    Ok(())
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

pub(crate) async fn a_body_in_an_unknown_language_is_unsupported(ground: &Ground) -> anyhow::Result<()> {
    let reply = ground.send(Method::POST, &ground.here("configmaps"), "text/plain", Some(config_map("a"))).await?;
    reply.refused(415, "UnsupportedMediaType")?;
    Ok(())
}

/// A ConfigMap without anything, as protobuf: the envelope names its kind and holds no fields.
const NOTHING: &[u8] = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x00\x1a\x00\x22\x00";

pub(crate) async fn protobuf_that_is_cut_short_is_a_bad_request(ground: &Ground) -> anyhow::Result<()> {
    let send = |bytes: &[u8]| {
        let request = Request::post(ground.here("configmaps")).header("content-type", PROTOBUF);
        request.body(Body::from(bytes.to_vec()))
    };
    ground.raw(send(&NOTHING[..NOTHING.len() - 5])?).await?.refused(400, "BadRequest")?;
    ground.raw(send(b"{}")?).await?.refused(400, "BadRequest")?;
    // Whole, it is understood: what is missing is a name.
    ground.raw(send(NOTHING)?).await?.refused(422, "Invalid")?;
    Ok(())
}

pub(crate) async fn a_patch_that_is_no_json_is_a_bad_request(ground: &Ground) -> anyhow::Result<()> {
    let maps = ground.here("configmaps");
    ground.made(&maps, config_map("a")).await?;
    let request = Request::patch(format!("{maps}/a")).header("content-type", "application/merge-patch+json");
    ground.raw(request.body(Body::from(b"{".to_vec()))?).await?.refused(400, "BadRequest")?;
    Ok(())
}

pub(crate) async fn a_resource_that_is_not_served_is_not_found(ground: &Ground) -> anyhow::Result<()> {
    for path in [ground.here("nothings"), ground.here("apps/nothings"), format!("{}/a/nothing", ground.here("pods"))] {
        let told = ground.get(&path).await?.refused(404, "NotFound")?;
        assert_eq!(told["message"], "the server could not find the requested resource", "{path}");
    }
    Ok(())
}

pub(crate) async fn a_body_that_is_too_large_is_refused(ground: &Ground) -> anyhow::Result<()> {
    let body = json!({ "metadata": { "name": "a" }, "data": { "key": "x".repeat(4 << 20) } });
    let told = ground.post(&ground.here("configmaps"), body).await?.refused(413, "RequestEntityTooLarge")?;
    assert_eq!(told["message"], "Request entity too large: limit is 3145728");
    Ok(())
}
