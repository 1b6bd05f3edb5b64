//! Whether a NodePool can make nodes.

use tenon_api::condition_reasons::{
    FEATURE_GATE_OFF, NODE_CLASS_NOT_FOUND, NODE_CLASS_READINESS_UNKNOWN, NODE_CLASS_READY, NODE_CLASS_TERMINATING,
    NODE_POOL_VALIDATION_FAILED, VALIDATION_SUCCEEDED,
};
use tenon_api::plan_options::FeatureGates;
use tenon_api::{ConditionStatus, NodePoolSpec, pool_faults};

use super::Verdict;

/// The conditions of a pool.
pub(crate) const VALIDATION: &str = VALIDATION_SUCCEEDED.name();
pub(crate) const CLASS_READY: &str = NODE_CLASS_READY.name();
/// Those that make it ready.
pub(crate) const POOL_CONDITIONS: &[&str] = &[VALIDATION, CLASS_READY];

/// What is known of the class a pool names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedClass {
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
pub fn judge_pool(spec: &NodePoolSpec, gates: FeatureGates, class: &ObservedClass) -> PoolVerdict {
    let faults = pool_faults(spec);
    let validation = if spec.replicas.is_some() && !gates.static_capacity {
        let told = "spec.replicas needs the feature gate StaticCapacity; start the controller with --feature-gates \
                    StaticCapacity=true, or create a NodePool without replicas";
        Verdict::fails(&FEATURE_GATE_OFF, told)
    } else if faults.is_empty() {
        Verdict::holds(&VALIDATION_SUCCEEDED)
    } else {
        Verdict::fails(&NODE_POOL_VALIDATION_FAILED, faults.join("; "))
    };
    PoolVerdict { validation, class: judge_class_of(spec, class) }
}

fn judge_class_of(spec: &NodePoolSpec, class: &ObservedClass) -> Verdict {
    let name = &spec.template.spec.node_class_ref.name;
    match class {
        ObservedClass::Missing => Verdict::fails(
            &NODE_CLASS_NOT_FOUND,
            format!("ProxmoxNodeClass {name} does not exist; create it or correct nodeClassRef"),
        ),
        ObservedClass::Terminating => {
            Verdict::fails(&NODE_CLASS_TERMINATING, format!("ProxmoxNodeClass {name} is being deleted"))
        }
        ObservedClass::Present(ready) => match ready.status() {
            ConditionStatus::True => Verdict::holds(&NODE_CLASS_READY),
            ConditionStatus::False => ready.clone(),
            ConditionStatus::Unknown => Verdict::unknown(
                &NODE_CLASS_READINESS_UNKNOWN,
                format!("ProxmoxNodeClass {name} is not evaluated yet: {}", ready.message()),
            ),
        },
    }
}
