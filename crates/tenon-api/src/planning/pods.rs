//! Pods whose node is removed and that need another.

use crate::kube_objects::Pod as KubePod;
use std::collections::BTreeSet;

use tenon_model::{Seconds, Timestamp};

use super::budgets::is_held;
use crate::objects::Objects;
use crate::pod_predicates::{bound_to, has_do_not_disrupt, is_evictable, is_reschedulable};

/// Pods of nodes that leave, as far as they will need another.
pub(super) fn moving<'a>(objects: &'a Objects, leaving: &BTreeSet<&str>, now: Seconds) -> Vec<&'a KubePod> {
    if leaving.is_empty() {
        return Vec::new();
    }
    let theirs = objects.pods.iter().filter(|pod| bound_to(pod).is_some_and(|node| leaving.contains(node)));
    let now = Timestamp::from(now);
    theirs.filter(|pod| can_move(pod, objects, now)).map(AsRef::as_ref).collect()
}

/// Whether the pod of a node that is removed will need another: it has to run somewhere, and nothing keeps it from moving.
fn can_move(pod: &KubePod, objects: &Objects, now: Timestamp) -> bool {
    let is_held = || is_evictable(pod) && is_held(pod, &objects.disruption_budgets);
    is_reschedulable(pod) && !has_do_not_disrupt(pod, now) && !is_held()
}
