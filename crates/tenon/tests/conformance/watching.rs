//! What does a watch tell, line by line?

use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use futures::{AsyncBufReadExt as _, Stream, StreamExt as _};
use http::Request;
use kube::Client;
use serde_json::Value;

use crate::reply::text;

/// What a loaded machine needs at most to tell a change.
const PATIENCE: Duration = Duration::from_secs(30);

/// A watch that is open.
pub(crate) struct Watch {
    lines: Pin<Box<dyn Stream<Item = std::io::Result<String>> + Send>>,
}

impl Watch {
    pub(crate) async fn open(client: &Client, path: &str) -> anyhow::Result<Watch> {
        let request = Request::get(path).body(Vec::new())?;
        Ok(Watch { lines: Box::pin(client.request_stream(request).await?.lines()) })
    }

    /// The next event as its type and its object; `None` when the watch is over.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<(String, Value)>> {
        let line = tokio::time::timeout(PATIENCE, self.lines.next()).await.context("a watch stays silent")?;
        let Some(line) = line else { return Ok(None) };
        let mut event: Value = serde_json::from_str(&line?)?;
        Ok(Some((text(&event, "/type").to_owned(), event["object"].take())))
    }

    /// The next events as `TYPE name`, and their objects.
    pub(crate) async fn events(&mut self, count: usize) -> anyhow::Result<(Vec<String>, Vec<Value>)> {
        let (mut told, mut objects) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (kind, object) = self.next().await?.with_context(|| format!("the watch ended after {told:?}"))?;
            told.push(format!("{kind} {}", text(&object, "/metadata/name")));
            objects.push(object);
        }
        Ok((told, objects))
    }

    /// Checks that exactly these events come next.
    pub(crate) async fn tells(&mut self, expected: &[&str]) -> anyhow::Result<Vec<Value>> {
        let (told, objects) = self.events(expected.len()).await?;
        ensure!(told == expected, "the watch told {told:?} instead of {expected:?}: {objects:#?}");
        Ok(objects)
    }
}
