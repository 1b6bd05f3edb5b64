//! Did anything change since a look found nothing to do? Then another is not worth its while, for some minutes.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use tenon_api::kube_objects::{Node, Pod};
use tenon_api::pod_predicates::is_active;
use tenon_api::unhealthy_conditions;
use tenon_engine::disruption::{Disruption, DisruptionBlocked, HostStay, Kept};

use super::candidate::Shown;
use crate::claim::is_ready;
use crate::context::Context;

/// After this long it is looked again in any case, as in the reference: time alone, a PodDisruptionBudget or a price may have
/// changed the answer.
const KEPT_FOR: SignedDuration = SignedDuration::from_mins(5);

/// The last look that found nothing.
#[derive(Debug, Default)]
pub(super) struct Memo {
    found_nothing: Option<(u64, Timestamp)>,
}

impl Memo {
    /// Whether a look would find nothing again.
    pub(super) fn holds(&self, state: u64, now: Timestamp) -> bool {
        self.found_nothing.is_some_and(|(known, until)| known == state && now < until)
    }

    /// What a look found, in this state.
    pub(super) fn note(&mut self, disruption: &Disruption, state: u64, now: Timestamp) {
        let waits = disruption.kept.iter().flat_map(|node| &node.reasons).any(|(_, why)| changes_by_itself(why));
        let is_settled = disruption.commands.is_empty() && !waits;
        self.found_nothing = is_settled.then(|| (state, crate::moments::after(now, KEPT_FOR)));
    }

    /// Something was done: the next look counts.
    pub(super) fn clear(&mut self) {
        self.found_nothing = None;
    }
}

/// Whether a reason goes away without a change that is seen.
fn changes_by_itself(why: &Kept) -> bool {
    matches!(
        why,
        Kept::Budget(_)
            | Kept::InProgress
            | Kept::Rebooting
            | Kept::Tolerated { .. }
            | Kept::Later { .. }
            | Kept::Uninitialized { .. }
            | Kept::PodHeld { .. }
            | Kept::Host(HostStay::Busy { .. } | HostStay::Empty { .. })
            | Kept::Blocked(
                DisruptionBlocked::TooRecent { .. }
                    | DisruptionBlocked::Nominated
                    | DisruptionBlocked::NotInitialized
                    | DisruptionBlocked::Deleting
            )
    )
}

/// What the caches show, as one number: everything a look depends on but time, budgets of pods and Proxmox.
pub(super) fn state_of(context: &Context, shown: &Shown) -> u64 {
    let mut hasher = DefaultHasher::new();
    for claim in &shown.claims {
        (claim.name_any(), claim.resource_version()).hash(&mut hasher);
    }
    for node in shown.nodes.values() {
        hash_node(context, node, &mut hasher);
    }
    let mut pods: Vec<u64> = context.watched.pods.state().iter().map(|pod| hash_of_pod(pod)).collect();
    pods.sort_unstable();
    pods.hash(&mut hasher);
    let mut rules: Vec<(String, Option<i64>)> =
        shown.pools.iter().map(|pool| (pool.name_any(), pool.metadata.generation)).collect();
    let classes = context.watched.classes.state();
    rules.extend(classes.iter().map(|class| (class.name_any(), class.metadata.generation)));
    rules.sort();
    rules.hash(&mut hasher);
    context.memory.overlays.epoch().hash(&mut hasher);
    hasher.finish()
}

fn hash_of_pod(pod: &Pod) -> u64 {
    let mut hasher = DefaultHasher::new();
    (pod.uid(), pod.node_name.as_deref(), is_active(pod)).hash(&mut hasher);
    pod.metadata.annotations.hash(&mut hasher);
    hasher.finish()
}

/// Not its version: the status of a node is written all the time.
fn hash_node(context: &Context, node: &Node, hasher: &mut DefaultHasher) {
    node.labels().hash(hasher);
    node.annotations().hash(hasher);
    is_ready(node).hash(hasher);
    for fault in unhealthy_conditions(node, &context.settings.planning.repair_policies) {
        (fault.condition, fault.status, fault.reason, fault.since.as_nanos()).hash(hasher);
    }
    node.metadata.deletion_timestamp.is_some().hash(hasher);
    if let Some(spec) = &node.spec {
        spec.unschedulable.hash(hasher);
        serde_json::to_string(&spec.taints).unwrap_or_default().hash(hasher);
    }
}
