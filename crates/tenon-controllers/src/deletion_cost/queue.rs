//! What is to be written on pods: each pod once, the last word counts, and after an error there is a pause.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tenon_model::PodKey;
use tokio::time::Instant;

use super::write::{Change, Outcome, write};
use crate::context::Context;

/// Writes that are on their way at once: an API server answers each within milliseconds, and others have requests, too.
const AT_ONCE: usize = 8;

/// The pause after the first error; each further one in a row doubles it …
const PAUSE_LEAST: Duration = Duration::from_millis(100);
/// … up to this.
const PAUSE_MOST: Duration = Duration::from_secs(10);

/// More wait in vain: the next pass finds them again.
const LENGTH_MOST: usize = 20_000;

/// What is to be written.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    changes: BTreeMap<Arc<PodKey>, Change>,
    order: VecDeque<Arc<PodKey>>,
    /// Errors since the last write that went well.
    failures: u32,
    /// Nothing is written before.
    paused_until: Option<Instant>,
}

impl WriteQueue {
    /// Adds a change of a pod, or replaces the one that waits.
    pub(super) fn add(&mut self, pod: &Arc<PodKey>, change: Change) {
        if let Some(waiting) = self.changes.get_mut(pod) {
            *waiting = change;
        } else if self.order.len() < LENGTH_MOST {
            self.changes.insert(pod.clone(), change);
            self.order.push_back(pod.clone());
        }
    }

    /// Forgets everything that waits.
    pub(super) fn clear(&mut self) {
        self.changes.clear();
        self.order.clear();
    }

    /// Until something can be written; for ever if nothing waits.
    pub(super) async fn due(&self) {
        match (self.order.is_empty(), self.paused_until) {
            (true, _) => std::future::pending().await,
            (false, Some(until)) => tokio::time::sleep_until(until).await,
            (false, None) => {}
        }
    }

    /// Writes the next ones. Returns the last error: what it is about is tried again, after a pause and alone.
    pub(super) async fn write_some(&mut self, context: &Context) -> Option<kube::Error> {
        let at_once = if self.failures == 0 { AT_ONCE } else { 1 };
        let next: Vec<Arc<PodKey>> = (0..at_once).map_while(|_| self.order.pop_front()).collect();
        let next: Vec<_> = next.into_iter().filter_map(|pod| Some((self.changes.remove(&pod)?, pod))).collect();
        let outcomes = join_all(next.iter().map(|(change, pod)| write(context, pod, *change))).await;
        let mut failed = None;
        for ((change, pod), outcome) in next.into_iter().zip(outcomes) {
            if let Outcome::Failed(error) = outcome {
                self.add(&pod, change);
                failed = Some(error);
            }
        }
        self.failures = if failed.is_some() { self.failures.saturating_add(1) } else { 0 };
        self.paused_until = failed.is_some().then(|| Instant::now() + pause(self.failures));
        failed
    }
}

/// The pause after so many errors in a row.
fn pause(failures: u32) -> Duration {
    PAUSE_LEAST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(PAUSE_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str) -> Arc<PodKey> {
        Arc::new(PodKey { namespace: "n".into(), name: name.into(), uid: name.into() })
    }

    #[test]
    fn j7_of_two_changes_of_a_pod_the_last_one_counts_and_another_pod_of_that_name_is_another() {
        let mut queue = WriteQueue::default();
        let other = Arc::new(PodKey { uid: "other".into(), ..(*pod("a")).clone() });
        queue.add(&pod("a"), Change::Manage(Some(-1)));
        queue.add(&other, Change::Manage(None));
        queue.add(&pod("a"), Change::Manage(Some(-2)));
        assert_eq!(queue.order.len(), 2);
        assert_eq!((queue.changes[&pod("a")], queue.changes[&other]), (Change::Manage(Some(-2)), Change::Manage(None)));
    }

    #[test]
    fn the_queue_has_a_bound_and_pauses_grow_up_to_ten_seconds() {
        let mut queue = WriteQueue::default();
        for number in 0..LENGTH_MOST + 5 {
            queue.add(&pod(&number.to_string()), Change::CleanUp);
        }
        assert_eq!((queue.order.len(), queue.changes.len()), (LENGTH_MOST, LENGTH_MOST));
        let pauses: Vec<u128> = [1, 2, 3, 7, 8, 100].map(|failures| pause(failures).as_millis()).to_vec();
        assert_eq!(pauses, [100, 200, 400, 6400, 10_000, 10_000]);
    }
}
