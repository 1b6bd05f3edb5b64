//! Whose turn is it? Every claim is worked on when it changes, when its node does, and when its time has come; never twice
//! at once, and never more than a bound at the same time.
//!
//! Whoever is due at the same moment comes by name, so that a run can be repeated exactly; kube's own controller takes them
//! in the order of a hash that is another one every time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use kube::ResourceExt;
use kube::runtime::watcher::Event;
use tenon_api::NodeClaim;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};

use super::reconcile::reconcile;
use crate::context::Context;
use crate::kube_error;
use crate::moments::instant_after;
use crate::stop::Stop;
use crate::watched::Changes;

/// Claims that are worked on at the same time. Each waits for Proxmox most of its time.
const AT_ONCE: usize = 64;

/// Who is due when, and who is being reconciled.
#[derive(Default)]
struct Queue {
    due: BTreeMap<String, Instant>,
    busy: BTreeSet<String>,
    /// Every claim when a list began; what the list does not show is gone.
    listed: BTreeSet<String>,
}

impl Queue {
    fn wake(&mut self, name: String) {
        self.due.insert(name, Instant::now());
    }

    /// Wakes whom a change concerns.
    fn note(&mut self, event: &Event<NodeClaim>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(claim) => {
                self.listed.insert(claim.name_any());
                self.wake(claim.name_any());
            }
            Event::Apply(claim) => self.wake(claim.name_any()),
            Event::Delete(claim) => drop(self.due.remove(&claim.name_any())),
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                self.due.retain(|name, _| listed.contains(name));
            }
        }
    }

    /// Whoever is due and not being worked on, as far as there is room.
    fn take_due(&mut self) -> Vec<String> {
        let now = Instant::now();
        let is_due = |(name, at): &(&String, &Instant)| **at <= now && !self.busy.contains(*name);
        let room = AT_ONCE.saturating_sub(self.busy.len());
        let names: Vec<String> = self.due.iter().filter(is_due).map(|(name, _)| name.clone()).take(room).collect();
        for name in &names {
            self.due.remove(name);
            self.busy.insert(name.clone());
        }
        names
    }

    /// A pass is over. Whoever was woken meanwhile does not wait.
    fn finish(&mut self, name: &str, again: Option<Duration>) {
        self.busy.remove(name);
        if let Some(wait) = again {
            let at = instant_after(Instant::now(), wait);
            let due = self.due.entry(name.to_owned()).or_insert(at);
            *due = at.min(*due);
        }
    }

    /// When somebody is due next who is not being worked on.
    fn next(&self) -> Option<Instant> {
        self.due.iter().filter(|(name, _)| !self.busy.contains(*name)).map(|(_, at)| *at).min()
    }
}

/// Works on claims until told to stop, and then until what was begun is finished.
pub(crate) async fn run(
    context: Arc<Context>,
    mut changes: Changes<NodeClaim>,
    mut woken: mpsc::Receiver<String>,
    mut stop: Stop,
) {
    let (mut queue, mut work) = (Queue::default(), JoinSet::new());
    loop {
        for name in queue.take_due() {
            let context = context.clone();
            work.spawn(async move { (reconcile(&name, &context).await, name) });
        }
        let next = queue.next().filter(|_| queue.busy.len() < AT_ONCE);
        tokio::select! {
            biased;
            () = stop.wait() => break,
            Some(change) = changes.next() => match change {
                Ok(event) => {
                    // However it was deleted: not everybody waits for our finalizer.
                    if let Event::Delete(claim) = &event {
                        context.memory.forget(&claim.name_any());
                    }
                    queue.note(&event);
                }
                Err(error) => {
                    tracing::warn!(kind = "NodeClaim", error = kube_error::of_watch(&error), "watch interrupted; reconnecting");
                },
            },
            Some(name) = woken.recv() => queue.wake(name),
            // A pass catches its own panics, so that every slot is given back.
            Some(Ok((again, name))) = work.join_next() => queue.finish(&name, again),
            () = sleep_until(next) => {}
        }
    }
    while work.join_next().await.is_some() {}
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_is_due_at_the_same_moment_comes_by_name_and_never_twice_at_once() {
        let mut queue = Queue::default();
        for name in ["c", "a", "b"] {
            queue.wake(name.to_owned());
        }
        assert_eq!(queue.take_due(), ["a", "b", "c"]);
        queue.wake("b".to_owned());
        assert!(queue.take_due().is_empty(), "it is being worked on");
        queue.finish("b", Some(Duration::from_secs(60)));
        assert_eq!(queue.take_due(), ["b"], "it was woken meanwhile, so it does not wait");
        queue.finish("a", Some(Duration::from_secs(60)));
        assert_eq!(queue.next(), Some(Instant::now() + Duration::from_secs(60)));
        queue.finish("c", None);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(queue.take_due(), ["a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_a_bound_are_worked_on_at_once() {
        let mut queue = Queue::default();
        (0..AT_ONCE + 3).for_each(|number| queue.wake(format!("{number:03}")));
        assert_eq!((queue.take_due().len(), queue.take_due().len()), (AT_ONCE, 0));
        queue.finish("000", None);
        assert_eq!(queue.take_due(), [format!("{AT_ONCE:03}")]);
    }
}
