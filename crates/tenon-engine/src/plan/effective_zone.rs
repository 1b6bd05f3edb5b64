//! Which zones do pods wait for? What is counted is what they insist on, not what they would like.

use std::collections::{BTreeMap, BTreeSet};

use tenon_model::labels::ZONE;
use tenon_model::{Operator, Pod, Reason, Requirements, Snapshot};

use crate::base::refused;

/// Where several zones will do, or any.
const FLEXIBLE: &str = "flexible";
/// Where no zone will do.
const NONE: &str = "none";

/// How many pods wait for which zone: its name, `flexible` where several will do, `none` where none does. Pods that
/// run, pods that are over, and pods that ask for what can never be are not counted.
pub fn effective_zones(snapshot: &Snapshot) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let waiting = snapshot.pods.iter().filter(|pod| pod.is_pending);
    for pod in waiting.filter(|pod| !matches!(refused(snapshot, pod), Some(Reason::Invalid(_)))) {
        *counts.entry(effective_zone(pod)).or_default() += 1;
    }
    counts
}

/// Where one pod may go: what it insists on, and where its volumes can be used.
fn effective_zone(pod: &Pod) -> String {
    // Of several alternatives only the first is insisted on; the others are looked at when it cannot be had.
    let strict = pod.strict_requirements();
    let places = pod.storage.volumes().map(|known| known.alternatives.as_slice()).unwrap_or_default();
    let anywhere = [Requirements::default()];
    let mut zones: BTreeSet<String> = BTreeSet::new();
    for place in if places.is_empty() { &anywhere } else { places } {
        let mut wanted = strict.clone();
        wanted.join(place);
        match wanted.get(ZONE) {
            Some(zone) if zone.operator() == Operator::In => zones.extend(zone.values().iter().cloned()),
            Some(zone) if zone.operator() == Operator::DoesNotExist => {}
            _ => return FLEXIBLE.to_owned(),
        }
    }
    match zones.pop_first() {
        None => NONE.to_owned(),
        Some(only) if zones.is_empty() => only,
        Some(_) => FLEXIBLE.to_owned(),
    }
}
