//! Which VMs were rebooted so often that another reboot would not help? Kept in memory: a controller that restarts forgets it, as
//! Karpenter does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use tenon_api::NodeClaim;

use crate::moments::after;

/// Reboots are counted for so long. As in Karpenter.
const WINDOW: SignedDuration = SignedDuration::from_hours(24);

/// After so many reboots within that time the node is replaced. As in Karpenter.
const REBOOTS_MOST: usize = 2;

/// When VMs were rebooted, by the uid of their NodeClaim.
#[derive(Debug, Default)]
pub(super) struct RebootHistory(BTreeMap<String, Vec<Timestamp>>);

impl RebootHistory {
    /// A reboot was asked for.
    pub(super) fn note(&mut self, claim: &NodeClaim, now: Timestamp) {
        self.0.entry(claim.uid().unwrap_or_default()).or_default().push(now);
    }

    /// The names of the claims that are not rebooted again. What is too old, and claims that are gone, are forgotten.
    pub(super) fn often(&mut self, claims: &[Arc<NodeClaim>], now: Timestamp) -> BTreeSet<String> {
        let names: BTreeMap<String, String> =
            claims.iter().filter_map(|claim| Some((claim.uid()?, claim.name_any()))).collect();
        self.0.retain(|uid, times| {
            times.retain(|time| after(*time, WINDOW) > now);
            !times.is_empty() && names.contains_key(uid)
        });
        let often = self.0.iter().filter(|(_, times)| times.len() >= REBOOTS_MOST);
        often.filter_map(|(uid, _)| names.get(uid).cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(uid: &str) -> Arc<NodeClaim> {
        let class = json!({ "group": "g", "kind": "k", "name": "n" });
        let spec = json!({ "requirements": [], "nodeClassRef": class });
        Arc::new(serde_json::from_value(json!({ "metadata": { "name": "a", "uid": uid }, "spec": spec })).unwrap())
    }

    #[test]
    fn j3_after_two_reboots_within_a_day_no_third_and_after_a_day_they_are_forgotten() {
        let (mut history, one, other) = (RebootHistory::default(), claim("1"), claim("2"));
        let at = |hours: i64| Timestamp::from_second(hours * 3600).unwrap();
        history.note(&one, at(0));
        assert!(history.often(std::slice::from_ref(&one), at(1)).is_empty());
        history.note(&one, at(10));
        assert!(history.often(std::slice::from_ref(&one), at(11)).contains("a"));
        assert!(history.often(std::slice::from_ref(&one), at(23)).contains("a"));
        assert!(history.often(std::slice::from_ref(&one), at(24)).is_empty(), "the first one is a day ago");
        history.note(&one, at(25));
        assert!(history.often(&[one], at(26)).contains("a"), "the window slides");
        assert!(history.often(&[other], at(26)).is_empty(), "another claim of this name is another machine");
        assert!(history.0.is_empty());
    }
}
