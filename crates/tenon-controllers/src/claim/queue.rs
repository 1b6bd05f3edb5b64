//! Whose turn is it? Every claim is worked on when it changes, when its node does, and when its time has come; never twice
//! at once, and never more than a bound at the same time.
//!
//! Who is due longest comes first, and by name at the same moment, so that a run can be repeated exactly; kube's own
//! controller takes them in the order of a hash that is another one every time. Each region has slots of its own.

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
use crate::metrics::{Loop, OfQueue};
use crate::moments::instant_after;
use crate::provision::record_of;
use crate::stop::Stop;
use crate::watched::Changes;

/// Claims of one region that are worked on at the same time. Each waits for Proxmox most of its time; a region that does not
/// answer fills its own slots, and nobody else's.
const AT_ONCE: usize = 64;

/// As metrics call this loop.
const CONTROLLER: &str = "nodeclaim.lifecycle";

/// Whose slots a claim takes: those of its region, or those of claims without one.
type Slots = Option<String>;

/// Who is due when, and who is being reconciled.
#[derive(Default)]
struct Queue {
    due: BTreeMap<String, Instant>,
    /// The same, first come first.
    order: BTreeSet<(Instant, String)>,
    busy: BTreeMap<String, Slots>,
    taken: BTreeMap<Slots, usize>,
    regions: BTreeMap<String, String>,
    /// Every claim when a list began; what the list does not show is gone.
    listed: BTreeSet<String>,
}

impl Queue {
    /// Due now. Who is due already keeps its place.
    fn wake(&mut self, name: &str) {
        self.put(name, Instant::now());
    }

    /// Due then, or sooner if it was.
    fn put(&mut self, name: &str, at: Instant) {
        let at = self.due.get(name).map_or(at, |due| at.min(*due));
        self.remove(name);
        self.due.insert(name.to_owned(), at);
        self.order.insert((at, name.to_owned()));
    }

    fn remove(&mut self, name: &str) {
        if let Some(at) = self.due.remove(name) {
            self.order.remove(&(at, name.to_owned()));
        }
    }

    /// Wakes whom a change concerns.
    fn note(&mut self, event: &Event<NodeClaim>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(claim) => {
                self.listed.insert(claim.name_any());
                self.note_claim(claim);
            }
            Event::Apply(claim) => self.note_claim(claim),
            Event::Delete(claim) => self.forget(&claim.name_any()),
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let gone: Vec<String> = self.due.keys().filter(|name| !listed.contains(*name)).cloned().collect();
                gone.iter().for_each(|name| self.forget(name));
            }
        }
    }

    fn note_claim(&mut self, claim: &NodeClaim) {
        let name = claim.name_any();
        match record_of(claim) {
            Some(record) => self.regions.insert(name.clone(), record.place.region),
            None => self.regions.remove(&name),
        };
        self.wake(&name);
    }

    fn forget(&mut self, name: &str) {
        self.remove(name);
        self.regions.remove(name);
    }

    fn has_room(&self, slots: &Slots) -> bool {
        self.taken.get(slots).is_none_or(|taken| *taken < AT_ONCE)
    }

    /// Whoever may be worked on as soon as it is due, first come first.
    fn ready(&self) -> impl Iterator<Item = &(Instant, String)> {
        let is_free = |name: &String| !self.busy.contains_key(name) && self.has_room(&self.regions.get(name).cloned());
        self.order.iter().filter(move |(_, name)| is_free(name))
    }

    /// Whoever is due longest and not being worked on, as far as there is room.
    fn take_due(&mut self) -> Vec<String> {
        let now = Instant::now();
        let mut names = Vec::new();
        loop {
            let next = self.ready().next().filter(|(at, _)| *at <= now);
            let Some((_, name)) = next.cloned() else { return names };
            self.remove(&name);
            let slots = self.regions.get(&name).cloned();
            let taken = self.taken.entry(slots.clone()).or_default();
            *taken = taken.saturating_add(1);
            self.busy.insert(name.clone(), slots);
            names.push(name);
        }
    }

    /// A pass is over. Whoever was woken meanwhile does not wait.
    fn finish(&mut self, name: &str, again: Option<Duration>) {
        if let Some(slots) = self.busy.remove(name) {
            let left = self.taken.remove(&slots).unwrap_or_default().saturating_sub(1);
            if left > 0 {
                self.taken.insert(slots, left);
            }
        }
        if let Some(wait) = again {
            self.put(name, instant_after(Instant::now(), wait));
        }
    }

    /// How many are due, whether there is room for them or not, and how many are being worked on.
    fn sizes(&self) -> (usize, usize) {
        let now = Instant::now();
        (self.order.iter().take_while(|(at, _)| *at <= now).count(), self.busy.len())
    }

    /// When somebody is due next who can be worked on.
    fn next(&self) -> Option<Instant> {
        self.ready().next().map(|(at, _)| *at)
    }
}

/// Works on claims until told to stop, and then until what was begun is finished. Work begins once everything else was read:
/// a claim and its node are judged by what the stores show.
pub(crate) async fn run(
    context: Arc<Context>,
    mut changes: Changes<NodeClaim>,
    mut woken: mpsc::Receiver<String>,
    mut stop: Stop,
) {
    let (mut queue, mut work) = (Queue::default(), JoinSet::new());
    let (others, mut others_are_read) = (context.watched.ready_but_claims(), false);
    tokio::pin!(others);
    loop {
        let due = if others_are_read { queue.take_due() } else { Vec::new() };
        for name in due {
            let context = context.clone();
            work.spawn(async move { (reconcile(&name, &context).await, name) });
        }
        count(&context, &queue);
        let next = queue.next().filter(|_| others_are_read);
        tokio::select! {
            biased;
            () = stop.wait() => break,
            () = &mut others, if !others_are_read => others_are_read = true,
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
            Some(name) = woken.recv() => queue.wake(&name),
            // A pass catches its own panics, so that every slot is given back.
            Some(Ok((again, name))) = work.join_next() => {
                queue.finish(&name, again);
                // A clone may have ended that others wait for.
                context.memory.clones.called(context.settings.clones).iter().for_each(|called| queue.wake(called));
            }
            () = sleep_until(next) => {}
        }
    }
    while work.join_next().await.is_some() {}
}

/// Shows how long the queue is.
fn count(context: &Context, queue: &Queue) {
    let (due, busy) = queue.sizes();
    let metrics = &context.metrics;
    metrics.queued.get_or_create(&OfQueue { name: CONTROLLER, controller: CONTROLLER, priority: 0 }).set(due);
    metrics.active_workers.get_or_create(&Loop { controller: CONTROLLER }).set(busy);
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenon_api::{launch_record, names};
    use tenon_model::{LaunchRecord, Place, Seconds};

    use super::*;

    /// A claim with a launch in this region, or without any.
    fn claim(name: &str, region: Option<&str>) -> NodeClaim {
        let spec = json!({ "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "n" } });
        let mut claim = NodeClaim::new(name, serde_json::from_value(spec).unwrap());
        let place = |region: &str| Place { region: region.to_owned(), host: "pve1".parse().unwrap() };
        let record =
            |place| LaunchRecord::new(place, 20_000.try_into().unwrap(), 9_000.try_into().unwrap(), Seconds(0));
        let text = region.map(|region| launch_record::write(&record(place(region))));
        claim.metadata.annotations = text.map(|text| [(names::ANNOTATION_LAUNCH.to_owned(), text)].into());
        claim
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_due_at_the_same_moment_comes_by_name_and_never_twice_at_once() {
        let mut queue = Queue::default();
        for name in ["c", "a", "b"] {
            queue.wake(name);
        }
        assert_eq!(queue.sizes(), (3, 0));
        assert_eq!(queue.take_due(), ["a", "b", "c"]);
        queue.wake("b");
        assert!(queue.take_due().is_empty(), "it is being worked on");
        assert_eq!(queue.sizes(), (1, 3), "it is due again");
        queue.finish("b", Some(Duration::from_secs(60)));
        assert_eq!(queue.take_due(), ["b"], "it was woken meanwhile, so it does not wait");
        queue.finish("a", Some(Duration::from_secs(60)));
        assert_eq!(queue.next(), Some(Instant::now() + Duration::from_secs(60)));
        assert_eq!(queue.sizes(), (0, 2), "what is due later does not wait yet");
        queue.finish("c", None);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(queue.take_due(), ["a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_a_bound_are_worked_on_at_once() {
        let mut queue = Queue::default();
        (0..AT_ONCE + 3).for_each(|number| queue.wake(&format!("{number:03}")));
        assert_eq!((queue.take_due().len(), queue.take_due().len()), (AT_ONCE, 0));
        queue.finish("000", None);
        assert_eq!(queue.take_due(), [format!("{AT_ONCE:03}")]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_longest_comes_first_whatever_its_name() {
        let mut queue = Queue::default();
        (0..AT_ONCE).for_each(|number| queue.wake(&format!("a{number:03}")));
        assert_eq!(queue.take_due().len(), AT_ONCE);
        queue.wake("z");
        tokio::time::advance(Duration::from_secs(1)).await;
        // Everybody else fails at once, and is due again before there is room.
        (1..AT_ONCE).for_each(|number| queue.wake(&format!("a{number:03}")));
        queue.wake("z");
        queue.finish("a001", Some(Duration::ZERO));
        assert_eq!(queue.take_due(), ["z"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_region_that_does_not_answer_takes_no_slot_of_another() {
        let mut queue = Queue::default();
        let frozen = |number: usize| format!("a{number:03}");
        (0..200).for_each(|number| queue.note(&Event::Apply(claim(&frozen(number), Some("frozen")))));
        queue.note(&Event::Apply(claim("unplanned", None)));
        queue.note(&Event::Apply(claim("well", Some("lab"))));
        let taken = queue.take_due();
        assert_eq!(taken.len(), AT_ONCE + 2);
        assert!(taken.contains(&"well".to_owned()) && taken.contains(&"unplanned".to_owned()));
        assert_eq!(queue.next(), None, "nobody waits in vain for those that have no room");
        queue.finish("well", Some(Duration::from_secs(2)));
        assert_eq!(queue.next(), Some(Instant::now() + Duration::from_secs(2)));
        queue.finish(&frozen(0), None);
        assert_eq!(queue.take_due(), [frozen(AT_ONCE)]);
        queue.note(&Event::Delete(claim(&frozen(1), Some("frozen"))));
        queue.finish(&frozen(1), None);
        assert!(queue.taken.values().sum::<usize>() == queue.busy.len() && !queue.regions.contains_key(&frozen(1)));
    }
}
