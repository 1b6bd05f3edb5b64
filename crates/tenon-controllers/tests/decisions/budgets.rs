//! What of a NodePool's budgets the engine reads. The rules themselves are tested with the engine.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use tenon_api::{Budget, disruption_budget, timestamp};
use tenon_engine::disruption::{AllowedDisruptions, UNBOUNDED, allowed_disruptions};
use tenon_model::DisruptionReason;

use crate::decisions::objects::spec;

fn at(budgets: Value, nodes: usize, now: &str) -> AllowedDisruptions {
    let budgets: Vec<Budget> = spec(budgets);
    let budgets: Vec<_> = budgets.iter().map(disruption_budget).collect();
    allowed_disruptions(&budgets, DisruptionReason::Empty, nodes, timestamp(&Time(now.parse().unwrap())))
}

fn count(budgets: Value, nodes: usize) -> u32 {
    let allowed = at(budgets, nodes, "2026-03-11T10:00:00Z");
    assert_eq!(allowed.invalid, []);
    allowed.count
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
        assert_eq!(at(daily.clone(), 9, now), AllowedDisruptions { count: expected, invalid: vec![] }, "{now}");
    }
}

#[test]
fn a_budget_that_cannot_be_read_allows_nothing_for_any_reason() {
    for (faulty, word) in [
        (json!({ "nodes": "5", "schedule": "@fortnightly", "duration": "1h" }), "@fortnightly"),
        (json!({ "nodes": "5", "schedule": "CRON_TZ=UTC 0 9 * * *", "duration": "1h" }), "5 fields, not 6"),
        (json!({ "nodes": "5", "schedule": "0 0 L * *", "duration": "1h" }), "day of month"),
        (json!({ "nodes": "5", "schedule": "0 0 30 2 *", "duration": "1h" }), "never matches"),
        (json!({ "nodes": "5", "schedule": "@daily", "duration": "1d" }), "1d"),
        (json!({ "nodes": "5", "schedule": "@daily" }), "set together"),
        (json!({ "nodes": "5", "duration": "1h" }), "set together"),
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
            allowed.invalid.len() == 1
                && allowed.invalid[0].to_string().starts_with("spec.disruption.budgets[1]: ")
                && allowed.invalid[0].to_string().contains(word),
            "{allowed:?}"
        );
    }
}
