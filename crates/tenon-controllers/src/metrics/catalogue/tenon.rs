//! Table: metrics that only Tenon has.

use super::Origin::Tenon;
use super::labels::{
    CONTROLLER, CSR_DECISION, CSR_SIGNER, DRIFT_REASON, HOST, HOST_RESOURCE, HTTP_METHOD, KEPT_REASON, LISTED_ROW,
    NODEPOOL, ORPHAN, PASS, PATH, PLAN_DECISION, PLAN_PHASE, PLAN_REASON, PVE_ERROR, REGION, TASK_KIND, TASK_RESULT,
};
use super::{DURATIONS, Kind, Label, Metric, REQUESTS, TASKS, Unit};

const fn metric(name: &'static str, kind: Kind, labels: &'static [Label], help: &'static str) -> Metric {
    super::metric(name, kind, labels, help).by(Tenon)
}

macro_rules! metrics {
    ($($id:ident = $row:expr;)+) => {
        $(pub(crate) static $id: Metric = $row;)+

        /// Every metric of this table.
        pub(crate) static ALL: &[&Metric] = &[$(&$id),+];
    };
}

metrics! {
    // Proxmox.
    REGION_UP = metric("tenon_region_up", Kind::Gauge, &[REGION],
        "1 if the Proxmox cluster answered the last request, otherwise 0").unit(Unit::Truth);
    REGION_LISTED = metric("tenon_region_last_listing_timestamp_seconds", Kind::Gauge, &[REGION],
        "When the Proxmox cluster last listed its hosts, guests and storages, as Unix time").unit(Unit::UnixTime);
    PVE_REQUESTS = metric("tenon_pve_request_duration_seconds", Kind::Histogram(REQUESTS), &[REGION, HTTP_METHOD, PATH],
        "Duration of requests to the Proxmox API, retries and the wait for a place counted in").unit(Unit::Seconds);
    PVE_ERRORS = metric("tenon_pve_errors_total", Kind::Counter, &[REGION, HTTP_METHOD, PATH, PVE_ERROR],
        "Requests to the Proxmox API that failed");
    PVE_TASKS = metric("tenon_pve_task_duration_seconds", Kind::Histogram(TASKS), &[REGION, TASK_KIND, TASK_RESULT],
        "Time from the request that started a Proxmox task until Tenon saw it end").unit(Unit::Seconds);
    ROWS_CHANGED = metric("tenon_region_rows_changed_total", Kind::Counter, &[REGION, LISTED_ROW],
        "Guests, hosts and storages that a listing of the Proxmox cluster showed as new, gone or different; \
         `load`: rows of which only what is used of a host or storage differed, which makes no work");
    CLONES_RUNNING = metric("tenon_clones_running", Kind::Gauge, &[REGION, HOST],
        "Clones that run, by the host that copies");
    CLONES_WAITING = metric("tenon_clones_waiting", Kind::Gauge, &[REGION, HOST],
        "NodeClaims that wait until fewer clones run on this host or onto its storage");
    HOST_CAPACITY = metric("tenon_host_capacity", Kind::Gauge, &[REGION, HOST, HOST_RESOURCE], "What a host has")
        .unit(Unit::Resource);
    HOST_USED = metric("tenon_host_used", Kind::Gauge, &[REGION, HOST, HOST_RESOURCE],
        "What the guests that run on a host may use at most").unit(Unit::Resource);
    HOST_HELD = metric("tenon_host_held", Kind::Gauge, &[REGION, HOST, HOST_RESOURCE],
        "What is held on a host for NodeClaims whose VM does not run yet").unit(Unit::Resource);
    STOPPED_VMS_STARTED = metric("tenon_stopped_vms_started_total", Kind::Counter, &[],
        "VMs of silent Nodes that were stopped and are started again (--start-stopped-vms)");
    ORPHANS_REMOVED = metric("tenon_orphans_removed_total", Kind::Counter, &[ORPHAN],
        "VMs and tokens without a NodeClaim, NodeClaims without a VM and Nodes without a NodeClaim that were removed");

    // Decisions.
    PLAN_TIME = metric("tenon_plan_phase_duration_seconds", Kind::Histogram(DURATIONS), &[PLAN_PHASE],
        "Duration of each phase of a provisioning pass").unit(Unit::Seconds);
    PLAN_DECISIONS = metric("tenon_plan_decisions_total", Kind::Counter, &[PLAN_DECISION, PLAN_REASON],
        "What plans decided about pods; a pod that stays pending is counted in every plan");
    NODES_KEPT = metric("tenon_nodes_kept", Kind::Gauge, &[KEPT_REASON],
        "Nodes that the last look for nodes to disrupt kept, by why");
    DRIFTED = metric("tenon_nodeclaims_drifted", Kind::Gauge, &[NODEPOOL, DRIFT_REASON], "NodeClaims that have drifted");
    CSR_DECISIONS = metric("tenon_csr_decisions_total", Kind::Counter, &[CSR_SIGNER, CSR_DECISION],
        "Kubelet certificates that --csr-approver approved or denied");

    // The controller itself.
    PASSES = metric("tenon_passes_total", Kind::Counter, &[CONTROLLER, PASS],
        "How often a controller asked whether anything had changed since its last pass: `skipped` if not; `full` if so, or after \
         a while in any case, and a whole pass followed");
    PASS_ERRORS = metric("tenon_pass_errors_total", Kind::Counter, &[CONTROLLER],
        "Passes of a controller that ended with an error or a panic");
}
