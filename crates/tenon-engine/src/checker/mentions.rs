//! Which pod is meant by each key of a plan, and is every pod spoken of once?
//!
//! Both lists of keys are sorted and walked through side by side. They are nearly in order already, which makes that much
//! cheaper than to look each key up.

use std::sync::Arc;

use tenon_model::{Plan, Pod, PodKey, Snapshot};

use super::{Checker, of_pod};

/// The pods of a plan where it puts them; none for a key that is not known.
#[derive(Default)]
pub(super) struct Mentions<'a> {
    /// Those of each new node.
    pub(super) on_new: Vec<Vec<Option<&'a Pod>>>,
    /// Those on nodes that are there, in the order of the placements.
    pub(super) placed: Vec<Option<&'a Pod>>,
    /// How often each pod of the snapshot is in the plan, those behind the others that were refused before.
    times: Vec<usize>,
    /// Keys of the plan that the snapshot does not have, in order, each once.
    unknown: Vec<&'a Arc<PodKey>>,
}

/// Where a plan speaks of a pod.
#[derive(Clone, Copy)]
enum Spot {
    New { node: usize, position: usize },
    Placement(usize),
    Waiting,
}

impl<'a> Mentions<'a> {
    pub(super) fn of(snapshot: &'a Snapshot, plan: &'a Plan) -> Mentions<'a> {
        let mut mentions = Mentions {
            on_new: plan.new_nodes.iter().map(|node| vec![None; node.pods.len()]).collect(),
            placed: vec![None; plan.placements.len()],
            times: vec![0; snapshot.pods.len() + snapshot.invalid.len()],
            unknown: Vec::new(),
        };
        let mut known: Vec<(&Arc<PodKey>, usize)> = asked(snapshot).zip(0..).collect();
        let mut spots = spots(plan);
        known.sort_by_key(|(key, _)| *key);
        spots.sort_by_key(|(key, _)| *key);
        let mut left = known.into_iter().peekable();
        for (key, spot) in spots {
            while left.next_if(|(known, _)| *known < key).is_some() {}
            match left.peek().filter(|(known, _)| *known == key) {
                Some((_, number)) => mentions.add(spot, *number, snapshot.pods.get(*number).map(AsRef::as_ref)),
                None if mentions.unknown.last() == Some(&key) => {}
                None => mentions.unknown.push(key),
            }
        }
        mentions
    }

    fn add(&mut self, spot: Spot, number: usize, pod: Option<&'a Pod>) {
        self.times[number] += 1;
        match spot {
            Spot::New { node, position } => self.on_new[node][position] = pod,
            Spot::Placement(position) => self.placed[position] = pod,
            Spot::Waiting => {}
        }
    }
}

/// The pods a plan has to speak of: those that were to be placed, then those that were refused before.
pub(super) fn asked(snapshot: &Snapshot) -> impl Iterator<Item = &Arc<PodKey>> {
    let refused = snapshot.invalid.iter().map(|(key, _)| key);
    snapshot.pods.iter().map(|pod| &pod.key).chain(refused)
}

fn spots(plan: &Plan) -> Vec<(&Arc<PodKey>, Spot)> {
    let on_new = plan.new_nodes.iter().enumerate().flat_map(|(node, new)| {
        new.pods.iter().enumerate().map(move |(position, key)| (key, Spot::New { node, position }))
    });
    let placed = plan.placements.iter().enumerate().map(|(position, to)| (&to.pod, Spot::Placement(position)));
    let waiting = plan.unplaced.iter().map(|unplaced| (&unplaced.pod, Spot::Waiting));
    on_new.chain(placed).chain(waiting).collect()
}

impl Checker<'_> {
    pub(super) fn every_pod_is_spoken_of_once(&mut self) {
        let snapshot = self.snapshot;
        let (times, unknown) = (std::mem::take(&mut self.mentions.times), std::mem::take(&mut self.mentions.unknown));
        for (key, count) in asked(snapshot).zip(times) {
            self.expect(count == 1, || of_pod(key, &format!("is in the plan {count} times instead of once")));
        }
        for key in unknown {
            self.expect(false, || of_pod(key, "is in the plan, but needs no node"));
        }
    }
}
