//! Which empty nodes are deleted, and why the others are not.

use std::time::Duration;

use tenon_engine::disruption::{Consolidatable, DisruptionBlocked, PoolDisruption, Protected, validate_emptiness};
use tenon_model::{CandidateClaim, CandidateNode, CandidatePod, DisruptionPool, Timestamp};

use crate::disruption::nodes::{
    With as _, ago, blocked, blocked_in, budgeted, empty_node, later, now, patient, pod, pool, verdict, with_budget,
};

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

fn deleting(claim: &mut CandidateClaim) {
    claim.is_deleting = true;
}

fn protected(pod: CandidatePod) -> CandidatePod {
    CandidatePod { has_do_not_disrupt: true, ..pod }
}

fn on(on: Protected) -> Option<DisruptionBlocked> {
    Some(DisruptionBlocked::DoNotDisrupt { on })
}

#[test]
fn a_node_whose_vm_another_controller_created_is_not_disrupted() {
    let foreign = empty_node("a").with(|claim| claim.has_foreign_vm = true);
    assert_eq!(blocked(&foreign), Some(DisruptionBlocked::ForeignVm));
    assert_eq!(blocked(&empty_node("a")), None);
}

#[test]
fn an_empty_node_is_deleted_after_consolidate_after() {
    // It was initialized ten minutes ago.
    assert_eq!(blocked_in(&patient("10m"), &empty_node("a")), None);
    let reason = blocked_in(&patient("10m1s"), &empty_node("a")).unwrap();
    assert_eq!(reason, DisruptionBlocked::TooRecent { until: later(1) });
    assert!(reason.to_string().contains("can be removed at 2026-03-11T10:10:01Z"), "{reason}");
}

#[test]
fn fractions_of_a_second_count() {
    let half = Duration::from_millis(500);
    let visited = |at: Timestamp| empty_node("a").with(|claim| claim.last_pod_event = Some(at));
    assert_eq!(blocked_in(&patient("2m"), &visited(ago(120))), None);
    let until = now().after(half);
    let reason = DisruptionBlocked::TooRecent { until };
    assert_eq!(blocked_in(&patient("2m"), &visited(ago(120).after(half))), Some(reason));
    assert_eq!(blocked_in(&patient("2m"), &visited(ago(120).before(half))), None);
}

#[test]
fn a_pod_event_starts_the_wait_again() {
    let visited = empty_node("a").with(|claim| claim.last_pod_event = Some(ago(120)));
    assert_eq!(blocked_in(&patient("2m"), &visited), None);
    assert_eq!(blocked_in(&patient("5m"), &visited), Some(DisruptionBlocked::TooRecent { until: later(180) }));
}

#[test]
fn a_pool_that_never_consolidates_keeps_its_empty_nodes() {
    let off = DisruptionBlocked::ConsolidationDisabled { pool: "default".to_owned() };
    assert_eq!(blocked_in(&patient("Never"), &empty_node("a")), Some(off));
    let text = "soon".to_owned();
    let invalid = DisruptionBlocked::InvalidConsolidateAfter { pool: "default".to_owned(), text };
    assert_eq!(blocked_in(&patient("soon"), &empty_node("a")), Some(invalid));
    let long = blocked_in(&patient("99999999999999999999h"), &empty_node("a"));
    assert_eq!(long, Some(DisruptionBlocked::TooRecent { until: Timestamp::MAX }));
}

#[test]
fn a_claim_without_a_node_is_not_disrupted() {
    let claim = CandidateNode { node: None, ..empty_node("a") };
    assert_eq!(blocked(&claim), Some(DisruptionBlocked::NodeMissing));
    assert_eq!(blocked(&claim.with(deleting)), Some(DisruptionBlocked::NodeMissing));
}

#[test]
fn what_is_being_deleted_is_not_deleted_again() {
    assert_eq!(blocked(&empty_node("a").with(deleting)), Some(DisruptionBlocked::Deleting));
    assert_eq!(blocked(&empty_node("a").with_node(|node| node.is_deleting = true)), Some(DisruptionBlocked::Deleting));
    let terminating = empty_node("a").with(|claim| claim.is_instance_terminating = true);
    assert_eq!(blocked(&terminating), Some(DisruptionBlocked::Deleting));
}

#[test]
fn a_node_that_is_not_initialized_is_not_disrupted() {
    let unlabelled = empty_node("a").with_node(|node| node.is_initialized = false);
    assert_eq!(blocked(&unlabelled), Some(DisruptionBlocked::NotInitialized));
    let unsaid = empty_node("a").with(|claim| claim.initialized_at = None);
    assert_eq!(blocked(&unsaid), Some(DisruptionBlocked::NotInitialized));
}

#[test]
fn a_node_that_pods_are_nominated_to_is_not_disrupted() {
    let nominated = CandidateNode { is_nominated: true, ..empty_node("a") };
    assert_eq!(blocked(&nominated), Some(DisruptionBlocked::Nominated));
}

#[test]
fn a_node_or_claim_with_do_not_disrupt_is_not_disrupted() {
    let node = empty_node("a").with_node(|node| node.has_do_not_disrupt = true);
    assert_eq!(blocked(&node), on(Protected::Node("node-a".to_owned())));
    let reason = blocked(&empty_node("a").with(|claim| claim.has_do_not_disrupt = true));
    assert_eq!(reason, on(Protected::Claim("a".to_owned())));
    assert_eq!(
        reason.unwrap().to_string(),
        "NodeClaim a has karpenter.sh/do-not-disrupt; remove the annotation to allow disruption"
    );
}

#[test]
fn a_node_without_a_living_pool_is_not_disrupted() {
    let other = blocked(&empty_node("a").in_pool(Some("other")));
    assert_eq!(other, Some(DisruptionBlocked::NoPool { pool: Some("other".to_owned()) }));
    assert_eq!(blocked(&empty_node("a").in_pool(None)), Some(DisruptionBlocked::NoPool { pool: None }));
    let deleting = DisruptionPool { is_deleting: true, ..pool("default") };
    let reason = blocked_in(&deleting, &empty_node("a"));
    assert_eq!(reason, Some(DisruptionBlocked::NoPool { pool: Some("default".to_owned()) }));
}

#[test]
fn a_static_pool_keeps_its_nodes() {
    let fixed = DisruptionPool { is_static: true, ..pool("default") };
    let reason = DisruptionBlocked::StaticPool { pool: "default".to_owned() };
    assert_eq!(blocked_in(&fixed, &empty_node("a")), Some(reason));
    assert_eq!(verdict(&[fixed], &[empty_node("a")]).consolidatable, []);
}

#[test]
fn the_first_reason_decides() {
    let mut node = empty_node("a").with_node(|node| node.has_do_not_disrupt = true).with_pod(protected(pod("cart-0")));
    node.is_nominated = true;
    let off = patient("Never");
    assert_eq!(blocked_in(&off, &node), Some(DisruptionBlocked::Nominated));
    node.is_nominated = false;
    assert_eq!(blocked_in(&off, &node), on(Protected::Node("node-a".to_owned())));
    let held = empty_node("a").with_pod(protected(pod("cart-0")));
    assert_eq!(blocked_in(&off, &held), on(Protected::Pod("shop/cart-0".to_owned())));
    let busy = empty_node("a").with_pod(pod("cart-0"));
    let disabled = DisruptionBlocked::ConsolidationDisabled { pool: "default".to_owned() };
    assert_eq!(blocked_in(&off, &busy), Some(disabled));
    let soon = blocked_in(&patient("1h"), &busy);
    assert!(matches!(soon, Some(DisruptionBlocked::NotEmpty { pods: 1, .. })), "{soon:?}");
}

#[test]
fn a_pod_that_has_to_run_somewhere_keeps_its_node_unless_moving_it_costs_nothing() {
    let busy = |pods: usize, first: &str| Some(DisruptionBlocked::NotEmpty { pods, first: first.to_owned() });
    assert_eq!(blocked(&empty_node("a").with_pod(pod("cart-0"))), busy(1, "shop/cart-0"));
    let two = blocked(&empty_node("a").with_pod(pod("cart-0")).with_pod(pod("basket")));
    assert_eq!(two, busy(2, "shop/basket"));
    assert_eq!(two.unwrap().to_string(), "2 pods need the node, such as shop/basket");
    let bound = CandidatePod { is_reschedulable: false, ..pod("daemon") };
    let cheap = CandidatePod { eviction_cost: 0.0, ..pod("cheap") };
    assert_eq!(blocked(&empty_node("a").with_pod(bound).with_pod(cheap)), None);
}

#[test]
fn a_budget_of_ten_percent_allows_one_of_three() {
    let verdict = verdict(&[budgeted("10%")], &[empty_node("c"), empty_node("a"), empty_node("b")]);
    assert_eq!(verdict.delete, names(&["a"]));
    let reason = DisruptionBlocked::BudgetExhausted { pool: "default".to_owned(), allowed: 1, disrupting: 1 };
    assert_eq!(
        reason.to_string(),
        "NodePool default has no budget left: 1 node is being disrupted or not ready, and spec.disruption.budgets allow 1 \
         at once"
    );
    assert_eq!(verdict.blocked, [("b".to_owned(), reason.clone()), ("c".to_owned(), reason)]);
    let pool = PoolDisruption { pool: "default".to_owned(), allowed: 1, disrupting: 0, total: 3, invalid: vec![] };
    assert_eq!(verdict.pools, [pool]);
}

#[test]
fn the_oldest_nodes_are_deleted_first() {
    let born = |name: &str, minutes: u64| empty_node(name).with(|claim| claim.created = Some(ago(60 * minutes)));
    let nodes = [born("a", 40), born("c", 130), born("b", 130), born("d", 190).with_pod(pod("cart-0"))];
    assert_eq!(verdict(&[budgeted("2")], &nodes).delete, names(&["b", "c"]));
    assert_eq!(verdict(&[budgeted("9")], &nodes).delete, names(&["b", "c", "a"]));
}

#[test]
fn nodes_that_are_being_deleted_or_not_ready_use_up_the_budget() {
    for disrupted in [
        empty_node("x").with(deleting),
        empty_node("x").with_node(|node| node.is_deleting = true),
        empty_node("x").with_node(|node| node.is_ready = false),
    ] {
        let nodes = [empty_node("a"), empty_node("b"), disrupted.with_pod(pod("cart-0"))];
        let verdict = verdict(&[budgeted("2")], &nodes);
        assert_eq!(verdict.delete, names(&["a"]));
        assert_eq!((verdict.pools[0].disrupting, verdict.pools[0].total), (1, 3));
    }
}

#[test]
fn a_budget_is_never_below_nothing() {
    let unready = empty_node("y").with_node(|node| node.is_ready = false);
    let nodes = [empty_node("x").with(deleting), unready, empty_node("a")];
    let verdict = verdict(&[budgeted("1")], &nodes);
    assert_eq!(verdict.delete, names(&[]));
    let reason = DisruptionBlocked::BudgetExhausted { pool: "default".to_owned(), allowed: 1, disrupting: 2 };
    assert_eq!(verdict.blocked[0], ("a".to_owned(), reason));
}

#[test]
fn nodes_that_never_took_pods_or_lose_their_vm_are_not_counted() {
    let losing = empty_node("y").with(deleting).with(|claim| claim.is_instance_terminating = true);
    let fresh = empty_node("x").with_node(|node| (node.is_initialized, node.is_ready) = (false, false));
    let nodes = [fresh, losing, CandidateNode { node: None, ..empty_node("z") }, empty_node("a")];
    let verdict = verdict(&[budgeted("100%")], &nodes);
    assert_eq!((verdict.pools[0].allowed, verdict.pools[0].disrupting, verdict.pools[0].total), (1, 0, 1));
    assert_eq!(verdict.delete, names(&["a"]));
}

#[test]
fn each_pool_has_its_own_budget() {
    let of_red = |name: &str| empty_node(name).in_pool(Some("red"));
    let pools = [with_budget(pool("red"), "1"), budgeted("0"), with_budget(pool("idle"), "10%")];
    let verdict = verdict(&pools, &[of_red("a"), of_red("b"), empty_node("c")]);
    assert_eq!(verdict.delete, names(&["a"]));
    assert_eq!(verdict.pools.iter().map(|budget| budget.pool.as_str()).collect::<Vec<_>>(), ["default", "idle", "red"]);
    let closed = &verdict.blocked.iter().find(|(name, _)| name == "c").unwrap().1;
    assert!(closed.to_string().contains("the budgets of NodePool default allow no disruption now"), "{closed}");
}

#[test]
fn a_budget_that_cannot_be_read_keeps_every_node_and_says_so() {
    let verdict = verdict(&[budgeted("many")], &[empty_node("a")]);
    assert_eq!(verdict.delete, names(&[]));
    assert!(verdict.pools[0].invalid[0].to_string().contains("budgets[0]"), "{:?}", verdict.pools);
}

#[test]
fn a_node_is_consolidatable_when_its_wait_is_over_in_use_or_not() {
    let state = |after: &str, node: CandidateNode| {
        let found = verdict(&[patient(after)], &[node]).consolidatable;
        found.into_iter().next().map(|(_, state)| state)
    };
    let absent = |until: Option<Timestamp>| Some(Consolidatable::Absent { until });
    assert_eq!(state("10m", empty_node("a").with_pod(pod("cart-0"))), Some(Consolidatable::True));
    assert_eq!(state("11m", empty_node("a")), absent(Some(later(60))));
    assert_eq!(state("Never", empty_node("a")), absent(None));
    assert_eq!(state("0s", empty_node("a").with(|claim| claim.initialized_at = None)), absent(None));
    assert_eq!(state("0s", empty_node("a").with(deleting)), None);
    assert_eq!(state("0s", empty_node("a").in_pool(Some("other"))), None);
}

#[test]
fn the_second_check_asks_everything_again_but_the_budget() {
    let check = |pool: DisruptionPool, node: &CandidateNode| validate_emptiness(node, &[pool], now());
    assert_eq!(check(budgeted("0"), &empty_node("a")), Ok(()));
    let busy = check(pool("default"), &empty_node("a").with_pod(pod("cart-0")));
    assert_eq!(busy, Err(DisruptionBlocked::NotEmpty { pods: 1, first: "shop/cart-0".to_owned() }));
    let deleting = DisruptionPool { is_deleting: true, ..pool("default") };
    assert!(matches!(check(deleting, &empty_node("a")), Err(DisruptionBlocked::NoPool { .. })));
}
