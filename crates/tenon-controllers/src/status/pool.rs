//! Whether a NodePool can make nodes.

use tenon_api::plan_options::FeatureGates;
use tenon_api::{ConditionStatus, ConsolidationPolicy, NodePoolSpec, pool_faults};

use super::Verdict;

/// The conditions of a pool.
pub(crate) const VALIDATION: &str = "ValidationSucceeded";
pub(crate) const CLASS_READY: &str = "NodeClassReady";
/// Those that make it ready.
pub(crate) const POOL_CONDITIONS: &[&str] = &[VALIDATION, CLASS_READY];

/// What is known of the class a pool names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClassSeen {
    /// There is none of that name.
    Missing,
    /// It is being deleted.
    Terminating,
    /// Its `Ready` condition.
    Present(Verdict),
}

/// The conditions of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolVerdict {
    /// Whether what it says makes sense.
    pub validation: Verdict,
    /// Whether its class can be used.
    pub class: Verdict,
}

/// Judges a pool by its own words, by what is switched on, and by its class.
pub fn judge_pool(spec: &NodePoolSpec, gates: FeatureGates, class: &ClassSeen) -> PoolVerdict {
    let faults = pool_faults(spec);
    let validation = if let Some(field) = unsupported(spec) {
        Verdict::fails(
            "FieldNotSupportedYet",
            format!("{field} is not supported yet; remove it or wait for a later release"),
        )
    } else if spec.replicas.is_some() && !gates.static_capacity {
        let told = "spec.replicas needs the feature gate StaticCapacity, which is off; start the controller with \
                    --feature-gates StaticCapacity=true, or make a NodePool without replicas";
        Verdict::fails("FeatureGateOff", told)
    } else if faults.is_empty() {
        Verdict::holds(VALIDATION)
    } else {
        Verdict::fails("NodePoolValidationFailed", faults.join("; "))
    };
    PoolVerdict { validation, class: judge_class_of(spec, class) }
}

fn judge_class_of(spec: &NodePoolSpec, class: &ClassSeen) -> Verdict {
    let name = &spec.template.spec.node_class_ref.name;
    match class {
        ClassSeen::Missing => Verdict::fails(
            "NodeClassNotFound",
            format!("there is no ProxmoxNodeClass {name}; create it or correct nodeClassRef"),
        ),
        ClassSeen::Terminating => {
            Verdict::fails("NodeClassTerminating", format!("ProxmoxNodeClass {name} is being deleted"))
        }
        ClassSeen::Present(ready) => match ready.status {
            ConditionStatus::True => Verdict::holds(CLASS_READY),
            ConditionStatus::False => Verdict::fails(&ready.reason, ready.message.clone()),
            ConditionStatus::Unknown => Verdict::unknown(
                "NodeClassReadinessUnknown",
                format!("ProxmoxNodeClass {name} is not judged yet: {}", ready.message),
            ),
        },
    }
}

/// The first field that is set and not acted on.
fn unsupported(spec: &NodePoolSpec) -> Option<&'static str> {
    let is_balanced = spec.disruption.consolidation_policy == ConsolidationPolicy::Balanced;
    is_balanced.then_some("spec.disruption.consolidationPolicy Balanced")
}
