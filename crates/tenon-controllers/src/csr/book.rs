//! Which requests are not decided yet, and when is each looked at next?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::ResourceExt;
use kube::runtime::watcher::Event;
use tokio::time::Instant;

use crate::moments::{backoff, instant_after};

/// A request that waits for something is looked at again after this long; twice as long each time …
const AGAIN_FIRST: Duration = Duration::from_secs(1);
/// … up to this.
const AGAIN_MOST: Duration = Duration::from_secs(60);

/// Requests that are kept at most. Whoever has any token may write as many as it likes; those beyond are looked at when the
/// watch is begun anew.
const MOST: usize = 10_000;

/// Requests that are not decided.
#[derive(Debug, Default)]
pub(super) struct Book {
    open: BTreeMap<String, Open>,
    /// What a list that is being read has shown so far.
    listed: BTreeSet<String>,
}

/// A request that is not decided.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) request: Arc<CertificateSigningRequest>,
    /// How often it was looked at in vain.
    pub(super) tries: u32,
    due: Instant,
}

impl Book {
    /// Takes in what the watch shows.
    pub(super) fn note(&mut self, event: Event<CertificateSigningRequest>, now: Instant) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(request) => {
                self.listed.insert(request.name_any());
                self.add(request, now);
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                self.open.retain(|name, _| listed.contains(name));
            }
            Event::Apply(request) => self.add(request, now),
            Event::Delete(request) => self.settle(&request.name_any()),
        }
    }

    fn add(&mut self, request: CertificateSigningRequest, now: Instant) {
        let name = request.name_any();
        if is_decided(&request) {
            return self.settle(&name);
        }
        // What is asked for cannot be changed, so a request that is known is no news.
        let known = self.open.get(&name).filter(|known| known.request.uid() == request.uid());
        let (tries, due) = known.map_or((0, now), |known| (known.tries, known.due));
        if known.is_some() || self.open.len() < MOST {
            self.open.insert(name, Open { request: Arc::new(request), tries, due });
        }
    }

    /// When the next one is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.open.values().map(|open| open.due).min()
    }

    /// Those that are due.
    pub(super) fn due(&self, now: Instant) -> Vec<Open> {
        self.open.values().filter(|open| open.due <= now).cloned().collect()
    }

    /// It is decided, or left to others.
    pub(super) fn settle(&mut self, name: &str) {
        self.open.remove(name);
    }

    /// It is looked at again later.
    pub(super) fn postpone(&mut self, name: &str, now: Instant) {
        if let Some(open) = self.open.get_mut(name) {
            open.tries = open.tries.saturating_add(1);
            open.due = instant_after(now, backoff(AGAIN_FIRST, AGAIN_MOST, open.tries));
        }
    }
}

/// Whether somebody has decided.
fn is_decided(request: &CertificateSigningRequest) -> bool {
    let status = request.status.as_ref();
    let mut conditions = status.into_iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| matches!(condition.type_.as_str(), "Approved" | "Denied" | "Failed"))
        || status.is_some_and(|status| status.certificate.is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(name: &str, uid: &str, status: &Value) -> CertificateSigningRequest {
        let spec = json!({ "request": "", "signerName": "s" });
        serde_json::from_value(json!({ "metadata": { "name": name, "uid": uid }, "spec": spec, "status": status }))
            .unwrap()
    }

    fn names(book: &Book, now: Instant) -> Vec<String> {
        book.due(now).iter().map(|open| open.request.name_any()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_due_at_once_and_then_less_and_less_often() {
        let (mut book, now) = (Book::default(), Instant::now());
        assert_eq!(book.next_due(), None);
        book.note(Event::Apply(request("a", "1", &json!({}))), now);
        assert_eq!((names(&book, now), book.next_due()), (vec!["a".to_owned()], Some(now)));
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            book.postpone("a", now);
            assert_eq!(book.next_due(), Some(now + Duration::from_secs(wait)));
        }
        book.note(Event::Apply(request("a", "1", &json!({}))), now);
        assert_eq!(book.next_due(), Some(now + Duration::from_secs(60)), "it is no news");
        book.note(Event::Apply(request("a", "2", &json!({}))), now);
        assert_eq!(book.next_due(), Some(now), "another of the same name is");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_decided_deleted_or_not_listed_any_more_is_forgotten() {
        let (mut book, now) = (Book::default(), Instant::now());
        for name in ["a", "b", "c", "d", "e"] {
            book.note(Event::Apply(request(name, "1", &json!({}))), now);
        }
        let told = |kind: &str| json!({ "conditions": [{ "type": kind, "status": "True" }] });
        book.note(Event::Apply(request("a", "1", &told("Approved"))), now);
        book.note(Event::Apply(request("b", "1", &told("Denied"))), now);
        book.note(Event::Delete(request("c", "1", &json!({}))), now);
        assert_eq!(names(&book, now), ["d", "e"]);
        for event in [Event::Init, Event::InitApply(request("e", "1", &json!({}))), Event::InitDone] {
            book.note(event, now);
        }
        assert_eq!(names(&book, now), ["e"]);
        book.note(Event::Apply(request("e", "1", &json!({ "certificate": "eA==" }))), now);
        assert_eq!(book.next_due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_requests_is_kept_within_bounds() {
        let (mut book, now) = (Book::default(), Instant::now());
        for number in 0..=MOST {
            book.note(Event::Apply(request(&number.to_string(), "1", &json!({}))), now);
        }
        assert_eq!(book.due(now).len(), MOST);
        book.note(Event::Apply(request("0", "1", &json!({}))), now);
        assert_eq!(book.due(now).len(), MOST, "one that is known stays");
    }
}
