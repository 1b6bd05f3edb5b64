//! Which fields of a pod are read: their numbers in a message, their names in JSON, and when JSON leaves them out. A table.
//!
//! Numbers stay for ever: `k8s.io/api/core/v1/generated.proto` and `apimachinery/pkg/apis/meta/v1/generated.proto` list them.

use super::to_json::Kind::{
    self, Amounts, Flag, FlagIfTrue, Inline, Message, Messages, Moment, Number, NumberIfAny, Objects, OptionalText,
    Text, TextMap, Texts,
};
use super::to_json::{Field, Schema};

const fn field(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind }
}

pub(super) const POD_LIST: Schema = &[field(1, "metadata", Message(LIST_META)), field(2, "items", Objects(POD))];

/// What a server says of a request.
pub(super) const STATUS: Schema = &[
    field(1, "metadata", Message(LIST_META)),
    field(2, "status", Text),
    field(3, "message", Text),
    field(4, "reason", Text),
    field(6, "code", Number),
];

const LIST_META: Schema = &[field(2, "resourceVersion", Text), field(3, "continue", Text)];

const POD: Schema = &[
    field(1, "metadata", Message(OBJECT_META)),
    field(2, "spec", Message(POD_SPEC)),
    field(3, "status", Message(POD_STATUS)),
];

const OBJECT_META: Schema = &[
    field(1, "name", Text),
    field(3, "namespace", Text),
    field(5, "uid", Text),
    field(6, "resourceVersion", Text),
    field(8, "creationTimestamp", Moment),
    field(9, "deletionTimestamp", Moment),
    field(11, "labels", TextMap),
    field(12, "annotations", TextMap),
    field(13, "ownerReferences", Messages(OWNER_REFERENCE)),
];

const OWNER_REFERENCE: Schema = &[
    field(5, "apiVersion", Text),
    field(1, "kind", Text),
    field(3, "name", Text),
    field(4, "uid", Text),
    field(6, "controller", Flag),
    field(7, "blockOwnerDeletion", Flag),
];

const POD_SPEC: Schema = &[
    field(1, "volumes", Messages(VOLUME)),
    field(2, "containers", Messages(CONTAINER)),
    field(4, "terminationGracePeriodSeconds", Number),
    field(7, "nodeSelector", TextMap),
    field(10, "nodeName", Text),
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
];

const NAMED: Schema = &[field(1, "name", Text)];

const POD_RESOURCE_CLAIM: Schema =
    &[field(1, "name", Text), field(3, "resourceClaimName", Text), field(4, "resourceClaimTemplateName", Text)];

const VOLUME: Schema = &[field(1, "name", Text), field(2, "", Inline(VOLUME_SOURCE))];

const VOLUME_SOURCE: Schema =
    &[field(10, "persistentVolumeClaim", Message(PERSISTENT_VOLUME_CLAIM)), field(29, "ephemeral", Message(EPHEMERAL))];

const EPHEMERAL: Schema = &[field(1, "volumeClaimTemplate", Message(CLAIM_TEMPLATE))];

const CLAIM_TEMPLATE: Schema = &[field(2, "spec", Message(CLAIM_SPEC))];

const CLAIM_SPEC: Schema = &[field(3, "volumeName", Text), field(5, "storageClassName", OptionalText)];

const PERSISTENT_VOLUME_CLAIM: Schema = &[field(1, "claimName", Text)];

const CONTAINER: Schema = &[
    field(1, "name", Text),
    field(6, "ports", Messages(CONTAINER_PORT)),
    field(8, "resources", Message(RESOURCES)),
    field(24, "restartPolicy", Text),
];

const CONTAINER_PORT: Schema = &[
    field(1, "name", Text),
    field(2, "hostPort", NumberIfAny),
    field(3, "containerPort", Number),
    field(4, "protocol", Text),
    field(5, "hostIP", Text),
];

const RESOURCES: Schema =
    &[field(1, "limits", Amounts), field(2, "requests", Amounts), field(3, "claims", Messages(RESOURCE_CLAIM))];

const RESOURCE_CLAIM: Schema = &[field(1, "name", Text), field(2, "request", Text)];

const TOLERATION: Schema = &[
    field(1, "key", Text),
    field(2, "operator", Text),
    field(3, "value", Text),
    field(4, "effect", Text),
    field(5, "tolerationSeconds", Number),
];

const TOPOLOGY_SPREAD_CONSTRAINT: Schema = &[
    field(1, "maxSkew", Number),
    field(2, "topologyKey", Text),
    field(3, "whenUnsatisfiable", Text),
    field(4, "labelSelector", Message(LABEL_SELECTOR)),
    field(5, "minDomains", Number),
    field(6, "nodeAffinityPolicy", Text),
    field(7, "nodeTaintsPolicy", Text),
    field(8, "matchLabelKeys", Texts),
];

const LABEL_SELECTOR: Schema = &[field(1, "matchLabels", TextMap), field(2, "matchExpressions", Messages(EXPRESSION))];

/// Of label selectors and node selectors alike.
const EXPRESSION: Schema = &[field(1, "key", Text), field(2, "operator", Text), field(3, "values", Texts)];

const AFFINITY: Schema = &[
    field(1, "nodeAffinity", Message(NODE_AFFINITY)),
    field(2, "podAffinity", Message(POD_AFFINITY)),
    field(3, "podAntiAffinity", Message(POD_AFFINITY)),
];

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

const NODE_AFFINITY: Schema =
    &[field(1, REQUIRED, Message(NODE_SELECTOR)), field(2, PREFERRED, Messages(PREFERRED_SCHEDULING_TERM))];

const NODE_SELECTOR: Schema = &[field(1, "nodeSelectorTerms", Messages(NODE_SELECTOR_TERM))];

const NODE_SELECTOR_TERM: Schema =
    &[field(1, "matchExpressions", Messages(EXPRESSION)), field(2, "matchFields", Messages(EXPRESSION))];

const PREFERRED_SCHEDULING_TERM: Schema =
    &[field(1, "weight", Number), field(2, "preference", Message(NODE_SELECTOR_TERM))];

const POD_AFFINITY: Schema =
    &[field(1, REQUIRED, Messages(POD_AFFINITY_TERM)), field(2, PREFERRED, Messages(WEIGHTED_POD_AFFINITY_TERM))];

const POD_AFFINITY_TERM: Schema = &[
    field(1, "labelSelector", Message(LABEL_SELECTOR)),
    field(2, "namespaces", Texts),
    field(3, "topologyKey", Text),
    field(4, "namespaceSelector", Message(LABEL_SELECTOR)),
    field(5, "matchLabelKeys", Texts),
    field(6, "mismatchLabelKeys", Texts),
];

const WEIGHTED_POD_AFFINITY_TERM: Schema =
    &[field(1, "weight", Number), field(2, "podAffinityTerm", Message(POD_AFFINITY_TERM))];

const POD_STATUS: Schema = &[
    field(1, "phase", Text),
    field(2, "conditions", Messages(POD_CONDITION)),
    field(3, "message", Text),
    field(4, "reason", Text),
    field(5, "hostIP", Text),
    field(6, "podIP", Text),
    field(7, "startTime", Moment),
    field(8, "containerStatuses", Messages(CONTAINER_STATUS)),
    field(9, "qosClass", Text),
    field(10, "initContainerStatuses", Messages(CONTAINER_STATUS)),
    field(11, "nominatedNodeName", Text),
    field(19, "allocatedResources", Amounts),
    field(20, "resources", Message(RESOURCES)),
];

const POD_CONDITION: Schema = &[field(1, "type", Text), field(2, "status", Text), field(5, "reason", Text)];

const CONTAINER_STATUS: Schema =
    &[field(1, "name", Text), field(10, "allocatedResources", Amounts), field(11, "resources", Message(RESOURCES))];

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
