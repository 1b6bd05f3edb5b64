//! One look at the cluster: which pods should bear which cost, and what has to be written for that?

use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, ListParams};
use tenon_api::kube_objects::PodDisruptionBudget;
use tenon_api::{names, replicas_by_node};
use tenon_engine::disruption::{cost_writes, deletion_cost_state, deletion_costs};
use tenon_model::Snapshot;

use super::queue::WriteQueue;
use super::write::Change;
use crate::context::Context;
use crate::kube_error;
use crate::metrics::InPool;
use crate::moments::after;
use crate::provision::{self, Lookout};

/// What time alone changes (budgets, pods of Jobs) is looked at after so long. As in Karpenter.
const AGAIN_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// What is known of the passes before.
#[derive(Debug, Default)]
pub(super) struct Passes {
    lookout: Lookout,
    /// What the last one saw that was finished, and until when that need not be looked at again.
    last: Option<(u64, Timestamp)>,
}

impl Passes {
    /// One pass. Says what went wrong; nothing is written then, and the next one looks again.
    pub(super) async fn pass(&mut self, context: &Context, queue: &mut WriteQueue) -> Result<(), String> {
        let budgets: Api<PodDisruptionBudget> = Api::all(context.workload.clone());
        // Without them, nodes that cannot be drained would count as those that are emptied next.
        let budgets = budgets.list(&ListParams::default()).await;
        let budgets =
            budgets.map_err(|error| format!("cannot list PodDisruptionBudgets: {}", kube_error::message(&error)))?;
        let mut gathered = provision::gather(context).await;
        gathered.budgets = budgets.items.into_iter().map(Into::into).collect();
        let mut snapshot = self.lookout.look_for_disruption(&gathered, &context.settings.types);
        let now = context.clock.now();
        nominate(context, &mut snapshot, now);
        let state = deletion_cost_state(&snapshot);
        if self.last.is_some_and(|(last, until)| last == state && now < until) {
            return Ok(());
        }
        let replicas = replicas_by_node(&gathered.pods);
        let found = cost_writes(&deletion_costs(&snapshot, &replicas), &replicas);
        let pending = &context.metrics.cost_nodes_pending;
        pending.clear();
        for (nodepool, nodes) in found.pending {
            pending.get_or_create(&InPool { nodepool }).set(nodes);
        }
        for write in &found.writes {
            queue.add(&write.pod, Change::Manage(write.cost));
        }
        self.last = (!found.is_cut).then(|| (state, after(now, AGAIN_AFTER)));
        Ok(())
    }
}

/// Nodes on which pods are expected stay for now.
fn nominate(context: &Context, snapshot: &mut Snapshot, now: Timestamp) {
    let nominated = snapshot.nodes.iter().filter(|node| context.memory.is_nominated(&node.name, now));
    snapshot.disruption.nominated = nominated.map(|node| node.name.clone()).collect();
}

/// Every pod that still bears what Tenon wrote.
pub(super) fn clean_up(context: &Context, queue: &mut WriteQueue) {
    let is_marked =
        |pod: &tenon_api::kube_objects::Pod| pod.annotations().contains_key(names::ANNOTATION_MANAGED_DELETION_COST);
    for pod in context.watched.pods.state_filter(is_marked) {
        queue.add(&pod.metadata.key, Change::CleanUp);
    }
}
