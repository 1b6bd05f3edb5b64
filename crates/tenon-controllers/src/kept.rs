//! Keeps what was read for a while, and lets one reader read for all who want the same.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// More than any estate has templates or hosts; beyond it everything is read again.
const MOST: usize = 10_000;

/// What was read, and when.
type Reading<T> = Option<(Instant, Arc<T>)>;

/// One thing that is read. It is locked by whoever reads it: the others wait, and have what was read.
type Entry<T> = Arc<tokio::sync::Mutex<Reading<T>>>;

/// Things that people change rarely. May be lost at any time.
#[derive(Debug)]
pub(crate) struct Kept<K, T> {
    entries: Mutex<BTreeMap<K, Entry<T>>>,
}

impl<K, T> Default for Kept<K, T> {
    fn default() -> Kept<K, T> {
        Kept { entries: Mutex::default() }
    }
}

impl<K: Ord + Clone, T> Kept<K, T> {
    /// What is known, if it was read not longer ago than this; else what is read now. What cannot be read is not kept.
    pub(crate) async fn get<E>(
        &self,
        key: &K,
        at_most: Duration,
        read: impl Future<Output = Result<T, E>>,
    ) -> Result<Arc<T>, E> {
        let entry = self.entry(key);
        let mut reading = entry.lock().await;
        if let Some((_, value)) = reading.as_ref().filter(|(at, _)| at.elapsed() <= at_most) {
            return Ok(value.clone());
        }
        let value = Arc::new(read.await?);
        *reading = Some((Instant::now(), value.clone()));
        Ok(value)
    }

    /// Forgets what is kept under such keys. Who reads it right now still has what is read.
    pub(crate) fn forget(&self, is_outdated: impl Fn(&K) -> bool) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).retain(|key, _| !is_outdated(key));
    }

    fn entry(&self, key: &K) -> Entry<T> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= MOST && !entries.contains_key(key) {
            entries.clear();
        }
        entries.entry(key.clone()).or_insert_with(|| Arc::new(tokio::sync::Mutex::new(None))).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::future::join_all;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn many_readers_read_once_and_again_when_it_is_too_old() {
        let (kept, read) = (Kept::<u32, u32>::default(), AtomicU32::new(0));
        let ask = |age: u64| {
            kept.get(&7, Duration::from_secs(age), async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok::<u32, ()>(read.fetch_add(1, Ordering::SeqCst))
            })
        };
        let all = join_all((0..50).map(|_| ask(60))).await;
        assert!(all.iter().all(|value| value.as_deref() == Ok(&0)), "{all:?}");
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!((*ask(60).await.unwrap(), *ask(10).await.unwrap()), (0, 1));
    }

    #[tokio::test]
    async fn what_is_forgotten_is_read_again_and_nothing_else() {
        let (kept, read) = (Kept::<u32, u32>::default(), AtomicU32::new(0));
        let ask = async |key: u32| {
            let reading = async { Ok::<u32, ()>(read.fetch_add(1, Ordering::SeqCst)) };
            kept.get(&key, Duration::from_secs(60), reading).await.map(|value| *value)
        };
        assert_eq!((ask(7).await, ask(8).await), (Ok(0), Ok(1)));
        kept.forget(|key| *key == 7);
        assert_eq!((ask(7).await, ask(8).await), (Ok(2), Ok(1)));
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_read_again() {
        let kept = Kept::<u32, u32>::default();
        let age = Duration::from_secs(60);
        assert_eq!(kept.get(&1, age, async { Err("away") }).await, Err("away"));
        assert_eq!(kept.get(&1, age, async { Ok::<u32, &str>(5) }).await.as_deref(), Ok(&5));
    }
}
