//! How many nodes a pool's budgets let go.

use serde_json::{Value, json};
use tenon_api::{Budget, DisruptionReason};
use tenon_controllers::disruption::{Allowed, UNBOUNDED, allowed};

use crate::objects::spec;

fn at(budgets: Value, nodes: usize, now: &str) -> Allowed {
    let budgets: Vec<Budget> = spec(budgets);
    allowed(&budgets, DisruptionReason::Empty, nodes, now.parse().unwrap())
}

fn count(budgets: Value, nodes: usize) -> u32 {
    let allowed = at(budgets, nodes, "2026-03-11T10:00:00Z");
    assert_eq!(allowed.faults, Vec::<String>::new());
    allowed.count
}

#[test]
fn a_share_is_rounded_up() {
    for (nodes, expected) in [(0, 0), (1, 1), (3, 1), (10, 1), (11, 2), (19, 2), (20, 2)] {
        assert_eq!(count(json!([{ "nodes": "10%" }]), nodes), expected, "{nodes} nodes");
    }
    assert_eq!(count(json!([{ "nodes": "0%" }]), 50), 0);
    assert_eq!(count(json!([{ "nodes": "100%" }]), 50), 50);
    assert_eq!(count(json!([{ "nodes": "100%" }]), usize::MAX), UNBOUNDED);
}

#[test]
fn the_strictest_budget_for_the_reason_decides() {
    assert_eq!(count(json!([{ "nodes": "10%" }, { "nodes": "3" }]), 100), 3);
    assert_eq!(count(json!([{ "nodes": "0", "reasons": ["Drifted"] }, { "nodes": "5" }]), 100), 5);
    assert_eq!(count(json!([{ "nodes": "0", "reasons": ["Drifted", "Empty"] }, { "nodes": "5" }]), 100), 0);
    assert_eq!(count(json!([{ "nodes": "0", "reasons": ["Drifted"] }]), 100), UNBOUNDED);
    assert_eq!(count(json!([{ "nodes": "0", "reasons": [] }]), 100), UNBOUNDED, "an empty list names no reason");
    assert_eq!(count(json!([]), 100), UNBOUNDED);
}

#[test]
fn a_budget_counts_from_its_hour_until_just_before_its_end() {
    let daily = json!([{ "nodes": "0", "schedule": "@daily", "duration": "8h" }]);
    for (now, expected) in [
        ("2026-03-11T00:00:00Z", 0),
        ("2026-03-11T07:59:59.999Z", 0),
        ("2026-03-11T08:00:00Z", UNBOUNDED),
        ("2026-03-11T23:59:59.999Z", UNBOUNDED),
        // The same instant as midnight in UTC, however it is written.
        ("2026-03-11T02:00:00+02:00", 0),
    ] {
        assert_eq!(at(daily.clone(), 9, now), Allowed { count: expected, faults: vec![] }, "{now}");
    }
}

#[test]
fn a_budget_that_lasts_longer_than_its_period_always_counts() {
    for duration in ["25h", "1h0m0s", "9999999999999999999999h"] {
        let budgets = json!([{ "nodes": "2", "schedule": "*/30 * * * *", "duration": duration }]);
        assert_eq!(at(budgets, 9, "2026-03-11T10:29:59Z").count, 2, "{duration}");
    }
}

#[test]
fn a_budget_nobody_can_read_lets_nothing_go_for_any_reason() {
    for (faulty, word) in [
        (json!({ "nodes": "5", "schedule": "@fortnightly", "duration": "1h" }), "@fortnightly"),
        (json!({ "nodes": "5", "schedule": "CRON_TZ=UTC 0 9 * * *", "duration": "1h" }), "5 fields, not 6"),
        (json!({ "nodes": "5", "schedule": "0 0 L * *", "duration": "1h" }), "day of month"),
        (json!({ "nodes": "5", "schedule": "0 0 30 2 *", "duration": "1h" }), "never matches"),
        (json!({ "nodes": "5", "schedule": "@daily", "duration": "1d" }), "1d"),
        (json!({ "nodes": "5", "schedule": "@daily" }), "go together"),
        (json!({ "nodes": "5", "duration": "1h" }), "go together"),
        (json!({ "nodes": "101%" }), "101%"),
        (json!({ "nodes": "-1" }), "-1"),
        (json!({ "nodes": "+1" }), "+1"),
        (json!({ "nodes": "some" }), "some"),
        (json!({ "nodes": "2147483648" }), "2147483648"),
        (json!({ "nodes": "x", "schedule": "0 3 1 1 *", "duration": "1m" }), "x"),
    ] {
        let mut faulty = faulty;
        faulty["reasons"] = json!(["Drifted"]);
        let allowed = at(json!([{ "nodes": "7" }, faulty]), 9, "2026-03-11T10:00:00Z");
        assert_eq!(allowed.count, 0, "{allowed:?}");
        assert!(
            allowed.faults.len() == 1
                && allowed.faults[0].starts_with("spec.disruption.budgets[1]: ")
                && allowed.faults[0].contains(word),
            "{allowed:?}"
        );
    }
}
