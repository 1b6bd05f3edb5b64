//! How many requests may be under way at once, in the region, at one host, at one storage; and how many may be sent in a second.
//!
//! A host that does not answer holds each of its requests for seconds; it must not hold those of the others. So the
//! narrow place is taken first, and whoever waits for it takes nothing from the wide one.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Hosts and storages that are remembered while nobody is there; more are forgotten.
const REMEMBERED: usize = 256;

/// What a second without requests saves up for later: a pass of the controller asks in bursts.
const SAVED: Duration = Duration::from_secs(1);

/// How many requests may be under way at once, each at least one; and how many a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// In the whole Proxmox cluster.
    pub region: usize,
    /// At one host. Proxmox serves a host's requests with a handful of workers.
    pub host: usize,
    /// At one storage: uploads, downloads, listings, deletions and copies to it.
    pub storage: usize,
    /// How many requests are sent to the Proxmox cluster in a second, on average over a few; unset: as many as there is room for.
    pub per_second: Option<NonZero<u32>>,
    /// How long a request waits for its place before it is given back unsent.
    pub wait: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { region: 32, host: 8, storage: 4, per_second: None, wait: Duration::from_secs(60) }
    }
}

/// Where a request goes, as far as limits are concerned.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: Option<String>,
    pub(crate) storage: Option<String>,
}

impl Target {
    /// Reads the place off a path, and the storage off a parameter that names one.
    pub(crate) fn of(path: &str, params: &[(&str, String)]) -> Target {
        let parts: Vec<&str> = path.split(['/', '?']).filter(|part| !part.is_empty()).collect();
        let (host, storage) = match parts.as_slice() {
            ["nodes", host, "storage", storage, ..] => (Some(*host), Some(*storage)),
            ["nodes", host, ..] => (Some(*host), None),
            _ => (None, None),
        };
        let named = || params.iter().find(|(name, _)| *name == "storage").map(|(_, storage)| storage.clone());
        Target { host: host.map(str::to_owned), storage: storage.map(str::to_owned).or_else(named) }
    }
}

/// The places of one client.
#[derive(Debug)]
pub(crate) struct Gates {
    limits: Limits,
    region: Arc<Semaphore>,
    narrow: Mutex<BTreeMap<(char, String), Arc<Semaphore>>>,
    /// The earliest moment at which the next request may be sent; none before the first.
    next: Mutex<Option<Instant>>,
}

/// Holds a place; dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct Admission {
    _places: Vec<OwnedSemaphorePermit>,
}

/// A request got no turn.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Crowded {
    /// Too many requests were under way for too long.
    #[error("waited {waited_s} s because too many requests to Proxmox are in flight")]
    Places { waited_s: u64 },
    /// So many requests came before it that its turn would be too late.
    #[error(
        "not sent within {waited_s} s because of max_requests_per_second ({per_second}) of the cloud config; raise it"
    )]
    Rate { waited_s: u64, per_second: NonZero<u32> },
}

impl Gates {
    pub(crate) fn new(limits: Limits) -> Gates {
        let region = Arc::new(Semaphore::new(limits.region.max(1)));
        Gates { limits, region, narrow: Mutex::new(BTreeMap::new()), next: Mutex::new(None) }
    }

    /// Waits for a place in each of the queues, the narrowest first, and then for its turn.
    pub(crate) async fn enter(&self, place: &Target) -> Result<Admission, Crowded> {
        let waited_s = self.limits.wait.as_secs();
        let crowded = || Crowded::Places { waited_s };
        let deadline = Instant::now() + self.limits.wait;
        let storage = place.storage.as_ref().map(|name| self.gate('s', name, self.limits.storage));
        let host = place.host.as_ref().map(|name| self.gate('h', name, self.limits.host));
        let mut places = Vec::with_capacity(3);
        for gate in [storage, host, Some(self.region.clone())].into_iter().flatten() {
            let place = tokio::time::timeout_at(deadline, gate.acquire_owned()).await;
            // A semaphore that is never closed gives its permit or does not answer.
            places.push(place.map_err(|_| crowded())?.map_err(|_| crowded())?);
        }
        if let Some(per_second) = self.limits.per_second {
            let turn = self.turn(per_second, deadline).ok_or(Crowded::Rate { waited_s, per_second })?;
            tokio::time::sleep_until(turn).await;
        }
        Ok(Admission { _places: places })
    }

    /// When the next request may be sent; it is taken, unless it is too late.
    fn turn(&self, per_second: NonZero<u32>, deadline: Instant) -> Option<Instant> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let saved = now.checked_sub(SAVED).unwrap_or(now);
        let turn = next.unwrap_or(now).max(saved);
        if turn > deadline {
            return None;
        }
        *next = Some(turn + Duration::from_secs(1) / per_second.get());
        Some(turn)
    }

    fn gate(&self, kind: char, name: &str, width: usize) -> Arc<Semaphore> {
        let mut narrow = self.narrow.lock().unwrap_or_else(PoisonError::into_inner);
        if narrow.len() >= REMEMBERED {
            // Nobody is in, nor waits for, what only the map holds.
            narrow.retain(|_, gate| Arc::strong_count(gate) > 1);
        }
        narrow.entry((kind, name.to_owned())).or_insert_with(|| Arc::new(Semaphore::new(width.max(1)))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_read_off_the_request() {
        let place = |path: &str, params: &[(&str, String)]| Target::of(path, params);
        let at = |host: Option<&str>, storage: Option<&str>| Target {
            host: host.map(str::to_owned),
            storage: storage.map(str::to_owned),
        };
        assert_eq!(place("/version", &[]), at(None, None));
        assert_eq!(place("/nodes/a/qemu/1/config", &[]), at(Some("a"), None));
        assert_eq!(place("/nodes/a/storage/s/content?x=1", &[]), at(Some("a"), Some("s")));
        assert_eq!(place("/nodes/a/storage", &[]), at(Some("a"), None));
        assert_eq!(place("/nodes/a/qemu/1/clone", &[("storage", "t".to_owned())]), at(Some("a"), Some("t")));
    }

    #[tokio::test(start_paused = true)]
    async fn one_crowded_host_does_not_keep_the_others_out() {
        let gates =
            Gates::new(Limits { region: 3, host: 2, storage: 1, wait: Duration::from_secs(5), per_second: None });
        let at = |host: &str| Target { host: Some(host.to_owned()), storage: None };
        let (first, _second) = (gates.enter(&at("a")).await.unwrap(), gates.enter(&at("a")).await.unwrap());
        let crowded = at("a");
        let waiting = gates.enter(&crowded);
        tokio::pin!(waiting);
        assert!(futures_are_pending(waiting.as_mut()).await);
        let other = gates.enter(&at("b")).await.unwrap();
        drop((first, other));
        waiting.await.unwrap();
        gates.enter(&at("b")).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_a_place_ends() {
        let gates =
            Gates::new(Limits { region: 1, host: 1, storage: 1, wait: Duration::from_secs(5), per_second: None });
        let _held = gates.enter(&Target::default()).await.unwrap();
        let error = gates.enter(&Target::default()).await.unwrap_err();
        assert_eq!(error.to_string(), "waited 5 s because too many requests to Proxmox are in flight");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_kept_and_a_quiet_second_is_saved_up() {
        let gates = Gates::new(Limits { per_second: NonZero::new(10), ..Limits::default() });
        let begun = Instant::now();
        for _ in 0..30 {
            gates.enter(&Target::default()).await.unwrap();
        }
        assert_eq!((Instant::now() - begun).as_millis(), 2900);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let begun = Instant::now();
        for _ in 0..30 {
            gates.enter(&Target::default()).await.unwrap();
        }
        assert_eq!((Instant::now() - begun).as_millis(), 1900, "no more than one second is saved up");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_whose_turn_is_too_late_is_given_back_at_once() {
        let limits = Limits { per_second: NonZero::new(1), wait: Duration::from_secs(2), ..Limits::default() };
        let gates = Gates::new(limits);
        let anywhere = Target::default();
        let enter = || gates.enter(&anywhere);
        let begun = Instant::now();
        let (first, second, third, fourth) = tokio::join!(enter(), enter(), enter(), enter());
        assert!(first.is_ok() && second.is_ok() && third.is_ok());
        let refused = "not sent within 2 s because of max_requests_per_second (1) of the cloud config; raise it";
        assert_eq!(fourth.unwrap_err().to_string(), refused);
        assert_eq!((Instant::now() - begun).as_secs(), 2);
    }

    #[tokio::test]
    async fn names_that_are_not_in_use_are_forgotten() {
        let gates = Gates::new(Limits::default());
        for number in 0..2 * REMEMBERED {
            gates.enter(&Target { host: Some(number.to_string()), storage: None }).await.unwrap();
        }
        assert!(gates.narrow.lock().unwrap().len() <= REMEMBERED);
    }

    /// Whether a future does not end by itself.
    async fn futures_are_pending(future: impl Future<Output = Result<Admission, Crowded>>) -> bool {
        tokio::time::timeout(Duration::from_secs(1), future).await.is_err()
    }
}
