//! What do guests remember and tell: their logs, their disks, the time of day?

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::disk::Disk;

/// Lines kept over all guests; the oldest go first.
const LINES: usize = 20_000;

/// What outlives a single boot.
#[derive(Debug)]
pub(crate) struct Journal {
    lines: Mutex<VecDeque<(u32, String)>>,
    disks: Mutex<BTreeMap<String, Disk>>,
    start: (Timestamp, Instant),
}

impl Journal {
    pub(crate) fn new(epoch_s: Option<u64>) -> Self {
        let given = epoch_s.and_then(|s| Timestamp::from_second(i64::try_from(s).ok()?).ok());
        let start = (given.unwrap_or_else(Timestamp::now), Instant::now());
        Self { lines: Mutex::default(), disks: Mutex::default(), start }
    }

    /// The time of day, which runs as tokio's clock does.
    pub(crate) fn now(&self) -> Timestamp {
        let (epoch, since) = self.start;
        SignedDuration::try_from(since.elapsed()).ok().and_then(|e| epoch.checked_add(e).ok()).unwrap_or(epoch)
    }

    /// Adds a line, unless it repeats the guest's last one.
    pub(crate) fn say(&self, vmid: u32, line: String) {
        let mut lines = locked(&self.lines);
        if lines.iter().rev().find(|(id, _)| *id == vmid).is_some_and(|(_, last)| *last == line) {
            return;
        }
        if lines.len() >= LINES {
            lines.pop_front();
        }
        lines.push_back((vmid, line));
    }

    pub(crate) fn log(&self, vmid: u32) -> Vec<String> {
        locked(&self.lines).iter().filter(|(id, _)| *id == vmid).map(|(_, line)| line.clone()).collect()
    }

    /// Looks at or changes the disk of a VM; `image` makes it on the first boot.
    pub(crate) fn disk<R>(&self, key: &str, image: impl FnOnce() -> Disk, act: impl FnOnce(&mut Disk) -> R) -> R {
        act(locked(&self.disks).entry(key.to_owned()).or_insert_with(image))
    }

    /// Forgets the disks of VMs that are no more.
    pub(crate) fn keep_disks(&self, keys: &BTreeSet<String>) {
        locked(&self.disks).retain(|key, _| keys.contains(key));
    }
}

/// A guest that panicked while it held this leaves a whole value behind.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_repeated_line_is_kept_once() {
        let journal = Journal::new(Some(0));
        for (vmid, line) in [(1, "a"), (2, "a"), (1, "a"), (1, "b"), (1, "a")] {
            journal.say(vmid, line.into());
        }
        assert_eq!(journal.log(1), ["a", "b", "a"]);
        assert_eq!(journal.log(2), ["a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_day_runs_on_tokios_clock() {
        let journal = Journal::new(Some(100));
        tokio::time::advance(std::time::Duration::from_secs(5)).await;
        assert_eq!(journal.now().as_second(), 105);
    }
}
