//! Can a pod be planned for at all? Asked before anything is tried.

use tenon_model::labels::{self, NODEPOOL};
use tenon_model::{Operator, Pod, Reason, Requirement, Requirements, Snapshot};

/// Why a pod is refused before anything is tried, if it is.
pub(crate) fn refused(snapshot: &Snapshot, pod: &Pod) -> Option<Reason> {
    // Later alternatives are looked at only when earlier ones fail, so only the first can keep the pod from us.
    let first = pod.alternatives.first().and_then(|first| first.get(NODEPOOL).map(Requirement::operator));
    if first == Some(Operator::DoesNotExist) {
        return Some(Reason::Invalid(format!(
            "the pod requires a node without label {NODEPOOL}, and every node that Tenon creates has it"
        )));
    }
    let demands = pod.alternatives.iter().flat_map(Requirements::iter);
    if let Some(why) = demands.into_iter().find_map(|(label, demand)| fault(snapshot, label, demand)) {
        return Some(Reason::Invalid(why));
    }
    if let Some(why) = pod.storage.refusal() {
        return Some(Reason::Invalid(why.to_owned()));
    }
    pod.unsupported.clone().map(Reason::Invalid)
}

/// What is wrong with a demand, whatever nodes there are.
fn fault(snapshot: &Snapshot, label: &str, demand: &Requirement) -> Option<String> {
    let is_offered = || snapshot.pools.iter().any(|pool| pool.catalog.is_well_known(label));
    if labels::is_restricted(label) && !is_offered() {
        return Some(format!("label {label} is restricted and cannot be required; remove it from the pod"));
    }
    let known = labels::known_values(label).filter(|_| demand.operator() == Operator::In)?;
    let has_known = known.iter().any(|value| demand.has(value));
    (!has_known).then(|| {
        format!("label {label}: the pod requires {demand}, but the only known values are {}", known.join(", "))
    })
}
