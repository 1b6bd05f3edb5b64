//! What is counted. Names and labels of the reference's metrics are the reference's; ours begin with `tenon_`.

mod cluster_state;
#[cfg(test)]
mod metrics_tests;
mod scheduling;

use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeGaugeValue, EncodeLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{self, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use cluster_state::ClusterState;
pub(crate) use scheduling::{PlanCounts, Scheduling, WaitingPod};

/// Bounds of everything that is timed, in seconds, as dashboards of the reference expect them.
const DURATIONS: [f64; 45] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 120.0,
    150.0, 300.0, 450.0, 600.0,
];

/// A NodeClaim that was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Created {
    pub(crate) reason: String,
    pub(crate) nodepool: String,
    pub(crate) min_values_relaxed: String,
}

/// A NodeClaim that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Terminated {
    pub(crate) nodepool: String,
    pub(crate) capacity_type: String,
    pub(crate) zone: String,
}

/// A NodeClaim that was deleted by us, and why.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Disrupted {
    pub(crate) reason: String,
    pub(crate) nodepool: String,
    pub(crate) capacity_type: String,
    pub(crate) consolidation_policy: String,
    pub(crate) termination_mode: String,
}

/// A Node that came or went.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OfNode {
    pub(crate) nodepool: String,
    pub(crate) zone: String,
}

/// An answer to an eviction.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Code {
    pub(crate) code: u16,
}

/// A pod that was evicted, and why its node was drained.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct DrainedPod {
    pub(crate) reason: String,
}

/// A Node that was drained.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct DrainedNode {
    pub(crate) nodepool: String,
}

/// A decision about a CertificateSigningRequest.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CsrDecision {
    pub(crate) signer: &'static str,
    pub(crate) decision: &'static str,
}

/// Which of our loops.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Loop {
    pub(crate) controller: &'static str,
}

/// NodeClaims that have drifted, and why.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct DriftedIn {
    pub(crate) nodepool: String,
    pub(crate) reason: &'static str,
}

/// A Proxmox cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct InRegion {
    pub(crate) region: String,
}

/// A Lease that says who leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OfLease {
    pub(crate) name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
}

/// Everything that is counted.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    pub(crate) claims_created: Family<Created, Counter>,
    pub(crate) claims_terminated: Family<Terminated, Counter>,
    pub(crate) claims_disrupted: Family<Disrupted, Counter>,
    pub(crate) nodes_created: Family<OfNode, Counter>,
    pub(crate) nodes_terminated: Family<OfNode, Counter>,
    pub(crate) nodes_drained: Family<DrainedNode, Counter>,
    pub(crate) evictions: Family<Code, Counter>,
    pub(crate) pods_drained: Family<DrainedPod, Counter>,
    pub(crate) scheduling: Scheduling,
    pub(crate) state: ClusterState,
    pub(crate) errors: Family<Loop, Counter>,
    pub(crate) csr_decisions: Family<CsrDecision, Counter>,
    pub(crate) region_up: Family<InRegion, Gauge>,
    pub(crate) listed_at: Family<InRegion, Gauge>,
    pub(crate) claims_drifted: Family<DriftedIn, Gauge>,
    pub(crate) leads: Family<OfLease, Gauge>,
    asked: Mutex<()>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let mut registry = Registry::default();
        let karpenter = registry.sub_registry_with_prefix("karpenter");
        let build = Family::<Build, Gauge>::default();
        build.get_or_create(&Build { version: env!("CARGO_PKG_VERSION") }).set(1);
        karpenter.register("build_info", "Version of this build", build);
        let metrics = Metrics {
            claims_created: counted(karpenter, "nodeclaims_created", "NodeClaims created"),
            claims_terminated: counted(karpenter, "nodeclaims_terminated", "NodeClaims deleted together with their VM"),
            claims_disrupted: counted(
                karpenter,
                "nodeclaims_disrupted",
                "NodeClaims deleted by the controller, by reason",
            ),
            nodes_created: counted(karpenter, "nodes_created", "Nodes registered"),
            nodes_terminated: counted(karpenter, "nodes_terminated", "Nodes deleted"),
            nodes_drained: counted(karpenter, "nodes_drained", "Nodes drained"),
            evictions: counted(karpenter, "pods_eviction_requests", "Eviction requests, by HTTP status code"),
            pods_drained: counted(karpenter, "pods_drained", "Pods evicted from Nodes that are drained, by reason"),
            scheduling: Scheduling::register(karpenter),
            state: ClusterState::register(karpenter),
            errors: counted(&mut registry, "tenon_pass_errors", "Reconcile passes that failed, by controller"),
            csr_decisions: counted(
                &mut registry,
                "tenon_csr_decisions",
                "Kubelet certificate requests that the CSR approver approved or denied, by signer and decision",
            ),
            region_up: gauged(
                &mut registry,
                "tenon_region_up",
                "Whether the Proxmox API of a region answered the last request (1) or not (0)",
            ),
            listed_at: gauged(
                &mut registry,
                "tenon_region_last_listing_timestamp_seconds",
                "When the Proxmox API of a region last listed its hosts, guests and storages, as Unix time",
            ),
            claims_drifted: gauged(
                &mut registry,
                "tenon_nodeclaims_drifted",
                "NodeClaims that have drifted, by reason",
            ),
            leads: gauged(
                &mut registry,
                "leader_election_master_status",
                "Whether this instance is the leader (1) or not (0)",
            ),
            asked: Mutex::default(),
            registry: Registry::default(),
        };
        Metrics { registry, ..metrics }
    }
}

impl Metrics {
    /// Everything in the text form that Prometheus reads.
    pub fn text(&self) -> String {
        // One at a time: what is worked out for one must not be half gone for another.
        let _turn = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        self.scheduling.refresh();
        self.state.refresh();
        let mut text = String::new();
        // Writing into a text cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

type Counted<L> = Family<L, Counter>;

fn counted<L>(registry: &mut Registry, name: &str, help: &str) -> Counted<L>
where
    L: EncodeLabelSet + std::fmt::Debug + Clone + std::hash::Hash + Eq + Send + Sync + 'static,
{
    let family = Family::default();
    registry.register(name, help, family.clone());
    family
}

fn gauged<L, N, A>(registry: &mut Registry, name: &str, help: &str) -> Family<L, Gauge<N, A>>
where
    L: EncodeLabelSet + std::fmt::Debug + Clone + std::hash::Hash + Eq + Send + Sync + 'static,
    N: EncodeGaugeValue + std::fmt::Debug + Send + Sync + 'static,
    A: gauge::Atomic<N> + Default + std::fmt::Debug + Send + Sync + 'static,
{
    let family = Family::default();
    registry.register(name, help, family.clone());
    family
}

/// A histogram of seconds.
fn timed() -> Histogram {
    Histogram::new(DURATIONS)
}
