//! Which zones do pods wait for? What is counted is what they insist on, not what they would like.

use std::collections::{BTreeMap, BTreeSet};

use tenon_model::labels::ZONE;
use tenon_model::{Operator, Pod, PodKey, Reason, Requirements, Snapshot};

use crate::base::{Base, Step, refused};
use crate::index::{Bits, DomainIx, PodClassIx};
use crate::topology::{Key, View, valid};

/// Where several zones will do, or any.
const FLEXIBLE: &str = "flexible";
/// Where no zone will do.
const NONE: &str = "none";

/// Where pods may go.
enum Zones {
    Any,
    These(BTreeSet<String>),
}

/// How many pods wait for which zone: its name, `flexible` where several will do, `none` where none does. Pods that
/// run, pods that are over, and pods that ask for what can never be are not counted.
pub(crate) fn effective_zones(base: &Base, snapshot: &Snapshot) -> BTreeMap<String, u64> {
    let tried = base.waiting.iter().map(|pod| &base.pods[*pod]);
    let classes: BTreeMap<&PodKey, PodClassIx> = match base.topology.is_used() {
        true => tried.map(|(pod, class)| (&*pod.key, *class)).collect(),
        false => BTreeMap::new(),
    };
    let mut counts = BTreeMap::new();
    let waiting = snapshot.pods.iter().filter(|pod| pod.is_pending);
    for pod in waiting.filter(|pod| !matches!(refused(snapshot, pod), Some(Reason::Invalid(_)))) {
        let class = classes.get(&*pod.key).map(|class| &base.classes.classes[*class]);
        // Whatever is only wished for is given up in the last way to try a pod.
        let step = class.and_then(|class| class.steps.last());
        *counts.entry(effective_zone(base, pod, step)).or_default() += 1;
    }
    counts
}

/// Where one pod may go: what it insists on, where its volumes can be used, and where other pods let it go.
fn effective_zone(base: &Base, pod: &Pod, step: Option<&Step>) -> String {
    // Of several alternatives only the first is insisted on; the others are looked at when it cannot be had.
    let strict = pod.strict_requirements();
    let places = pod.storage.volumes().map(|known| known.alternatives.as_slice()).unwrap_or_default();
    let anywhere = [Requirements::default()];
    let mut zones: BTreeSet<String> = BTreeSet::new();
    for place in if places.is_empty() { &anywhere } else { places } {
        let mut wanted = strict.clone();
        wanted.join(place);
        match beside_others(base, step, (&strict, &wanted)).unwrap_or_else(|| asked_for(&wanted)) {
            Zones::Any => return FLEXIBLE.to_owned(),
            Zones::These(more) => zones.extend(more),
        }
    }
    match zones.pop_first() {
        None => NONE.to_owned(),
        Some(only) if zones.is_empty() => only,
        Some(_) => FLEXIBLE.to_owned(),
    }
}

/// The zones that are asked for.
fn asked_for(wanted: &Requirements) -> Zones {
    match wanted.get(ZONE) {
        Some(zone) if zone.operator() == Operator::In => Zones::These(zone.values().iter().cloned().collect()),
        Some(zone) if zone.operator() == Operator::DoesNotExist => Zones::These(BTreeSet::new()),
        _ => Zones::Any,
    }
}

/// Those of them that every constraint on zones allows now; nothing if there is no such constraint. For a spread, domains count
/// that the pod insists on, wherever its volumes are.
fn beside_others(base: &Base, step: Option<&Step>, (strict, wanted): (&Requirements, &Requirements)) -> Option<Zones> {
    let topology = &base.topology;
    let is_zone = |key: &Key| key.label == ZONE;
    let (key, views) = step?.keys.iter().find(|(key, _)| is_zone(&topology.keys[*key]))?;
    let key = &topology.keys[*key];
    let mut left: Bits<DomainIx> = key.left_by(wanted);
    for view in views {
        let seen = &topology.views[*view];
        let view = View { pod_domains: key.left_by(strict), ..seen.clone() };
        left.keep(&valid(topology.groups[seen.group].kind, &view, &topology.counts.groups[seen.group]).domains);
    }
    Some(Zones::These(left.iter().map(|domain| key.values[domain].clone()).collect()))
}
