//! Tables of repair policies: which sets are sets, what each condition means, and what follows for a node.

use super::*;
use crate::launch::Seconds;
use crate::repair_decision::{RepairDecision, RepairVerdict, judge_repair};

const MINUTE: u64 = 60;

fn policy(condition: &str, status: &str, reason_regex: &str, toleration_s: u64) -> RepairPolicy {
    RepairPolicy {
        condition: condition.to_owned(),
        status: status.to_owned(),
        reason_regex: reason_regex.to_owned(),
        toleration: Duration::from_secs(toleration_s),
        grace_period: None,
        priority: 0,
        action: RepairAction::ReplaceNode,
    }
}

fn reboot(policy: RepairPolicy) -> RepairPolicy {
    RepairPolicy { action: RepairAction::RebootNode, ..policy }
}

fn of_priority(priority: i64, policy: RepairPolicy) -> RepairPolicy {
    RepairPolicy { priority, ..policy }
}

fn bounded(seconds: u64, policy: RepairPolicy) -> RepairPolicy {
    RepairPolicy { grace_period: Some(Duration::from_secs(seconds)), ..policy }
}

fn fallback() -> RepairPolicy {
    policy("Ready", "Unknown", "", 15 * MINUTE)
}

fn set(policies: Vec<RepairPolicy>) -> RepairPolicies {
    RepairPolicies::new(policies).unwrap()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from(Seconds(seconds))
}

fn said<'a>(condition: &'a str, status: &'a str, reason: &'a str, since: i64) -> SaidCondition<'a> {
    SaidCondition { condition, status, reason, since: at(since) }
}

/// What a node with these conditions is due for at a second.
fn judged(
    set: &RepairPolicies,
    conditions: &[SaidCondition<'_>],
    began: Option<i64>,
    now: i64,
) -> Option<RepairVerdict> {
    let faults: Vec<Unhealthy> = conditions.iter().flat_map(|said| set.matches(said)).collect();
    judge_repair(&faults, began.map(at), at(now))
}

fn due(set: &RepairPolicies, conditions: &[SaidCondition<'_>], now: i64) -> RepairDecision {
    match judged(set, conditions, None, now) {
        Some(RepairVerdict::Due(decision)) => decision,
        other => panic!("{other:?}"),
    }
}

fn tolerated_until(found: Option<RepairVerdict>) -> i64 {
    match found {
        Some(RepairVerdict::Tolerated { until, .. }) => until.seconds().0,
        other => panic!("{other:?}"),
    }
}

#[test]
fn j1_only_a_node_that_is_not_ready_is_broken_and_only_after_a_quarter_of_an_hour() {
    let set = RepairPolicies::default();
    assert_eq!(set.iter().count(), 2, "the policies of the provider are a set");
    for status in ["False", "Unknown"] {
        for reason in ["", "KubeletNotReady"] {
            let found = set.matches(&said("Ready", status, reason, 1000));
            assert_eq!(found.len(), 1, "{status} {reason}");
            assert_eq!(found[0].tolerated_until(None).seconds(), Seconds(1900));
            assert_eq!(found[0].tolerated_until(Some(at(500))).seconds(), Seconds(1900));
            assert_eq!(found[0].tolerated_until(Some(at(2000))).seconds(), Seconds(2900));
            assert_eq!(found[0].to_string(), format!("condition Ready={status} since 1970-01-01T00:16:40Z"));
        }
    }
    for (condition, status) in [("Ready", "True"), ("MemoryPressure", "True"), ("ready", "False")] {
        assert_eq!(set.matches(&said(condition, status, "x", 1000)), []);
    }
}

#[test]
fn j1_a_set_is_taken_as_a_whole_or_not_at_all() {
    let with = |bad: RepairPolicy| RepairPolicies::new(vec![fallback(), bad]).unwrap_err().to_string();
    for (bad, words) in [
        (policy("", "True", "x", 0), "policy 2: conditionType is empty"),
        (policy("Ready", "true", "x", 0), "policy 2: conditionStatus `true` is none of True, False and Unknown"),
        (policy("Ready", "", "x", 0), "policy 2: conditionStatus `` is none"),
        (policy("Ready", "False", "(", 0), "policy 2: reasonRegex `(` is no regular expression: unclosed group"),
        (policy("Ready", "False", "(?=x)", 0), "is no regular expression: look-around"),
        (of_priority(-1, policy("Ready", "False", "x", 0)), "policy 2: priority -1 is not between 0 and 100"),
        (of_priority(101, policy("Ready", "False", "x", 0)), "priority 101"),
        (policy("Ready", "False", "", 0), "2 policies have no reasonRegex; exactly one must"),
    ] {
        assert!(with(bad.clone()).contains(words), "{bad:?}: {}", with(bad.clone()));
    }
    let error = |policies| RepairPolicies::new(policies).unwrap_err();
    assert_eq!(error(Vec::new()), RepairPolicyFault::Empty);
    assert_eq!(error(vec![policy("Ready", "False", ".*", 0)]), RepairPolicyFault::Fallbacks { found: 0 });
    assert_eq!(error(vec![reboot(fallback())]), RepairPolicyFault::FallbackAction { number: 1 });
    let highest = of_priority(100, bounded(0, policy("Ready", "True", "x", 0)));
    assert_eq!(set(vec![highest, fallback()]).iter().count(), 2);
}

#[test]
fn j1_a_policy_whose_pattern_fits_keeps_the_fallback_out_also_while_it_tolerates() {
    let slow = reboot(policy("Ready", "Unknown", "Status", 60 * MINUTE));
    let set = set(vec![fallback(), slow]);
    let fits = [said("Ready", "Unknown", "NodeStatusUnknown", 0)];
    assert_eq!(tolerated_until(judged(&set, &fits, None, 1000)), 3600, "the pattern is searched anywhere");
    let other = [said("Ready", "Unknown", "Other", 0)];
    assert_eq!(due(&set, &other, 1000).action, RepairAction::ReplaceNode);
    assert!(due(&set, &other, 1000).driver.is_fallback);
}

#[test]
fn j1_the_fallback_is_for_reasons_of_every_condition_that_some_policy_names() {
    let kernel = reboot(policy("KernelDeadlock", "True", "^Hung$", 0));
    let set = set(vec![fallback(), kernel]);
    let of_other_pair = [said("KernelDeadlock", "True", "Panic", 0)];
    assert_eq!(tolerated_until(judged(&set, &of_other_pair, None, 10)), 900, "with the toleration of the fallback");
    let decision = due(&set, &of_other_pair, 900);
    assert_eq!((decision.action, decision.driver.condition.as_str()), (RepairAction::ReplaceNode, "KernelDeadlock"));
    assert_eq!(judged(&set, &[said("KernelDeadlock", "False", "Panic", 0)], None, 900), None);
    assert_eq!(judged(&set, &[said("DiskPressure", "True", "Panic", 0)], None, 900), None);
}

#[test]
fn j1_a_pattern_that_fits_everything_is_no_fallback() {
    let all = reboot(policy("Ready", "False", ".*", 0));
    let set = set(vec![fallback(), all]);
    for reason in ["", "Anything"] {
        let decision = due(&set, &[said("Ready", "False", reason, 0)], 10);
        assert_eq!((decision.action, decision.driver.is_fallback), (RepairAction::RebootNode, false));
    }
    assert_eq!(tolerated_until(judged(&set, &[said("Ready", "Unknown", "", 0)], None, 10)), 900, "of its pair only");
}

#[test]
fn j1_the_most_disruptive_action_wins_and_the_shortest_bound_of_any_policy_holds() {
    let gentle = bounded(60, of_priority(50, reboot(policy("GPU", "False", "x", 0))));
    let hard = bounded(600, policy("Disk", "False", "x", 0));
    let unbounded = of_priority(10, policy("Disk", "False", "xx", 0));
    let set = set(vec![fallback(), gentle, hard, unbounded]);
    let both = [said("GPU", "False", "x", 0), said("Disk", "False", "x", 5)];
    let decision = due(&set, &both, 10);
    assert_eq!((decision.action, decision.driver.condition.as_str()), (RepairAction::ReplaceNode, "Disk"));
    assert_eq!(decision.drain_bound, Some(Duration::from_secs(60)), "of the policy that only reboots");
    let two = due(&set, &[said("Disk", "False", "xx", 0)], 10);
    assert_eq!((two.driver.policy.priority, two.drain_bound), (10, Some(Duration::from_secs(600))));
    assert_eq!(due(&set, &[said("GPU", "False", "x", 0)], 10).action, RepairAction::RebootNode);
}

#[test]
fn j1_what_is_still_tolerated_decides_nothing() {
    let soon = reboot(policy("GPU", "False", "x", 0));
    let later = bounded(0, of_priority(100, policy("GPU", "False", "xx", 600)));
    let set = set(vec![fallback(), soon, later]);
    let found = [said("GPU", "False", "xx", 0)];
    let decision = due(&set, &found, 599);
    assert_eq!((decision.action, decision.drain_bound), (RepairAction::RebootNode, None));
    let decision = due(&set, &found, 600);
    assert_eq!((decision.action, decision.drain_bound), (RepairAction::ReplaceNode, Some(Duration::ZERO)));
}

#[test]
fn j1_of_several_conditions_priority_then_time_then_name_say_which_drives() {
    let policies = |order: [usize; 3]| {
        let all = [
            of_priority(5, policy("B", "True", "x", 10)),
            of_priority(5, policy("A", "True", "x", 10)),
            of_priority(9, policy("C", "True", "x", 10)),
        ];
        set(order.map(|index| all[index].clone()).into_iter().chain([fallback()]).collect())
    };
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let driver = |conditions: &[SaidCondition<'_>]| due(&policies(order), conditions, 100).driver.condition;
        assert_eq!(driver(&[said("A", "True", "x", 0), said("C", "True", "x", 50)]), "C");
        assert_eq!(driver(&[said("B", "True", "x", 0), said("A", "True", "x", 50)]), "B");
        assert_eq!(driver(&[said("B", "True", "x", 0), said("A", "True", "x", 0)]), "A");
        assert_eq!(driver(&[said("A", "True", "x", 0), said("B", "True", "x", 0)]), "A", "in whatever order");
    }
}

#[test]
fn j1_the_score_is_the_rank_of_the_priority_and_half_an_hour_of_waiting_is_worth_one() {
    let set = set(vec![
        fallback(),
        of_priority(10, policy("B", "True", "x", 0)),
        of_priority(50, policy("C", "True", "x", 0)),
        policy("A", "True", "x", 0),
    ]);
    let half_hours = |conditions: &[SaidCondition<'_>]| due(&set, conditions, 10_000).score as f64 / 1.8e12;
    let since = |minutes: i64| 10_000 - minutes * 60;
    assert!((half_hours(&[said("C", "True", "x", since(0))]) - 2.0).abs() < 1e-9);
    assert!((half_hours(&[said("B", "True", "x", since(30))]) - 2.0).abs() < 1e-9);
    let old = half_hours(&[said("A", "True", "x", since(61))]);
    assert!((old - 61.0 / 30.0).abs() < 1e-9, "{old}");
    let best = half_hours(&[said("A", "True", "x", since(61)), said("C", "True", "x", since(0))]);
    assert!((best - old).abs() < 1e-9, "of several the highest counts");
}

#[test]
fn j1_a_young_or_just_rebooted_node_has_its_time_and_another_reason_does_not_begin_it_anew() {
    let set = RepairPolicies::default();
    let silent = |reason| [said("Ready", "Unknown", reason, 100)];
    assert_eq!(tolerated_until(judged(&set, &silent("a"), None, 500)), 1000);
    assert_eq!(tolerated_until(judged(&set, &silent("b"), Some(50), 500)), 1000);
    assert_eq!(tolerated_until(judged(&set, &silent("b"), Some(400), 500)), 1300);
}

#[test]
fn i1_the_old_way_knows_no_fallback_and_no_reboot() {
    let set = set(vec![
        fallback(),
        reboot(policy("GPU", "False", ".*", 0)),
        policy("GPU", "False", "^Xid$", 60),
        policy("Ready", "Unknown", "Status", 30),
    ]);
    let tolerations = |condition, status, reason| {
        let found = set.legacy_matches(&said(condition, status, reason, 0));
        found.iter().map(|fault| fault.policy.toleration.as_secs()).collect::<Vec<_>>()
    };
    assert_eq!(tolerations("GPU", "False", "Xid"), [60]);
    assert_eq!(tolerations("GPU", "False", "Other"), [0; 0]);
    assert_eq!(tolerations("Ready", "Unknown", "NodeStatusUnknown"), [900, 30], "a pattern keeps nobody out");
}
