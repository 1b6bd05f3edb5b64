//! A Kubernetes Pod as the engine sees it: what it needs, which nodes it wants, what it puts up with.
//!
//! A demand the engine cannot judge yet makes the pod unplaceable, by name. Preferences are left out: a pod that only
//! prefers something runs without it.

use k8s_openapi::api::core::v1::{Affinity, NodeSelectorTerm, Pod as KubePod, PodSpec, Toleration as KubeToleration};
use tenon_model::{Effect, Operator, Pod, PodKey, Requirement, Requirements, Tolerated, Toleration};

use crate::names::canonical_label;
use crate::pod_requests::effective_requests;

/// The pod for the engine.
pub fn to_model(pod: &KubePod) -> Pod {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let meta = &pod.metadata;
    let spec = pod.spec.clone().unwrap_or_default();
    let key = PodKey { namespace: text(&meta.namespace), name: text(&meta.name), uid: text(&meta.uid) };
    let (alternatives, unreadable) = alternatives(&spec);
    Pod {
        key,
        requests: effective_requests(pod),
        alternatives,
        tolerations: spec.tolerations.iter().flatten().filter_map(toleration).collect(),
        unsupported: unreadable.or_else(|| unsupported(&spec)),
    }
}

/// The first demand that the engine does not know yet.
fn unsupported(spec: &PodSpec) -> Option<String> {
    let affinity = spec.affinity.clone().unwrap_or_default();
    let spreads = spec.topology_spread_constraints.iter().flatten();
    let claims = spec
        .volumes
        .iter()
        .flatten()
        .any(|volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some());
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let ports = containers.flat_map(|container| container.ports.iter().flatten());
    let found = [
        (spreads.into_iter().any(|spread| spread.when_unsatisfiable == "DoNotSchedule"), "topology spread constraints"),
        (wants_company(&affinity), "required pod affinity or anti-affinity"),
        (claims, "persistent volumes"),
        (spec.resource_claims.iter().flatten().next().is_some(), "resource claims"),
        (ports.into_iter().any(|port| port.host_port.is_some_and(|number| number > 0)), "host ports"),
    ];
    found.into_iter().find(|(is_used, _)| *is_used).map(|(_, what)| what.to_owned())
}

fn wants_company(affinity: &Affinity) -> bool {
    let near = affinity
        .pod_affinity
        .iter()
        .flat_map(|near| near.required_during_scheduling_ignored_during_execution.iter().flatten());
    let apart = affinity
        .pod_anti_affinity
        .iter()
        .flat_map(|far| far.required_during_scheduling_ignored_during_execution.iter().flatten());
    near.chain(apart).next().is_some()
}

/// The pod's node selector, joined with each of its required node-affinity terms; any one of the results is enough.
fn alternatives(spec: &PodSpec) -> (Vec<Requirements>, Option<String>) {
    let selector: Requirements = spec
        .node_selector
        .iter()
        .flatten()
        .map(|(label, value)| (canonical_label(label).to_owned(), Requirement::is(value)))
        .collect();
    let required = spec
        .affinity
        .iter()
        .flat_map(|affinity| &affinity.node_affinity)
        .filter_map(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    let terms: Vec<&NodeSelectorTerm> = required.flat_map(|required| &required.node_selector_terms).collect();
    if terms.is_empty() {
        return (vec![selector], None);
    }
    let mut alternatives = Vec::new();
    for term in terms {
        match term_requirements(term) {
            Ok(wanted) => {
                let mut joined = selector.clone();
                joined.add_all(&wanted);
                alternatives.push(joined);
            }
            Err(what) => return (vec![selector], Some(what)),
        }
    }
    (alternatives, None)
}

fn term_requirements(term: &NodeSelectorTerm) -> Result<Requirements, String> {
    if term.match_fields.iter().flatten().next().is_some() {
        return Err("node affinity by fields".to_owned());
    }
    let mut requirements = Requirements::default();
    for expression in term.match_expressions.iter().flatten() {
        let unreadable = || format!("node affinity on {} with operator {}", expression.key, expression.operator);
        let operator = operator(&expression.operator).ok_or_else(unreadable)?;
        let values = expression.values.iter().flatten().cloned();
        let requirement = Requirement::new(operator, values).ok_or_else(unreadable)?;
        requirements.add(canonical_label(&expression.key), &requirement);
    }
    Ok(requirements)
}

fn operator(name: &str) -> Option<Operator> {
    Some(match name {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Lt" => Operator::Lt,
        _ => return None,
    })
}

/// A toleration of a kind we do not know tolerates nothing: then a node is not made where one might have been.
fn toleration(toleration: &KubeToleration) -> Option<Toleration> {
    let value = match toleration.operator.as_deref() {
        None | Some("" | "Equal") => Tolerated::Equal(toleration.value.clone().unwrap_or_default()),
        Some("Exists") => Tolerated::Exists,
        Some(_) => return None,
    };
    let effect = match toleration.effect.as_deref() {
        None | Some("") => None,
        Some("NoSchedule") => Some(Effect::NoSchedule),
        Some("PreferNoSchedule") => Some(Effect::PreferNoSchedule),
        Some("NoExecute") => Some(Effect::NoExecute),
        Some(_) => return None,
    };
    Some(Toleration { key: toleration.key.clone().filter(|key| !key.is_empty()), value, effect })
}
