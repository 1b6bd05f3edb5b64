//! Table: metrics whose names somebody else defines: Karpenter, its libraries, its provider for AWS.

use super::Origin::{KarpenterAws, KarpenterLibrary};
use super::labels::{
    ARCH, CAPACITY_TYPE, CODE, COMMIT, CONDITION_KIND, CONDITION_REASON, CONDITION_STATUS, CONDITION_TYPE,
    CONSOLIDATION_POLICY, CONSOLIDATION_TYPE, CONTROLLER, COST_RESULT, DECISION, DISRUPTED_REASON, DISRUPTION_REASON,
    DRAINED_REASON, DYNAMIC_RESOURCES, EFFECTIVE_ZONE, ERROR, GOARCH, GOVERSION, GROUP, IMAGE_ID, INSTANCE_CPU_TYPE,
    INSTANCE_FAMILY, INSTANCE_TYPE, KUBE_CODE, KUBE_GROUP, KUBE_KIND, KUBE_METHOD, KUBE_SUBRESOURCE, KUBE_VERB,
    KUBE_VERSION, LEASE, MANAGED, METHOD, MIN_VALUES_RELAXED, NODE, NODE_NAME, NODE_PHASE, NODEPOOL, OBJECT,
    OBJECT_NAMESPACE, OS, OWNER, PHASE, POD, POD_NAMESPACE, POLICY, PRIORITY, PROVIDER, QUEUE, READY, REASON,
    REBOOT_RESULT, REGION, RESOURCE_TYPE, RESULT, SCHEDULED, SCHEDULING_ID, SCORE_DECISION, TERMINATE_FIRST_REASON,
    TERMINATION_MODE, TO_STATUS, UNHEALTHY_CONDITION, UNHEALTHY_IMAGE_ID, VERSION, WINDOWS_BUILD, ZONE,
};
use super::{
    DOUBLING_8_FROM_10, DOUBLING_11, DOUBLING_12, DURATIONS, GO_DEFAULT, KUBE_BOUNDS, Kind, LIFETIMES, Label, Metric,
    SCORES, Unit, metric,
};

/// What a node is told apart by: the well-known labels, each by the last part of its name.
const NODE_LABELS: &[Label] = &[
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_CPU_TYPE,
    INSTANCE_FAMILY,
    IMAGE_ID,
    INSTANCE_TYPE,
    NODEPOOL,
    OS,
    REGION,
    WINDOWS_BUILD,
    ZONE,
    NODE_NAME,
    NODE_PHASE,
    MANAGED,
];

/// The same and a resource.
const NODE_RESOURCE_LABELS: &[Label] = &[
    ARCH,
    CAPACITY_TYPE,
    INSTANCE_CPU_TYPE,
    INSTANCE_FAMILY,
    IMAGE_ID,
    INSTANCE_TYPE,
    NODEPOOL,
    OS,
    REGION,
    WINDOWS_BUILD,
    ZONE,
    NODE_NAME,
    NODE_PHASE,
    MANAGED,
    RESOURCE_TYPE,
];

const DISRUPTED: &[Label] = &[DISRUPTED_REASON, NODEPOOL, CAPACITY_TYPE, CONSOLIDATION_POLICY, TERMINATION_MODE];
const CONDITION: &[Label] =
    &[OBJECT_NAMESPACE, OBJECT, GROUP, CONDITION_KIND, CONDITION_TYPE, CONDITION_STATUS, CONDITION_REASON];

macro_rules! metrics {
    ($($id:ident = $row:expr;)+) => {
        $(pub(crate) static $id: Metric = $row;)+

        /// Every metric of this table.
        pub(crate) static ALL: &[&Metric] = &[$(&$id),+];
    };
}

metrics! {
    // Planning.
    QUEUE_DEPTH = metric("karpenter_scheduler_queue_depth", Kind::Gauge, &[CONTROLLER, SCHEDULING_ID],
        "Pods of the running plan; after the plan, the pods it found no node for, until the next plan begins");
    UNFINISHED_WORK = metric("karpenter_scheduler_unfinished_work_seconds", Kind::Gauge, &[CONTROLLER, SCHEDULING_ID],
        "Time since the running plan began; absent while none runs").unit(Unit::Seconds);
    SCHEDULING_DURATION = metric("karpenter_scheduler_scheduling_duration_seconds", Kind::Histogram(DURATIONS),
        &[CONTROLLER], "Duration of a plan").unit(Unit::Seconds);
    IGNORED_PODS = metric("karpenter_scheduler_ignored_pods_count", Kind::Gauge, &[],
        "Pods that require something no node can ever have");
    UNSCHEDULABLE_PODS = metric("karpenter_scheduler_unschedulable_pods_count", Kind::Gauge, &[CONTROLLER],
        "Pods for which no node can be created now");
    PENDING_BY_ZONE = metric("karpenter_scheduler_pending_pods_by_effective_zone_count", Kind::Gauge,
        &[CONTROLLER, EFFECTIVE_ZONE],
        "Pending pods by the only zone they can run in; flexible for several zones, none for no zone");
    CLUSTER_SYNCED = metric("karpenter_cluster_state_synced", Kind::Gauge, &[], "1 when all caches are synced")
        .unit(Unit::Truth);
    CLUSTER_UNSYNCED = metric("karpenter_cluster_state_unsynced_time_seconds", Kind::Gauge, &[],
        "Time for which the caches have not been synced, otherwise 0").unit(Unit::Seconds);
    CLUSTER_NODES = metric("karpenter_cluster_state_node_count", Kind::Gauge, &[],
        "Nodes, and NodeClaims without a Node");

    // Pods.
    PODS_STATE = metric("karpenter_pods_state", Kind::Gauge,
        &[POD, POD_NAMESPACE, OWNER, NODE, SCHEDULED, NODEPOOL, ZONE, ARCH, CAPACITY_TYPE, INSTANCE_TYPE, PHASE, READY, MANAGED],
        "1 for every pod, with what is known of it in the labels").cluster_state();
    PODS_STARTUP = metric("karpenter_pods_startup_duration_seconds", Kind::Summary, &[],
        "Time from when a pod was created until it was Ready").unit(Unit::Seconds).cluster_state();
    PODS_BOUND = metric("karpenter_pods_bound_duration_seconds", Kind::Histogram(DURATIONS), &[DYNAMIC_RESOURCES],
        "Time from when a pod was created until it was bound to a node").unit(Unit::Seconds).cluster_state();
    PODS_PROVISIONING_BOUND = metric("karpenter_pods_provisioning_bound_duration_seconds", Kind::Histogram(DURATIONS),
        &[DYNAMIC_RESOURCES], "Time from when a plan found a node for a pod until the pod was bound").unit(Unit::Seconds).cluster_state();
    PODS_PROVISIONING_STARTUP = metric("karpenter_pods_provisioning_startup_duration_seconds",
        Kind::Histogram(DURATIONS), &[], "Time from when a plan found a node for a pod until the pod was Ready")
        .unit(Unit::Seconds).cluster_state();
    PODS_DECISION = metric("karpenter_pods_scheduling_decision_duration_seconds", Kind::Histogram(DURATIONS), &[],
        "Time from when a pod was first seen pending until a plan decided about it").unit(Unit::Seconds);
    PODS_UNSTARTED = metric("karpenter_pods_unstarted_time_seconds", Kind::Gauge, &[POD, POD_NAMESPACE],
        "Time since a pod was created that is not Ready and was pending when it was first seen")
        .unit(Unit::Seconds).cluster_state();
    PODS_UNBOUND = metric("karpenter_pods_unbound_time_seconds", Kind::Gauge, &[POD, POD_NAMESPACE, DYNAMIC_RESOURCES],
        "Time since a pod was created that is bound to no node").unit(Unit::Seconds).cluster_state();
    PODS_PROVISIONING_UNBOUND = metric("karpenter_pods_provisioning_unbound_time_seconds", Kind::Gauge,
        &[POD, POD_NAMESPACE, DYNAMIC_RESOURCES],
        "Time since a plan found a node for a pod that is bound to no node").unit(Unit::Seconds).cluster_state();
    PODS_PROVISIONING_UNSTARTED = metric("karpenter_pods_provisioning_unstarted_time_seconds", Kind::Gauge,
        &[POD, POD_NAMESPACE], "Time since a plan found a node for a pod that is not Ready")
        .unit(Unit::Seconds).cluster_state();
    PODS_UNDECIDED = metric("karpenter_pods_provisioning_scheduling_undecided_time_seconds", Kind::Gauge,
        &[POD, POD_NAMESPACE], "Time for which a pod has been pending and no plan decided about it")
        .unit(Unit::Seconds).cluster_state();
    PODS_DISRUPTION_INITIATED = metric("karpenter_pods_disruption_initiated_total", Kind::Counter, DISRUPTED,
        "Pods on the nodes of NodeClaims that Tenon deleted, without those of DaemonSets");
    EVICTIONS = metric("karpenter_pods_eviction_requests_total", Kind::Counter, &[CODE],
        "Responses to evictions, by HTTP status");
    PODS_DRAINED = metric("karpenter_pods_drained_total", Kind::Counter, &[DRAINED_REASON],
        "Pods evicted from nodes that are drained");

    // Nodes and NodeClaims.
    NODECLAIMS_CREATED = metric("karpenter_nodeclaims_created_total", Kind::Counter,
        &[REASON, NODEPOOL, MIN_VALUES_RELAXED], "NodeClaims created");
    NODECLAIMS_TERMINATED = metric("karpenter_nodeclaims_terminated_total", Kind::Counter,
        &[NODEPOOL, CAPACITY_TYPE, ZONE], "NodeClaims that no longer exist, with their VM");
    NODECLAIMS_DISRUPTED = metric("karpenter_nodeclaims_disrupted_total", Kind::Counter, DISRUPTED,
        "NodeClaims deleted by Tenon; as in Karpenter, without those a static NodePool has too many of");
    NODECLAIMS_UNHEALTHY_DISRUPTED = metric("karpenter_nodeclaims_unhealthy_disrupted_total", Kind::Counter,
        &[UNHEALTHY_CONDITION, NODEPOOL, CAPACITY_TYPE, UNHEALTHY_IMAGE_ID, TERMINATION_MODE],
        "NodeClaims deleted because a condition of their Node meant that it was unhealthy");
    NODECLAIMS_TERMINATION = metric("karpenter_nodeclaims_termination_duration_seconds", Kind::Histogram(DOUBLING_12),
        &[NODEPOOL], "Time from the deletion of a NodeClaim until it no longer exists").unit(Unit::Seconds);
    NODECLAIMS_INSTANCE_TERMINATION = metric("karpenter_nodeclaims_instance_termination_duration_seconds",
        Kind::Histogram(DOUBLING_11), &[NODEPOOL], "Time from when Tenon began to destroy a VM until the VM no longer exists")
        .unit(Unit::Seconds);
    NODES_CREATED = metric("karpenter_nodes_created_total", Kind::Counter, &[NODEPOOL, ZONE], "Nodes registered");
    NODES_TERMINATED = metric("karpenter_nodes_terminated_total", Kind::Counter, &[NODEPOOL, ZONE], "Nodes deleted");
    NODES_DRAINED = metric("karpenter_nodes_drained_total", Kind::Counter, &[NODEPOOL],
        "Nodes drained, with their volumes detached");
    NODES_TERMINATION = metric("karpenter_nodes_termination_duration_seconds", Kind::Summary, &[NODEPOOL],
        "Time from the deletion of a Node until it no longer exists").unit(Unit::Seconds);
    NODES_LIFETIME = metric("karpenter_nodes_lifetime_duration_seconds", Kind::Histogram(LIFETIMES), &[NODEPOOL],
        "Time from the creation of a Node until it no longer exists").unit(Unit::Seconds);
    NODES_REBOOTS = metric("karpenter_nodes_reboots_total", Kind::Counter, &[REBOOT_RESULT],
        "Reboots of nodes that were asked for by the condition Rebooting of a NodeClaim");
    NODES_REBOOT_DURATION = metric("karpenter_nodes_reboot_duration_seconds", Kind::Histogram(DOUBLING_8_FROM_10),
        &[REBOOT_RESULT], "Time from when a reboot was asked for until it ended").unit(Unit::Seconds);
    NODES_REBOOT_RECOVERY = metric("karpenter_nodes_reboot_recovery_duration_seconds",
        Kind::Histogram(DOUBLING_8_FROM_10), &[], "Time from when a VM was rebooted until its Node was Ready")
        .unit(Unit::Seconds);
    NODES_ALLOCATABLE = metric("karpenter_nodes_allocatable", Kind::Gauge, NODE_RESOURCE_LABELS,
        "What pods may use of a node").unit(Unit::Resource).cluster_state();
    NODES_POD_REQUESTS = metric("karpenter_nodes_total_pod_requests", Kind::Gauge, NODE_RESOURCE_LABELS,
        "What the pods on a node request, with those of DaemonSets").unit(Unit::Resource).cluster_state();
    NODES_POD_LIMITS = metric("karpenter_nodes_total_pod_limits", Kind::Gauge, NODE_RESOURCE_LABELS,
        "What the pods on a node may use at most, with those of DaemonSets").unit(Unit::Resource).cluster_state();
    NODES_DAEMON_REQUESTS = metric("karpenter_nodes_total_daemon_requests", Kind::Gauge, NODE_RESOURCE_LABELS,
        "What the pods of DaemonSets on a node request").unit(Unit::Resource).cluster_state();
    NODES_DAEMON_LIMITS = metric("karpenter_nodes_total_daemon_limits", Kind::Gauge, NODE_RESOURCE_LABELS,
        "What the pods of DaemonSets on a node may use at most").unit(Unit::Resource).cluster_state();
    NODES_OVERHEAD = metric("karpenter_nodes_system_overhead", Kind::Gauge, NODE_RESOURCE_LABELS,
        "Capacity of a node that pods may not use").unit(Unit::Resource).cluster_state();
    NODES_CURRENT_LIFETIME = metric("karpenter_nodes_current_lifetime_seconds", Kind::Gauge, NODE_LABELS,
        "Time since a Node was created").unit(Unit::Seconds).cluster_state();
    CLUSTER_UTILIZATION = metric("karpenter_cluster_utilization_percent", Kind::Gauge, &[RESOURCE_TYPE],
        "Share of what all nodes have for pods that pods request").unit(Unit::Percent).cluster_state();

    // NodePools.
    NODEPOOLS_LIMIT = metric("karpenter_nodepools_limit", Kind::Gauge, &[RESOURCE_TYPE, NODEPOOL],
        "Limits of a NodePool").unit(Unit::Resource).cluster_state();
    NODEPOOLS_USAGE = metric("karpenter_nodepools_usage", Kind::Gauge, &[RESOURCE_TYPE, NODEPOOL],
        "What the nodes of a NodePool have together").unit(Unit::Resource).cluster_state();
    NODEPOOLS_COST = metric("karpenter_nodepools_cost_total", Kind::Gauge, &[NODEPOOL],
        "Price of the nodes of a NodePool together").unit(Unit::Price).cluster_state();
    NODEPOOLS_ALLOWED = metric("karpenter_nodepools_allowed_disruptions", Kind::Gauge, &[NODEPOOL, DISRUPTION_REASON],
        "Nodes of a NodePool that its budgets allow to be disrupted now");
    NODEPOOLS_CONSUMING = metric("karpenter_nodepools_nodes_consuming_budgets", Kind::Gauge,
        &[NODEPOOL, DISRUPTION_REASON], "Nodes of a NodePool that are disrupted or not Ready, and count against its budgets");

    // Disruption.
    DISRUPTION_DECISIONS = metric("karpenter_voluntary_disruption_decisions_total", Kind::Counter,
        &[DECISION, DISRUPTION_REASON, CONSOLIDATION_TYPE], "Decisions to disrupt nodes");
    DISRUPTION_DECISIONS_BY_NODEPOOL = metric("karpenter_voluntary_disruption_decisions_by_nodepool_total",
        Kind::Counter, &[NODEPOOL, DECISION, DISRUPTION_REASON, CONSOLIDATION_TYPE], "Decisions to disrupt nodes, by NodePool");
    DISRUPTION_EVALUATION = metric("karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
        Kind::Histogram(DURATIONS), &[DISRUPTION_REASON, CONSOLIDATION_TYPE],
        "Duration of a method in a look for nodes to disrupt").unit(Unit::Seconds);
    TERMINATE_FIRST = metric("karpenter_voluntary_disruption_terminate_first_decisions_total", Kind::Counter,
        &[NODEPOOL, DISRUPTION_REASON, TERMINATE_FIRST_REASON],
        "Decisions to disrupt nodes before their replacements are created, because those could not be created first");
    CONSOLIDATION_SCORE = metric("karpenter_consolidation_score", Kind::Histogram(SCORES),
        &[SCORE_DECISION, NODEPOOL, POLICY],
        "Share of a NodePool's cost that a move saves, for its share of the NodePool's disruption");
    CONSOLIDATION_MOVES = metric("karpenter_consolidation_moves_total", Kind::Counter,
        &[SCORE_DECISION, NODEPOOL, POLICY], "Moves of consolidation that were found, approved or rejected by policy Balanced");
    DISRUPTION_ELIGIBLE = metric("karpenter_voluntary_disruption_eligible_nodes", Kind::Gauge, &[DISRUPTION_REASON],
        "Nodes that may be disrupted");
    CONSOLIDATION_TIMEOUTS = metric("karpenter_voluntary_disruption_consolidation_timeouts_total", Kind::Counter,
        &[CONSOLIDATION_TYPE], "Looks for nodes to consolidate that took too long; always 0, since Tenon has no such limit");
    DISRUPTION_FAILED_VALIDATIONS = metric("karpenter_voluntary_disruption_failed_validations_total", Kind::Counter,
        &[CONSOLIDATION_TYPE], "Nodes that were kept because the second check found them in use");
    DISRUPTION_QUEUE_FAILURES = metric("karpenter_voluntary_disruption_queue_failures_total", Kind::Counter,
        &[DECISION, DISRUPTION_REASON, CONSOLIDATION_TYPE], "Decisions that could not be carried out and are taken again");
    DELETION_COST_WRITES = metric("karpenter_pod_deletion_cost_pod_annotation_writes_total", Kind::Counter,
        &[COST_RESULT], "Writes of the deletion cost of pods, with the feature gate PodDeletionCostManagement");
    DELETION_COST_PENDING = metric("karpenter_pod_deletion_cost_nodes_with_pending_annotation_writes", Kind::Gauge,
        &[NODEPOOL], "Nodes with pods whose deletion cost was not right when it was last looked at");

    // The provider.
    CLOUDPROVIDER_DURATION = metric("karpenter_cloudprovider_duration_seconds", Kind::Histogram(GO_DEFAULT),
        &[CONTROLLER, METHOD, PROVIDER],
        "Time from the first request for a VM until it runs (Create) or no longer exists (Delete); of a listing (List)")
        .unit(Unit::Seconds);
    CLOUDPROVIDER_ERRORS = metric("karpenter_cloudprovider_errors_total", Kind::Counter,
        &[CONTROLLER, METHOD, PROVIDER, ERROR, NODEPOOL], "Attempts to create, destroy or list VMs that failed");
    INSTANCE_TYPE_CPU = metric("karpenter_cloudprovider_instance_type_cpu_cores", Kind::Gauge, &[INSTANCE_TYPE],
        "Cores of an instance type").unit(Unit::Cores).by(KarpenterAws);
    INSTANCE_TYPE_MEMORY = metric("karpenter_cloudprovider_instance_type_memory_bytes", Kind::Gauge, &[INSTANCE_TYPE],
        "Memory of an instance type").unit(Unit::Bytes).by(KarpenterAws);
    OFFERING_PRICE = metric("karpenter_cloudprovider_instance_type_offering_price_estimate", Kind::Gauge,
        &[INSTANCE_TYPE, CAPACITY_TYPE, ZONE], "Price of an instance type on a host").unit(Unit::Price).by(KarpenterAws);
    OFFERING_AVAILABLE = metric("karpenter_cloudprovider_instance_type_offering_available", Kind::Gauge,
        &[INSTANCE_TYPE, CAPACITY_TYPE, ZONE], "1 if a host had room for the instance type when pods were last planned")
        .unit(Unit::Truth).by(KarpenterAws);

    // Conditions.
    CONDITION_COUNT = metric("operator_status_condition_count", Kind::Gauge, CONDITION,
        "1 for every condition of an object").by(KarpenterLibrary).cluster_state();
    CONDITION_SECONDS = metric("operator_status_condition_current_status_seconds", Kind::Gauge, CONDITION,
        "Time since a condition has its status").unit(Unit::Seconds).by(KarpenterLibrary).cluster_state();
    CONDITION_TRANSITION = metric("operator_status_condition_transition_seconds", Kind::Histogram(GO_DEFAULT),
        &[GROUP, CONDITION_KIND, CONDITION_TYPE, CONDITION_STATUS, TO_STATUS], "Time for which a condition had the status it left")
        .unit(Unit::Seconds).by(KarpenterLibrary).cluster_state();
    CONDITION_TRANSITIONS = metric("operator_status_condition_transitions_total", Kind::Counter,
        &[GROUP, CONDITION_KIND, CONDITION_TYPE, CONDITION_STATUS, CONDITION_REASON], "Conditions that got another status")
        .by(KarpenterLibrary).cluster_state();
    TERMINATING_SECONDS = metric("operator_termination_current_time_seconds", Kind::Gauge,
        &[OBJECT_NAMESPACE, OBJECT, GROUP, CONDITION_KIND], "Time since an object that still exists was deleted")
        .unit(Unit::Seconds).by(KarpenterLibrary).cluster_state();
    TERMINATION_DURATION = metric("operator_termination_duration_seconds", Kind::Histogram(GO_DEFAULT),
        &[GROUP, CONDITION_KIND], "Time from the deletion of an object until it no longer exists")
        .unit(Unit::Seconds).by(KarpenterLibrary).cluster_state();

    // The controller itself.
    RECONCILES = metric("controller_runtime_reconcile_total", Kind::Counter, &[CONTROLLER, RESULT],
        "Passes of a controller").by(KarpenterLibrary);
    RECONCILE_ERRORS = metric("controller_runtime_reconcile_errors_total", Kind::Counter, &[CONTROLLER],
        "Passes of a controller that ended with an error or a panic").by(KarpenterLibrary);
    RECONCILE_TIME = metric("controller_runtime_reconcile_time_seconds", Kind::Histogram(DURATIONS), &[CONTROLLER],
        "Duration of a pass of a controller").unit(Unit::Seconds).by(KarpenterLibrary);
    ACTIVE_WORKERS = metric("controller_runtime_active_workers", Kind::Gauge, &[CONTROLLER],
        "NodeClaims that a controller works on now").by(KarpenterLibrary);
    QUEUED = metric("workqueue_depth", Kind::Gauge, &[QUEUE, CONTROLLER, PRIORITY],
        "NodeClaims that are due and not worked on yet").by(KarpenterLibrary);
    KUBE_REQUESTS = metric("client_go_request_total", Kind::Counter, &[KUBE_CODE, KUBE_METHOD],
        "Requests to the Kubernetes API, by the status of the answer").by(KarpenterLibrary);
    KUBE_DURATION = metric("client_go_request_duration_seconds", Kind::Histogram(KUBE_BOUNDS),
        &[KUBE_VERB, KUBE_GROUP, KUBE_VERSION, KUBE_KIND, KUBE_SUBRESOURCE],
        "Duration of requests to the Kubernetes API; of a watch, until it begins").unit(Unit::Seconds).by(KarpenterLibrary);
    LEADER = metric("leader_election_master_status", Kind::Gauge, &[LEASE],
        "1 if this process holds the Lease, otherwise 0").unit(Unit::Truth).by(KarpenterLibrary);
    BUILD_INFO = metric("karpenter_build_info", Kind::Gauge, &[VERSION, GOVERSION, GOARCH, COMMIT],
        "1, with the version of Tenon, of the compiler, the architecture and the commit");
}
