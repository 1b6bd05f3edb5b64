//! What would be planned if nodes were gone is what is planned once they are going.

use std::sync::Arc;

use proptest::prelude::*;
use tenon_engine::{Change, Destinations, Engine, MovedPods};
use tenon_model::{Plan, PodKey, Quantity, Resources, Snapshot};

use crate::packing::cluster::cluster;
use crate::packing::laws::{SEED, any_cluster, carried_out};

/// The snapshot once nodes are going: their pods have to be placed, and what they have no longer counts for their pool.
fn once_going(snapshot: &Snapshot, names: &[&str]) -> Snapshot {
    once_left(snapshot, names, |_| true)
}

/// The same where only some of their pods have to be placed.
fn once_left(snapshot: &Snapshot, names: &[&str], is_moving: impl Fn(&PodKey) -> bool) -> Snapshot {
    let mut after = snapshot.clone();
    for node in after.nodes.iter_mut().filter(|node| names.contains(&node.name.as_str()) && !node.is_leaving) {
        let node = Arc::make_mut(node);
        node.is_leaving = true;
        let moving = node.pods.iter().filter(|pod| pod.needs_another_node() && is_moving(&pod.key));
        after.pods.extend(moving.map(|pod| Arc::new(pod.unbound())));
        for pool in after.pools.iter_mut().filter(|pool| Some(&pool.name) == node.pool.as_ref()) {
            let one = Resources::default().with("nodes", Quantity::whole(1));
            let pool = Arc::make_mut(pool);
            pool.used = pool.used.without(&node.capacity).without(&one);
        }
    }
    after
}

/// The same where nodes have no room for anything.
fn once_full(snapshot: &Snapshot, names: &[&str]) -> Snapshot {
    let mut after = snapshot.clone();
    for node in after.nodes.iter_mut().filter(|node| names.contains(&node.name.as_str())) {
        let node = Arc::make_mut(node);
        node.bound.add(&node.allocatable);
        node.bound.add(&Resources::default().with("cpu", Quantity::whole(1)));
    }
    after
}

fn planned(snapshot: &Snapshot) -> Plan {
    Engine::of(snapshot).measure(false).0
}

/// Nodes whose bit is set.
fn chosen(snapshot: &Snapshot, bits: u16) -> Vec<&str> {
    let is_chosen = |(position, _): &(usize, _)| bits & (1 << (position % 16)) != 0;
    let names = snapshot.nodes.iter().map(|node| node.name.as_str());
    names.enumerate().filter(is_chosen).map(|(_, name)| name).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, rng_seed: SEED, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_without_nodes_is_the_plan_once_they_are_going(
        text in any_cluster(),
        changes in proptest::collection::vec((any::<u16>(), any::<u16>(), any::<u16>()), 5),
    ) {
        let snapshot = carried_out(&cluster(&text));
        let engine = Engine::with_pods_on_nodes(&snapshot);
        for shadow in [false, true] {
            // One after the other: whatever is left behind by one would show in the next.
            let mut what_ifs = engine.what_ifs(shadow);
            for (remove, cordon, rare) in &changes {
                let remove = chosen(&snapshot, *remove);
                let cordon = chosen(&snapshot, cordon & rare);
                let expected = planned(&once_full(&once_going(&snapshot, &remove), &cordon));
                let change = Change { remove: &remove, cordon: &cordon, ..Change::default() };
                prop_assert_eq!(what_ifs.plan(&change), Some(expected.clone()), "{:?}", change);
                let most = Change { most_new_nodes: expected.new_nodes.len().checked_sub(1), ..change };
                if most.most_new_nodes.is_some() {
                    prop_assert_eq!(what_ifs.plan(&most), None);
                }
            }
            prop_assert_eq!(what_ifs.plan(&Change::default()), Some(planned(&snapshot)));
        }
    }

    #[test]
    fn pods_that_stay_count_where_they_are_and_unsettled_nodes_take_none_that_move(
        text in any_cluster(),
        changes in proptest::collection::vec((any::<u16>(), any::<u16>()), 4),
        kept in any::<u8>(),
    ) {
        // Without pending pods, which may go where others may not.
        let mut snapshot = carried_out(&cluster(&text));
        snapshot.pods.clear();
        let is_kept = |pod: &PodKey| pod.name.bytes().fold(kept, |sum, byte| sum.rotate_left(3) ^ byte) % 4 == 0;
        let engine = Engine::with_pods_on_nodes(&snapshot);
        for (remove, unsettled) in changes {
            let (remove, unsettled) = (chosen(&snapshot, remove), chosen(&snapshot, unsettled));
            let mut what_ifs = engine.what_ifs(false).knowing(is_kept, &unsettled);
            let left = once_left(&snapshot, &remove, |pod| !is_kept(pod));
            let free = Change { remove: &remove, pods: MovedPods::Free, ..Change::default() };
            prop_assert_eq!(what_ifs.plan(&free), Some(planned(&left)), "{:?}", free);
            let settled = Change { destinations: Destinations::Settled, ..free };
            prop_assert_eq!(what_ifs.plan(&settled), Some(planned(&once_full(&left, &unsettled))), "{:?}", settled);
        }
    }
}
