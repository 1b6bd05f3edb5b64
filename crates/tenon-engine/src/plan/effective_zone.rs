//! Which zones do pods wait for? What is counted is what they insist on, not what they would like.

use std::collections::BTreeMap;

use tenon_model::labels::ZONE;
use tenon_model::{Operator, Pod, Reason, Snapshot};

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

/// Where one pod may go. Volumes and pods it must be with or apart from will narrow it further once they are judged.
fn effective_zone(pod: &Pod) -> String {
    // Of several alternatives only the first is insisted on; the others are looked at when it cannot be had.
    let strict = pod.strict_requirements();
    let zones = strict.get(ZONE).map(|zone| (zone.operator(), zone.values()));
    match zones {
        Some((Operator::DoesNotExist, _)) => NONE.to_owned(),
        Some((Operator::In, values)) if values.len() == 1 => values.first().cloned().unwrap_or_default(),
        _ => FLEXIBLE.to_owned(),
    }
}
