//! When nodes that are late were last examined, and what was found: remembered by the claim's name until the claim is gone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tenon_model::Place;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::moments::after;

/// A node that is late is examined this often.
const EVERY: SignedDuration = SignedDuration::from_secs(30);

/// Guests of one host that are asked at the same time: Proxmox waits seconds for each that does not answer.
const AT_ONCE: usize = 2;

/// What is remembered.
#[derive(Debug, Default)]
pub(crate) struct Diagnoses(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    claims: BTreeMap<String, Found>,
    hosts: BTreeMap<Place, Arc<Semaphore>>,
}

#[derive(Debug)]
struct Found {
    examined: Timestamp,
    /// The reason, and how often in a row it was found.
    reason: &'static str,
    times: u32,
}

impl Diagnoses {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to examine the node of a claim now; nothing if it is not time, or enough others of its host are examined.
    pub(super) fn turn(&self, claim: &str, place: &Place, now: Timestamp) -> Option<OwnedSemaphorePermit> {
        let mut inner = self.lock();
        if inner.claims.get(claim).is_some_and(|last| after(last.examined, EVERY) > now) {
            return None;
        }
        let host = inner.hosts.entry(place.clone());
        let permit = host.or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))).clone().try_acquire_owned().ok()?;
        let found = inner.claims.entry(claim.to_owned()).or_insert(Found { examined: now, reason: "", times: 0 });
        found.examined = now;
        Some(permit)
    }

    /// How often in a row the reason was found, with this time.
    pub(super) fn found(&self, claim: &str, reason: &'static str) -> u32 {
        let mut inner = self.lock();
        let Some(found) = inner.claims.get_mut(claim) else { return 1 };
        found.times = if found.reason == reason { found.times.saturating_add(1) } else { 1 };
        found.reason = reason;
        found.times
    }

    /// The claim is gone.
    pub(crate) fn forget(&self, claim: &str) {
        self.lock().claims.remove(claim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_node_is_examined_now_and_then_and_only_some_of_a_host_at_once() {
        let book = Diagnoses::default();
        let place = |host: &str| Place { region: "r".to_owned(), host: host.parse().unwrap() };
        let first = book.turn("a", &place("pve1"), at(0));
        assert!(first.is_some() && book.turn("a", &place("pve1"), at(29)).is_none());
        let second = book.turn("b", &place("pve1"), at(0));
        assert!(second.is_some() && book.turn("c", &place("pve1"), at(0)).is_none(), "two of its host are examined");
        assert!(book.turn("d", &place("pve2"), at(0)).is_some(), "another host");
        drop(first);
        assert!(book.turn("c", &place("pve1"), at(1)).is_some(), "it has not lost its turn");
        assert!(book.turn("a", &place("pve1"), at(30)).is_some());
    }

    #[test]
    fn a_cause_is_counted_as_long_as_it_is_the_same() {
        let book = Diagnoses::default();
        let place = Place { region: "r".to_owned(), host: "pve1".parse().unwrap() };
        drop(book.turn("a", &place, at(0)));
        let found = |reason| book.found("a", reason);
        assert_eq!([found("x"), found("x"), found("y"), found("x"), found("x")], [1, 2, 1, 1, 2]);
        book.forget("a");
        assert_eq!(found("x"), 1);
    }
}
