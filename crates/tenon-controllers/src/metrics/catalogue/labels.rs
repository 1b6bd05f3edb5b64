//! Table: the labels of metrics, each with what bounds the number of its values.

use super::Label;

const fn label(name: &'static str, values: &'static str) -> Label {
    Label { name, values }
}

pub(crate) const ARCH: Label = label("arch", "architectures of nodes");
pub(crate) const CAPACITY_TYPE: Label = label("capacity_type", "`on-demand`, `reserved`, `spot`");
pub(crate) const CODE: Label = label("code", "HTTP status codes; 0 without an answer");
pub(crate) const COMMIT: Label = label("commit", "one");
pub(crate) const CONDITION_KIND: Label = label("kind", "`NodeClaim`, `NodePool`, `Node`");
pub(crate) const CONDITION_REASON: Label = label("reason", "the reasons of conditions");
pub(crate) const CONDITION_STATUS: Label = label("status", "`True`, `False`, `Unknown`");
pub(crate) const CONDITION_TYPE: Label = label("type", "the types of conditions");
pub(crate) const CONSOLIDATION_POLICY: Label = label("consolidation_policy", "the policies of NodePools");
pub(crate) const CONSOLIDATION_TYPE: Label = label(
    "consolidation_type",
    "`empty`, `multi`, `single`, `host-goal` (moves between hosts, only in Tenon), or empty for drift",
);
pub(crate) const SCORE_DECISION: Label = label("decision", "`approved`, `rejected`");
pub(crate) const POLICY: Label = label("policy", "`consolidationPolicy` of the NodePool");
pub(crate) const TERMINATE_FIRST_REASON: Label =
    label("terminate_first_reason", "`no-reserved-capacity`, `static-at-limit`");
pub(crate) const CONTROLLER: Label = label("controller", "Tenon's controllers");
pub(crate) const DECISION: Label = label("decision", "`delete`, `replace`, `terminate-first`");
pub(crate) const DISRUPTED_REASON: Label = label(
    "reason",
    "`drifted`, `empty`, `expired`, `garbage_collected`, `insufficient_capacity`, `launch_timeout`, \
     `nodeclass_not_ready`, `registration_timeout`, `underutilized`, `unhealthy`",
);
pub(crate) const DISRUPTION_REASON: Label = label("reason", "`drifted`, `empty`, `underutilized`, `unhealthy`");
pub(crate) const DRAINED_REASON: Label =
    label("reason", "the reason of condition DisruptionReason, `Empty`, `Forceful Termination`");
pub(crate) const DYNAMIC_RESOURCES: Label =
    label("dynamic_resources", "`true` if the pod has ResourceClaims, else `false`");
pub(crate) const ERROR: Label =
    label("error", "`InsufficientCapacityError`, `NodeClassNotReadyError`, `NodeClaimNotFoundError`, `unknown`");
pub(crate) const GOARCH: Label = label("goarch", "one");
pub(crate) const GOVERSION: Label = label("goversion", "one");
pub(crate) const GROUP: Label = label("group", "`karpenter.sh`, empty for Nodes");
pub(crate) const IMAGE_ID: Label = label("instance_image_id", "VM templates");
pub(crate) const INSTANCE_CPU_TYPE: Label = label("instance_cpu_type", "CPU models of VM templates");
pub(crate) const INSTANCE_FAMILY: Label = label("instance_family", "families of instance types");
pub(crate) const INSTANCE_TYPE: Label = label("instance_type", "instance types");
pub(crate) const LEASE: Label = label("name", "one: the Lease");
pub(crate) const MANAGED: Label = label("managed", "`true` if the node has a NodePool, else `false`");
pub(crate) const METHOD: Label = label("method", "`Create`, `Delete`, `List`");
pub(crate) const MIN_VALUES_RELAXED: Label = label("min_values_relaxed", "`true`, `false`");
pub(crate) const NODE: Label = label("node", "Nodes that exist");
pub(crate) const NODEPOOL: Label = label("nodepool", "NodePools");
pub(crate) const NODE_NAME: Label = label("node_name", "Nodes that exist");
pub(crate) const OBJECT: Label = label("name", "NodeClaims, NodePools and Nodes that exist");
pub(crate) const OBJECT_NAMESPACE: Label = label("namespace", "empty");
pub(crate) const NODE_INITIALIZED: Label = label("karpenter_sh_initialized", "`true`, or empty");
pub(crate) const OF_CLASS: Label = label("karpenter_proxmox_sinextra_dev_proxmoxnodeclass", "ProxmoxNodeClasses");
pub(crate) const OF_POOL: Label = label("karpenter_sh_nodepool", "NodePools; empty without one");
pub(crate) const OS: Label = label("os", "operating systems of nodes");
pub(crate) const OWNER: Label = label("owner", "owners of pods that exist");
pub(crate) const PHASE: Label = label("phase", "phases of pods");
pub(crate) const NODE_PHASE: Label = label("phase", "empty: Kubernetes no longer sets it");
pub(crate) const POD: Label = label("name", "pods that exist");
pub(crate) const POD_NAMESPACE: Label = label("namespace", "namespaces");
pub(crate) const PRIORITY: Label = label("priority", "`0`: the queue has one");
pub(crate) const PROVIDER: Label = label("provider", "`proxmox`");
pub(crate) const QUEUE: Label = label("name", "`nodeclaim.lifecycle`: the other controllers have no queue");
pub(crate) const READY: Label = label("ready", "`true`, `false`");
pub(crate) const REASON: Label = label("reason", "`provisioned`, `drifted`, `underutilized`");
pub(crate) const REGION: Label = label("region", "Proxmox clusters of the cloud config");
pub(crate) const RESOURCE_TYPE: Label = label("resource_type", "resources of nodes");
pub(crate) const REBOOT_RESULT: Label =
    label("result", "`succeeded`, `provider_error`, `recovery_timeout`, `invalid_request`");
pub(crate) const UNHEALTHY_CONDITION: Label = label("condition", "`ready`");
pub(crate) const UNHEALTHY_IMAGE_ID: Label = label("image_id", "VM templates");
pub(crate) const COST_RESULT: Label =
    label("result", "`updated`, `skipped_unchanged`, `skipped_notfound`, `skipped_conflict`, `error`");
pub(crate) const RESULT: Label = label("result", "`success`, `requeue_after`, `error`");
pub(crate) const SCHEDULED: Label = label("scheduled", "`true`, `false`");
pub(crate) const SCHEDULING_ID: Label = label("scheduling_id", "the running plan, or the last one");
pub(crate) const TERMINATION_MODE: Label = label("termination_mode", "`graceful`, `eventual`, `forceful`");
pub(crate) const TO_STATUS: Label = label("to_status", "`True`, `False`, `Unknown`");
pub(crate) const VERSION: Label = label("version", "one");
pub(crate) const WINDOWS_BUILD: Label = label("windows_build", "Windows builds of nodes");
pub(crate) const ZONE: Label = label("zone", "hosts");
pub(crate) const EFFECTIVE_ZONE: Label = label("zone", "hosts, `flexible`, `none`");

pub(crate) const KUBE_CODE: Label = label("code", "HTTP status codes; `<error>` without an answer");
pub(crate) const KUBE_GROUP: Label = label("group", "API groups that Tenon uses");
pub(crate) const KUBE_KIND: Label = label("kind", "resources that Tenon uses, such as `pods`");
pub(crate) const KUBE_METHOD: Label = label("method", "`GET`, `POST`, `PUT`, `PATCH`, `DELETE`");
pub(crate) const KUBE_SUBRESOURCE: Label = label("subresource", "subresources that Tenon uses, such as `status`");
pub(crate) const KUBE_VERB: Label = label("verb", "`GET`, `POST`, `PUT`, `PATCH`, `DELETE`");
pub(crate) const KUBE_VERSION: Label = label("version", "versions of API groups that Tenon uses");

// Tenon's own.
pub(crate) const CSR_DECISION: Label = label("decision", "`Approved`, `Denied`");
pub(crate) const CSR_SIGNER: Label = label("signer", "`client`, `serving`");
pub(crate) const DRIFT_REASON: Label = label("reason", "the reasons of condition Drifted");
pub(crate) const HOST: Label = label("host", "Proxmox hosts");
pub(crate) const HOST_RESOURCE: Label = label("resource_type", "`cpu`, `memory`");
pub(crate) const HTTP_METHOD: Label = label("method", "`GET`, `POST`, `PUT`, `DELETE`");
pub(crate) const LISTED_ROW: Label = label("row", "`guest`, `host`, `storage`, `load`");
pub(crate) const PASS: Label = label("pass", "`full`, `skipped`");
pub(crate) const ORPHAN: Label = label("kind", "`vm`, `bootstrap_token`, `nodeclaim`, `node`");
pub(crate) const PATH: Label = label("path", "paths of the Proxmox API, with `{node}`, `{vmid}` … in place of names");
pub(crate) const PLAN_DECISION: Label = label("decision", "`existing_node`, `new_node`, `unschedulable`");
pub(crate) const PLAN_PHASE: Label = label("phase", "`gather`, `snapshot`, `plan`, `check`, `create`");
pub(crate) const PLAN_REASON: Label =
    label("reason", "the kinds of reasons why a pod is not scheduled; empty for the others");
pub(crate) const KEPT_REASON: Label = label("reason", "the kinds of reasons why a node is not disrupted");
pub(crate) const PVE_ERROR: Label = label("error", "the kinds of errors of the Proxmox API");
pub(crate) const TASK_KIND: Label = label("kind", "the kinds of Proxmox tasks that Tenon starts");
pub(crate) const TASK_RESULT: Label = label("result", "`done`, `failed`");
