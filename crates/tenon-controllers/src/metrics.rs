//! What is counted. Which metrics there are stands in `catalogue`; what can be read off the stores is read when somebody
//! asks (`shown`), so that nothing is left of an object that is gone.

pub(crate) mod catalogue;
mod cluster_state;
mod conditions;
mod exposition;
mod families;
mod gone_pools;
mod kubernetes;
#[cfg(test)]
mod metrics_tests;
mod pod_times;
mod provider;
mod proxmox;
mod scheduling;
mod sets;
mod shown;
#[cfg(test)]
mod shown_tests;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use tokio::time::Instant;

use crate::context::Context;
pub use catalogue::{Kind as MetricKind, Label as MetricLabel, Metric, Origin as MetricOrigin, Unit as MetricUnit};
use catalogue::{karpenter, tenon};
use cluster_state::ClusterState;
pub(crate) use conditions::ConditionBook;
use exposition::Exposition;
use families::{Series, labels};
pub use kubernetes::KubeMeter;
pub(crate) use pod_times::PodTimes;
pub(crate) use provider::{Attempt, ProviderError};
pub(crate) use proxmox::Meter;
pub(crate) use scheduling::{PlanCounts, Scheduling, WaitingPod};
pub(crate) use sets::{
    Build, ByReason, Code, Consolidation, CostWritten, Created, CsrDecision, Disrupted, DisruptionDecision,
    DrainedNode, DrainedPod, DriftedIn, InPool, InRegion, Kept, Loop, OfLease, OfNode, OfQueue, Pass, PlanDecision,
    PlanPhase, PoolDecision, PoolReason, Rebooted, Removed, Scored, Terminated, TerminatedFirst, UnhealthyDisrupted,
    WhyDisrupted,
};

/// The loops whose passes can fail.
const CONTROLLERS: [&str; 15] = [
    "bootstraptoken",
    "csr.approver",
    "disruption",
    "node.health",
    "nodeclaim.disruption",
    "nodeclaim.garbagecollection",
    "nodeclaim.inplaceupdate",
    "nodeclaim.lifecycle",
    "nodepool.counter",
    "nodetemplateclass",
    "pod.deletioncost",
    "pod.deletioncost.queue",
    "provisioner",
    "static.provisioning",
    "status",
];

labels! {
    /// How passes of a loop end.
    Reconciled { controller: &'static str, result: &'static str }
}

macro_rules! families {
    ($($field:ident: $labels:ty = $metric:expr;)+) => {
        /// What is counted where it happens.
        #[derive(Debug)]
        pub struct Counted { $(pub(crate) $field: Series<$labels>),+ }

        impl Default for Counted {
            fn default() -> Counted {
                Counted { $($field: Series::new($metric)),+ }
            }
        }

        impl Counted {
            /// Every value of a label.
            fn values_of(&self, label: &str) -> BTreeSet<String> {
                let mut values = BTreeSet::new();
                $(self.$field.family.values_of(label, &mut values);)+
                values
            }

            /// Forgets every sample whose label has such a value.
            fn forget(&self, label: &str, is_gone: &dyn Fn(&str) -> bool) {
                $(self.$field.family.forget(label, is_gone);)+
            }

            fn show(&self, page: &mut Exposition<'_>) {
                $(self.$field.family.show(page);)+
            }
        }
    };
}

families! {
    build: Build = &karpenter::BUILD_INFO;
    claims_created: Created = &karpenter::NODECLAIMS_CREATED;
    claims_terminated: Terminated = &karpenter::NODECLAIMS_TERMINATED;
    claims_disrupted: Disrupted = &karpenter::NODECLAIMS_DISRUPTED;
    reboots: Rebooted = &karpenter::NODES_REBOOTS;
    reboot_duration: Rebooted = &karpenter::NODES_REBOOT_DURATION;
    reboot_recovery: () = &karpenter::NODES_REBOOT_RECOVERY;
    unhealthy_disrupted: UnhealthyDisrupted = &karpenter::NODECLAIMS_UNHEALTHY_DISRUPTED;
    claims_termination: InPool = &karpenter::NODECLAIMS_TERMINATION;
    instances_termination: InPool = &karpenter::NODECLAIMS_INSTANCE_TERMINATION;
    pods_disrupted: Disrupted = &karpenter::PODS_DISRUPTION_INITIATED;
    nodes_created: OfNode = &karpenter::NODES_CREATED;
    nodes_terminated: OfNode = &karpenter::NODES_TERMINATED;
    nodes_drained: DrainedNode = &karpenter::NODES_DRAINED;
    nodes_termination: InPool = &karpenter::NODES_TERMINATION;
    nodes_lifetime: InPool = &karpenter::NODES_LIFETIME;
    evictions: Code = &karpenter::EVICTIONS;
    pods_drained: DrainedPod = &karpenter::PODS_DRAINED;
    cost_writes: CostWritten = &karpenter::DELETION_COST_WRITES;
    cost_nodes_pending: InPool = &karpenter::DELETION_COST_PENDING;
    disruption_decisions: DisruptionDecision = &karpenter::DISRUPTION_DECISIONS;
    pool_decisions: PoolDecision = &karpenter::DISRUPTION_DECISIONS_BY_NODEPOOL;
    terminate_first: TerminatedFirst = &karpenter::TERMINATE_FIRST;
    consolidation_score: Scored = &karpenter::CONSOLIDATION_SCORE;
    consolidation_moves: Scored = &karpenter::CONSOLIDATION_MOVES;
    disruption_evaluation: WhyDisrupted = &karpenter::DISRUPTION_EVALUATION;
    disruption_eligible: ByReason = &karpenter::DISRUPTION_ELIGIBLE;
    consolidation_timeouts: Consolidation = &karpenter::CONSOLIDATION_TIMEOUTS;
    failed_validations: Consolidation = &karpenter::DISRUPTION_FAILED_VALIDATIONS;
    queue_failures: DisruptionDecision = &karpenter::DISRUPTION_QUEUE_FAILURES;
    allowed_disruptions: PoolReason = &karpenter::NODEPOOLS_ALLOWED;
    consuming_budgets: PoolReason = &karpenter::NODEPOOLS_CONSUMING;
    provider_durations: provider::Method = &karpenter::CLOUDPROVIDER_DURATION;
    provider_errors: provider::MethodError = &karpenter::CLOUDPROVIDER_ERRORS;
    reconciles: Reconciled = &karpenter::RECONCILES;
    reconcile_time: Loop = &karpenter::RECONCILE_TIME;
    active_workers: Loop = &karpenter::ACTIVE_WORKERS;
    queued: OfQueue = &karpenter::QUEUED;
    leads: OfLease = &karpenter::LEADER;
    errors: Loop = &tenon::PASS_ERRORS;
    passes: Pass = &tenon::PASSES;
    csr_decisions: CsrDecision = &tenon::CSR_DECISIONS;
    region_up: InRegion = &tenon::REGION_UP;
    listed_at: InRegion = &tenon::REGION_LISTED;
    claims_drifted: DriftedIn = &tenon::DRIFTED;
    orphans_removed: Removed = &tenon::ORPHANS_REMOVED;
    stopped_vms_started: () = &tenon::STOPPED_VMS_STARTED;
    plan_time: PlanPhase = &tenon::PLAN_TIME;
    plan_decisions: PlanDecision = &tenon::PLAN_DECISIONS;
    nodes_kept: Kept = &tenon::NODES_KEPT;
}

/// Everything that is counted.
pub struct Metrics {
    counted: Counted,
    pub(crate) scheduling: Scheduling,
    pub(crate) state: ClusterState,
    pub(crate) pods: PodTimes,
    pub(crate) conditions: ConditionBook,
    pub(crate) proxmox: Arc<Meter>,
    /// Requests to Kubernetes, if somebody counts them.
    kubernetes: OnceLock<KubeMeter>,
    gone_pools: Mutex<gone_pools::GonePools>,
    /// What gauges of pods, nodes and hosts are read off, once there is something to read.
    source: Mutex<Weak<Context>>,
    leaves_out_cluster_state: AtomicBool,
    asked: Mutex<()>,
}

impl Deref for Metrics {
    type Target = Counted;

    fn deref(&self) -> &Counted {
        &self.counted
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("counted", &self.counted).finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        let counted = Counted::default();
        counted.build.get_or_create(&Build::this()).set(1_i64);
        // What is compared with how it was before has to be there before.
        for controller in CONTROLLERS {
            counted.errors.get_or_create(&Loop { controller });
        }
        for kind in ["vm", "bootstrap_token", "nodeclaim", "node"] {
            counted.orphans_removed.get_or_create(&Removed { kind });
        }
        for consolidation_type in ["multi", "single"] {
            counted.consolidation_timeouts.get_or_create(&Consolidation { consolidation_type });
        }
        Metrics {
            counted,
            scheduling: Scheduling::default(),
            state: ClusterState::default(),
            pods: PodTimes::default(),
            conditions: ConditionBook::default(),
            proxmox: Arc::default(),
            kubernetes: OnceLock::new(),
            gone_pools: Mutex::default(),
            source: Mutex::default(),
            leaves_out_cluster_state: AtomicBool::new(false),
            asked: Mutex::default(),
        }
    }
}

impl Metrics {
    /// Metrics with what is counted of these regions.
    pub(crate) fn with(meter: Arc<Meter>) -> Metrics {
        Metrics { proxmox: meter, ..Metrics::default() }
    }

    /// Leaves out what is of single pods, nodes and NodePools.
    pub fn leave_out_cluster_state(&self) {
        self.leaves_out_cluster_state.store(true, Ordering::Relaxed);
    }

    /// Shows what this counts, too.
    pub fn show_requests(&self, meter: &KubeMeter) {
        // Who counts twice is counted once.
        let _ = self.kubernetes.set(meter.clone());
    }

    /// Every metric there can be, as the reference page shows them.
    pub fn catalogue() -> Vec<&'static Metric> {
        Metric::all()
    }

    /// What gauges are read off from now on.
    pub(crate) fn show(&self, context: &Arc<Context>) {
        *self.source.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(context);
    }

    /// A pass of a loop ended.
    pub(crate) fn reconciled(&self, controller: &'static str, began: Instant, result: &'static str) {
        self.reconciles.get_or_create(&Reconciled { controller, result }).inc();
        self.reconcile_time.get_or_create(&Loop { controller }).observe(began.elapsed().as_secs_f64());
    }

    /// Everything in the text form that Prometheus reads.
    pub fn text(&self) -> String {
        // One at a time: what is worked out for one must not be half gone for another.
        let _turn = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut page = Exposition::without(|metric| {
            metric.is_cluster_state && self.leaves_out_cluster_state.load(Ordering::Relaxed)
        });
        self.counted.show(&mut page);
        self.counted.errors.family.show_as(&karpenter::RECONCILE_ERRORS, &mut page);
        self.scheduling.show(&mut page);
        self.state.show(&mut page);
        self.proxmox.show(&mut page);
        self.conditions.show(&mut page);
        self.kubernetes.get().into_iter().for_each(|meter| meter.show(&mut page));
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        let now = source.as_ref().map(|context| context.clock.now());
        self.pods.show(&mut page, now);
        if let Some(context) = source {
            shown::show(&context, &mut page);
        }
        page.text()
    }
}

/// The name of a variant, without what is in it: there is an end of names, and none of values.
pub(crate) fn variant(value: &dyn fmt::Debug) -> String {
    /// Ends the writing at the first letter that is not of the name.
    struct Name(String);

    impl fmt::Write for Name {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let name = text.split(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or_default();
            self.0.push_str(name);
            if name.len() < text.len() { Err(fmt::Error) } else { Ok(()) }
        }
    }

    let mut name = Name(String::new());
    // It ends with an error when the name is whole.
    let _ = fmt::write(&mut name, format_args!("{value:?}"));
    name.0
}
