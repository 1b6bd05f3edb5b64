//! What is known of one node, and what can be asked of it: is it going, does it work, whose is it?

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use tenon_api::{Condition, ConditionStatus, NodeClaim, names};

/// One node that is ours.
#[derive(Debug, Clone)]
pub struct NodeFacts<'a> {
    /// What it was made for.
    pub claim: &'a NodeClaim,
    /// The Node, once it is there.
    pub node: Option<&'a Node>,
    /// All pods bound to it.
    pub pods: Vec<&'a Pod>,
    /// Whether pods were promised to it a moment ago and have not arrived.
    pub nominated: bool,
}

impl<'a> NodeFacts<'a> {
    /// The name of the claim.
    pub(crate) fn name(&self) -> &'a str {
        self.claim.metadata.name.as_deref().unwrap_or_default()
    }

    /// The pool it belongs to: from the registration on, the Node says it.
    pub(crate) fn pool(&self) -> Option<&'a str> {
        let is_true = |node: &Node, label: &str| node.labels().get(label).is_some_and(|value| value == "true");
        let registered = self.node.filter(|node| is_true(node, names::LABEL_REGISTERED));
        let labels = registered.map_or_else(|| self.claim.labels(), |node| node.labels());
        labels.get(names::LABEL_NODEPOOL).map(String::as_str).filter(|pool| !pool.is_empty())
    }

    /// Whether it is on its way out, whoever began it.
    pub(crate) fn is_going(&self) -> bool {
        self.claim.metadata.deletion_timestamp.is_some()
            || self.node.is_some_and(|node| node.metadata.deletion_timestamp.is_some())
            || self.is_instance_terminating()
    }

    /// Whether another controller made its VM: there is one, and no launch of ours.
    pub(crate) fn is_foreign(&self) -> bool {
        let has_vm = self.claim.status.as_ref().is_some_and(|status| status.provider_id.is_some());
        has_vm && !self.claim.annotations().contains_key(names::ANNOTATION_LAUNCH)
    }

    /// Whether its VM is being taken away, so that it is no node of the pool any more.
    pub(crate) fn is_instance_terminating(&self) -> bool {
        holding(self.claim, "InstanceTerminating").is_some()
    }

    /// Whether it could take pods, once: the Node and the claim say it both.
    pub(crate) fn is_initialized(&self) -> bool {
        let labelled = self.node.and_then(|node| node.labels().get(names::LABEL_INITIALIZED));
        labelled.is_some_and(|value| value == "true") && self.initialized().is_some()
    }

    /// The condition that says it could take pods, if it holds.
    pub(crate) fn initialized(&self) -> Option<&'a Condition> {
        holding(self.claim, "Initialized")
    }

    /// Whether the kubelet says that it works.
    pub(crate) fn is_ready(&self) -> bool {
        let status = self.node.and_then(|node| node.status.as_ref());
        let mut conditions = status.into_iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
    }
}

/// A condition of the claim that holds.
fn holding<'a>(claim: &'a NodeClaim, type_: &str) -> Option<&'a Condition> {
    let conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().find(|condition| condition.type_ == type_ && condition.status == ConditionStatus::True)
}
