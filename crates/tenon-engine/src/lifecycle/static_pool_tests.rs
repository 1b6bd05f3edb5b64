//! How many nodes a pool of fixed size makes and gives away, and which ones.

use tenon_model::Seconds;

use super::super::static_victims::{StaticPod, StaticStage, lifetime_remaining};
use super::*;

fn node(name: &str) -> StaticNode {
    StaticNode { name: name.to_owned(), lifetime_remaining: 1.0, ..StaticNode::default() }
}

fn nodes(count: u32, standing: Standing) -> impl Iterator<Item = StaticNode> {
    (0..count).map(move |number| StaticNode { standing, ..node(&format!("{standing:?}-{number:03}")) })
}

/// A ready pool with so many nodes that stay, are to be replaced, and go.
fn pool(replicas: u32, (active, pending, deleting): (u32, u32, u32)) -> StaticPool {
    let active = nodes(active, Standing::Active);
    let others = nodes(pending, Standing::PendingDisruption).chain(nodes(deleting, Standing::Deleting));
    StaticPool { replicas, limit: None, is_ready: true, nodes: active.chain(others).collect() }
}

fn pod(cost: f64) -> StaticPod {
    StaticPod { eviction_cost: cost, ..StaticPod::default() }
}

fn daemon() -> StaticPod {
    StaticPod { is_daemon: true, ..pod(1.0) }
}

fn asking(pod: StaticPod) -> StaticPod {
    StaticPod { forbids_disruption: true, ..pod }
}

fn with_pods(name: &str, pods: &[StaticPod]) -> StaticNode {
    StaticNode { pods: pods.to_vec(), ..node(name) }
}

/// All of them, in the order in which they go.
fn order(nodes: Vec<StaticNode>) -> Vec<String> {
    let StaticStep::Remove(names) = (StaticPool { nodes, ..StaticPool::default() }).next_step() else { return vec![] };
    names
}

#[test]
fn no_more_are_set_aside_than_the_limit_leaves() {
    let mut counts = StaticCounts { active: 3, deleting: 1, ..StaticCounts::default() };
    assert_eq!(counts.reserve(Some(5), 3), 1);
    assert_eq!(counts.reserve(Some(5), 3), 0);
    counts.release();
    assert_eq!(counts.reserve(Some(5), 3), 1);
    assert_eq!(counts.reserve(Some(2), 1), 0, "a limit below what is there leaves nothing");
    assert_eq!(StaticCounts::default().reserve(None, 7), 7);
}

#[test]
fn what_is_released_twice_is_not_owed() {
    let mut counts = StaticCounts::default();
    counts.release();
    assert_eq!((counts.reserve(Some(1), 2), counts.reserved), (1, 1));
}

#[test]
fn nodes_that_are_to_be_replaced_count_and_nodes_that_go_do_not() {
    assert_eq!(pool(3, (2, 1, 0)).next_step(), StaticStep::Settled);
    assert_eq!(pool(5, (2, 1, 0)).next_step(), StaticStep::Make(2), "whoever replaces the third makes the new one");
    assert_eq!(pool(3, (2, 0, 1)).next_step(), StaticStep::Make(1));
    assert_eq!(pool(0, (0, 0, 3)).next_step(), StaticStep::Settled);
    assert_eq!(pool(2, (2, 1, 0)).next_step(), StaticStep::Settled, "the one that is to be replaced is not too many");
}

#[test]
fn a_limit_counts_every_node_until_it_is_gone() {
    let limited = |limit, has| StaticPool { limit: Some(limit), ..pool(5, has) }.next_step();
    assert_eq!(limited(3, (0, 0, 0)), StaticStep::Make(3));
    assert_eq!(limited(5, (3, 0, 1)), StaticStep::Make(1));
    assert_eq!(limited(5, (3, 0, 2)), StaticStep::AtLimit { limit: 5, taken: 5, missing: 2 });
    assert_eq!(limited(5, (3, 1, 1)), StaticStep::AtLimit { limit: 5, taken: 5, missing: 1 });
    assert_eq!(limited(0, (0, 0, 0)), StaticStep::AtLimit { limit: 0, taken: 0, missing: 5 });
    assert_eq!(limited(2, (5, 0, 0)), StaticStep::Settled, "a limit takes nothing away");
}

#[test]
fn a_pool_that_is_not_ready_makes_no_node_but_gives_some_away() {
    let unready = |replicas| StaticPool { is_ready: false, ..pool(replicas, (2, 0, 0)) }.next_step();
    assert_eq!(unready(3), StaticStep::NotReady);
    assert_eq!(unready(2), StaticStep::Settled);
    assert_eq!(unready(1), StaticStep::Remove(vec!["Active-000".to_owned()]));
}

#[test]
fn no_more_claims_are_made_than_may_wait_for_a_host_at_once() {
    let mut large = pool(100, (10, 0, 0));
    assert_eq!(large.next_step(), StaticStep::Make(WAITING_MOST));
    for node in &mut large.nodes[..4] {
        node.stage = StaticStage::Unplanned;
    }
    assert_eq!(large.next_step(), StaticStep::Make(WAITING_MOST - 4));
    let mut stuck = pool(100, (WAITING_MOST, 0, 0));
    stuck.nodes.iter_mut().for_each(|node| node.stage = StaticStage::Unplanned);
    assert_eq!(stuck.next_step(), StaticStep::AwaitRoom { waiting: WAITING_MOST, missing: 100 - WAITING_MOST });
    for node in &mut stuck.nodes {
        node.standing = Standing::Deleting;
    }
    assert_eq!(stuck.next_step(), StaticStep::Make(WAITING_MOST), "who goes waits for nothing");
}

#[test]
fn as_many_go_as_there_are_too_many_and_a_bound_of_them_at_once() {
    let StaticStep::Remove(names) = pool(1, (3, 0, 2)).next_step() else { panic!("nobody goes") };
    assert_eq!(names, ["Active-000", "Active-001"]);
    let StaticStep::Remove(names) = pool(0, (REMOVED_AT_ONCE + 7, 0, 0)).next_step() else { panic!("nobody goes") };
    assert_eq!(names.len(), usize::try_from(REMOVED_AT_ONCE).unwrap());
}

#[test]
fn who_has_no_vm_goes_first_and_of_these_who_has_no_plan() {
    let at = |name, stage| StaticNode { stage, ..with_pods(name, &[]) };
    let all = vec![
        at("a", StaticStage::Launched),
        at("b", StaticStage::Launching),
        at("c", StaticStage::Unplanned),
        at("d", StaticStage::Launching),
    ];
    assert_eq!(order(all), ["c", "b", "d", "a"]);
}

#[test]
fn nodes_with_nothing_but_daemons_go_before_those_with_pods_unless_a_daemon_asks_for_its_node() {
    let all = vec![
        with_pods("a-busy", &[pod(0.5)]),
        with_pods("b-asked-for", &[asking(daemon())]),
        with_pods("c-daemons", &[daemon(), daemon()]),
        with_pods("d-mixed", &[daemon(), pod(0.5)]),
        with_pods("e-bare", &[]),
    ];
    assert_eq!(order(all), ["c-daemons", "e-bare", "a-busy", "d-mixed", "b-asked-for"]);
}

#[test]
fn the_cheaper_its_pods_and_the_nearer_its_end_the_sooner_a_node_goes() {
    let aged =
        |name, pods: &[StaticPod], lifetime_remaining| StaticNode { lifetime_remaining, ..with_pods(name, pods) };
    let all = vec![
        aged("a", &[pod(1.0), pod(1.0)], 1.0),
        aged("b", &[pod(1.5)], 1.0),
        aged("c", &[pod(10.0)], 0.1),
        aged("d", &[pod(10.0)], 0.0),
        aged("e", &[pod(-10.0)], 1.0),
    ];
    assert_eq!(order(all), ["e", "d", "c", "b", "a"]);
}

#[test]
fn a_node_that_a_pod_asks_for_goes_last_however_cheap_it_is() {
    let all = vec![
        with_pods("a", &[asking(pod(-10.0))]),
        with_pods("b", &[pod(10.0), pod(10.0)]),
        with_pods("c", &[asking(pod(1.0)), pod(1.0)]),
    ];
    assert_eq!(order(all), ["b", "a", "c"]);
}

#[test]
fn of_equal_nodes_the_oldest_goes_first_whatever_order_they_come_in() {
    let made = |name, at| StaticNode { created: Seconds(at), ..node(name) };
    let all = vec![made("c", 10), made("b", 20), made("a", 20)];
    assert_eq!(order(all.clone()), ["c", "a", "b"]);
    assert_eq!(order(all.into_iter().rev().collect()), ["c", "a", "b"]);
}

#[test]
fn a_node_that_another_controller_made_counts_and_is_not_given_away() {
    let foreign = |name| StaticNode { sparing: Sparing::NotOurs, ..with_pods(name, &[]) };
    let both = vec![foreign("a"), with_pods("b", &[pod(1.0)])];
    assert_eq!(order(both.clone()), ["b"]);
    let with = |replicas, nodes| StaticPool { replicas, is_ready: true, nodes, limit: None }.next_step();
    assert_eq!(with(2, both), StaticStep::Settled);
    assert_eq!(with(1, vec![foreign("a"), foreign("c")]), StaticStep::NotOurs { excess: 1 });
}

#[test]
fn what_is_left_of_a_life_falls_from_all_to_nothing() {
    const HOUR: i64 = 3600;
    let left = |whole, age| format!("{}", lifetime_remaining(whole, age));
    assert_eq!(left(Some(100 * HOUR), 25 * HOUR), "0.75");
    assert_eq!(left(Some(100 * HOUR), 101 * HOUR), "0");
    assert_eq!(left(Some(100 * HOUR), -HOUR), "1", "a clock that is behind makes nobody younger than new");
    assert_eq!(left(None, 25 * HOUR), "1");
    assert_eq!(left(Some(0), 1), "0");
}
