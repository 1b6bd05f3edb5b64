//! What is counted about plans: how many pods wait, for how long, where they could go, and how long planning takes.
//!
//! A gauge of a plan or a pod goes with it. What grows by itself, like the time a pod waits, is worked out when somebody
//! asks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::Loop;
use super::catalogue::karpenter;
use super::exposition::Exposition;
use super::families::{Series, labels};

labels! {
    /// One plan that is being made, or the last one.
    OfSolve { controller: &'static str, scheduling_id: String }
    /// Where pods could go.
    InZone { controller: &'static str, zone: String }
    /// A pod.
    OfPod { name: String, namespace: String }
}

/// A pod that waits, as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitingPod<'a> {
    pub(crate) uid: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// When a pod was seen to wait, and whether anything was decided about it since.
#[derive(Debug)]
struct FirstSeen {
    pod: OfPod,
    since: Instant,
    is_decided: bool,
    /// The number of the look that saw it last.
    look: u64,
}

/// What is counted about plans.
#[derive(Debug)]
pub(crate) struct Scheduling {
    queue_depth: Series<OfSolve>,
    unfinished: Series<OfSolve>,
    ignored: Series<()>,
    unschedulable: Series<Loop>,
    by_zone: Series<InZone>,
    duration: Series<Loop>,
    decision: Series<()>,
    undecided: Series<OfPod>,
    plans: AtomicU64,
    looks: AtomicU64,
    running: Mutex<BTreeMap<OfSolve, Instant>>,
    seen: Mutex<BTreeMap<String, FirstSeen>>,
}

/// What came of a plan, as it is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PlanCounts {
    /// Pods that no node could ever be right for.
    pub(crate) ignored: usize,
    /// Pods that no node can be made for now.
    pub(crate) unschedulable: usize,
    /// Pods by the zone they could go to.
    pub(crate) by_zone: BTreeMap<String, u64>,
}

impl Default for Scheduling {
    fn default() -> Scheduling {
        let scheduling = Scheduling {
            queue_depth: Series::new(&karpenter::QUEUE_DEPTH),
            unfinished: Series::new(&karpenter::UNFINISHED_WORK),
            ignored: Series::new(&karpenter::IGNORED_PODS),
            unschedulable: Series::new(&karpenter::UNSCHEDULABLE_PODS),
            by_zone: Series::new(&karpenter::PENDING_BY_ZONE),
            duration: Series::new(&karpenter::SCHEDULING_DURATION),
            decision: Series::new(&karpenter::PODS_DECISION),
            undecided: Series::new(&karpenter::PODS_UNDECIDED),
            plans: AtomicU64::new(0),
            looks: AtomicU64::new(0),
            running: Mutex::default(),
            seen: Mutex::default(),
        };
        // Shown before the first plan, as in the reference.
        scheduling.ignored.get_or_create(&());
        scheduling.decision.get_or_create(&());
        scheduling
    }
}

impl Scheduling {
    /// A plan begins for so many pods. Of the same loop's last one nothing is left.
    pub(crate) fn begin(&self, controller: &Loop, pods: usize) -> Solving<'_> {
        let scheduling_id = self.plans.fetch_add(1, Ordering::Relaxed).to_string();
        let of = OfSolve { controller: controller.controller, scheduling_id };
        self.queue_depth.clear();
        self.queue_depth.get_or_create(&of).set(pods);
        let begun = Instant::now();
        lock(&self.running).insert(of.clone(), begun);
        Solving { of, begun, counts: self }
    }

    /// What came of a loop's plan.
    pub(crate) fn report(&self, controller: &Loop, outcome: &PlanCounts) {
        self.ignored.get_or_create(&()).set(outcome.ignored);
        self.unschedulable.get_or_create(controller).set(outcome.unschedulable);
        self.by_zone.clear();
        for (zone, pods) in &outcome.by_zone {
            let of = InZone { controller: controller.controller, zone: zone.clone() };
            self.by_zone.get_or_create(&of).set(*pods);
        }
    }

    /// Every pod that waits now. Who is not among them any more is not counted any more.
    pub(crate) fn waiting<'a>(&self, pods: impl Iterator<Item = WaitingPod<'a>>) {
        let look = self.looks.fetch_add(1, Ordering::Relaxed);
        let mut seen = lock(&self.seen);
        for pod in pods {
            match seen.get_mut(pod.uid) {
                Some(known) => known.look = look,
                None => {
                    let of = OfPod { name: pod.name.to_owned(), namespace: pod.namespace.to_owned() };
                    let begun = FirstSeen { pod: of, since: Instant::now(), is_decided: false, look };
                    seen.insert(pod.uid.to_owned(), begun);
                }
            }
        }
        seen.retain(|_, known| known.look == look);
    }

    /// Something was decided about these pods, if only that nothing can be done. The first time counts.
    pub(crate) fn decided<'a>(&self, uids: impl Iterator<Item = &'a str>) {
        let mut seen = lock(&self.seen);
        for uid in uids {
            if let Some(pod) = seen.get_mut(uid).filter(|pod| !pod.is_decided) {
                pod.is_decided = true;
                self.decision.get_or_create(&()).observe(pod.since.elapsed().as_secs_f64());
            }
        }
    }

    /// Works out what grows by itself, and writes all of it down.
    pub(super) fn show(&self, page: &mut Exposition<'_>) {
        for (of, begun) in lock(&self.running).iter() {
            self.unfinished.get_or_create(of).set(begun.elapsed().as_secs_f64());
        }
        self.undecided.clear();
        for pod in lock(&self.seen).values().filter(|pod| !pod.is_decided) {
            self.undecided.get_or_create(&pod.pod).set(pod.since.elapsed().as_secs_f64());
        }
        let Scheduling {
            queue_depth, unfinished, ignored, unschedulable, by_zone, duration, decision, undecided, ..
        } = self;
        [&queue_depth.family, &unfinished.family].into_iter().for_each(|family| family.show(page));
        [&unschedulable.family, &duration.family].into_iter().for_each(|family| family.show(page));
        [&by_zone.family, &undecided.family].into_iter().for_each(|family| family.show(page));
        [&ignored.family, &decision.family].into_iter().for_each(|family| family.show(page));
    }
}

/// A plan that is being made.
#[derive(Debug)]
pub(crate) struct Solving<'a> {
    of: OfSolve,
    begun: Instant,
    counts: &'a Scheduling,
}

impl Solving<'_> {
    /// It is made, and so many pods are left without a node.
    pub(crate) fn end(self, left: usize) {
        self.counts.queue_depth.get_or_create(&self.of).set(left);
        let took = self.begun.elapsed().as_secs_f64();
        self.counts.duration.get_or_create(&Loop { controller: self.of.controller }).observe(took);
    }
}

impl Drop for Solving<'_> {
    fn drop(&mut self) {
        let mut running = lock(&self.counts.running);
        running.remove(&self.of);
        self.counts.unfinished.remove(&self.of);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
