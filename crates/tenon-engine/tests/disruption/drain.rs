//! Which pods leave a drained node when.

use std::time::Duration;

use tenon_engine::drain::{DrainPlan, grace_left_s, has_seen_all_pods, is_drainable, plan_drain};
use tenon_model::{DrainPod, PodKey, Timestamp};

use crate::disruption::nodes::{ago, later, now};

fn pod(name: &str) -> DrainPod {
    let key = PodKey { namespace: "d".into(), name: name.into(), uid: name.into() };
    DrainPod { key, grace_period_s: 30, ..DrainPod::default() }
}

fn names_of(pods: &[PodKey]) -> Vec<&str> {
    pods.iter().map(|key| &*key.name).collect()
}

fn nanosecond_after(time: Timestamp) -> Timestamp {
    time.after(Duration::from_nanos(1))
}

#[test]
fn g2_pods_that_serve_others_leave_last() {
    let critical = DrainPod { is_critical: true, ..pod("critical") };
    let daemon = DrainPod { is_owned_by_daemon_set: true, ..pod("daemon") };
    let both = DrainPod { is_critical: true, is_owned_by_daemon_set: true, ..pod("both") };
    let pods = [both, critical, daemon, pod("plain")];
    let first = plan_drain(&pods, None, now());
    assert_eq!((names_of(&first.evict), first.remaining), (vec!["plain"], 4));
    assert_eq!(names_of(&plan_drain(&pods[..3], None, now()).evict), ["daemon"]);
    assert_eq!(names_of(&plan_drain(&pods[..2], None, now()).evict), ["critical"]);
    assert_eq!(names_of(&plan_drain(&pods[..1], None, now()).evict), ["both"]);
}

#[test]
fn pods_of_a_group_are_evicted_together_in_the_order_they_are_listed() {
    assert_eq!(names_of(&plan_drain(&[pod("b"), pod("a"), pod("c")], None, now()).evict), ["b", "a", "c"]);
}

#[test]
fn g2_pods_that_stay_on_their_node_are_not_waited_for() {
    let tolerant = DrainPod { tolerates_disrupted_taint: true, ..pod("tolerant") };
    let mirror = DrainPod { is_owned_by_node: true, ..pod("mirror") };
    let done = DrainPod { is_terminal: true, ..pod("done") };
    let stuck = DrainPod { deleting_until: Some(ago(61)), ..pod("stuck") };
    assert_eq!(plan_drain(&[tolerant, mirror, done, stuck], None, now()), DrainPlan::default());
}

#[test]
fn a_pod_is_stuck_more_than_a_minute_after_it_should_have_ended() {
    let pod = DrainPod { deleting_until: Some(ago(60)), ..pod("late") };
    assert!(is_drainable(&pod, now()) && !is_drainable(&pod, nanosecond_after(now())));
}

#[test]
fn g3_a_protected_pod_is_waited_for_until_the_deadline() {
    let pods = [DrainPod { has_do_not_disrupt: true, ..pod("mine") }];
    // Its grace period of 30 s ends at the deadline if it is deleted just now.
    for before in [later(31), later(30)] {
        let plan = plan_drain(&pods, Some(before), now());
        assert_eq!((plan.evict.len(), plan.delete.len(), plan.remaining), (0, 0, 1));
        assert_eq!(plan.protected, Some(pods[0].key.clone()));
    }
    assert_eq!(names_of(&plan_drain(&pods, Some(later(30)), nanosecond_after(now())).delete), ["mine"]);
    assert_eq!(names_of(&plan_drain(&pods, Some(later(29)), now()).delete), ["mine"]);
}

#[test]
fn g2_a_terminating_pod_is_waited_for_and_not_evicted_again() {
    let plan = plan_drain(&[DrainPod { deleting_until: Some(later(10)), ..pod("going") }], None, now());
    assert_eq!((plan.evict.len(), plan.remaining), (0, 1));
}

#[test]
fn a_terminating_pod_that_would_end_too_late_is_deleted_again() {
    let pods = [DrainPod { deleting_until: Some(later(10)), ..pod("going") }];
    assert_eq!(plan_drain(&pods, Some(later(10)), now()).delete, []);
    assert_eq!(names_of(&plan_drain(&pods, Some(later(9)), now()).delete), ["going"]);
}

#[test]
fn a_grace_period_without_bounds_or_below_zero_is_read_as_it_can_be() {
    let plan = |grace_period_s| plan_drain(&[DrainPod { grace_period_s, ..pod("p") }], Some(later(1)), now());
    assert_eq!((plan(i64::MAX).delete.len(), plan(i64::MIN).delete.len(), plan(0).delete.len()), (1, 0, 0));
}

#[test]
fn a_drain_goes_on_for_five_seconds_at_least() {
    assert!(has_seen_all_pods(ago(5), now()) && !has_seen_all_pods(nanosecond_after(ago(5)), now()));
}

#[test]
fn a_deleted_pod_has_what_is_left_until_the_deadline_and_at_least_a_second() {
    let left = |deadline| grace_left_s(deadline, now());
    assert_eq!((left(None), left(Some(ago(5))), left(Some(now())), left(Some(later(20)))), (1, 1, 1, 20));
    assert_eq!(grace_left_s(Some(later(20)), nanosecond_after(now())), 19);
    assert_eq!(left(Some(Timestamp::MAX)), u32::MAX);
}
