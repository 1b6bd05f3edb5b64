//! Claims that a person made, or that some other tool did: they are sized and placed like any other, and the launch is
//! written where they stand.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use serde_json::json;
use tenon_api::{NodeClaim, ProxmoxNodeClass, hash_stamp, launch_record, names};
use tenon_model::{InstanceType, LaunchRecord, NewNode, Pod, PodKey, Pool, Reason, Snapshot};

use super::claims::{ClaimError, class_of, decided, record_for};
use super::gather::{Gathered, gather};
use super::hosts::{hosts, taken_ids};
use super::snapshot::{catalog, not_ready, requirements};
use crate::context::{Context, is_ours};
use crate::events::Saying;
use crate::status::CLASS_CONDITIONS;
use crate::writes::{self, Written};

/// Whether nobody planned a claim yet. One that has a VM, but no launch of ours, is somebody else's.
pub(crate) fn is_unplanned(claim: &NodeClaim) -> bool {
    let has_vm = claim.status.as_ref().is_some_and(|status| status.provider_id.is_some());
    let is_held = claim.finalizers().iter().any(|name| name == names::FINALIZER);
    let is_planned = claim.annotations().contains_key(names::ANNOTATION_LAUNCH);
    is_ours(claim) && is_held && !is_planned && !has_vm && claim.metadata.deletion_timestamp.is_none()
}

/// Plans for every claim nobody planned yet.
pub(crate) async fn pass(context: &Context) {
    let mut waiting = context.watched.claims.state_filter(is_unplanned);
    // Who came first is served first; a store has an order of its own.
    waiting.sort_by_key(|claim| (claim.creation_timestamp(), claim.name_any()));
    let mut last: Option<Gathered> = None;
    for claim in waiting {
        let gathered = match last.take() {
            Some(gathered) => gathered,
            None => gather(context).await,
        };
        let is_still = |known: &&Arc<NodeClaim>| known.uid() == claim.uid() && is_unplanned(known);
        let is_waiting = gathered.claims.iter().any(|known| is_still(&known));
        let is_tried = is_waiting && plan_one(context, &gathered, &claim).await;
        // Looked at anew after one that may have taken a host's last room; those that wait in vain share a look.
        last = (!is_tried).then_some(gathered);
    }
}

/// Whether a launch was written, or may have been.
async fn plan_one(context: &Context, gathered: &Gathered, claim: &NodeClaim) -> bool {
    match launch_of(context, gathered, claim) {
        Ok(launch) => {
            write(context, claim, launch).await;
            true
        }
        Err(why) => {
            context.events.say(claim, &Saying::failed_scheduling(why)).await;
            false
        }
    }
}

/// A node, the class it is made from, and its launch.
type Launch<'a> = (NewNode, &'a ProxmoxNodeClass, LaunchRecord);

fn launch_of<'a>(context: &Context, gathered: &'a Gathered, claim: &NodeClaim) -> Result<Launch<'a>, String> {
    let node = decide(claim, gathered, &context.settings.types).map_err(|why| why.to_string())?;
    let class = class_of(&claim.spec.node_class_ref.name, gathered);
    let class = class.ok_or_else(|| ClaimError::Gone(node.pool.clone()).to_string())?;
    let mut taken = taken_ids(&gathered.estate, &gathered.claims);
    let record = record_for(&node, (class, gathered), (context.settings.ids, &mut taken), context.clock.seconds());
    Ok((node, class, record.map_err(|why| why.to_string())?))
}

async fn write(context: &Context, claim: &NodeClaim, (node, class, record): Launch<'_>) {
    let mut labels: BTreeMap<String, String> = decided(&node);
    // It belongs to a pool only if whoever made it said so.
    if !claim.labels().contains_key(names::LABEL_NODEPOOL) {
        labels.remove(names::LABEL_NODEPOOL);
    }
    labels.insert(names::LABEL_NODECLASS.to_owned(), claim.spec.node_class_ref.name.clone());
    // Of its pool it says nothing: nobody made it from that.
    let mut annotations = hash_stamp::of_class(class);
    annotations.insert(names::ANNOTATION_LAUNCH.to_owned(), launch_record::write(&record));
    let patch = json!({ "metadata": { "labels": labels, "annotations": annotations } });
    match writes::merge(&context.workload, claim, patch).await {
        Ok(Written::Done(written)) => {
            tracing::info!(claim = claim.name_any(), size = node.chosen.instance_type, host = %record.place.host, vmid = %record.vmid,
                "a claim made by hand was planned");
            context.memory.add_claim(&written, Vec::new(), context.clock.now());
        }
        Ok(Written::Outdated) => {}
        Err(error) => tracing::warn!(claim = claim.name_any(), %error, "a launch could not be written"),
    }
}

/// The cheapest size and a host for a claim: a plan for one pod, in a pool of its own, that needs what the claim asks for.
pub fn decide(claim: &NodeClaim, gathered: &Gathered, types: &[InstanceType]) -> Result<NewNode, Reason> {
    let name = claim.labels().get(names::LABEL_NODEPOOL).cloned().unwrap_or_else(|| claim.name_any());
    let class = class_of(&claim.spec.node_class_ref.name, gathered);
    let conditions = class.iter().flat_map(|class| class.status.iter());
    let trouble = not_ready(conditions.flat_map(|status| status.conditions.iter().flatten()), CLASS_CONDITIONS);
    let missing = format!("there is no ProxmoxNodeClass {}; create it", claim.spec.node_class_ref.name);
    let pool = Pool {
        name,
        weight: 0,
        requirements: requirements(&claim.spec.requirements),
        catalog: Arc::new(class.map(|class| catalog(class, types)).unwrap_or_default()),
        not_ready: if class.is_some() { trouble } else { Some(missing) },
        ..Pool::default()
    };
    let wanted = claim.spec.resources.iter().flat_map(|resources| resources.requests.iter().flatten());
    let pod = Pod {
        key: PodKey { namespace: String::new(), name: claim.name_any(), uid: claim.uid().unwrap_or_default() },
        requests: wanted.filter_map(|(name, amount)| Some((name.clone(), tenon_api::quantity_of(amount)?))).collect(),
        ..Pod::default()
    };
    let alone = Snapshot {
        hosts: hosts(gathered, types),
        options: gathered.options.engine(),
        pools: vec![Arc::new(pool)],
        pods: vec![Arc::new(pod)],
        ..Snapshot::default()
    };
    let plan = tenon_engine::plan(&alone);
    let refused = plan.unplaced.into_iter().next().map_or(Reason::Internal("a reason"), |unplaced| unplaced.reason);
    plan.new_nodes.into_iter().next().ok_or(refused)
}
