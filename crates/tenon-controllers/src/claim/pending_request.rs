//! What to do about a request for a certificate that nobody has decided about? Nothing is asked here.

use super::diagnosis::JoinFacts;
use crate::join::{Request, RequestState};

/// The newest one that waits and asks for what the kubelet of this Node needs.
pub(super) fn first_to_decide<'a>(requests: &'a [Request], node: &str) -> Option<&'a Request> {
    requests.iter().rev().find(|request| is_pending(request) && request.asked.fault(node).is_none())
}

fn is_pending(request: &Request) -> bool {
    request.state == RequestState::Pending
}

/// Why it waits, and the next step. What is made with the token of a NodeClaim and asks for anything else than its Node is to be
/// denied: whoever approves it by hand gives away the name of another machine.
pub(super) fn cause(facts: &JoinFacts, request: &Request) -> String {
    let name = &request.name;
    match request.asked.fault(&facts.name) {
        Some(fault) => to_deny(facts, name, &fault),
        None => format!("CertificateSigningRequest {name} is not approved{}{}", next_step(facts, name), others(facts)),
    }
}

fn to_deny(facts: &JoinFacts, request: &str, fault: &str) -> String {
    let name = &facts.name;
    format!(
        "CertificateSigningRequest {request} was created with the bootstrap token of NodeClaim {name}, but {fault}; run: kubectl \
         certificate deny {request}. If VM {} asked, correct the host name or hostname-override in the first-boot data, then \
         delete NodeClaim {name}; if not, somebody else has its token: delete NodeClaim {name}",
        facts.vmid
    )
}

fn next_step(facts: &JoinFacts, request: &str) -> String {
    let Some(undecided) = &facts.undecided else {
        let why = facts.missing_bindings.as_deref().map(|why| format!(". For all nodes: {why}")).unwrap_or_default();
        return format!("; run: kubectl certificate approve {request}{why}");
    };
    match undecided.get(request) {
        Some(why) => format!(" yet by Tenon (--csr-approver): {why}"),
        None => {
            " yet by Tenon (--csr-approver), which has not looked at it; wait a minute, then search the log of the \
                 controller for its name"
                .to_owned()
        }
    }
}

/// Others that wait and must not be approved along with it.
fn others(facts: &JoinFacts) -> String {
    let requests = facts.requests.iter().flatten();
    let wrong = requests.filter(|request| is_pending(request) && request.asked.fault(&facts.name).is_some());
    let wrong: Vec<&str> = wrong.map(|request| request.name.as_str()).take(3).collect();
    match wrong.as_slice() {
        [] => String::new(),
        names => format!(
            ". Somebody used the same bootstrap token to ask for another certificate; run: kubectl certificate deny {}",
            names.join(" ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::diagnosis::{Agent, diagnose};
    use super::*;
    use crate::csr::Asked;

    fn request(name: &str, node: &str) -> Request {
        let created = jiff::Timestamp::UNIX_EPOCH;
        Request { name: name.to_owned(), state: RequestState::Pending, created, asked: Asked::of_node(node) }
    }

    fn facts(requests: &[Request], undecided: Option<&[(&str, &str)]>) -> JoinFacts {
        let owned = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, why)| ((*name).to_owned(), (*why).to_owned())).collect()
        };
        JoinFacts {
            name: "default-x7".to_owned(),
            vmid: 20_003.try_into().unwrap(),
            host: "pve1".parse().unwrap(),
            waited_s: 300,
            qemu: None,
            token: None,
            missing_bindings: None,
            requests: Some(requests.to_vec()),
            undecided: undecided.map(owned),
            other_node: None,
            agent: Agent::Unknown,
        }
    }

    fn said(requests: &[Request], undecided: Option<&[(&str, &str)]>) -> String {
        diagnose(&facts(requests, undecided)).message
    }

    #[test]
    fn a_request_for_the_name_of_another_node_is_to_be_denied_and_never_approved() {
        for undecided in [None, Some(&[][..])] {
            let message = said(&[request("a", "control-plane-1")], undecided);
            let fault = "the common name is system:node:control-plane-1, only system:node:default-x7 is allowed";
            assert!(message.contains(&format!("but {fault}; run: kubectl certificate deny a")), "{message}");
            assert!(!message.contains("certificate approve"), "{message}");
        }
    }

    #[test]
    fn of_two_requests_the_right_one_is_to_be_approved_and_the_other_denied() {
        for requests in [["own", "other"], ["other", "own"]] {
            let node = |name: &str| if name == "own" { "default-x7" } else { "web-1" };
            let message = said(&requests.map(|name| request(name, node(name))), None);
            assert!(message.contains("run: kubectl certificate approve own."), "{message}");
            assert!(message.ends_with("run: kubectl certificate deny other"), "{message}");
        }
    }

    #[test]
    fn with_the_own_approver_nobody_is_told_to_approve_by_hand() {
        let own = [request("a", "default-x7")];
        let message = said(&own, Some(&[("a", "Node default-x7 has not joined")]));
        assert!(
            message.ends_with("a is not approved yet by Tenon (--csr-approver): Node default-x7 has not joined"),
            "{message}"
        );
        let unseen = said(&own, Some(&[("b", "x")]));
        assert!(unseen.contains("which has not looked at it; wait a minute"), "{unseen}");
        assert!(!message.contains("certificate approve") && !unseen.contains("certificate approve"));
    }

    #[test]
    fn what_tenon_denied_is_told_with_tenons_own_words() {
        let why = "the common name is x, only y is allowed; set hostname-override".to_owned();
        let denied = Request { state: RequestState::DeniedByTenon(why.clone()), ..request("a", "x") };
        let diagnosis = diagnose(&facts(&[denied, request("b", "default-x7")], Some(&[])));
        assert_eq!(diagnosis.reason.name(), "CertificateRequestDenied");
        let message = format!("Node default-x7 has not joined: Tenon denied CertificateSigningRequest a: {why}");
        assert_eq!(diagnosis.message, message);
    }
}
