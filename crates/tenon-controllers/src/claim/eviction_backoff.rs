//! When may the eviction of a pod be tried again? Each pod waits by itself, so that one that cannot go keeps no other.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenon_model::PodKey;
use tokio::time::Instant;

use crate::moments::{backoff, instant_after};

/// An eviction that was refused is tried again after this long; twice as long each time …
const FIRST: Duration = Duration::from_millis(100);

/// … up to this.
const MOST: Duration = Duration::from_secs(10);

/// A pod whose eviction was not tried for so long has left, or its node stays.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// Pods whose eviction was refused.
#[derive(Debug, Default)]
pub(crate) struct EvictionBackoff {
    refused: Mutex<BTreeMap<PodKey, Refused>>,
}

#[derive(Debug)]
struct Refused {
    times: u32,
    until: Instant,
}

impl EvictionBackoff {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PodKey, Refused>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long it takes until a pod may be evicted; nothing if it may now.
    pub(crate) fn wait(&self, pod: &PodKey) -> Option<Duration> {
        let wait = self.lock().get(pod)?.until.saturating_duration_since(Instant::now());
        Some(wait).filter(|wait| !wait.is_zero())
    }

    /// The eviction of a pod was refused; how long it takes until it may be tried again.
    pub(crate) fn refused(&self, pod: &PodKey) -> Duration {
        let (mut refused, now) = (self.lock(), Instant::now());
        refused.retain(|_, known| instant_after(known.until, KEPT_FOR) > now);
        let times = refused.get(pod).map_or(1, |known| known.times.saturating_add(1));
        let wait = backoff(FIRST, MOST, times);
        refused.insert(pod.clone(), Refused { times, until: instant_after(now, wait) });
        wait
    }

    /// A pod leaves.
    pub(crate) fn done(&self, pod: &PodKey) {
        self.lock().remove(pod);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(uid: &str) -> PodKey {
        PodKey { namespace: "shop".into(), name: "db-0".into(), uid: uid.into() }
    }

    #[tokio::test(start_paused = true)]
    async fn each_pod_waits_longer_each_time_up_to_ten_seconds_and_another_pod_does_not() {
        let evictions = EvictionBackoff::default();
        let waits: Vec<u128> = (0..9).map(|_| evictions.refused(&key("a")).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
        assert_eq!(evictions.wait(&key("b")), None, "another pod of the same name");
        tokio::time::advance(Duration::from_millis(9_999)).await;
        assert!(evictions.wait(&key("a")).is_some());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(evictions.wait(&key("a")), None);
        evictions.done(&key("a"));
        assert_eq!(evictions.refused(&key("a")), FIRST);
    }

    #[tokio::test(start_paused = true)]
    async fn pods_that_left_are_forgotten() {
        let evictions = EvictionBackoff::default();
        evictions.refused(&key("a"));
        tokio::time::advance(KEPT_FOR + MOST).await;
        evictions.refused(&key("b"));
        assert_eq!(evictions.lock().len(), 1);
    }
}
