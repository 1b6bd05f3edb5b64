//! How many nodes a NodePool's budgets allow to be disrupted.

use tenon_engine::disruption::{AllowedDisruptions, UNBOUNDED, allowed_disruptions};
use tenon_model::{BudgetFault, BudgetText, DisruptionBudget, DisruptionReason, Seconds, Timestamp};

/// 2026-03-11T00:00:00Z.
const MIDNIGHT: i64 = 1_773_187_200;

type Read = Result<DisruptionBudget, BudgetFault>;

fn nodes(nodes: &str) -> Read {
    windowed(nodes, None, None)
}

fn windowed(nodes: &str, schedule: Option<&str>, duration: Option<&str>) -> Read {
    DisruptionBudget::read(BudgetText { nodes, schedule, duration }, None)
}

fn reasons(budget: Read, reasons: &[DisruptionReason]) -> Read {
    budget.map(|budget| DisruptionBudget { reasons: Some(reasons.to_vec()), ..budget })
}

fn at(budgets: &[Read], nodes: usize, now: Timestamp) -> AllowedDisruptions {
    allowed_disruptions(budgets, DisruptionReason::Empty, nodes, now)
}

fn count(budgets: &[Read], nodes: usize) -> u32 {
    let allowed = at(budgets, nodes, Timestamp::from(Seconds(MIDNIGHT + 36_000)));
    assert_eq!(allowed.invalid, []);
    allowed.count
}

#[test]
fn a_share_is_rounded_up() {
    for (total, expected) in [(0, 0), (1, 1), (3, 1), (10, 1), (11, 2), (19, 2), (20, 2)] {
        assert_eq!(count(&[nodes("10%")], total), expected, "{total} nodes");
    }
    assert_eq!(count(&[nodes("0%")], 50), 0);
    assert_eq!(count(&[nodes("100%")], 50), 50);
    assert_eq!(count(&[nodes("100%")], usize::MAX), UNBOUNDED);
}

#[test]
fn the_strictest_budget_for_the_reason_decides() {
    use DisruptionReason::{Drifted, Empty};
    assert_eq!(count(&[nodes("10%"), nodes("3")], 100), 3);
    assert_eq!(count(&[reasons(nodes("0"), &[Drifted]), nodes("5")], 100), 5);
    assert_eq!(count(&[reasons(nodes("0"), &[Drifted, Empty]), nodes("5")], 100), 0);
    assert_eq!(count(&[reasons(nodes("0"), &[Drifted])], 100), UNBOUNDED);
    assert_eq!(count(&[reasons(nodes("0"), &[])], 100), UNBOUNDED, "an empty list names no reason");
    assert_eq!(count(&[], 100), UNBOUNDED);
}

#[test]
fn a_budget_counts_from_its_hour_until_just_before_its_end() {
    let daily = [windowed("0", Some("@daily"), Some("8h"))];
    let hour = 3_600_000;
    for (millis, expected) in [(0, 0), (8 * hour - 1, 0), (8 * hour, UNBOUNDED), (24 * hour - 1, UNBOUNDED)] {
        let now = Timestamp::from_nanos((i128::from(MIDNIGHT) * 1000 + millis) * 1_000_000);
        assert_eq!(at(&daily, 9, now), AllowedDisruptions { count: expected, invalid: vec![] }, "{now}");
    }
}

#[test]
fn a_budget_that_lasts_longer_than_its_period_always_counts() {
    for duration in ["25h", "1h0m0s", "9999999999999999999999h"] {
        let budgets = [windowed("2", Some("*/30 * * * *"), Some(duration))];
        assert_eq!(at(&budgets, 9, Timestamp::from(Seconds(MIDNIGHT + 37_799))).count, 2, "{duration}");
    }
}

#[test]
fn a_budget_that_cannot_be_read_allows_nothing_for_any_reason() {
    for (faulty, word) in [
        (windowed("5", Some("@fortnightly"), Some("1h")), "@fortnightly"),
        (windowed("5", Some("CRON_TZ=UTC 0 9 * * *"), Some("1h")), "5 fields, not 6"),
        (windowed("5", Some("0 0 L * *"), Some("1h")), "day of month"),
        (windowed("5", Some("0 0 30 2 *"), Some("1h")), "never matches"),
        (windowed("5", Some("@daily"), Some("1d")), "1d"),
        (windowed("5", Some("@daily"), None), "set together"),
        (windowed("5", None, Some("1h")), "set together"),
        (nodes("101%"), "101%"),
        (nodes("-1"), "-1"),
        (nodes("+1"), "+1"),
        (nodes("some"), "some"),
        (nodes("2147483648"), "2147483648"),
        (windowed("x", Some("0 3 1 1 *"), Some("1m")), "x"),
    ] {
        let faulty = reasons(faulty, &[DisruptionReason::Drifted]);
        let allowed = at(&[nodes("7"), faulty], 9, Timestamp::from(Seconds(MIDNIGHT + 36_000)));
        assert_eq!(allowed.count, 0, "{allowed:?}");
        assert_eq!(allowed.invalid.len(), 1, "{allowed:?}");
        let text = allowed.invalid[0].to_string();
        assert!(text.starts_with("spec.disruption.budgets[1]: ") && text.contains(word), "{text}");
    }
}
