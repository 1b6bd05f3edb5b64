//! How are methods, decisions and reasons called in metrics, conditions and messages?

use tenon_api::DisruptionRecord;
use tenon_api::condition_reasons::{self, ConditionReason};
use tenon_engine::disruption::{Command, Method};
use tenon_model::DisruptionReason;

use crate::claim::DeletionReason;
use crate::metrics::{Consolidation, DisruptionDecision};

/// Every method, in the order they are tried in.
pub(super) const METHODS: [Method; 7] = [
    Method::Repair,
    Method::Emptiness,
    Method::StaticDrift,
    Method::Drift,
    Method::MultiNode,
    Method::SingleNode,
    Method::HostGoal,
];

/// The method of this name.
pub(super) fn method_of(name: &str) -> Option<Method> {
    METHODS.into_iter().find(|method| method.as_str() == name)
}

/// How Karpenter's metrics call a method of consolidation; empty for others. Moves between hosts are ours.
pub(super) fn consolidation_type(method: Method) -> &'static str {
    match method {
        Method::Emptiness => "empty",
        Method::MultiNode => "multi",
        Method::SingleNode => "single",
        Method::HostGoal => "host-goal",
        Method::Repair | Method::StaticDrift | Method::Drift => "",
    }
}

/// The label of a method of consolidation.
pub(super) fn consolidation(method: Method) -> Consolidation {
    Consolidation { consolidation_type: consolidation_type(method) }
}

/// A reason as Karpenter's metrics have it.
pub(super) fn reason_label(reason: DisruptionReason) -> &'static str {
    match reason {
        DisruptionReason::Underutilized => "underutilized",
        DisruptionReason::Empty => "empty",
        DisruptionReason::Drifted => "drifted",
        DisruptionReason::Unhealthy => "unhealthy",
    }
}

/// The decision that a command is.
pub(super) fn decision(command: &Command) -> DisruptionDecision {
    let decision = match (command.replacements.is_empty(), command.terminate_first) {
        _ if command.is_reboot() => "reboot",
        (false, _) => "replace",
        (true, Some(_)) => "terminate-first",
        (true, None) => "delete",
    };
    labelled(decision, command.method, command.method.reason())
}

/// The same of a command as it is recorded.
pub(super) fn recorded_decision(record: &DisruptionRecord) -> DisruptionDecision {
    let decision = if record.replacements.is_empty() { "delete" } else { "replace" };
    let method = method_of(&record.method).unwrap_or(Method::Emptiness);
    labelled(decision, method, record.reason)
}

fn labelled(decision: &'static str, method: Method, reason: DisruptionReason) -> DisruptionDecision {
    DisruptionDecision { decision, reason: reason_label(reason), consolidation_type: consolidation_type(method) }
}

/// The row of the condition that says why a claim goes.
pub(super) fn condition_reason(reason: DisruptionReason) -> &'static ConditionReason {
    match reason {
        DisruptionReason::Underutilized => &condition_reasons::UNDERUTILIZED,
        DisruptionReason::Empty => &condition_reasons::EMPTY,
        DisruptionReason::Drifted => &condition_reasons::DRIFTED_NODE,
        DisruptionReason::Unhealthy => &condition_reasons::UNHEALTHY,
    }
}

/// What becomes of the nodes of a command, as a part of a sentence.
pub(super) fn state_of(record: &DisruptionRecord) -> &'static str {
    match record.reason {
        _ if record.method == Method::HostGoal.as_str() => "moves to another Proxmox host",
        DisruptionReason::Underutilized => "is underutilized",
        DisruptionReason::Empty => "is empty",
        DisruptionReason::Drifted => "has drifted",
        DisruptionReason::Unhealthy => "is unhealthy",
    }
}

/// Why a claim is deleted.
pub(super) fn deletion_reason(reason: DisruptionReason) -> DeletionReason {
    match reason {
        DisruptionReason::Underutilized => DeletionReason::Underutilized,
        DisruptionReason::Empty => DeletionReason::Empty,
        DisruptionReason::Drifted => DeletionReason::Drifted,
        DisruptionReason::Unhealthy => DeletionReason::Unhealthy,
    }
}
