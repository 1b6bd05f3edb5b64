//! Table: the labels of what is counted where it happens, as types.

use super::families::labels;

labels! {
    /// This build.
    Build { version: &'static str, goversion: &'static str, goarch: &'static str, commit: &'static str }
    /// A NodeClaim that was made.
    Created { reason: String, nodepool: String, min_values_relaxed: String }
    /// A NodeClaim that is gone.
    Terminated { nodepool: String, capacity_type: String, zone: String }
    /// A NodeClaim that was deleted by us, and why.
    Disrupted {
        reason: String, nodepool: String, capacity_type: String, consolidation_policy: String, termination_mode: String
    }
    /// How the reboot of a Node ended.
    Rebooted { result: &'static str }
    /// A NodeClaim that was deleted because its Node was broken.
    UnhealthyDisrupted {
        condition: String, nodepool: String, capacity_type: String, image_id: String, termination_mode: &'static str
    }
    /// A Node that came or went.
    OfNode { nodepool: String, zone: String }
    /// A NodePool.
    InPool { nodepool: String }
    /// An answer to an eviction.
    Code { code: u16 }
    /// A pod that was evicted, and why its node was drained.
    DrainedPod { reason: String }
    /// A Node that was drained.
    DrainedNode { nodepool: String }
    /// A decision about a CertificateSigningRequest.
    CsrDecision { signer: &'static str, decision: &'static str }
    /// Which of our loops.
    Loop { controller: &'static str }
    /// The queue of one of our loops.
    OfQueue { name: &'static str, controller: &'static str, priority: u8 }
    /// A pass of one of our loops: a whole one, or one that was left out.
    Pass { controller: &'static str, pass: &'static str }
    /// NodeClaims that have drifted, and why.
    DriftedIn { nodepool: String, reason: &'static str }
    /// A Proxmox cluster.
    InRegion { region: String }
    /// A Lease that says who leads.
    OfLease { name: String }
    /// A decision to disrupt a node.
    DisruptionDecision { decision: &'static str, reason: &'static str, consolidation_type: &'static str }
    /// The same, by NodePool.
    PoolDecision {
        nodepool: String, decision: &'static str, reason: &'static str, consolidation_type: &'static str
    }
    /// A decision that a node goes before what comes for it is there.
    TerminatedFirst { nodepool: String, reason: &'static str, terminate_first_reason: &'static str }
    /// What a NodePool said to a move that saves money.
    Scored { decision: &'static str, nodepool: String, policy: &'static str }
    /// What came of writing the deletion cost of a pod.
    CostWritten { result: &'static str }
    /// Why nodes are disrupted, and by which method.
    WhyDisrupted { reason: &'static str, consolidation_type: &'static str }
    /// Why nodes are disrupted.
    ByReason { reason: &'static str }
    /// Why nodes of a NodePool are disrupted.
    PoolReason { nodepool: String, reason: &'static str }
    /// A method of consolidation.
    Consolidation { consolidation_type: &'static str }
    /// Something that belonged to nobody.
    Removed { kind: &'static str }
    /// A part of a provisioning pass.
    PlanPhase { phase: &'static str }
    /// What a plan decided about a pod.
    PlanDecision { decision: &'static str, reason: String }
    /// Why a node is kept.
    Kept { reason: String }
}

impl Build {
    pub(super) fn this() -> Build {
        let goarch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        // Dashboards of the reference join by these labels; what a Go version is, here is the version of the compiler.
        let commit = option_env!("TENON_COMMIT").unwrap_or_default();
        Build { version: env!("CARGO_PKG_VERSION"), goversion: env!("CARGO_PKG_RUST_VERSION"), goarch, commit }
    }
}
