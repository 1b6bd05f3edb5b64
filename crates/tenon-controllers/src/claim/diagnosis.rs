//! Why has a node not joined? A sentence from what is known, and the next step. Nothing is asked here.

use std::collections::BTreeMap;

use tenon_api::condition_reasons::{
    BOOTSTRAP_BINDINGS_MISSING, BOOTSTRAP_TOKEN_INVALID, CERTIFICATE_REQUEST_DENIED, CERTIFICATE_REQUEST_FAILED,
    CERTIFICATE_REQUEST_NOT_FOUND, CERTIFICATE_REQUEST_PENDING, ConditionReason, GUEST_NOT_RESPONDING,
    NODE_NAME_MISMATCH, NODE_NOT_CREATED, NODE_NOT_FOUND, VM_NOT_RUNNING,
};
use tenon_model::{HostName, VmId};

use super::boot_log;
use super::pending_request;
use crate::join::{Request, RequestState};

/// A guest whose agent is silent so long after the start of its VM hangs, or does not boot.
const SILENT_S: i64 = 120;

/// What is said at most: an event has room for it, with what stands before it when the claim is given up.
const MESSAGE_MAX: usize = 850;

/// What the guest agent says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Agent {
    /// The VM has none, or it may not be asked.
    Unknown,
    /// It does not answer.
    Silent,
    /// It answers; the last lines of the boot log, if they could be read.
    Answers(Vec<String>),
}

/// Why nothing can join with a bootstrap token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenFault {
    /// The Secret of this name is not there.
    Gone(String),
    /// The token in it has expired.
    Expired(String),
}

/// What is known of a node that is late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JoinFacts {
    /// The name of claim and node.
    pub(crate) name: String,
    pub(crate) vmid: VmId,
    pub(crate) host: HostName,
    /// Since the VM started.
    pub(crate) waited_s: i64,
    /// What QEMU says of a VM that Proxmox calls running, if that is not `running`.
    pub(crate) qemu: Option<String>,
    /// What is wrong with the claim's bootstrap token, and which Secret it is in.
    pub(crate) token: Option<TokenFault>,
    /// Which bindings are missing, with the line to type.
    pub(crate) missing_bindings: Option<String>,
    /// The requests made with the claim's token, oldest first; nothing if they cannot be listed.
    pub(crate) requests: Option<Vec<Request>>,
    /// Why Tenon has not decided about requests, by name; nothing if Tenon does not decide (`--csr-approver`).
    pub(crate) undecided: Option<BTreeMap<String, String>>,
    /// Another node that runs on this VM.
    pub(crate) other_node: Option<String>,
    pub(crate) agent: Agent,
}

/// Why a node has not joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diagnosis {
    pub(crate) reason: &'static ConditionReason,
    pub(crate) message: String,
}

/// Decides what is most worth knowing: what was seen last on the way of a node comes first.
pub(crate) fn diagnose(facts: &JoinFacts) -> Diagnosis {
    let JoinFacts { name, vmid, host, .. } = facts;
    if let Some(other) = &facts.other_node {
        let message = format!(
            "VM {vmid} on host {host} joined as Node {other} instead of {name}; correct the host name or hostname-override in \
             the first-boot data, then delete NodeClaim {name} and Node {other}"
        );
        return Diagnosis { reason: &NODE_NAME_MISMATCH, message };
    }
    if let Some(state) = &facts.qemu {
        let message = format!(
            "VM {vmid} on host {host} does not run (QEMU status {state}), and Node {name} has not joined; on host {host} \
             run: qm status {vmid} --verbose. If its storage is full, free space, then run: qm resume {vmid}"
        );
        return Diagnosis { reason: &VM_NOT_RUNNING, message };
    }
    of_requests(facts).unwrap_or_else(|| without_request(facts))
}

/// What the requests for a certificate say, if there are any. A denial outlives the requests that follow it: a kubelet asks
/// again and again.
fn of_requests(facts: &JoinFacts) -> Option<Diagnosis> {
    let JoinFacts { name, vmid, host, .. } = facts;
    let requests = facts.requests.as_deref().unwrap_or_default();
    let last = requests.last()?;
    let is_denied = |state: &RequestState| matches!(state, RequestState::Denied(_) | RequestState::DeniedByTenon(_));
    let denied = requests.iter().rev().find(|request| is_denied(&request.state));
    let told = match &last.state {
        RequestState::Issued | RequestState::Approved => last,
        RequestState::Pending => {
            denied.unwrap_or_else(|| pending_request::first_to_decide(requests, name).unwrap_or(last))
        }
        _ => denied.unwrap_or(last),
    };
    let request = &told.name;
    let (reason, cause) = match &told.state {
        RequestState::Issued => {
            let cause = format!(
                "its kubelet received a certificate (CertificateSigningRequest {request}), but created no Node; read the \
                 kubelet's log on VM {vmid} on host {host}"
            );
            (&NODE_NOT_CREATED, cause)
        }
        RequestState::Approved => {
            let next = "check kube-controller-manager";
            (
                &CERTIFICATE_REQUEST_FAILED,
                format!("CertificateSigningRequest {request} was approved, but is not signed; {next}"),
            )
        }
        RequestState::Failed(why) => {
            let cause = format!(
                "CertificateSigningRequest {request} cannot be signed{}; check kube-controller-manager",
                inside(why)
            );
            (&CERTIFICATE_REQUEST_FAILED, cause)
        }
        RequestState::Denied(why) => {
            let cause = format!(
                "CertificateSigningRequest {request} was denied{}; find out who denied it, and delete NodeClaim {name} to try \
                 again",
                inside(why)
            );
            (&CERTIFICATE_REQUEST_DENIED, cause)
        }
        RequestState::DeniedByTenon(why) => {
            (&CERTIFICATE_REQUEST_DENIED, format!("Tenon denied CertificateSigningRequest {request}: {why}"))
        }
        RequestState::Pending => (&CERTIFICATE_REQUEST_PENDING, pending_request::cause(facts, told)),
    };
    Some(Diagnosis { reason, message: with_boot_log(format!("Node {name} has not joined: {cause}"), facts) })
}

fn without_request(facts: &JoinFacts) -> Diagnosis {
    let JoinFacts { name, vmid, host, waited_s, .. } = facts;
    let late = format!("Node {name} has not joined {} after VM {vmid} on host {host} started", minutes(*waited_s));
    if let Some(why) = &facts.missing_bindings {
        return Diagnosis { reason: &BOOTSTRAP_BINDINGS_MISSING, message: format!("{late}: {why}") };
    }
    if let Some(fault) = &facts.token {
        let cause = match fault {
            TokenFault::Gone(secret) => format!("its bootstrap token (Secret kube-system/{secret}) was deleted"),
            TokenFault::Expired(secret) => format!("its bootstrap token (Secret kube-system/{secret}) has expired"),
        };
        let message = format!("{late}: {cause}; delete NodeClaim {name} to try again");
        return Diagnosis { reason: &BOOTSTRAP_TOKEN_INVALID, message };
    }
    if facts.agent == Agent::Silent && *waited_s >= SILENT_S {
        let message = format!("{late}: the guest agent does not answer; look at the VM's console");
        return Diagnosis { reason: &GUEST_NOT_RESPONDING, message };
    }
    let next = "read cloud-init and kubelet on the VM's console, and check that the VM reaches the API server";
    let (reason, cause) = match &facts.requests {
        Some(_) => (&CERTIFICATE_REQUEST_NOT_FOUND, "its kubelet has not requested a certificate; "),
        None => (&NODE_NOT_FOUND, ""),
    };
    Diagnosis { reason, message: with_boot_log(format!("{late}: {cause}{next}"), facts) }
}

fn minutes(seconds: i64) -> String {
    match seconds / 60 {
        1 => "1 minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    }
}

fn inside(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(" ({why})") }
}

/// A sentence, and as many of the newest lines of the boot log as an event has room for behind it.
fn with_boot_log(sentence: String, facts: &JoinFacts) -> String {
    const INTRODUCTION: &str = ". Last lines of the boot log: ";
    const BETWEEN: &str = " | ";
    let Agent::Answers(lines) = &facts.agent else { return sentence };
    let room = MESSAGE_MAX.saturating_sub(sentence.len() + INTRODUCTION.len() + lines.len() * BETWEEN.len());
    let shown = boot_log::fitting(lines.iter().rev().cloned(), room);
    if shown.is_empty() { sentence } else { format!("{sentence}{INTRODUCTION}{}", shown.join(BETWEEN)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csr::Asked;

    fn facts() -> JoinFacts {
        JoinFacts {
            name: "default-x7".to_owned(),
            vmid: VmId::try_from(20_003).unwrap(),
            host: "pve1".parse().unwrap(),
            waited_s: 300,
            qemu: None,
            token: None,
            missing_bindings: None,
            requests: Some(Vec::new()),
            undecided: None,
            other_node: None,
            agent: Agent::Unknown,
        }
    }

    fn request(name: &str, state: RequestState) -> Request {
        Request {
            name: name.to_owned(),
            state,
            created: jiff::Timestamp::UNIX_EPOCH,
            asked: Asked::of_node("default-x7"),
        }
    }

    fn with(requests: &[Request]) -> JoinFacts {
        JoinFacts { requests: Some(requests.to_vec()), ..facts() }
    }

    fn said(facts: &JoinFacts) -> (&'static str, String) {
        let Diagnosis { reason, message } = diagnose(facts);
        (reason.name(), message)
    }

    #[test]
    fn every_example_of_the_table_is_what_is_said() {
        let pending = with(&[request("node-csr-4f2a", RequestState::Pending)]);
        assert_eq!(said(&pending).1, CERTIFICATE_REQUEST_PENDING.example());
        let denied = with(&[request("node-csr-4f2a", RequestState::Denied("NotAllowed: unknown node".to_owned()))]);
        assert_eq!(said(&denied).1, CERTIFICATE_REQUEST_DENIED.example());
        let unsigned = with(&[request("node-csr-4f2a", RequestState::Approved)]);
        assert_eq!(said(&unsigned).1, CERTIFICATE_REQUEST_FAILED.example());
        let issued = with(&[request("node-csr-4f2a", RequestState::Issued)]);
        assert_eq!(said(&issued).1, NODE_NOT_CREATED.example());
        let silent = JoinFacts { agent: Agent::Silent, ..facts() };
        assert_eq!(said(&silent).1, GUEST_NOT_RESPONDING.example());
        let named = JoinFacts { other_node: Some("vm-20003".to_owned()), ..facts() };
        assert_eq!(said(&named).1, NODE_NAME_MISMATCH.example());
        let paused = JoinFacts { qemu: Some("io-error".to_owned()), ..facts() };
        assert_eq!(said(&paused).1, VM_NOT_RUNNING.example());
        let token = Some(TokenFault::Gone("bootstrap-token-abcdef".to_owned()));
        assert_eq!(said(&JoinFacts { token, ..facts() }).1, BOOTSTRAP_TOKEN_INVALID.example());
        let nothing = JoinFacts { waited_s: 180, ..facts() };
        assert_eq!(said(&nothing).1, CERTIFICATE_REQUEST_NOT_FOUND.example());
    }

    #[test]
    fn a_denial_is_not_forgotten_because_the_kubelet_asks_again() {
        let denied = request("a", RequestState::Denied(String::new()));
        let (reason, message) = said(&with(&[denied.clone(), request("b", RequestState::Pending)]));
        assert_eq!(reason, "CertificateRequestDenied");
        assert!(message.contains("CertificateSigningRequest a was denied; find out"), "{message}");
        assert_eq!(said(&with(&[denied, request("b", RequestState::Issued)])).0, "NodeNotCreated");
    }

    #[test]
    fn missing_bindings_come_before_what_follows_from_them() {
        let missing_bindings = Some("bootstrap tokens may not; run: kubectl".to_owned());
        let unbound = JoinFacts { missing_bindings, agent: Agent::Silent, ..facts() };
        let (reason, message) = said(&unbound);
        assert_eq!(reason, "BootstrapBindingsMissing");
        assert!(message.ends_with("started: bootstrap tokens may not; run: kubectl"), "{message}");
        let pending = Some(vec![request("a", RequestState::Pending)]);
        let (reason, message) = said(&JoinFacts { requests: pending, ..unbound });
        assert_eq!(reason, "CertificateRequestPending");
        assert!(message.ends_with("approve a. For all nodes: bootstrap tokens may not; run: kubectl"), "{message}");
    }

    #[test]
    fn however_long_the_boot_log_is_its_newest_line_is_shown_and_an_event_has_room_for_it() {
        let lines: Vec<String> = (0..10).map(|number| format!("{number} {}", "x".repeat(120))).collect();
        let missing_bindings = Some("y".repeat(500));
        let requests = Some(vec![request("a", RequestState::Pending)]);
        let (_, message) = said(&JoinFacts { agent: Agent::Answers(lines), missing_bindings, requests, ..facts() });
        assert!(message.len() <= MESSAGE_MAX, "{}", message.len());
        assert!(message.ends_with(&format!("9 {}", "x".repeat(120))), "{message}");
    }

    #[test]
    fn a_vm_that_qemu_has_stopped_is_named_before_what_follows_from_that() {
        let requests = Some(vec![request("a", RequestState::Pending)]);
        let facts = JoinFacts { qemu: Some("io-error".to_owned()), requests, ..facts() };
        assert_eq!(said(&facts).0, "VMNotRunning");
    }

    #[test]
    fn a_guest_that_only_just_started_may_be_silent() {
        assert_eq!(said(&JoinFacts { agent: Agent::Silent, waited_s: 90, ..facts() }).0, "CertificateRequestNotFound");
    }

    #[test]
    fn the_boot_log_is_shown_and_what_cannot_be_listed_is_not_said_to_be_missing() {
        let agent = Agent::Answers(vec!["cloud-init failed".to_owned(), "no route to host".to_owned()]);
        let (reason, message) = said(&JoinFacts { agent, requests: None, ..facts() });
        assert_eq!(reason, "NodeNotFound");
        assert!(message.ends_with(". Last lines of the boot log: cloud-init failed | no route to host"), "{message}");
        assert!(!message.contains("certificate"), "{message}");
    }
}
