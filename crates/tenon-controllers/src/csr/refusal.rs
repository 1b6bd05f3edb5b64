//! Why is a certificate refused, and what to do about it?

use std::collections::BTreeSet;
use std::net::IpAddr;

use tenon_api::names;

use super::judge::{DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, NODES};

/// Why a request of ours is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    Unreadable(&'static str),
    WrongGroup(&'static str),
    TokenNotOfClaim,
    ServingForToken,
    AnotherName {
        wanted: String,
        allowed: String,
    },
    WrongOrganizations(Vec<String>),
    NamesInClientCertificate,
    WrongUsages {
        wanted: BTreeSet<String>,
        purpose: &'static str,
    },
    ClaimDeleted,
    NoVm,
    SecondNode,
    /// How that is known, with the next step.
    AnotherMachine(String),
    NoNames,
    OtherNames,
    AnotherDnsName(String),
    UnknownAddress(IpAddr),
    /// So many certificates of the NodeClaim were approved within an hour.
    TooMany {
        approved: usize,
        word: &'static str,
    },
}

impl Refusal {
    /// Cause and next step. Goes on after "Denied certificate …: ".
    pub(super) fn sentence(&self, claim: &str) -> String {
        match self {
            Refusal::AnotherMachine(why) => why.clone(),
            _ => format!("{}; {}", self.cause(), self.next_step(claim)),
        }
    }

    /// What is wrong.
    pub(super) fn cause(&self) -> String {
        match self {
            Refusal::Unreadable(why) => format!("the request cannot be read: {why}"),
            Refusal::WrongGroup(group) => format!("the user is not in group {group}"),
            Refusal::TokenNotOfClaim => {
                "the bootstrap token was deleted, or its Secret names another NodeClaim".to_owned()
            }
            Refusal::ServingForToken => "a bootstrap token cannot get a serving certificate".to_owned(),
            Refusal::AnotherName { wanted, allowed } => {
                format!("the common name is {}, only {allowed} is allowed", shown(wanted))
            }
            Refusal::WrongOrganizations(wanted) => {
                format!("the organizations are [{}], only [{NODES}] is allowed", shown(&wanted.join(", ")))
            }
            Refusal::NamesInClientCertificate => {
                "a client certificate of a kubelet has no alternative names, but the request has".to_owned()
            }
            Refusal::WrongUsages { wanted, purpose } => {
                let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
                let (wanted, allowed) = (shown(&wanted.join(", ")), format!("[{DIGITAL_SIGNATURE}, {purpose}]"));
                format!("the usages are [{wanted}], only {allowed} and {KEY_ENCIPHERMENT} are allowed")
            }
            Refusal::ClaimDeleted => "the NodeClaim of the token is being deleted".to_owned(),
            Refusal::NoVm => "no VM was started for the NodeClaim of the token".to_owned(),
            Refusal::SecondNode => {
                "the Node of the NodeClaim has joined already, and a NodeClaim has one Node".to_owned()
            }
            Refusal::AnotherMachine(why) => why.clone(),
            Refusal::NoNames => "a serving certificate needs a DNS name or an address, the request has none".to_owned(),
            Refusal::OtherNames => "the request has alternative names other than DNS names and addresses".to_owned(),
            Refusal::AnotherDnsName(name) => format!("the DNS name {} is not the name of the Node", shown(name)),
            Refusal::UnknownAddress(address) => format!("{address} is not an address of the VM"),
            Refusal::TooMany { approved, word } => {
                format!(
                    "{approved} {word} certificates of the NodeClaim were approved within the last hour, the most allowed"
                )
            }
        }
    }

    fn next_step(&self, claim: &str) -> String {
        let replace = format!("delete NodeClaim {claim} to replace the VM");
        match self {
            Refusal::AnotherName { .. } => format!(
                "set hostname-override of the kubelet to {claim} in the first-boot data; if the VM did not ask, somebody else \
                 has its token or certificate: {replace}"
            ),
            Refusal::WrongGroup(names::BOOTSTRAP_GROUP) => {
                format!("correct auth-extra-groups in the Secret of the bootstrap token, or {replace}")
            }
            Refusal::ServingForToken => format!(
                "the kubelet asks for it with its client certificate once its Node has joined: find out what on the VM uses the \
                 token, or {replace}"
            ),
            Refusal::TokenNotOfClaim => replace,
            Refusal::ClaimDeleted => format!("nothing to do: the VM is deleted with NodeClaim {claim}"),
            Refusal::NoVm => format!("find out who else has the token, and delete NodeClaim {claim}"),
            Refusal::SecondNode => format!("if the VM has lost its certificate, {replace}"),
            Refusal::AnotherDnsName(_) => {
                format!(
                    "set the host name of the VM to {claim}, and remove other DNS names from the addresses of its Node"
                )
            }
            Refusal::UnknownAddress(_) => {
                "check the address in the guest and node-ip of its kubelet, and set a fixed address in ipconfigN"
                    .to_owned()
            }
            Refusal::TooMany { .. } => {
                format!(
                    "find out whether the VM restarts or somebody else has its token, then wait an hour or {replace}"
                )
            }
            Refusal::Unreadable(_)
            | Refusal::WrongGroup(_)
            | Refusal::WrongOrganizations(_)
            | Refusal::NamesInClientCertificate
            | Refusal::WrongUsages { .. }
            | Refusal::AnotherMachine(_)
            | Refusal::NoNames
            | Refusal::OtherNames => {
                format!("a kubelet does not ask for this: find out what on the VM does, or {replace}")
            }
        }
    }
}

/// Whoever asks has written it: it is shown without line breaks, and not at any length.
fn shown(text: &str) -> String {
    let plain = text.chars().map(|letter| if letter.is_control() { '?' } else { letter });
    plain.take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_ends_with_a_next_step() {
        let name = || "system:node:a".to_owned();
        let all = [
            Refusal::Unreadable("it is empty"),
            Refusal::WrongGroup(names::BOOTSTRAP_GROUP),
            Refusal::WrongGroup(NODES),
            Refusal::TokenNotOfClaim,
            Refusal::ServingForToken,
            Refusal::AnotherName { wanted: name(), allowed: name() },
            Refusal::WrongOrganizations(vec![]),
            Refusal::NamesInClientCertificate,
            Refusal::WrongUsages { wanted: BTreeSet::new(), purpose: "client auth" },
            Refusal::ClaimDeleted,
            Refusal::NoVm,
            Refusal::SecondNode,
            Refusal::NoNames,
            Refusal::OtherNames,
            Refusal::AnotherDnsName(name()),
            Refusal::UnknownAddress([10, 0, 0, 5].into()),
            Refusal::TooMany { approved: 10, word: "client" },
        ];
        for refusal in all {
            let said = refusal.sentence("default-x7");
            let step = said.strip_prefix(&format!("{}; ", refusal.cause())).unwrap();
            let verbs = ["delete NodeClaim default-x7", "set ", "correct ", "check ", "find out ", "nothing to do"];
            assert!(verbs.iter().any(|verb| step.contains(verb)) && said.len() < 500, "{said}");
        }
        let other = Refusal::AnotherMachine("it is another; delete NodeClaim default-x7".to_owned());
        assert_eq!(other.sentence("default-x7"), "it is another; delete NodeClaim default-x7");
    }
}
