//! Hides a host from what a Proxmox cluster says, as if it were no member.

use std::sync::{Arc, Mutex};

use axum::body::{Body, to_bytes};
use http::Response;
use serde_json::Value;

/// The host that is hidden, and in the replies to which paths.
#[derive(Clone, Default)]
pub(crate) struct Veil(Arc<Mutex<(String, Vec<String>)>>);

impl Veil {
    pub(crate) fn hide(&self, host: &str, paths: &[&str]) {
        *self.0.lock().unwrap() = (host.to_owned(), paths.iter().map(|path| (*path).to_owned()).collect());
    }

    pub(crate) fn lift(&self) {
        self.hide("", &[]);
    }

    /// A reply without the rows of the host.
    pub(crate) async fn over(&self, path: &str, reply: Response<Body>) -> Response<Body> {
        let (host, paths) = self.0.lock().unwrap().clone();
        if !paths.iter().any(|hidden| hidden == path) {
            return reply;
        }
        let (mut head, body) = reply.into_parts();
        let mut page: Value = serde_json::from_slice(&to_bytes(body, usize::MAX).await.unwrap()).unwrap();
        page["data"].as_array_mut().unwrap().retain(|row| row["node"] != *host && row["name"] != *host);
        head.headers.remove(http::header::CONTENT_LENGTH);
        Response::from_parts(head, Body::from(serde_json::to_vec(&page).unwrap()))
    }
}
