//! The certificate requests of kubelets, by who made them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use tenon_api::event_reasons::CSR_DENIED;

use crate::csr::Asked;
use crate::moments::after;

/// Who signs the client certificates of kubelets.
const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";

/// A request is approved, signed and used within this time, if nothing is wrong.
const FRESH: SignedDuration = SignedDuration::from_secs(30);

/// How far a request has come.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RequestState {
    /// Nobody has approved or denied it.
    Pending,
    /// It is approved, and its certificate not there yet.
    Approved,
    /// Somebody denied it; why, if that was said.
    Denied(String),
    /// Tenon's own approver denied it; why, with the next step.
    DeniedByTenon(String),
    /// It was approved and could not be signed; why.
    Failed(String),
    /// It has its certificate.
    Issued,
}

/// A request for a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) name: String,
    pub(crate) state: RequestState,
    /// What it asks for.
    pub(crate) asked: Asked,
    pub(crate) created: Timestamp,
}

impl Request {
    /// Whether it may just be on its way: it was made a moment ago, and nothing is decided against it.
    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        let is_open =
            !matches!(self.state, RequestState::Denied(_) | RequestState::DeniedByTenon(_) | RequestState::Failed(_));
        is_open && after(self.created, FRESH) > now
    }
}

/// All requests of kubelets by user name, oldest first.
pub(crate) async fn by_user(client: &Client) -> Result<BTreeMap<String, Vec<Request>>, kube::Error> {
    let all: Api<CertificateSigningRequest> = Api::all(client.clone());
    let params = ListParams::default().fields(&format!("spec.signerName={SIGNER}")).match_any();
    let mut items = all.list(&params).await?.items;
    items.sort_by_key(|item| (item.creation_timestamp().map(|time| time.0), item.name_any()));
    let mut found: BTreeMap<String, Vec<Request>> = BTreeMap::new();
    for item in items {
        let user = item.spec.username.clone().unwrap_or_default();
        let created = item.creation_timestamp().map_or(Timestamp::MIN, |time| time.0);
        let request = Request { name: item.name_any(), state: state(&item), created, asked: Asked::read(&item) };
        found.entry(user).or_default().push(request);
    }
    Ok(found)
}

fn state(request: &CertificateSigningRequest) -> RequestState {
    let Some(status) = &request.status else { return RequestState::Pending };
    let condition = |kind: &str| status.conditions.iter().flatten().find(|condition| condition.type_ == kind);
    let said = |found: &CertificateSigningRequestCondition| {
        let parts = [found.reason.as_deref(), found.message.as_deref()];
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
    };
    if let Some(denied) = condition("Denied") {
        denied_by_tenon(denied).unwrap_or_else(|| RequestState::Denied(said(denied)))
    } else if let Some(failed) = condition("Failed") {
        RequestState::Failed(said(failed))
    } else if status.certificate.as_ref().is_some_and(|certificate| !certificate.0.is_empty()) {
        RequestState::Issued
    } else if condition("Approved").is_some() {
        RequestState::Approved
    } else {
        RequestState::Pending
    }
}

/// Condition and event of a denial of ours say the same: who asked, and behind that why it was denied.
fn denied_by_tenon(denied: &CertificateSigningRequestCondition) -> Option<RequestState> {
    let message = denied.message.as_deref().filter(|_| denied.reason.as_deref() == Some(CSR_DENIED.name()))?;
    let why = message.split_once("): ").map_or(message, |(_, why)| why);
    Some(RequestState::DeniedByTenon(why.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn denied(reason: &str, message: &str) -> RequestState {
        let told = json!({ "type": "Denied", "status": "True", "reason": reason, "message": message });
        let spec = json!({ "request": "", "signerName": SIGNER });
        state(
            &serde_json::from_value(json!({ "metadata": {}, "spec": spec, "status": { "conditions": [told] } }))
                .unwrap(),
        )
    }

    #[test]
    fn a_denial_of_tenon_is_told_from_one_of_others() {
        let said =
            "Denied client certificate for user system:bootstrap:abcdef (CSR a): the name is (x): wrong; correct it";
        let why = "the name is (x): wrong; correct it".to_owned();
        assert_eq!(denied("CSRDenied", said), RequestState::DeniedByTenon(why));
        assert_eq!(denied("NotAllowed", "no"), RequestState::Denied("NotAllowed: no".to_owned()));
    }

    #[test]
    fn a_request_that_was_just_made_is_on_its_way_unless_it_was_denied() {
        let created = Timestamp::UNIX_EPOCH;
        let is_fresh = |state, second| {
            let request = Request { name: "a".to_owned(), state, created, asked: Asked::of_node("a") };
            request.is_fresh(created + SignedDuration::from_secs(second))
        };
        assert!(is_fresh(RequestState::Pending, 29) && is_fresh(RequestState::Issued, 29));
        assert!(!is_fresh(RequestState::Pending, 30));
        assert!(!is_fresh(RequestState::Denied(String::new()), 1) && !is_fresh(RequestState::Failed(String::new()), 1));
    }
}
