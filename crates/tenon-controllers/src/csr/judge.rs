//! May this certificate be issued? A pure decision: what is asked for is compared with what is known.
//!
//! Whatever is not plainly about one of our NodeClaims is left to others. What is, and asks for anything else than what its
//! kubelet needs, is refused.

use std::collections::BTreeSet;
use std::net::IpAddr;

use tenon_api::names;

use super::refusal::Refusal;
use super::request::{NODE_USER, ParsedRequest, Requester, Signer, Wanted};

/// The group, and the organization, of kubelets.
pub(super) const NODES: &str = "system:nodes";

pub(super) const DIGITAL_SIGNATURE: &str = "digital signature";
pub(super) const KEY_ENCIPHERMENT: &str = "key encipherment";
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

/// Not who asks, but what is asked for: the client certificate of the kubelet of this Node, and nothing else.
pub(super) fn client_certificate(request: &ParsedRequest, node: &str) -> Result<(), Refusal> {
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
