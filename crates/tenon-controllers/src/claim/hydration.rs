//! Labels claims and their nodes with the name of their class where that is missing: other controllers, and people, make
//! claims without it.

use kube::{Resource, ResourceExt};
use serde_json::json;
use tenon_api::kube_objects::Node;
use tenon_api::names;
use tenon_engine::claim::ObservedLaunch;

use super::ClaimError;
use super::gather::Observed;
use super::outcome::Outcome;
use crate::context::Context;
use crate::writes::{self, Written};

/// Writes what is missing; nothing if nothing is.
pub(crate) async fn pass(context: &Context, observed: &Observed) -> Result<Option<Outcome>, ClaimError> {
    let (claim, class) = (&observed.claim, &observed.claim.spec.node_class_ref.name);
    if claim.meta().deletion_timestamp.is_some() {
        return Ok(None);
    }
    let patch = || json!({ "metadata": { "labels": { names::LABEL_NODECLASS: class } } });
    if !is_labelled(claim, class) {
        let written = writes::merge(&context.workload, claim, patch()).await;
        let written = written.map_err(|source| ClaimError::kube("label the NodeClaim with its class", source))?;
        return Ok(Some(outcome(&written)));
    }
    match observed.node.as_deref().filter(|node| is_its(observed, node) && !is_labelled(*node, class)) {
        Some(node) => {
            let written = writes::merge(&context.workload, node, patch()).await;
            let written = written.map_err(|source| ClaimError::kube("label the Node with its class", source))?;
            Ok(Some(outcome(&written)))
        }
        None => Ok(None),
    }
}

fn is_labelled<K: Resource>(object: &K, class: &str) -> bool {
    object.labels().get(names::LABEL_NODECLASS).is_some_and(|label| label == class)
}

fn outcome<K>(written: &Written<K>) -> Outcome {
    match written {
        Written::Done(_) => Outcome::again(),
        Written::Outdated => Outcome::outdated(),
    }
}

/// A node that registered is its claim's. One whose VM another controller created is, too, if both name the same VM.
fn is_its(observed: &Observed, node: &Node) -> bool {
    let told = node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref());
    let known = observed.claim.status.as_ref().and_then(|status| status.provider_id.as_ref());
    match &observed.state.launch {
        ObservedLaunch::Record(_) => observed.state.conditions.registered && observed.our_node().is_some(),
        ObservedLaunch::Foreign => known.is_some_and(|id| !id.is_empty()) && told == known,
        ObservedLaunch::Unplanned | ObservedLaunch::Unreadable(_) => false,
    }
}
