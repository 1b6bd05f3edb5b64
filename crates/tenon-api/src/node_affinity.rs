//! Which nodes a pod asks for, and which it would rather have: its node selector and its node affinity.

use crate::kube_objects::PodSpec;
use k8s_openapi::api::core::v1::{NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm};
use tenon_model::labels::NODEPOOL;
use tenon_model::validation::requirement_faults;
use tenon_model::{Operator, Preferred, Requirement, Requirements, WrittenRequirement};

/// What a refusal is about.
const REQUIRED: &str = "the required node affinity of the pod";

/// The pod's node selector, joined with each of its required node-affinity terms; any one of the results is enough. And
/// why no node is planned for it, whatever nodes there are.
pub(crate) fn alternatives(spec: &PodSpec) -> (Vec<Requirements>, Option<String>) {
    let selector: Requirements =
        spec.node_selector.iter().flatten().map(|(label, value)| (label.clone(), Requirement::is(value))).collect();
    let Some(terms) = required_terms(spec) else { return (vec![selector], None) };
    let mut alternatives = Vec::new();
    for term in terms.iter().filter(|term| !is_empty(term)) {
        match term_requirements(term) {
            Ok(wanted) => {
                let mut joined = selector.clone();
                joined.join(&wanted);
                alternatives.push(joined);
            }
            Err(why) => return (vec![selector], Some(why)),
        }
    }
    if alternatives.is_empty() {
        return (vec![selector], Some(format!("{REQUIRED} has no term that a node can match; add matchExpressions")));
    }
    (alternatives, None)
}

/// Nodes the pod would rather have, as they were written. A wish we cannot read is none; one that asks for no label is
/// met by every node, and still stands before those of less weight.
pub(crate) fn preferred(spec: &PodSpec) -> Vec<Preferred> {
    let wishes = node_affinity(spec)
        .into_iter()
        .flat_map(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.iter().flatten());
    wishes
        .filter_map(|wish| {
            let requirements = expressions_of(&wish.preference).ok()?;
            Some(Preferred { weight: wish.weight, requirements })
        })
        .collect()
}

/// What is wrong with the node selector and the node affinity, for whoever wrote the pod: no node of ours can ever have
/// a label of which this tells.
pub(crate) fn faults(spec: &PodSpec) -> Vec<String> {
    let selector = spec.node_selector.iter().flatten().map(|(label, value)| WrittenRequirement {
        label: label.clone(),
        operator: Operator::In,
        values: vec![value.clone()],
        min_values: None,
    });
    let terms = required_terms(spec).into_iter().flatten();
    let expressions = terms.flat_map(|term| term.match_expressions.iter().flatten());
    let read: Vec<Result<WrittenRequirement, String>> = selector.map(Ok).chain(expressions.map(demand)).collect();
    let mut faults: Vec<String> = read
        .iter()
        .flat_map(|demand| match demand {
            Ok(demand) => requirement_faults(demand),
            Err(fault) => vec![fault.clone()],
        })
        .collect();
    match asked_of_pool(spec) {
        Some(asked) if asked.is_impossible() => faults.push(format!(
            "the pod has requirements or preferences on label {NODEPOOL} that exclude each other; remove one of them"
        )),
        Some(asked) if is_absent(&asked) => faults.push(format!(
            "the pod requires a node without label {NODEPOOL}, and every node that Tenon creates has it"
        )),
        _ => {}
    }
    faults
}

/// Whether the pod wants none of our nodes.
pub(crate) fn is_for_others(spec: &PodSpec) -> bool {
    asked_of_pool(spec).is_some_and(|asked| is_absent(&asked) && !asked.is_impossible())
}

fn is_absent(asked: &Requirement) -> bool {
    asked.operator() == Operator::DoesNotExist
}

/// What the pod asks of the label that names a node's pool. Later terms and lighter wishes are looked at only when those
/// before them fail, so only the first ones can keep it from us; but what it would rather have counts here like what it
/// needs.
fn asked_of_pool(spec: &PodSpec) -> Option<Requirement> {
    let mut asked = alternatives(spec).0.into_iter().next().unwrap_or_default();
    let wishes = preferred(spec);
    // Of equal weight, the one written first.
    if let Some(heaviest) = wishes.iter().rev().max_by_key(|wish| wish.weight) {
        asked.join(&heaviest.requirements);
    }
    asked.get(NODEPOOL).cloned()
}

fn node_affinity(spec: &PodSpec) -> Option<&NodeAffinity> {
    spec.affinity.as_ref()?.node_affinity.as_ref()
}

fn required_terms(spec: &PodSpec) -> Option<&Vec<NodeSelectorTerm>> {
    let required = node_affinity(spec)?.required_during_scheduling_ignored_during_execution.as_ref()?;
    Some(&required.node_selector_terms)
}

/// A term that asks for nothing matches no node, to Kubernetes.
fn is_empty(term: &NodeSelectorTerm) -> bool {
    term.match_expressions.iter().flatten().next().is_none() && term.match_fields.iter().flatten().next().is_none()
}

fn term_requirements(term: &NodeSelectorTerm) -> Result<Requirements, String> {
    if term.match_fields.iter().flatten().next().is_some() {
        // Karpenter refuses the whole pod, too, whatever its other terms say.
        return Err(format!(
            "{REQUIRED} uses matchFields, and nodes are planned by their labels; use matchExpressions"
        ));
    }
    expressions_of(term).map_err(|fault| format!("{REQUIRED} cannot be met: {fault}"))
}

/// What a term asks of labels, or what of it cannot be read.
pub(crate) fn expressions_of(term: &NodeSelectorTerm) -> Result<Requirements, String> {
    let mut requirements = Requirements::default();
    for expression in term.match_expressions.iter().flatten() {
        let requirement = demand(expression)?.requirement().map_err(|error| error.to_string())?;
        requirements.join(&Requirements::from_iter([(expression.key.clone(), requirement)]));
    }
    Ok(requirements)
}

fn demand(expression: &NodeSelectorRequirement) -> Result<WrittenRequirement, String> {
    let operator = expression.operator.parse().map_err(|error| format!("label {}: {error}", expression.key))?;
    let values = expression.values.clone().unwrap_or_default();
    Ok(WrittenRequirement { label: expression.key.clone(), operator, values, min_values: None })
}
