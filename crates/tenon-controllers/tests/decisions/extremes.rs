//! Whatever number, time or duration a tenant writes, every decision that counts with it is made: over a small corpus and ten
//! thousand mutations of it nothing panics, and what is too large counts as the largest.

use jiff::SignedDuration;
use serde_json::{Value, json};
use tenon_api::{drain_pod, timestamp};
use tenon_controllers::disruption::{parse_duration, parse_duration_or_never};
use tenon_engine::drain::{grace_left_s, has_seen_all_pods, plan_drain};
use testbed::mutation::{COUNT, mutations};

use crate::decisions::candidates::{empty_node, merged, now, pool, verdict};

/// Grace period of a pod, when it was deleted, consolidateAfter, duration and schedule of a budget, terminationGracePeriod,
/// start of a pod, its do-not-disrupt, its deletion cost.
const CORPUS: &str = include_str!("corpus/extremes.txt");

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

fn drains(fields: &[&str]) -> Option<()> {
    let [grace, deleted, _, _, _, period, started, wish, cost] = fields else { return None };
    let now = timestamp(&k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    let annotations =
        json!({ "karpenter.sh/do-not-disrupt": wish, "controller.kubernetes.io/pod-deletion-cost": cost });
    let base = json!({
        "metadata": { "name": "p", "uid": "p", "annotations": annotations },
        "spec": { "containers": [], "terminationGracePeriodSeconds": grace.parse::<i64>().ok() },
        "status": { "startTime": started },
    });
    let alive = drain_pod(&read(base.clone())?, now);
    let doomed = drain_pod(&read(merged(base, &json!({ "metadata": { "deletionTimestamp": deleted } })))?, now);
    let deadline = doomed.deleting_until;
    let pods = [alive, doomed];
    let plan = plan_drain(&pods, deadline, now);
    assert!(plan.remaining <= 2 && grace_left_s(deadline, now) >= 1);
    let _ = deadline.map(|begun| has_seen_all_pods(begun, now));
    assert!(parse_duration(period).map_or(true, |period| period >= SignedDuration::ZERO));
    Some(())
}

fn is_judged(fields: &[&str]) -> Option<()> {
    let [_, changed, after, duration, schedule, period, ..] = fields else { return None };
    let budget = json!([{ "nodes": "100%", "schedule": schedule, "duration": duration }]);
    let pool = pool("default", &json!({ "spec": { "disruption": { "consolidateAfter": after, "budgets": budget } } }));
    let claim: Value = json!({ "spec": { "terminationGracePeriod": period, "expireAfter": after },
        "status": { "lastPodEventTime": changed } });
    read::<tenon_api::NodeClaim>(merged(serde_json::to_value(&empty_node("a").claim).ok()?, &claim))?;
    let node = empty_node("a").with_claim(&claim);
    let _ = verdict(&[pool], &[node], now());
    assert!(parse_duration_or_never(after).is_ok() || parse_duration(after).is_err());
    Some(())
}

#[test]
fn no_number_time_or_duration_makes_a_decision_panic() {
    let (mut drained, mut judged) = (0, 0);
    for text in mutations(CORPUS, 17, COUNT) {
        let fields: Vec<&str> = text.split('|').collect();
        drained += usize::from(drains(&fields).is_some());
        judged += usize::from(is_judged(&fields).is_some());
    }
    assert!(drained > COUNT / 10 && judged > COUNT / 10, "only {drained} and {judged} could be read");
}
