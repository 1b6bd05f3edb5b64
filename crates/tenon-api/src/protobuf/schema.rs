//! Which fields of a pod are read: their numbers in a message, their names in JSON, and when JSON leaves them out. A table.
//!
//! Numbers stay for ever: `k8s.io/api/core/v1/generated.proto` and `apimachinery/pkg/apis/meta/v1/generated.proto` list them.

use super::fields::{Fields, Value};
use super::to_json::Kind::{
    self, Amounts, Flag, FlagIfTrue, Inline, Mark, Message, Messages, Number, NumberIfAny, OptionalText, Text, TextMap,
    Texts,
};
use super::to_json::{Field, Schema, schema};
use crate::kube_objects::is_read_annotation;

const fn field(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, only: None }
}

/// A list or a map, of which only a part is wanted.
const fn only(is_wanted: fn(&[u8]) -> bool, field: Field) -> Field {
    Field { only: Some(is_wanted), ..field }
}

/// What a server says of a request.
pub(super) const STATUS: Schema =
    &schema(&[field(2, "status", Text), field(3, "message", Text), field(4, "reason", Text), field(6, "code", Number)]);

/// What pods of one workload have in common.
pub(super) const COMMON_META: Schema = &schema(&[
    field(11, "labels", TextMap),
    only(is_read, field(12, "annotations", TextMap)),
    field(13, "ownerReferences", Messages(OWNER_REFERENCE)),
]);

/// An annotation that cannot be read is wanted: who writes it says what is wrong.
fn is_read(annotation: &[u8]) -> bool {
    let name = Fields(annotation).one(1).ok().flatten().map_or(&[][..], Value::bytes);
    std::str::from_utf8(name).map_or(true, is_read_annotation)
}

const OWNER_REFERENCE: Schema = &schema(&[
    field(5, "apiVersion", Text),
    field(1, "kind", Text),
    field(3, "name", Text),
    field(4, "uid", Text),
    field(6, "controller", Flag),
    field(7, "blockOwnerDeletion", Flag),
]);

/// Without the node, which a pod has beside what it shares with others.
pub(super) const POD_SPEC: Schema = &schema(&[
    only(is_claim, field(1, "volumes", Messages(VOLUME))),
    field(2, "containers", Messages(CONTAINER)),
    field(4, "terminationGracePeriodSeconds", Number),
    field(5, "activeDeadlineSeconds", Number),
    field(7, "nodeSelector", TextMap),
    field(11, "hostNetwork", FlagIfTrue),
    field(18, "affinity", Message(AFFINITY)),
    field(20, "initContainers", Messages(CONTAINER)),
    field(22, "tolerations", Messages(TOLERATION)),
    field(24, "priorityClassName", Text),
    field(25, "priority", Number),
    field(32, "overhead", Amounts),
    field(33, "topologySpreadConstraints", Messages(TOPOLOGY_SPREAD_CONSTRAINT)),
    field(38, "schedulingGates", Messages(NAMED)),
    field(39, "resourceClaims", Messages(POD_RESOURCE_CLAIM)),
    field(40, "resources", Message(RESOURCES)),
]);

const NAMED: Schema = &schema(&[field(1, "name", Text)]);

const POD_RESOURCE_CLAIM: Schema = &schema(&[
    field(1, "name", Text),
    field(3, "resourceClaimName", Text),
    field(4, "resourceClaimTemplateName", Text),
]);

/// Other volumes are made anew for each pod or hold files.
fn is_claim(volume: &[u8]) -> bool {
    let source = Fields(volume).one(2).ok().flatten().map_or(&[][..], Value::bytes);
    !matches!(Fields(source).pick([10, 29]), Ok([None, None]))
}

const VOLUME: Schema = &schema(&[field(1, "name", Text), field(2, "", Inline(VOLUME_SOURCE))]);

const VOLUME_SOURCE: Schema = &schema(&[
    field(10, "persistentVolumeClaim", Message(PERSISTENT_VOLUME_CLAIM)),
    field(29, "ephemeral", Message(EPHEMERAL)),
]);

const EPHEMERAL: Schema = &schema(&[field(1, "volumeClaimTemplate", Message(CLAIM_TEMPLATE))]);

const CLAIM_TEMPLATE: Schema = &schema(&[field(2, "spec", Message(CLAIM_SPEC))]);

const CLAIM_SPEC: Schema = &schema(&[field(3, "volumeName", Text), field(5, "storageClassName", OptionalText)]);

const PERSISTENT_VOLUME_CLAIM: Schema = &schema(&[field(1, "claimName", Text)]);

const CONTAINER: Schema = &schema(&[
    field(1, "name", Text),
    field(6, "ports", Messages(CONTAINER_PORT)),
    field(8, "resources", Message(RESOURCES)),
    field(24, "restartPolicy", Text),
]);

const CONTAINER_PORT: Schema = &schema(&[
    field(1, "name", Text),
    field(2, "hostPort", NumberIfAny),
    field(3, "containerPort", Number),
    field(4, "protocol", Text),
    field(5, "hostIP", Text),
]);

const RESOURCES: Schema = &schema(&[
    field(1, "limits", Amounts),
    field(2, "requests", Amounts),
    field(3, "claims", Messages(RESOURCE_CLAIM)),
]);

const RESOURCE_CLAIM: Schema = &schema(&[field(1, "name", Text), field(2, "request", Text)]);

const TOLERATION: Schema = &schema(&[
    field(1, "key", Text),
    field(2, "operator", Text),
    field(3, "value", Text),
    field(4, "effect", Text),
    field(5, "tolerationSeconds", Number),
]);

const TOPOLOGY_SPREAD_CONSTRAINT: Schema = &schema(&[
    field(1, "maxSkew", Number),
    field(2, "topologyKey", Text),
    field(3, "whenUnsatisfiable", Text),
    field(4, "labelSelector", Message(LABEL_SELECTOR)),
    field(5, "minDomains", Number),
    field(6, "nodeAffinityPolicy", Text),
    field(7, "nodeTaintsPolicy", Text),
    field(8, "matchLabelKeys", Texts),
]);

const LABEL_SELECTOR: Schema =
    &schema(&[field(1, "matchLabels", TextMap), field(2, "matchExpressions", Messages(EXPRESSION))]);

/// Of label selectors and node selectors alike.
const EXPRESSION: Schema = &schema(&[field(1, "key", Text), field(2, "operator", Text), field(3, "values", Texts)]);

const AFFINITY: Schema = &schema(&[
    field(1, "nodeAffinity", Message(NODE_AFFINITY)),
    field(2, "podAffinity", Message(POD_AFFINITY)),
    field(3, "podAntiAffinity", Message(POD_AFFINITY)),
]);

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

const NODE_AFFINITY: Schema =
    &schema(&[field(1, REQUIRED, Message(NODE_SELECTOR)), field(2, PREFERRED, Messages(PREFERRED_SCHEDULING_TERM))]);

const NODE_SELECTOR: Schema = &schema(&[field(1, "nodeSelectorTerms", Messages(NODE_SELECTOR_TERM))]);

const NODE_SELECTOR_TERM: Schema =
    &schema(&[field(1, "matchExpressions", Messages(EXPRESSION)), field(2, "matchFields", Messages(FIELD_EXPRESSION))]);

/// Whose field is asked for differs from pod to pod of a DaemonSet, and nobody reads it.
const FIELD_EXPRESSION: Schema = &schema(&[field(1, "key", Text), field(2, "operator", Text)]);

const PREFERRED_SCHEDULING_TERM: Schema =
    &schema(&[field(1, "weight", Number), field(2, "preference", Message(NODE_SELECTOR_TERM))]);

const POD_AFFINITY: Schema = &schema(&[
    field(1, REQUIRED, Messages(POD_AFFINITY_TERM)),
    field(2, PREFERRED, Messages(WEIGHTED_POD_AFFINITY_TERM)),
]);

const POD_AFFINITY_TERM: Schema = &schema(&[
    field(1, "labelSelector", Message(LABEL_SELECTOR)),
    field(2, "namespaces", Texts),
    field(3, "topologyKey", Text),
    field(4, "namespaceSelector", Message(LABEL_SELECTOR)),
    field(5, "matchLabelKeys", Texts),
    field(6, "mismatchLabelKeys", Texts),
]);

const WEIGHTED_POD_AFFINITY_TERM: Schema =
    &schema(&[field(1, "weight", Number), field(2, "podAffinityTerm", Message(POD_AFFINITY_TERM))]);

/// Without the time at which a node took the pod.
pub(super) const POD_STATUS: Schema = &schema(&[
    field(1, "phase", Text),
    field(2, "conditions", Messages(POD_CONDITION)),
    field(3, "message", Mark),
    field(4, "reason", Mark),
    field(5, "hostIP", Mark),
    field(6, "podIP", Mark),
    field(8, "containerStatuses", Messages(CONTAINER_STATUS)),
    field(9, "qosClass", Mark),
    field(10, "initContainerStatuses", Messages(CONTAINER_STATUS)),
    field(11, "nominatedNodeName", Text),
    field(19, "allocatedResources", Amounts),
    field(20, "resources", Message(RESOURCES)),
]);

const POD_CONDITION: Schema = &schema(&[field(1, "type", Text), field(2, "status", Text), field(5, "reason", Text)]);

const CONTAINER_STATUS: Schema = &schema(&[
    field(1, "name", Text),
    field(10, "allocatedResources", Amounts),
    field(11, "resources", Message(RESOURCES)),
]);

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
