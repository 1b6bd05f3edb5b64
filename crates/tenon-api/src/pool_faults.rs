//! What the schema of a NodePool lets pass and its nodes could not have.

use tenon_model::validation::{label_faults, pool_requirement_faults, taint_faults, unknown_values};
use tenon_model::{Effect, Operator as ModelOperator, Taint as ModelTaint, WrittenRequirement};

use crate::condition::ConditionStatus;
use crate::nodepool::{NodePool, NodePoolSpec};
use crate::requirement::{Operator, Requirement, Taint, TaintEffect};

/// All faults of a pool, each as a sentence; none if it can make nodes.
pub fn pool_faults(spec: &NodePoolSpec) -> Vec<String> {
    let template = &spec.template.spec;
    let labels = spec.template.metadata.iter().flat_map(|metadata| metadata.labels.iter().flatten());
    let taints = template.taints.iter().flatten().chain(template.startup_taints.iter().flatten());
    let taints: Vec<ModelTaint> = taints.map(taint).collect();
    let demands: Vec<WrittenRequirement> = template.requirements.iter().map(written_requirement).collect();
    let mut faults = label_faults(labels);
    faults.extend(taint_faults(&taints));
    faults.extend(pool_requirement_faults(&demands));
    faults
}

/// Values of requirements that nothing has, beside some that something has: no fault, but most likely a mistake. Each with its
/// label.
pub fn unknown_pool_values(spec: &NodePoolSpec) -> Vec<(String, String)> {
    let demands = spec.template.spec.requirements.iter().map(written_requirement);
    let unknown = |demand: WrittenRequirement| {
        let values: Vec<String> = unknown_values(&demand).into_iter().map(str::to_owned).collect();
        values.into_iter().map(move |value| (demand.label.clone(), value))
    };
    demands.flat_map(unknown).collect()
}

/// Why no node may be made from a pool, if so: it says so itself, or it makes no sense. A pool without a word about it is
/// ready.
pub fn pool_not_ready(pool: &NodePool) -> Option<String> {
    let conditions = pool.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let said = conditions.into_iter().find(|condition| condition.type_ == "Ready");
    if let Some(said) = said.filter(|said| said.status != ConditionStatus::True) {
        let why = [said.reason.as_str(), said.message.as_str()];
        let why: Vec<&str> = why.into_iter().filter(|text| !text.is_empty()).collect();
        return Some(format!("condition Ready is {:?}: {}", said.status, why.join(", ")));
    }
    let faults = pool_faults(&pool.spec);
    (!faults.is_empty()).then(|| faults.join("; "))
}

/// A requirement of a pool or claim as the engine knows it.
pub fn written_requirement(requirement: &Requirement) -> WrittenRequirement {
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
    WrittenRequirement {
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pool(template: Value, status: &Value) -> NodePool {
        let mut template = template;
        template["spec"]["nodeClassRef"] = json!({"group": "g", "kind": "k", "name": "n"});
        if template["spec"]["requirements"].is_null() {
            template["spec"]["requirements"] = json!([]);
        }
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {"template": template}, "status": status}))
            .unwrap()
    }

    fn requirement_pool(key: &str, operator: &str, values: &Value) -> NodePool {
        let requirement = json!({"key": key, "operator": operator, "values": values});
        pool(json!({"spec": {"requirements": [requirement]}}), &json!({}))
    }

    #[test]
    fn a_pool_that_says_nothing_is_ready_and_one_that_says_no_is_not() {
        assert_eq!(pool_not_ready(&pool(json!({"spec": {}}), &json!({}))), None);
        for (status, ready) in [("True", true), ("False", false), ("Unknown", false)] {
            let condition = json!({"type": "Ready", "status": status, "reason": "R", "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z"});
            let pool = pool(json!({"spec": {}}), &json!({"conditions": [condition]}));
            assert_eq!(pool_not_ready(&pool).is_none(), ready, "{status}");
        }
    }

    #[test]
    fn what_a_node_could_not_have_is_a_fault() {
        let long = "x".repeat(64);
        for (key, operator, values) in [
            ("karpenter.sh/nodepool", "In", json!(["p"])),
            ("kubernetes.io/hostname", "In", json!(["p"])),
            ("karpenter.sh/custom", "Exists", json!([])),
            ("sub.karpenter.sh/custom", "Exists", json!([])),
            (long.as_str(), "Exists", json!([])),
            ("UPPER.example/x", "Exists", json!([])),
            ("a", "In", json!([])),
            ("a", "In", json!(["-b"])),
            ("a", "Gt", json!(["1", "2"])),
            ("a", "Lte", json!(["-1"])),
            ("karpenter.sh/capacity-type", "In", json!(["free"])),
        ] {
            assert_ne!(
                pool_faults(&requirement_pool(key, operator, &values).spec),
                Vec::<String>::new(),
                "{key} {operator}"
            );
        }
    }

    #[test]
    fn what_a_node_can_have_is_fine() {
        for (key, operator, values) in [
            ("karpenter.sh/capacity-type", "In", json!(["spot", "free"])),
            ("mykarpenter.sh/custom", "Exists", json!([])),
            ("node.kubernetes.io/instance-type", "NotIn", json!([])),
            ("beta.kubernetes.io/arch", "In", json!(["amd64"])),
            ("a", "Gte", json!(["0"])),
            ("a", "In", json!([""])),
        ] {
            assert_eq!(
                pool_faults(&requirement_pool(key, operator, &values).spec),
                Vec::<String>::new(),
                "{key} {operator}"
            );
        }
    }

    #[test]
    fn i4_validation_fails_open_on_mixed_capacity_types_and_names_the_unknown_ones() {
        let of = |values: Value| requirement_pool("karpenter.sh/capacity-type", "In", &values).spec;
        let mixed = of(json!(["free", "on-demand"]));
        assert_eq!(pool_faults(&mixed), Vec::<String>::new());
        assert_eq!(unknown_pool_values(&mixed), [("karpenter.sh/capacity-type".to_owned(), "free".to_owned())]);
        let wrong = of(json!(["free", "cheap"]));
        assert_eq!(pool_faults(&wrong).len(), 1, "not one of them is known");
        let known = of(json!(["on-demand", "spot", "reserved"]));
        assert!(pool_faults(&known).is_empty() && unknown_pool_values(&known).is_empty());
        let not_in = requirement_pool("karpenter.sh/capacity-type", "NotIn", &json!(["free"])).spec;
        assert!(pool_faults(&not_in).is_empty() && unknown_pool_values(&not_in).is_empty());
    }

    #[test]
    fn labels_and_taints_are_judged_together() {
        let taint = json!({"key": "a", "effect": "NoSchedule"});
        let template = json!({"metadata": {"labels": {"karpenter.sh/nodepool": "x", "ok": "no spaces"}},
            "spec": {"taints": [taint], "startupTaints": [taint, {"key": "b c", "effect": "NoExecute"}]}});
        let said = pool_not_ready(&pool(template, &json!({}))).unwrap();
        for words in ["karpenter.sh/nodepool is set", "\"no spaces\"", "taint a with effect NoSchedule", "\"b c\""] {
            assert!(said.contains(words), "{said}");
        }
    }
}
