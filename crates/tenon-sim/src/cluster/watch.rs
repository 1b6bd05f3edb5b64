//! What happens from now on, or since a version?
//!
//! A watch reads the history of its resource from where it stands. It has no queue on the server's side, so one whose
//! client is gone costs nothing; one that falls too far behind is told to start anew.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream::{self, Stream};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::failure::{ApiResult, Failure, forbidden};
use super::handle::Cluster;
use super::list::view;
use super::query::Query;
use super::selector::Selector;
use super::state::State;
use super::store::Change;
use super::table;
use super::target::Target;

/// How often a silent watch tells its version.
const BOOKMARK: Duration = Duration::from_secs(60);
/// How long a watch lasts whose client did not say. Real servers draw it between half an hour and an hour.
const LASTS_S: u64 = 2700;

/// One watch, between two events.
struct Watching {
    cluster: Cluster,
    target: Target,
    selector: Selector,
    as_table: bool,
    tells_bookmarks: bool,
    /// The version up to which everything was told.
    seen: u64,
    ready: VecDeque<Bytes>,
    news: watch::Receiver<u64>,
    ends: Instant,
    bookmark_at: Instant,
    is_over: bool,
    /// The time of day at the last look, for ages in tables.
    time: Timestamp,
}

/// The body of a watch: one JSON object a line, until its time is up.
pub(crate) fn body(cluster: &Cluster, target: &Target, query: &Query, as_table: bool) -> ApiResult<Body> {
    let selector = query.selector(&target.kind)?;
    let start = Start::read(query)?;
    let now = Instant::now();
    let lasts = Duration::from_secs(query.number("timeoutSeconds").filter(|s| *s > 0).unwrap_or(LASTS_S));
    let mut watching = cluster.with(|state| Watching {
        cluster: cluster.clone(),
        target: target.clone(),
        selector,
        as_table,
        tells_bookmarks: query.is_on("allowWatchBookmarks"),
        seen: start.version,
        ready: VecDeque::new(),
        news: state.store.shelf(&target.kind.shelf()).news(),
        ends: now + lasts,
        bookmark_at: now + BOOKMARK,
        is_over: false,
        time: state.time(),
    });
    if start.tells_state {
        cluster.with(|state| watching.tell_state(state, start.tells_end));
    }
    Ok(Body::from_stream(watching.events()))
}

/// Where a watch begins.
struct Start {
    version: u64,
    /// Whether what is there comes first, as if it were made now.
    tells_state: bool,
    /// Whether the end of that is told.
    tells_end: bool,
}

impl Start {
    fn read(query: &Query) -> ApiResult<Self> {
        let (text, streams) = (query.text("resourceVersion"), query.is_on("sendInitialEvents"));
        if streams && query.text("resourceVersionMatch") != "NotOlderThan" {
            let told = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            let details = json!({ "group": "meta.k8s.io", "kind": "ListOptions" });
            let error = forbidden("resourceVersionMatch", told);
            return Err(Failure::unprocessable("ListOptions.meta.k8s.io", details, &[error]));
        }
        let unreadable = || {
            let told = format!(
                "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            );
            Failure::internal(told)
        };
        let version: u64 = if text.is_empty() { 0 } else { text.parse().map_err(|_| unreadable())? };
        Ok(Self { version, tells_state: version == 0 || streams, tells_end: streams })
    }
}

impl Watching {
    fn events(self) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> {
        stream::unfold(self, |mut watching| async move { Some((Ok(watching.next().await?), watching)) })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(line);
            }
            if self.is_over || Instant::now() >= self.ends {
                return None;
            }
            // Marked before the look, so that what comes after it wakes us.
            self.news.borrow_and_update();
            let cluster = self.cluster.clone();
            cluster.with(|state| self.catch_up(state));
            if !self.ready.is_empty() {
                continue;
            }
            tokio::select! {
                biased;
                changed = self.news.changed() => self.is_over = changed.is_err(),
                () = tokio::time::sleep_until(self.bookmark_at), if self.tells_bookmarks => {}
                () = tokio::time::sleep_until(self.ends) => {}
            }
        }
    }

    fn tell_state(&mut self, state: &State, tells_end: bool) {
        let all: Vec<Arc<Value>> =
            state.matching(&self.target, &self.selector).map(|(_, found)| found.clone()).collect();
        all.iter().for_each(|found| self.tell("ADDED", found));
        self.seen = state.store.version();
        if tells_end {
            self.tell_bookmark(json!({ "k8s.io/initial-events-end": "true" }));
        }
    }

    fn catch_up(&mut self, state: &mut State) {
        let version = state.store.version();
        self.time = state.time();
        let shelf = state.store.shelf(&self.target.kind.shelf());
        let Some(changes) = shelf.changes_since(self.seen).map(|changes| changes.cloned().collect::<Vec<_>>()) else {
            let oldest = shelf.oldest();
            let told = format!("too old resource version: {} ({oldest})", self.seen);
            let expired = Failure::new(410, "Expired", told).body();
            self.push(&json!({ "type": "ERROR", "object": expired }));
            self.is_over = true;
            return;
        };
        changes.iter().for_each(|change| self.tell_change(change));
        // A version from the future waits for its time.
        self.seen = self.seen.max(version);
        if self.tells_bookmarks && Instant::now() >= self.bookmark_at {
            self.bookmark_at = Instant::now() + BOOKMARK;
            self.tell_bookmark(Value::Null);
        }
    }

    /// What a change means to somebody who sees only what matches.
    fn tell_change(&mut self, change: &Change) {
        let (before, after) = (self.meant(change.before.as_ref()), self.meant(change.after.as_ref()));
        match (before, after) {
            (None, Some(after)) => self.tell("ADDED", &after),
            (Some(_), Some(after)) => self.tell("MODIFIED", &after),
            (Some(before), None) => {
                let mut last = (*before).clone();
                super::object::set_meta(&mut last, "resourceVersion", Some(change.version.to_string().into()));
                self.tell("DELETED", &Arc::new(last));
            }
            (None, None) => {}
        }
    }

    fn meant(&self, found: Option<&Arc<Value>>) -> Option<Arc<Value>> {
        let is_inside = |found: &Value| {
            self.target.namespace.is_empty() || super::object::namespace(found) == self.target.namespace
        };
        found.filter(|found| is_inside(found) && self.selector.matches(found)).cloned()
    }

    fn tell(&mut self, what: &str, found: &Arc<Value>) {
        let shown = view(&self.target.kind, found);
        if self.as_table {
            let rows = table::render(&self.target.kind, &[shown], self.time);
            self.push(&json!({ "type": what, "object": rows }));
            return;
        }
        self.push(&json!({ "type": what, "object": &*shown }));
    }

    fn tell_bookmark(&mut self, annotations: Value) {
        let kind = &self.target.kind;
        let mut metadata = json!({ "resourceVersion": self.seen.to_string() });
        if !annotations.is_null() {
            metadata["annotations"] = annotations;
        }
        let object = json!({ "kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata });
        self.push(&json!({ "type": "BOOKMARK", "object": object }));
    }

    fn push(&mut self, event: &Value) {
        self.ready.push_back(Bytes::from(format!("{event}\n")));
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::ClusterConfig;
    use super::*;

    #[tokio::test]
    async fn a_watch_leaves_nothing_behind_when_its_client_goes() {
        let cluster = Cluster::new(ClusterConfig::default()).unwrap();
        let target = cluster.with(|state| Target { name: None, ..state.target("", "pods", ("", "")) });
        let listeners = || cluster.with(|state| state.store.shelf(&target.kind.shelf()).listeners());
        let body = body(&cluster, &target, &Query::parse("watch=true&resourceVersion=1"), false).unwrap();
        let mut events = body.into_data_stream();
        let waiting = futures::future::poll_immediate(futures::StreamExt::next(&mut events)).await;
        assert_eq!((waiting.is_none(), listeners()), (true, 1));
        drop(events);
        assert_eq!(listeners(), 0);
    }
}
