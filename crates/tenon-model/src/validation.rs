//! What a schema lets pass and a node could not have: all faults of labels, taints and requirements at once.

use std::collections::BTreeSet;

use crate::label_text::{key_faults, value_faults};
use crate::labels::{NODEPOOL, RESTRICTED_DOMAINS, canonical_label, is_restricted, known_values};
use crate::requirement::{Operator, Requirement};
use crate::taint::Taint;
use crate::written_requirement::WrittenRequirement;

/// What is wrong with the labels a pool gives its nodes.
pub fn label_faults<'a>(labels: impl IntoIterator<Item = (&'a String, &'a String)>) -> Vec<String> {
    let mut faults = Vec::new();
    for (key, value) in labels {
        if key == NODEPOOL {
            faults.push(format!("label {key} is set by Tenon; remove it from the NodePool template"));
        }
        faults.extend(key_faults(key).into_iter().map(|fault| format!("{key:?} is not a valid label key: {fault}")));
        let of_value = value_faults(value).into_iter();
        faults.extend(of_value.map(|fault| format!("label {key} has the invalid value {value:?}: {fault}")));
        faults.extend(restricted_fault(key));
    }
    faults
}

/// What is wrong with the taints a pool gives its nodes, those for good and those for the start together.
pub fn taint_faults<'a>(taints: impl IntoIterator<Item = &'a Taint>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for taint in taints {
        let (key, value) = (&taint.key, &taint.value);
        faults.extend(key_faults(key).into_iter().map(|fault| format!("{key:?} is not a valid taint key: {fault}")));
        if !value.is_empty() {
            // Kubernetes holds values of taints to the rule for keys.
            let of_value = key_faults(value).into_iter();
            faults.extend(of_value.map(|fault| format!("taint {key} has the invalid value {value:?}: {fault}")));
        }
        if !seen.insert((key, taint.effect)) {
            faults.push(format!("taint {key} with effect {:?} is listed twice", taint.effect));
        }
    }
    faults
}

/// What is wrong with the requirements of a pool.
pub fn pool_requirement_faults<'a>(demands: impl IntoIterator<Item = &'a WrittenRequirement>) -> Vec<String> {
    let mut faults = Vec::new();
    for demand in demands {
        faults.extend(requirement_faults(demand));
        if demand.label == NODEPOOL {
            faults.push(format!("requirement on {NODEPOOL}: Tenon sets this label; a NodePool cannot require it"));
        }
    }
    faults
}

/// What is wrong with one requirement of a pool or a pod.
pub fn requirement_faults(demand: &WrittenRequirement) -> Vec<String> {
    let label = canonical_label(&demand.label);
    let WrittenRequirement { operator, values, min_values, .. } = demand;
    let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
    let mut faults: Vec<String> = restricted_fault(label).into_iter().chain(known_value_fault(label, demand)).collect();
    faults.extend(key_faults(label).into_iter().map(|fault| format!("{label:?} is not a valid label key: {fault}")));
    for value in values {
        let of_value = value_faults(value).into_iter();
        faults.extend(of_value.map(|fault| format!("label {label} has the invalid value {value:?}: {fault}")));
    }
    if *operator == Operator::In && values.is_empty() {
        faults.push(format!("requirement on {label}: operator In needs at least one value"));
    }
    if *operator == Operator::In && min_values.is_some_and(|least| count < least) {
        faults.push(format!(
            "requirement on {label}: minValues is greater than the number of values that operator In lists"
        ));
    }
    if operator.is_bound() && (values.len() != 1 || Requirement::new(*operator, values.iter().cloned()).is_none()) {
        let wanted = "needs exactly one value, a non-negative integer";
        faults.push(format!("requirement on {label}: operator {operator} {wanted}"));
    }
    faults
}

fn restricted_fault(label: &str) -> Option<String> {
    let domains = RESTRICTED_DOMAINS.join(" and ");
    is_restricted(label).then(|| {
        format!(
            "label {label} is restricted; use a label outside the domains {domains}, and not kubernetes.io/hostname"
        )
    })
}

/// Where only some values mean something, one of them must be there, and enough of them if a number is asked. Others
/// besides are harmless.
fn known_value_fault(label: &str, demand: &WrittenRequirement) -> Option<String> {
    let known = known_values(label).filter(|_| demand.operator == Operator::In)?;
    let found = demand.values.iter().filter(|value| known.contains(&value.as_str())).count();
    let (values, known) = (demand.values.join(", "), known.join(", "));
    let wanted = usize::try_from(demand.min_values.unwrap_or(1)).unwrap_or(usize::MAX).max(1);
    match found {
        0 => Some(format!("requirement on {label}: none of [{values}] is a known value; use {known}")),
        _ if found < wanted => Some(format!(
            "requirement on {label}: known values are {known}; [{values}] has {found} of them, fewer than minValues {wanted}"
        )),
        _ => None,
    }
}

/// Values of a requirement that mean nothing for its label; they do no harm, and whoever wrote them should know.
pub fn unknown_values(demand: &WrittenRequirement) -> Vec<&str> {
    let known = known_values(canonical_label(&demand.label)).filter(|_| demand.operator == Operator::In);
    let is_unknown = |value: &&String| known.is_some_and(|known| !known.contains(&value.as_str()));
    demand.values.iter().filter(is_unknown).map(String::as_str).collect()
}
