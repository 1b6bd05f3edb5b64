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

/// Requests that are kept at most …
const MOST: usize = 10_000;

/// … and of one user. Whoever has any token may write as many as it likes, and must not push out the requests of others.
const MOST_OF_USER: usize = 100;

/// Requests of one user that are looked at, at the same time: one whose looks hang leaves room for others.
const AT_ONCE_OF_USER: usize = 2;

/// What was not kept is listed again after this long; twice as long each time there is still no room …
const LIST_AGAIN_FIRST: Duration = Duration::from_secs(30);
/// … up to this.
const LIST_AGAIN_MOST: Duration = Duration::from_secs(600);

/// Requests that are not decided.
#[derive(Debug, Default)]
pub(super) struct Book {
    open: BTreeMap<String, Open>,
    /// How many of `open` each user has.
    of_users: BTreeMap<String, usize>,
    /// What a list that is being read has shown so far.
    listed: BTreeSet<String>,
    /// When all are listed again because there was no room for one.
    list_again_at: Option<Instant>,
    /// Lists in a row of which something was not kept.
    short_lists: u32,
}

/// A request that is not decided.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) request: Arc<CertificateSigningRequest>,
    /// How often it was looked at in vain.
    pub(super) tries: u32,
    due: Instant,
    /// Whether it is being looked at.
    is_busy: bool,
}

impl Open {
    fn user(&self) -> &str {
        user(&self.request)
    }
}

impl Book {
    /// Takes in what the watch shows.
    pub(super) fn note(&mut self, event: Event<CertificateSigningRequest>, now: Instant) {
        match event {
            Event::Init => self.begin_list(),
            Event::InitApply(request) => {
                self.listed.insert(request.name_any());
                self.add(request, now);
            }
            Event::InitDone => self.end_list(),
            Event::Apply(request) => self.add(request, now),
            Event::Delete(request) => self.remove(&request.name_any()),
        }
    }

    /// Everything is listed from here on.
    pub(super) fn begin_list(&mut self) {
        self.listed.clear();
        self.list_again_at = None;
    }

    fn end_list(&mut self) {
        let listed = std::mem::take(&mut self.listed);
        let gone: Vec<String> = self.open.keys().filter(|name| !listed.contains(*name)).cloned().collect();
        gone.iter().for_each(|name| self.remove(name));
        if self.list_again_at.is_none() {
            self.short_lists = 0;
        }
    }

    fn add(&mut self, request: CertificateSigningRequest, now: Instant) {
        let name = request.name_any();
        if is_decided(&request) {
            return self.remove(&name);
        }
        // What is asked for cannot be changed, so a request that is known is no news.
        if let Some(known) = self.open.get_mut(&name).filter(|known| known.request.uid() == request.uid()) {
            known.request = Arc::new(request);
            return;
        }
        self.remove(&name);
        let user = user(&request).to_owned();
        let of_user = self.of_users.get(&user).copied().unwrap_or_default();
        if self.open.len() >= MOST || of_user >= MOST_OF_USER {
            return self.list_again(now);
        }
        self.of_users.insert(user, of_user.saturating_add(1));
        self.open.insert(name, Open { request: Arc::new(request), tries: 0, due: now, is_busy: false });
    }

    fn list_again(&mut self, now: Instant) {
        if self.list_again_at.is_none() {
            self.short_lists = self.short_lists.saturating_add(1);
            let wait = backoff(LIST_AGAIN_FIRST, LIST_AGAIN_MOST, self.short_lists);
            self.list_again_at = Some(instant_after(now, wait));
        }
    }

    fn remove(&mut self, name: &str) {
        let Some(open) = self.open.remove(name) else { return };
        if let Some(count) = self.of_users.get_mut(open.user()) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.of_users.remove(open.user());
            }
        }
    }

    /// When all are to be listed again, if something was not kept.
    pub(super) fn list_again_at(&self) -> Option<Instant> {
        self.list_again_at
    }

    /// When the next one is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.next().map(|open| open.due)
    }

    /// The one that is due for longest, unless its user has enough that are being looked at.
    fn next(&self) -> Option<&Open> {
        let busy: Vec<&str> = self.open.values().filter(|open| open.is_busy).map(Open::user).collect();
        let has_room = |open: &Open| busy.iter().filter(|user| **user == open.user()).count() < AT_ONCE_OF_USER;
        self.open.values().filter(|open| !open.is_busy && has_room(open)).min_by_key(|open| open.due)
    }

    /// Takes one that is due, to look at it. It is given back by `settle` or `postpone`.
    pub(super) fn take(&mut self, now: Instant) -> Option<Open> {
        let name = self.next().filter(|open| open.due <= now)?.request.name_any();
        let open = self.open.get_mut(&name)?;
        open.is_busy = true;
        Some(open.clone())
    }

    /// It is decided, or left to others.
    pub(super) fn settle(&mut self, looked: &Open) {
        let name = looked.request.name_any();
        if self.open.get(&name).is_some_and(|open| open.request.uid() == looked.request.uid()) {
            self.remove(&name);
        }
    }

    /// It is looked at again later.
    pub(super) fn postpone(&mut self, looked: &Open, now: Instant) {
        let open = self.open.get_mut(&looked.request.name_any());
        if let Some(open) = open.filter(|open| open.request.uid() == looked.request.uid()) {
            open.is_busy = false;
            open.tries = open.tries.saturating_add(1);
            open.due = instant_after(now, backoff(AGAIN_FIRST, AGAIN_MOST, open.tries));
        }
    }
}

/// Who asks, as the API server says.
fn user(request: &CertificateSigningRequest) -> &str {
    request.spec.username.as_deref().unwrap_or_default()
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
        of_user("u", name, json!({ "metadata": { "name": name, "uid": uid }, "status": status }))
    }

    fn of_user(user: &str, name: &str, more: Value) -> CertificateSigningRequest {
        let spec = json!({ "request": "", "signerName": "s", "username": user });
        let mut request = json!({ "metadata": { "name": name, "uid": name }, "spec": spec });
        crate::claim::test_stage::merge(&mut request, more);
        serde_json::from_value(request).unwrap()
    }

    fn applied(user: &str, name: &str) -> Event<CertificateSigningRequest> {
        Event::Apply(of_user(user, name, json!({})))
    }

    fn names(book: &Book) -> Vec<String> {
        book.open.keys().cloned().collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_due_at_once_and_then_less_and_less_often() {
        let (mut book, now) = (Book::default(), Instant::now());
        assert_eq!(book.next_due(), None);
        book.note(Event::Apply(request("a", "1", &json!({}))), now);
        assert_eq!(book.next_due(), Some(now));
        let open = book.take(now).unwrap();
        assert_eq!((open.request.name_any().as_str(), book.next_due()), ("a", None), "it is looked at once at a time");
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            book.postpone(&open, now);
            assert_eq!(book.next_due(), Some(now + Duration::from_secs(wait)));
            assert!(book.take(now).is_none());
        }
        book.note(Event::Apply(request("a", "1", &json!({}))), now);
        assert_eq!(book.next_due(), Some(now + Duration::from_secs(60)), "it is no news");
        book.note(Event::Apply(request("a", "2", &json!({}))), now);
        assert_eq!(book.next_due(), Some(now), "another of the same name is");
        book.settle(&open);
        assert_eq!(book.next_due(), Some(now), "and is not settled with the first");
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
        assert_eq!(names(&book), ["d", "e"]);
        for event in [Event::Init, Event::InitApply(request("e", "1", &json!({}))), Event::InitDone] {
            book.note(event, now);
        }
        assert_eq!(names(&book), ["e"]);
        book.note(Event::Apply(request("e", "1", &json!({ "certificate": "eA==" }))), now);
        assert_eq!((book.next_due(), book.of_users.len()), (None, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_one_user_does_not_push_out_the_requests_of_others() {
        let (mut book, now) = (Book::default(), Instant::now());
        for number in 0..MOST {
            book.note(applied("flood", &format!("flood-{number}")), now);
        }
        assert_eq!(book.open.len(), MOST_OF_USER);
        book.note(applied("other", "other"), now);
        assert!(book.open.contains_key("other"));
        for number in 0..MOST {
            book.note(applied(&number.to_string(), &number.to_string()), now);
        }
        assert_eq!(book.open.len(), MOST, "all users together are kept within bounds");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_kept_is_listed_again_until_there_was_room_for_all() {
        let (mut book, now) = (Book::default(), Instant::now());
        let list = |book: &mut Book, count: usize| {
            book.note(Event::Init, now);
            (0..count).for_each(|number| {
                book.note(Event::InitApply(of_user("u", &number.to_string(), json!({}))), now);
            });
            book.note(Event::InitDone, now);
            book.list_again_at().map(|at| at.duration_since(now).as_secs())
        };
        assert_eq!(list(&mut book, MOST_OF_USER), None);
        book.note(applied("u", "one-more"), now);
        assert_eq!(book.list_again_at(), Some(now + LIST_AGAIN_FIRST));
        let waits: Vec<_> = (0..6).map(|_| list(&mut book, MOST_OF_USER + 1).unwrap()).collect();
        assert_eq!(waits, [60, 120, 240, 480, 600, 600]);
        assert_eq!(list(&mut book, MOST_OF_USER), None);
        assert_eq!(list(&mut book, MOST_OF_USER + 1), Some(30));
    }

    #[tokio::test(start_paused = true)]
    async fn one_user_has_only_some_looked_at_at_once() {
        let (mut book, now) = (Book::default(), Instant::now());
        for name in ["a", "b", "c"] {
            book.note(applied("u", name), now);
        }
        book.note(applied("v", "z"), now);
        let taken: Vec<Open> = std::iter::from_fn(|| book.take(now)).collect();
        let names: Vec<String> = taken.iter().map(|open| open.request.name_any()).collect();
        assert_eq!((names, book.next_due()), (vec!["a".to_owned(), "b".to_owned(), "z".to_owned()], None));
        book.settle(&taken[0]);
        assert_eq!(book.take(now).unwrap().request.name_any(), "c");
    }
}
