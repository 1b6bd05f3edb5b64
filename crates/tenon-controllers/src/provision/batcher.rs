//! When is it time to plan? Triggers are collected for a while, so that what comes together is planned together.
//!
//! A trigger is the uid of something that needs a plan: a pod that fits nowhere, a node that is being emptied, a claim that
//! somebody made by hand. What they are is the business of whoever names them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::moments::instant_after;

/// Who still waits triggers again after this long, even if nothing changed that we would see.
const AGAIN: Duration = Duration::from_secs(10);

/// Not everything that triggers is told of, so one looks this often while nothing is told.
const LOOK: Duration = Duration::from_secs(1);

/// What is told of in one go is looked at in one go: in a large cluster something changes all the time, and a look at every
/// pod is not free.
const SETTLE: Duration = Duration::from_millis(20);

/// Uids of everything that waits now.
pub(super) type PendingUids = BTreeSet<String>;

/// The window in which triggers are collected.
#[derive(Debug)]
pub(super) struct Batcher {
    idle: Duration,
    max: Duration,
    /// When each of those that wait triggered last.
    triggered: BTreeMap<String, Instant>,
}

impl Batcher {
    /// A window that closes after `idle` without a new trigger, and `max` after its first one in any case.
    pub(super) fn new(idle: Duration, max: Duration) -> Batcher {
        Batcher { idle, max, triggered: BTreeMap::new() }
    }

    /// Waits for a first trigger, and then until the window closes. `changed` tells that `waiting` may say something else.
    pub(super) async fn wait(&mut self, waiting: impl Fn() -> PendingUids, changed: &Notify) {
        let mut seen = self.triggers(waiting());
        while seen.is_empty() {
            self.news(changed, Instant::now() + LOOK).await;
            seen = self.triggers(waiting());
        }
        let opened = Instant::now();
        let mut last = opened;
        loop {
            let close = instant_after(last, self.idle).min(instant_after(opened, self.max));
            self.news(changed, close).await;
            // Asked by the clock alone: where something changes all the time, the time-out never comes.
            if Instant::now() >= close {
                break;
            }
            let before = seen.len();
            seen.extend(self.triggers(waiting()));
            // Who is in the window already does not keep it open, even if it went in between and came back.
            if seen.len() > before {
                last = Instant::now();
            }
        }
        // They are planned for now, and wait anew from here on.
        let closed = Instant::now();
        self.triggered.iter_mut().filter(|(uid, _)| seen.contains(*uid)).for_each(|(_, last)| *last = closed);
    }

    /// Waits until it is worth to look again, but not longer than until `end`.
    async fn news(&self, changed: &Notify, end: Instant) {
        let end = self.next_trigger().map_or(end, |next| next.min(end));
        if timeout_at(end, changed.notified()).await.is_ok() {
            sleep_until(end.min(Instant::now() + SETTLE)).await;
        }
    }

    /// Those that trigger now: they are new, or have waited long enough since the last time.
    fn triggers(&mut self, waiting: PendingUids) -> PendingUids {
        let now = Instant::now();
        self.triggered.retain(|uid, _| waiting.contains(uid));
        let is_due = |uid: &String| self.triggered.get(uid).is_none_or(|last| *last + AGAIN <= now);
        let due: PendingUids = waiting.into_iter().filter(is_due).collect();
        self.triggered.extend(due.iter().map(|uid| (uid.clone(), now)));
        due
    }

    /// When one of those that wait triggers again.
    fn next_trigger(&self) -> Option<Instant> {
        self.triggered.values().min().map(|last| *last + AGAIN)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// What waits from when until when, in milliseconds; told of as it comes and goes.
    #[derive(Default)]
    struct Stage {
        steps: Vec<(u64, &'static [&'static str])>,
        /// Something else changes this often.
        noise: Option<Duration>,
    }

    /// Windows one after the other: when each closed, in milliseconds, until nothing waits or time is up.
    async fn closings(stage: Stage, until_ms: u64) -> Vec<u128> {
        let (begun, changed) = (Instant::now(), Notify::new());
        let shown = RefCell::new(PendingUids::new());
        let (shown, changed, noise) = (&shown, &changed, stage.noise);
        let play = async move {
            for (at, uids) in stage.steps {
                sleep_until(begun + Duration::from_millis(at)).await;
                *shown.borrow_mut() = uids.iter().map(|uid| (*uid).to_owned()).collect();
                changed.notify_one();
            }
            std::future::pending::<()>().await;
        };
        let disturb = async move {
            loop {
                tokio::time::sleep(noise.unwrap_or(Duration::from_secs(3600))).await;
                changed.notify_one();
            }
        };
        let mut closed = Vec::new();
        let watch = async {
            let mut window = Batcher::new(SECOND, 10 * SECOND);
            loop {
                window.wait(|| shown.borrow().clone(), changed).await;
                closed.push(begun.elapsed().as_millis());
            }
        };
        let end = sleep_until(begun + Duration::from_millis(until_ms));
        tokio::select! { biased; () = play => {}, () = disturb => {}, () = watch => {}, () = end => {} }
        closed
    }

    fn steps(steps: &[(u64, &'static [&'static str])]) -> Stage {
        Stage { steps: steps.to_vec(), noise: None }
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_pod_is_planned_for_once_nothing_came_for_a_while() {
        // It is told of, and seen a moment later.
        assert_eq!(closings(steps(&[(2500, &["a"])]), 9000).await, [3520]);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_that_waits_is_no_reason_to_plan() {
        let noisy = Stage { noise: Some(Duration::from_millis(10)), ..steps(&[]) };
        assert!(closings(noisy, 60_000).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_is_in_the_window_does_not_keep_it_open() {
        // It changes, and even goes and comes back.
        let stage = steps(&[(0, &["a"]), (400, &["a"]), (600, &[]), (800, &["a"])]);
        assert_eq!(closings(stage, 5000).await, [1000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_pod_keeps_the_window_open() {
        let stage = steps(&[(0, &["a"]), (900, &["a", "b"]), (1800, &["a", "b", "c"])]);
        assert_eq!(closings(stage, 5000).await, [2820]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_window_is_longer_than_it_may_be() {
        const NAMES: [&str; 20] =
            ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"];
        let coming = (0..20).map(|index| (900 * index, &NAMES[..usize::try_from(index).unwrap() + 1]));
        let stage = Stage { steps: coming.collect(), noise: None };
        assert_eq!(closings(stage, 12_000).await, [10_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_closes_in_time_however_often_something_changes() {
        let stage = Stage { noise: Some(Duration::from_micros(300)), ..steps(&[(0, &["a"])]) };
        assert_eq!(closings(stage, 5000).await, [1000]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_in_the_last_window_and_still_waits_triggers_again_after_ten_seconds() {
        assert_eq!(closings(steps(&[(0, &["a"])]), 24_000).await, [1000, 12_000, 23_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_window_begins_empty() {
        // It was in the first one; when its time comes in the second, it counts as new there.
        let stage = steps(&[(0, &["a"]), (10_500, &["a", "b"])]);
        assert_eq!(closings(stage, 14_000).await, [1000, 12_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_stops_waiting_and_begins_again_triggers_at_once() {
        let stage = steps(&[(0, &["node"]), (3500, &[]), (4300, &["node"])]);
        assert_eq!(closings(stage, 8000).await, [1000, 5320]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_told_of_is_seen_within_a_second() {
        let (begun, changed) = (Instant::now(), Notify::new());
        let waiting =
            || if begun.elapsed() < 1500 * SECOND / 1000 { PendingUids::new() } else { ["claim".to_owned()].into() };
        Batcher::new(SECOND, 10 * SECOND).wait(waiting, &changed).await;
        assert_eq!(begun.elapsed(), 3 * SECOND);
    }
}
