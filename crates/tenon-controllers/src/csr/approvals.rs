//! How many certificates of a NodeClaim were approved within an hour?
//!
//! Counted from the requests themselves, which Kubernetes keeps for an hour after they were approved: a restart forgets nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::ResourceExt;
use tenon_api::event_reasons::CSR_APPROVED;

use super::request::{NODE_USER, ParsedRequest, Signer};
use crate::moments::after;

/// Certificates of one NodeClaim and signer that are approved within an hour at most. A VM asks once, and again after each
/// restart before its Node has joined; a Node renews once in many days.
pub(super) const MOST: usize = 10;

const WITHIN: SignedDuration = SignedDuration::from_hours(1);

/// Approvals of one signer: by Node, when each request was approved, by its uid.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    of_nodes: Mutex<BTreeMap<String, BTreeMap<String, Timestamp>>>,
}

impl Approvals {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, BTreeMap<String, Timestamp>>> {
        self.of_nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request that the watch shows, if we approved it not long ago.
    pub(super) fn count(&self, signer: Signer, request: &CertificateSigningRequest, now: Timestamp) {
        let Some(at) = approved_at(request).filter(|at| after(*at, WITHIN) > now) else { return };
        let wanted = ParsedRequest::read(signer, request).and_then(|parsed| parsed.wanted.ok());
        // Only the Node of the NodeClaim itself is ever approved.
        if let Some(node) = wanted.as_ref().and_then(|wanted| wanted.common_name.strip_prefix(NODE_USER)) {
            self.lock().entry(node.to_owned()).or_default().insert(key(request), at);
        }
    }

    /// Counts a request that is about to be approved; `false` if too many others were.
    pub(super) fn reserve(&self, node: &str, request: &CertificateSigningRequest, now: Timestamp) -> bool {
        let mut of_nodes = self.lock();
        of_nodes.retain(|_, approved| {
            approved.retain(|_, at| after(*at, WITHIN) > now);
            !approved.is_empty()
        });
        let approved = of_nodes.entry(node.to_owned()).or_default();
        let is_allowed = approved.contains_key(&key(request)) || approved.len() < MOST;
        if is_allowed {
            approved.insert(key(request), now);
        }
        is_allowed
    }

    /// It was not approved after all.
    pub(super) fn release(&self, node: &str, request: &CertificateSigningRequest) {
        if let Some(approved) = self.lock().get_mut(node) {
            approved.remove(&key(request));
        }
    }
}

fn key(request: &CertificateSigningRequest) -> String {
    request.uid().unwrap_or_else(|| request.name_any())
}

fn approved_at(request: &CertificateSigningRequest) -> Option<Timestamp> {
    let mut conditions = request.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_ours = |reason: &Option<String>| reason.as_deref() == Some(CSR_APPROVED.name());
    let approved = conditions.find(|told| told.type_ == "Approved" && is_ours(&told.reason))?;
    approved.last_update_time.clone().or_else(|| request.creation_timestamp()).map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::test_requests::Ask;
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minute)
    }

    fn request(name: &str) -> CertificateSigningRequest {
        Ask::first("abcdef", "n").object(name)
    }

    fn approved(name: &str, reason: &str, minute: i64) -> CertificateSigningRequest {
        let told = json!({ "type": "Approved", "status": "True", "reason": reason, "lastUpdateTime": at(minute) });
        let status = serde_json::from_value(json!({ "conditions": [told] })).unwrap();
        CertificateSigningRequest { status: Some(status), ..request(name) }
    }

    #[test]
    fn a_claim_gets_so_many_certificates_an_hour_and_others_get_theirs() {
        let approvals = Approvals::default();
        for number in 0..MOST {
            assert!(approvals.reserve("n", &request(&number.to_string()), at(0)));
        }
        assert!(approvals.reserve("n", &request("0"), at(1)), "the same is not counted twice");
        assert!(!approvals.reserve("n", &request("a"), at(59)));
        assert!(approvals.reserve("m", &request("a"), at(59)));
        approvals.release("n", &request("0"));
        assert!(approvals.reserve("n", &request("a"), at(59)), "one was not approved after all");
        assert!(!approvals.reserve("n", &request("b"), at(59)));
        assert!(approvals.reserve("n", &request("b"), at(60)), "an hour later");
    }

    #[test]
    fn approvals_before_a_restart_count_and_those_of_others_do_not() {
        let approvals = Approvals::default();
        for number in 0..MOST {
            approvals.count(Signer::Client, &approved(&format!("a{number}"), "AutoApproved", 0), at(1));
        }
        assert!(approvals.reserve("n", &request("0"), at(1)));
        for number in 1..MOST {
            approvals.count(Signer::Client, &approved(&number.to_string(), "CSRApproved", 0), at(1));
        }
        assert!(!approvals.reserve("n", &request("b"), at(1)));
        assert!(approvals.reserve("n", &request("b"), at(61)));
        approvals.count(Signer::Client, &approved("old", "CSRApproved", 0), at(90));
        assert!(!approvals.lock()["n"].contains_key("old"));
    }
}
