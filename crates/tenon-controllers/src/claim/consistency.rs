//! Does a node have what its claim promised? A VM that somebody made smaller, or a device that is gone, shows here.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use tenon_api::condition_reasons::{CONSISTENCY_CHECK_FAILED, CONSISTENT_STATE_FOUND, INITIALIZED};
use tenon_api::kube_objects::Node;
use tenon_api::{NodeClaim, event_reasons, quantity_of};
use tenon_model::Quantity;

use super::gather::{Observed, is_true};
use super::outcome::Outcome;
use crate::context::Context;
use crate::events::Event;
use crate::moments::after;
use crate::status::Verdict;

/// A node is compared with its claim this often: a kubelet that restarts reports no devices for a moment.
const EVERY: SignedDuration = SignedDuration::from_mins(10);

/// A node has at least so many percent of what was promised: firmware and kernel keep some memory back.
const AT_LEAST: i128 = 90;

/// When each node was last compared with its claim, by the claim's name.
#[derive(Debug, Default)]
pub(crate) struct Comparisons(Mutex<BTreeMap<String, Timestamp>>);

impl Comparisons {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is time again, which is then remembered.
    fn is_due(&self, claim: &str, now: Timestamp) -> bool {
        let mut last = self.lock();
        let is_due = last.get(claim).is_none_or(|last| after(*last, EVERY) <= now);
        if is_due {
            last.insert(claim.to_owned(), now);
        }
        is_due
    }

    /// The claim is gone.
    pub(crate) fn forget(&self, claim: &str) {
        self.lock().remove(claim);
    }
}

/// Adds what is found to what came of a pass, if it is time.
pub(crate) fn compare(context: &Context, observed: &Observed, outcome: Outcome) -> Outcome {
    let claim = &observed.claim;
    let Some(node) = observed.our_node().filter(|_| is_true(claim, &INITIALIZED)) else { return outcome };
    if !context.memory.comparisons.is_due(&claim.name_any(), context.clock.now()) {
        return outcome;
    }
    let missing = shortfalls(claim, node);
    if missing.is_empty() {
        return outcome.with_condition(&CONSISTENT_STATE_FOUND, Verdict::holds(&CONSISTENT_STATE_FOUND));
    }
    let message = format!("{}; check the size and the devices of the VM in Proxmox", missing.join("; "));
    outcome
        .with_condition(&CONSISTENT_STATE_FOUND, Verdict::fails(&CONSISTENCY_CHECK_FAILED, message.clone()))
        .with_event(Event::new(&event_reasons::FAILED_CONSISTENCY_CHECK, message))
}

/// What a node has too little of, for each resource that was requested.
fn shortfalls(claim: &NodeClaim, node: &Node) -> Vec<String> {
    let requested = claim.spec.resources.iter().flat_map(|resources| resources.requests.iter().flatten());
    let promised = claim.status.as_ref().and_then(|status| status.capacity.as_ref());
    let reported = node.status.as_ref().and_then(|status| status.capacity.as_ref());
    let shortfall = |(name, amount): (&String, _)| {
        let is_requested = quantity_of(amount).is_some_and(|amount| !amount.is_zero());
        let expected = quantity_of(promised?.get(name)?).filter(|expected| is_requested && !expected.is_zero())?;
        let found: Quantity = reported.and_then(|reported| reported.get(name)?.0.parse().ok()).unwrap_or_default();
        let (has, wants) = (i128::from(found.milli_value()), i128::from(expected.milli_value()));
        let percent = has.checked_mul(100)?.checked_div(wants)?;
        (percent < AT_LEAST).then(|| {
            format!("Node {} has {found} of resource {name}, expected {expected} ({percent} %)", node.name_any())
        })
    };
    requested.filter_map(shortfall).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What is told of a node that has this, by a claim that requests and promises this.
    fn told(requests: &Value, promised: &Value, reported: &Value) -> Vec<String> {
        let spec = json!({
            "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "n" },
            "resources": { "requests": requests },
        });
        let claim = json!({ "metadata": { "name": "a" }, "spec": spec, "status": { "capacity": promised } });
        let node = json!({ "metadata": { "name": "a" }, "status": { "capacity": reported } });
        shortfalls(&serde_json::from_value(claim).unwrap(), &serde_json::from_value(node).unwrap())
    }

    #[test]
    fn f7_consistency_a_node_with_less_than_nine_tenths_of_a_requested_resource_is_told_of() {
        let promised = &json!({ "cpu": "4", "memory": "10Gi", "example.com/gpu": "1", "pods": "110" });
        let requests = &json!({ "cpu": "1", "memory": "1Gi" });
        assert_eq!(told(requests, promised, &json!({ "cpu": "4", "memory": "9Gi" })), [""; 0]);
        let less = told(requests, promised, &json!({ "cpu": "3600m", "memory": "8Gi" }));
        assert_eq!(less, ["Node a has 8Gi of resource memory, expected 10Gi (80 %)"]);
        let none = told(requests, promised, &json!({ "memory": "10Gi" }));
        assert_eq!(none, ["Node a has 0 of resource cpu, expected 4 (0 %)"]);
        let gpu = &json!({ "example.com/gpu": "1", "pods": "0" });
        assert_eq!(told(gpu, promised, &json!({ "cpu": "4" })).len(), 1, "of nothing nobody needs anything");
    }

    #[test]
    fn f7_consistency_what_was_not_promised_is_not_expected() {
        assert_eq!(told(&json!({ "cpu": "1" }), &json!({ "cpu": "0" }), &json!({})), [""; 0]);
        assert_eq!(told(&json!({ "cpu": "1" }), &json!({}), &json!({ "cpu": "1" })), [""; 0]);
        let huge = &json!({ "memory": "8Ei" });
        assert_eq!(told(&json!({ "memory": "1" }), huge, huge), [""; 0]);
    }

    #[test]
    fn f7_consistency_is_checked_every_ten_minutes() {
        let (comparisons, at) = (Comparisons::default(), |minute: i64| Timestamp::from_second(minute * 60).unwrap());
        assert!(comparisons.is_due("a", at(0)) && !comparisons.is_due("a", at(9)) && comparisons.is_due("b", at(9)));
        assert!(comparisons.is_due("a", at(10)) && !comparisons.is_due("a", at(19)));
        comparisons.forget("a");
        assert!(comparisons.is_due("a", at(19)));
    }
}
