//! May this certificate be issued? A pure decision: what is asked for is compared with what is known.
//!
//! Whatever is not plainly about one of our NodeClaims is left to others. What is, and asks for anything else than what its
//! kubelet needs, is refused.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use tenon_api::names;

use super::request::{NODE_USER, ParsedRequest, Requester, Signer, Wanted};

/// The group, and the organization, of kubelets.
const NODES: &str = "system:nodes";

const DIGITAL_SIGNATURE: &str = "digital signature";
const KEY_ENCIPHERMENT: &str = "key encipherment";
const CLIENT_AUTH: &str = "client auth";
const SERVER_AUTH: &str = "server auth";

/// What is true of the NodeClaim whose token or Node asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) claim: KnownClaim,
    pub(super) node: KnownNode,
    /// Addresses of the VM.
    pub(super) addresses: KnownAddresses,
}

/// The NodeClaim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KnownClaim {
    /// None of ours has this token or this name.
    None,
    /// One of ours.
    Ours(ClaimFacts),
}

/// What is true of a NodeClaim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClaimFacts {
    /// Its name, which is the name of its Node.
    pub(super) name: String,
    /// Whether the Secret of the token that asks is there and names this claim's uid.
    pub(super) has_token: bool,
    pub(super) is_deleting: bool,
    /// Whether its VM was started, or is about to be.
    pub(super) has_vm: bool,
    pub(super) is_registered: bool,
}

/// The Node with the claim's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KnownNode {
    Absent,
    /// It is there, and does not say yet which machine it runs on.
    Joining,
    /// It runs on the claim's VM.
    Ours,
    /// It runs on another machine; how that is known.
    Stranger(String),
}

/// The addresses of a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KnownAddresses {
    /// They are not known, and why.
    Unknown(String),
    /// These and no others.
    These(BTreeSet<IpAddr>),
}

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is not about one of our claims: it is neither approved nor denied.
    NotOurs,
    Approve,
    Refuse(Refusal),
    /// What must be known is not known yet.
    Wait(Wait),
}

/// Why a request of ours is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    Unreadable(&'static str),
    WrongGroup(&'static str),
    TokenNotOfClaim,
    ServingForToken,
    AnotherName { wanted: String, allowed: String },
    WrongOrganizations(Vec<String>),
    NamesInClientCertificate,
    WrongUsages { wanted: BTreeSet<String>, purpose: &'static str },
    ClaimDeleted,
    NoVm,
    SecondNode,
    AnotherMachine(String),
    NoNames,
    OtherNames,
    AnotherDnsName(String),
    UnknownAddress(IpAddr),
}

/// What a request waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wait {
    /// For the claim of a token that has our group, which a watch may show in a moment. It may be another controller's.
    Claim,
    /// For the Node of whoever asks.
    Node(String),
    /// For the addresses of the VM.
    Addresses(String),
}

/// Decides about a request.
pub(super) fn judge(request: &ParsedRequest, known: &Known) -> Verdict {
    match (&known.claim, &request.requester) {
        (KnownClaim::None, Requester::Token(_)) if request.groups.contains(names::BOOTSTRAP_GROUP) => {
            Verdict::Wait(Wait::Claim)
        }
        (KnownClaim::None, _) => Verdict::NotOurs,
        (KnownClaim::Ours(claim), Requester::Token(_)) => of_token(request, claim, &known.node).into(),
        (KnownClaim::Ours(claim), Requester::Node(_)) => of_node(request, claim, known).unwrap_or_else(Verdict::Refuse),
    }
}

impl From<Result<(), Refusal>> for Verdict {
    fn from(outcome: Result<(), Refusal>) -> Verdict {
        outcome.map_or_else(Verdict::Refuse, |()| Verdict::Approve)
    }
}

/// The first certificate of a VM.
fn of_token(request: &ParsedRequest, claim: &ClaimFacts, node: &KnownNode) -> Result<(), Refusal> {
    let is_second = claim.is_registered || *node != KnownNode::Absent;
    is_in_group(request, names::BOOTSTRAP_GROUP)?;
    refuse_if(request.signer == Signer::Serving, Refusal::ServingForToken)?;
    refuse_if(!claim.has_token, Refusal::TokenNotOfClaim)?;
    client_certificate(request, &claim.name)?;
    refuse_if(claim.is_deleting, Refusal::ClaimDeleted)?;
    refuse_if(is_second, Refusal::SecondNode)?;
    refuse_if(!claim.has_vm, Refusal::NoVm)
}

/// A certificate of a kubelet that has one already.
fn of_node(request: &ParsedRequest, claim: &ClaimFacts, known: &Known) -> Result<Verdict, Refusal> {
    is_in_group(request, NODES)?;
    match request.signer {
        Signer::Client => client_certificate(request, &claim.name)?,
        Signer::Serving => serving_certificate(request, &claim.name)?,
    }
    match &known.node {
        KnownNode::Absent | KnownNode::Joining => return Ok(Verdict::Wait(Wait::Node(claim.name.clone()))),
        KnownNode::Stranger(why) => return Err(Refusal::AnotherMachine(why.clone())),
        KnownNode::Ours => {}
    }
    let wanted = request.wanted.as_ref().map_err(|why| Refusal::Unreadable(why))?;
    match &known.addresses {
        _ if wanted.addresses.is_empty() => Ok(Verdict::Approve),
        KnownAddresses::Unknown(why) => Ok(Verdict::Wait(Wait::Addresses(why.clone()))),
        KnownAddresses::These(known) => match wanted.addresses.difference(known).next() {
            Some(unknown) => Err(Refusal::UnknownAddress(*unknown)),
            None => Ok(Verdict::Approve),
        },
    }
}

fn client_certificate(request: &ParsedRequest, node: &str) -> Result<(), Refusal> {
    let wanted = subject(request, node)?;
    let is_bare = wanted.dns_names.is_empty() && wanted.addresses.is_empty() && wanted.other_names == 0;
    refuse_if(!is_bare, Refusal::NamesInClientCertificate)?;
    usages(request, CLIENT_AUTH)
}

/// All but the addresses.
fn serving_certificate(request: &ParsedRequest, node: &str) -> Result<(), Refusal> {
    let wanted = subject(request, node)?;
    refuse_if(wanted.other_names > 0, Refusal::OtherNames)?;
    refuse_if(wanted.dns_names.is_empty() && wanted.addresses.is_empty(), Refusal::NoNames)?;
    if let Some(name) = wanted.dns_names.iter().find(|name| *name != node) {
        return Err(Refusal::AnotherDnsName(name.clone()));
    }
    usages(request, SERVER_AUTH)
}

fn subject<'a>(request: &'a ParsedRequest, node: &str) -> Result<&'a Wanted, Refusal> {
    let wanted = request.wanted.as_ref().map_err(|why| Refusal::Unreadable(why))?;
    let allowed = format!("{NODE_USER}{node}");
    let another = wanted.common_name != allowed;
    refuse_if(another, Refusal::AnotherName { wanted: wanted.common_name.clone(), allowed })?;
    refuse_if(wanted.organizations != [NODES], Refusal::WrongOrganizations(wanted.organizations.clone()))?;
    Ok(wanted)
}

/// A signature, the purpose, and for RSA keys encipherment.
fn usages(request: &ParsedRequest, purpose: &'static str) -> Result<(), Refusal> {
    let has = |usage| request.usages.contains(usage);
    let is_known = |usage: &String| [DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, purpose].contains(&usage.as_str());
    let is_right = has(DIGITAL_SIGNATURE) && has(purpose) && request.usages.iter().all(is_known);
    refuse_if(!is_right, Refusal::WrongUsages { wanted: request.usages.clone(), purpose })
}

fn is_in_group(request: &ParsedRequest, group: &'static str) -> Result<(), Refusal> {
    refuse_if(!request.groups.contains(group), Refusal::WrongGroup(group))
}

fn refuse_if(is_wrong: bool, refusal: Refusal) -> Result<(), Refusal> {
    if is_wrong { Err(refusal) } else { Ok(()) }
}

impl fmt::Display for Refusal {
    /// Goes on after "Denied CSR x of user y: ".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Unreadable(why) => write!(f, "the request cannot be read: {why}"),
            Refusal::WrongGroup(group) => write!(f, "the user is not in group {group}"),
            Refusal::TokenNotOfClaim => {
                f.write_str("the bootstrap token was deleted, or its Secret names another NodeClaim")
            }
            Refusal::ServingForToken => f.write_str("a bootstrap token cannot get a serving certificate"),
            Refusal::AnotherName { wanted, allowed } => {
                write!(f, "the common name is {}, only {allowed} is allowed", shown(wanted))
            }
            Refusal::WrongOrganizations(wanted) => {
                write!(f, "the organizations are [{}], only [{NODES}] is allowed", shown(&wanted.join(", ")))
            }
            Refusal::NamesInClientCertificate => {
                f.write_str("a client certificate of a kubelet has no alternative names, but the request has")
            }
            Refusal::WrongUsages { wanted, purpose } => {
                let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
                let wanted = wanted.join(", ");
                write!(
                    f,
                    "the usages are [{wanted}], only [{DIGITAL_SIGNATURE}, {purpose}] and {KEY_ENCIPHERMENT} are allowed"
                )
            }
            Refusal::ClaimDeleted => f.write_str("the NodeClaim of the token is being deleted"),
            Refusal::NoVm => f.write_str("no VM was started for the NodeClaim of the token"),
            Refusal::SecondNode => {
                f.write_str("the Node of the NodeClaim has joined already, and a NodeClaim has one Node")
            }
            Refusal::AnotherMachine(why) => f.write_str(why),
            Refusal::NoNames => {
                f.write_str("a serving certificate needs a DNS name or an address, the request has none")
            }
            Refusal::OtherNames => f.write_str("the request has alternative names other than DNS names and addresses"),
            Refusal::AnotherDnsName(name) => {
                write!(f, "the DNS name {} is not the name of the Node", shown(name))
            }
            Refusal::UnknownAddress(address) => write!(f, "{address} is not an address of the VM"),
        }
    }
}

/// Whoever asks has written it: it is shown without line breaks, and not at any length.
fn shown(text: &str) -> String {
    let plain = text.chars().map(|letter| if letter.is_control() { '?' } else { letter });
    plain.take(100).collect()
}
