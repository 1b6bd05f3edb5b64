//! What the schema of a NodePool lets pass and its nodes could not have.

use tenon_model::validation::{label_faults, pool_requirement_faults, taint_faults};
use tenon_model::{Demand, Effect, Operator as ModelOperator, Taint as ModelTaint};

use crate::nodepool::NodePoolSpec;
use crate::requirement::{Operator, Requirement, Taint, TaintEffect};

/// All faults of a pool, each as a sentence; none if it can make nodes.
pub fn pool_faults(spec: &NodePoolSpec) -> Vec<String> {
    let template = &spec.template.spec;
    let labels = spec.template.metadata.iter().flat_map(|metadata| metadata.labels.iter().flatten());
    let taints = template.taints.iter().flatten().chain(template.startup_taints.iter().flatten());
    let taints: Vec<ModelTaint> = taints.map(taint).collect();
    let demands: Vec<Demand> = template.requirements.iter().map(demand).collect();
    let mut faults = label_faults(labels);
    faults.extend(taint_faults(&taints));
    faults.extend(pool_requirement_faults(&demands));
    faults
}

/// A requirement of a pool or claim as the engine knows it.
pub fn demand(requirement: &Requirement) -> Demand {
    let operator = match requirement.operator {
        Operator::In => ModelOperator::In,
        Operator::NotIn => ModelOperator::NotIn,
        Operator::Exists => ModelOperator::Exists,
        Operator::DoesNotExist => ModelOperator::DoesNotExist,
        Operator::Gt => ModelOperator::Gt,
        Operator::Lt => ModelOperator::Lt,
        Operator::Gte => ModelOperator::Gte,
        Operator::Lte => ModelOperator::Lte,
    };
    Demand {
        label: requirement.key.clone(),
        operator,
        values: requirement.values.clone().unwrap_or_default(),
        min_values: requirement.min_values.map(|least| u32::try_from(least).unwrap_or(u32::MAX)),
    }
}

fn taint(taint: &Taint) -> ModelTaint {
    let effect = match taint.effect {
        TaintEffect::NoSchedule => Effect::NoSchedule,
        TaintEffect::PreferNoSchedule => Effect::PreferNoSchedule,
        TaintEffect::NoExecute => Effect::NoExecute,
    };
    ModelTaint { key: taint.key.clone(), value: taint.value.clone().unwrap_or_default(), effect }
}
