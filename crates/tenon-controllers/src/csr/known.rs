//! What is true of the NodeClaim whose token or Node asks for a certificate? Everything is read again from the API server:
//! a certificate cannot be taken back.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::Api;
use tenon_api::condition_reasons::REGISTERED;
use tenon_api::kube_objects::Node;
use tenon_api::{NodeClaim, launch_record, names};
use tenon_engine::claim::ObservedNode;
use tenon_model::{LaunchRecord, LaunchStep};

use super::judge::{ClaimFacts, Known, KnownAddresses, KnownClaim, KnownNode};
use super::request::{ParsedRequest, Requester};
use crate::claim::{is_true, node_of_vm, recorded_token, token_secret};
use crate::context::{Context, is_ours};

/// What is known, and the claim it is known of.
pub(super) struct Gathered {
    pub(super) claim: Option<(NodeClaim, LaunchRecord)>,
    pub(super) known: Known,
}

/// Gathers all but the addresses.
pub(super) async fn gather(context: &Context, request: &ParsedRequest) -> Result<Gathered, kube::Error> {
    let addresses = KnownAddresses::Unknown(String::new());
    let nothing = Gathered {
        claim: None,
        known: Known { claim: KnownClaim::None, node: KnownNode::Absent, addresses: addresses.clone() },
    };
    let (name, owner) = match &request.requester {
        Requester::Node(name) => (name.clone(), None),
        Requester::Token(id) => match owner(context, id).await? {
            Some((name, uid)) => (name, Some(uid)),
            None => return Ok(nothing),
        },
    };
    let claims: Api<NodeClaim> = Api::all(context.workload.clone());
    let claim = claims.get_opt(&name).await?.filter(is_ours);
    // Without a record its VM is another controller's.
    let found = claim.and_then(|claim| Some((record(&claim)?, claim)));
    let Some((record, claim)) = found else { return Ok(nothing) };
    let node = Api::<Node>::all(context.workload.clone()).get_opt(&name).await?;
    let facts = ClaimFacts {
        name,
        has_token: owner.is_some_and(|uid| uid.is_some() && uid == claim.uid()),
        is_deleting: claim.metadata.deletion_timestamp.is_some(),
        has_vm: record.step >= LaunchStep::Start,
        is_registered: is_true(&claim, &REGISTERED),
    };
    let node = known_node(&claim, &record, node.as_ref());
    Ok(Gathered { claim: Some((claim, record)), known: Known { claim: KnownClaim::Ours(facts), node, addresses } })
}

/// The claim that a token was made for, and the uid its Secret names. Of several that say it is theirs, the Secret decides.
async fn owner(context: &Context, id: &str) -> Result<Option<(String, Option<String>)>, kube::Error> {
    let is_its = |claim: &NodeClaim| is_ours(claim) && recorded_token(claim) == Some(id);
    let claims = context.watched.claims.state_filter(is_its);
    let [first, rest @ ..] = claims.as_slice() else { return Ok(None) };
    let secrets: Api<Secret> = Api::namespaced(context.workload.clone(), "kube-system");
    let secret = secrets.get_opt(&token_secret(id)).await?;
    let uid = secret.and_then(|secret| secret.annotations().get(names::ANNOTATION_CLAIM_UID).cloned());
    let named = rest.iter().find(|claim| claim.uid() == uid).unwrap_or(first);
    Ok(Some((named.name_any(), uid)))
}

fn record(claim: &NodeClaim) -> Option<LaunchRecord> {
    launch_record::read(claim.annotations().get(names::ANNOTATION_LAUNCH)?).ok()
}

/// The machine is compared also while the claim is being deleted: that we still drain and delete a Node of another machine is no
/// reason to give that machine a certificate.
fn known_node(claim: &NodeClaim, record: &LaunchRecord, node: Option<&Node>) -> KnownNode {
    match node.map(|node| node_of_vm(claim, record, node)) {
        None => KnownNode::Absent,
        // Which machine is the right one is not known yet.
        Some(_) if record.uuid.is_none() => KnownNode::Joining,
        Some(ObservedNode::Ours { .. }) => KnownNode::Ours,
        Some(ObservedNode::Absent) => KnownNode::Joining,
        Some(ObservedNode::Stranger(why)) => KnownNode::Stranger(why),
    }
}
