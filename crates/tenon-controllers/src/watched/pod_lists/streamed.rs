//! All pods, told one by one.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use http_body::Body as _;
use kube::Client;
use kube::client::Body;
use tenon_api::protobuf::{self, PodEvent, PodEvents};
use tokio::time::timeout;

use super::super::WATCHED_FOR_S;
use super::PodLists;

/// Asked for a watch, a server tells first what there is, then that this was all. One that does not know the words refuses.
const ALL_PODS: &str =
    "/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// Who says nothing for so long says nothing any more.
const SILENCE: Duration = Duration::from_secs(WATCHED_FOR_S as u64);

/// All of it has to come in this time.
const WITHIN: Duration = Duration::from_secs(300);

/// Reads all pods. Returns their version, or why this does not work.
pub(super) async fn streamed(client: &Client, lists: &PodLists) -> Result<String, String> {
    match timeout(WITHIN, read(client, lists)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("not all pods came within {} s", WITHIN.as_secs())),
    }
}

async fn read(client: &Client, lists: &PodLists) -> Result<String, String> {
    let mut body = ask(client).await?.into_body();
    let mut events = PodEvents::default();
    loop {
        events.receive(&next(&mut body).await?);
        if let Some(version) = lists.tell(&mut events)? {
            return Ok(version);
        }
    }
}

impl PodLists {
    /// Takes the pods that came. Returns their version once they are all there.
    fn tell(&self, events: &mut PodEvents) -> Result<Option<String>, String> {
        let reading = &mut *self.reading();
        while let Some(event) = events.next(&mut reading.reader).map_err(|fault| fault.to_string())? {
            match event {
                PodEvent::Pod(pod) => reading.listed.push(*pod),
                PodEvent::AllTold { version } => return Ok(Some(version)),
                PodEvent::Bookmark => {}
                PodEvent::Refusal(json) => return Err(String::from_utf8_lossy(&json).into_owned()),
            }
        }
        Ok(None)
    }
}

async fn ask(client: &Client) -> Result<Response<Body>, String> {
    let format = format!("{};stream=watch", protobuf::MEDIA_TYPE);
    let request = Request::get(ALL_PODS)
        .header(ACCEPT, &format)
        // To pack and unpack takes longer than to send.
        .header(ACCEPT_ENCODING, "identity")
        .body(Body::empty())
        .map_err(|fault| fault.to_string())?;
    let reply = client.send(request).await.map_err(|error| error.to_string())?;
    let answered = reply.headers().get(CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    if !reply.status().is_success() {
        return Err(format!("the API server answered {}", reply.status()));
    }
    if !answered.starts_with(format.as_bytes()) {
        return Err(format!("the API server answered with {}", String::from_utf8_lossy(answered)));
    }
    Ok(reply)
}

async fn next(body: &mut Body) -> Result<Bytes, String> {
    let frame = timeout(SILENCE, poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx))).await;
    match frame.map_err(|_| format!("nothing came for {} s", SILENCE.as_secs()))? {
        Some(Ok(frame)) => Ok(frame.into_data().unwrap_or_default()),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the API server ended the answer before all pods were told".to_owned()),
    }
}
