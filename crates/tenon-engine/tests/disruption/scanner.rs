//! A scanner that goes on from scan to scan decides as one that scans for the first time.

use std::sync::Arc;

use proptest::prelude::*;
use tenon_engine::disruption::{Scanner, confirm, decide, expected};
use tenon_model::{BoundPod, NodeState, Protection, Seconds, Snapshot};

use super::settling::any_world;
use super::world::world;
use crate::packing::laws::SEED;

/// What happens to a cluster between two scans. The node it happens to is one of those that are there.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// What the last scan decided is carried out.
    Moves,
    /// A pod ends.
    PodEnds,
    /// A pod wants to stay.
    PodStays,
    /// A pod that is on another node is pending, too: one more of its kind.
    PodWaits,
    /// Pods that waited are gone.
    NobodyWaits,
    /// A node is not what its pool says any more.
    Drifts,
    /// A node is gone.
    NodeEnds,
    /// Only time passes.
    TimePasses,
    /// A pool was changed.
    PoolChanges,
}

fn any_event() -> impl Strategy<Value = (Event, usize)> {
    let events = [
        Event::Moves,
        Event::PodEnds,
        Event::PodStays,
        Event::PodWaits,
        Event::NobodyWaits,
        Event::Drifts,
        Event::NodeEnds,
        Event::TimePasses,
        Event::PoolChanges,
    ];
    (0..events.len(), any::<usize>()).prop_map(move |(event, which)| (events[event], which))
}

/// Everything that did not change is shared with the snapshot before, as a controller's is.
fn happen(snapshot: &mut Snapshot, (event, which): (Event, usize)) {
    snapshot.now = Seconds(snapshot.now.0 + 7);
    let count = snapshot.nodes.len().max(1);
    let node = |snapshot: &mut Snapshot, change: &dyn Fn(&mut NodeState)| {
        snapshot.nodes.get_mut(which % count).into_iter().for_each(|node| change(Arc::make_mut(node)));
    };
    match event {
        Event::Moves => {
            for (number, command) in decide(snapshot).commands.iter().enumerate() {
                *snapshot = expected(snapshot, command, &format!("e{which}c{number}"));
            }
        }
        Event::PodEnds => node(snapshot, &|node| {
            if let Some(pod) = node.pods.pop() {
                node.bound = node.bound.without(&pod.shape.requests);
            }
        }),
        Event::PodStays => node(snapshot, &|node| {
            if let Some(pod) = node.pods.first_mut() {
                let shape = &mut Arc::make_mut(pod).shape;
                Arc::make_mut(shape).protection = Protection::of("true");
            }
        }),
        Event::PodWaits => {
            let pod = snapshot.nodes.get(which % count).and_then(|node| node.pods.first().cloned());
            let another = |pod: &BoundPod| {
                let mut pod = pod.unbound();
                Arc::make_mut(&mut pod.key).uid = format!("w{which}").into();
                Arc::make_mut(&mut pod.key).name = format!("w{which}").into();
                Arc::new(pod)
            };
            snapshot.pods.extend(pod.map(|pod| another(&pod)));
        }
        Event::NobodyWaits => snapshot.pods.clear(),
        Event::Drifts => node(snapshot, &|node| {
            if let Some(facts) = &mut node.disruption {
                let facts = Arc::make_mut(facts);
                facts.claim.drifted_since = facts.claim.initialized_at;
            }
        }),
        Event::NodeEnds if snapshot.nodes.len() > 1 => drop(snapshot.nodes.remove(which % count)),
        Event::NodeEnds => {}
        Event::TimePasses => snapshot.now = Seconds(snapshot.now.0 + 600),
        Event::PoolChanges => {
            let pools = snapshot.pools.len();
            let pool = Arc::make_mut(&mut snapshot.pools[which % pools]);
            pool.weight = i32::try_from(which % 3).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, rng_seed: SEED, ..ProptestConfig::default() })]

    #[test]
    fn a_kept_scanner_decides_and_confirms_as_a_new_one(
        text in any_world(),
        events in proptest::collection::vec(any_event(), 1..7),
    ) {
        let (mut snapshot, mut scanner, mut last) = (world(&text), Scanner::default(), Vec::new());
        for event in events {
            for command in &last {
                prop_assert_eq!(scanner.confirm(command, &snapshot), confirm(command, &snapshot), "{:?}", event);
            }
            let decided = scanner.decide(&snapshot);
            prop_assert_eq!(&decided, &decide(&snapshot), "before {:?} in\n{}", event, text);
            prop_assert_eq!(&scanner.decide(&snapshot), &decided, "asked twice");
            last = decided.commands;
            happen(&mut snapshot, event);
        }
        prop_assert_eq!(scanner.decide(&snapshot), decide(&snapshot));
    }
}
