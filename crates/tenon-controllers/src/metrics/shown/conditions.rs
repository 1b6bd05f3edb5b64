//! Which conditions do NodeClaims, NodePools and Nodes have, and since when; which of these objects are being deleted?

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tenon_api::Condition;
use tenon_api::kube_objects::Node;

use super::Cluster;
use crate::metrics::catalogue::karpenter;
use crate::metrics::conditions::{ShownCondition, ShownObject};
use crate::metrics::exposition::Exposition;

/// Writes down every condition.
pub(super) fn show(cluster: &Cluster, page: &mut Exposition<'_>) {
    let seconds = |since: Timestamp| cluster.now.duration_since(since).as_secs_f64().max(0.0);
    for object in objects(cluster) {
        let ShownObject { group, kind, name, conditions, deleted } = &object;
        for ShownCondition { of_type, status, reason, since } in conditions {
            let values = ["", name, group, kind, of_type, status, reason];
            if let Some(mut lines) = page.of(&karpenter::CONDITION_COUNT) {
                lines.number(&values, 1.0);
            }
            if let (Some(since), Some(mut lines)) = (since, page.of(&karpenter::CONDITION_SECONDS)) {
                lines.number(&values, seconds(*since));
            }
        }
        if let (Some(deleted), Some(mut lines)) = (deleted, page.of(&karpenter::TERMINATING_SECONDS)) {
            lines.number(&["", name, group, kind], seconds(*deleted));
        }
    }
}

/// Every NodeClaim, NodePool and Node.
pub(super) fn objects(cluster: &Cluster) -> Vec<ShownObject> {
    let mut objects = Vec::new();
    for claim in &cluster.claims {
        let conditions = claim.status.as_ref().and_then(|status| status.conditions.as_deref());
        objects.push(object(("karpenter.sh", "NodeClaim"), &claim.metadata, written(conditions)));
    }
    for pool in &cluster.pools {
        let conditions = pool.status.as_ref().and_then(|status| status.conditions.as_deref());
        objects.push(object(("karpenter.sh", "NodePool"), &pool.metadata, written(conditions)));
    }
    for node in &cluster.nodes {
        objects.push(object(("", "Node"), &node.metadata, of_node(node)));
    }
    objects
}

fn object(
    (group, kind): (&'static str, &'static str),
    meta: &ObjectMeta,
    conditions: Vec<ShownCondition>,
) -> ShownObject {
    let name = meta.name.clone().unwrap_or_default();
    ShownObject { group, kind, name, conditions, deleted: meta.deletion_timestamp.as_ref().map(|time| time.0) }
}

fn written(conditions: Option<&[Condition]>) -> Vec<ShownCondition> {
    let shown = |condition: &Condition| ShownCondition {
        of_type: condition.type_.clone(),
        status: format!("{:?}", condition.status),
        reason: condition.reason.clone(),
        since: Some(condition.last_transition_time.0),
    };
    conditions.unwrap_or_default().iter().map(shown).collect()
}

fn of_node(node: &Node) -> Vec<ShownCondition> {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions
        .map(|condition| ShownCondition {
            of_type: condition.type_.clone(),
            status: condition.status.clone(),
            reason: condition.reason.clone().unwrap_or_default(),
            since: condition.last_transition_time.as_ref().map(|time| time.0),
        })
        .collect()
}
