//! Which conditions do NodeClaims, NodePools and Nodes have, and since when; which of these objects are being deleted?

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tenon_api::Condition;
use tenon_api::kube_objects::Node;

use super::Cluster;
use crate::metrics::Metric;
use crate::metrics::catalogue::by_kind::{ByKind, NODE, NODECLAIM, NODEPOOL};
use crate::metrics::catalogue::karpenter;
use crate::metrics::conditions::{ShownCondition, ShownObject};
use crate::metrics::exposition::Exposition;

/// Writes down every condition.
pub(super) fn show(cluster: &Cluster, page: &mut Exposition<'_>) {
    let seconds = |since: Timestamp| cluster.now.duration_since(since).as_secs_f64().max(0.0);
    for object in objects(cluster) {
        let ShownObject { group, by_kind, name, labels, conditions, deleted } = &object;
        let kind = by_kind.kind;
        for ShownCondition { of_type, status, reason, since } in conditions {
            let values = ["", name, group, kind, of_type, status, reason];
            let of_kind = with(&["", name, of_type, status, reason], labels);
            number(page, &karpenter::CONDITION_COUNT, &values, 1.0);
            number(page, &by_kind.count, &of_kind, 1.0);
            if let Some(since) = since.map(seconds) {
                number(page, &karpenter::CONDITION_SECONDS, &values, since);
                number(page, &by_kind.seconds, &of_kind, since);
            }
        }
        if let Some(deleted) = deleted.map(seconds) {
            number(page, &karpenter::TERMINATING_SECONDS, &["", name, group, kind], deleted);
            number(page, &by_kind.terminating, &with(&["", name], labels), deleted);
        }
    }
}

/// A sample of a gauge, unless the page is without it.
fn number(page: &mut Exposition<'_>, metric: &'static Metric, values: &[&str], value: f64) {
    if let Some(mut lines) = page.of(metric) {
        lines.number(values, value);
    }
}

/// The values of labels, and behind them those of the object's own.
fn with<'a>(values: &[&'a str], labels: &'a [String]) -> Vec<&'a str> {
    values.iter().copied().chain(labels.iter().map(String::as_str)).collect()
}

/// Every NodeClaim, NodePool and Node.
pub(super) fn objects(cluster: &Cluster) -> Vec<ShownObject> {
    let mut objects = Vec::new();
    for claim in &cluster.claims {
        let conditions = claim.status.as_ref().and_then(|status| status.conditions.as_deref());
        objects.push(object(("karpenter.sh", &NODECLAIM), &claim.metadata, written(conditions)));
    }
    for pool in &cluster.pools {
        let conditions = pool.status.as_ref().and_then(|status| status.conditions.as_deref());
        objects.push(object(("karpenter.sh", &NODEPOOL), &pool.metadata, written(conditions)));
    }
    for node in &cluster.nodes {
        objects.push(object(("", &NODE), &node.metadata, of_node(node)));
    }
    objects
}

fn object(
    (group, by_kind): (&'static str, &'static ByKind),
    meta: &ObjectMeta,
    conditions: Vec<ShownCondition>,
) -> ShownObject {
    let value = |label: &&str| meta.labels.as_ref().and_then(|labels| labels.get(*label)).cloned().unwrap_or_default();
    let labels = by_kind.object_labels.iter().map(value).collect();
    let (name, deleted) = (meta.name.clone().unwrap_or_default(), meta.deletion_timestamp.as_ref().map(|time| time.0));
    ShownObject { group, by_kind, name, labels, conditions, deleted }
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
