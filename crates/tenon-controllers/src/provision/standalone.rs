//! Standalone NodeClaims, created by a person or another tool: they get an instance type and a host like any other, and the
//! launch is written into them.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use serde_json::json;
use tenon_api::{NodeClaim, ProxmoxNodeClass, hash_stamp, launch_record, names};
use tenon_engine::{LaunchRefusal, launches};
use tenon_model::{Catalog, InstanceType, LaunchRecord, NewNode, Plan, Pod, PodKey, PodShape, Pool, Reason, Snapshot};

use super::claims::{ClaimError, class_of, decided};
use super::gather::{Gathered, gather};
use super::host_rules::host_rules_for;
use super::hosts::hosts;
use super::launch_site::launch_site_for;
use super::overlays::{not_evaluated, overlay_annotations};
use super::snapshot::{catalog, not_ready, requirements};
use crate::context::{Context, is_ours};
use crate::events::Event;
use crate::kube_error;
use crate::status::CLASS_CONDITIONS;
use crate::writes::{self, Written};

/// Whether a claim was not planned yet. One that has a VM, but no launch of ours, belongs to another controller.
pub(crate) fn is_unplanned(claim: &NodeClaim) -> bool {
    let has_vm = claim.status.as_ref().is_some_and(|status| status.provider_id.is_some());
    let is_held = claim.finalizers().iter().any(|name| name == names::FINALIZER);
    let is_planned = claim.annotations().contains_key(names::ANNOTATION_LAUNCH);
    is_ours(claim) && is_held && !is_planned && !has_vm && claim.metadata.deletion_timestamp.is_none()
}

/// Plans for every claim that was not planned yet.
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
            context.events.publish(claim, &Event::failed_scheduling(why)).await;
            false
        }
    }
}

/// A node, the class it is made from, and its launch.
struct PlannedLaunch<'a> {
    node: NewNode,
    class: &'a ProxmoxNodeClass,
    record: LaunchRecord,
    /// Whether NodeOverlays changed what it is made from.
    overlaid: BTreeMap<String, String>,
}

fn launch_of<'a>(context: &Context, gathered: &'a Gathered, claim: &NodeClaim) -> Result<PlannedLaunch<'a>, String> {
    let alone = alone(claim, gathered, &context.settings.types);
    let plan = tenon_engine::plan(&alone);
    let launch = launches(&alone, &plan).into_iter().next();
    let node = only_node(plan).map_err(|why| why.to_string())?;
    let class = class_of(&claim.spec.node_class_ref.name, gathered);
    let class = class.ok_or_else(|| ClaimError::NotFound(node.pool.clone()).to_string())?;
    let no_host = || LaunchRefusal::NoHost { pool: node.pool.clone() };
    let record = launch.unwrap_or_else(|| Err(no_host())).map_err(|why| why.to_string())?;
    let overlaid = overlay_annotations(&node, &alone);
    Ok(PlannedLaunch { node, class, record, overlaid })
}

async fn write(context: &Context, claim: &NodeClaim, launch: PlannedLaunch<'_>) {
    let PlannedLaunch { node, class, record, overlaid } = launch;
    let mut labels: BTreeMap<String, String> = decided(&node);
    // It belongs to a pool only if whoever made it said so.
    if !claim.labels().contains_key(names::LABEL_NODEPOOL) {
        labels.remove(names::LABEL_NODEPOOL);
    }
    labels.insert(names::LABEL_NODECLASS.to_owned(), claim.spec.node_class_ref.name.clone());
    // Of its pool it says nothing: nobody made it from that.
    let mut annotations = hash_stamp::of_class(class);
    annotations.extend(overlaid);
    annotations.insert(names::ANNOTATION_LAUNCH.to_owned(), launch_record::write(&record));
    let patch = json!({ "metadata": { "labels": labels, "annotations": annotations } });
    match writes::merge(&context.workload, claim, patch).await {
        Ok(Written::Done(written)) => {
            tracing::info!(
                claim = claim.name_any(),
                instance_type = node.chosen.instance_type,
                host = %record.place.host,
                vmid = %record.vmid,
                "planned standalone NodeClaim"
            );
            context.memory.add_claim(&written, Vec::new(), context.clock.now());
        }
        Ok(Written::Outdated) => {}
        Err(error) => {
            let error = kube_error::message(&error);
            tracing::warn!(claim = claim.name_any(), error, "cannot write launch record to NodeClaim; retrying");
        }
    }
}

/// The cheapest instance type and a host for a claim: a plan for one pod, in a pool of its own, that needs what the claim
/// asks for.
pub fn decide(claim: &NodeClaim, gathered: &Gathered, types: &[InstanceType]) -> Result<NewNode, Reason> {
    only_node(tenon_engine::plan(&alone(claim, gathered, types)))
}

fn only_node(plan: Plan) -> Result<NewNode, Reason> {
    let refused = plan
        .unplaced
        .into_iter()
        .next()
        .map_or(Reason::Internal("a new node or a reason for the NodeClaim"), |unplaced| unplaced.reason);
    plan.new_nodes.into_iter().next().ok_or(refused)
}

/// A world with nothing in it but this claim.
fn alone(claim: &NodeClaim, gathered: &Gathered, types: &[InstanceType]) -> Snapshot {
    let name = claim.labels().get(names::LABEL_NODEPOOL).cloned().unwrap_or_else(|| claim.name_any());
    let class = class_of(&claim.spec.node_class_ref.name, gathered);
    let conditions = class.iter().flat_map(|class| class.status.iter());
    let trouble = not_ready(conditions.flat_map(|status| status.conditions.iter().flatten()), CLASS_CONDITIONS);
    let missing = format!("ProxmoxNodeClass {} does not exist; create it", claim.spec.node_class_ref.name);
    let catalog = Arc::new(class.map(|class| catalog(class, types)).unwrap_or_default());
    let (catalog, unknown) = overlaid(claim, gathered, catalog);
    let pool = Pool {
        name: name.clone(),
        weight: 0,
        requirements: requirements(&claim.spec.requirements),
        catalog,
        not_ready: if class.is_some() { trouble.or(unknown) } else { Some(missing) },
        ..Pool::default()
    };
    let wanted = claim.spec.resources.iter().flat_map(|resources| resources.requests.iter().flatten());
    let wanted = wanted.filter_map(|(name, amount)| Some((name.clone(), tenon_api::quantity_of(amount)?)));
    let shape = PodShape { requests: wanted.collect(), ..PodShape::default() };
    let key =
        PodKey { name: claim.name_any().into(), uid: claim.uid().unwrap_or_default().into(), ..PodKey::default() };
    let pod = Pod { key: Arc::new(key), shape: Arc::new(shape), ..Pod::default() };
    Snapshot {
        hosts: hosts(gathered, types, &vec![(name.clone(), claim.spec.node_class_ref.name.clone())]),
        host_rules: class.map(|class| (name.clone(), host_rules_for(claim, class, gathered))).into_iter().collect(),
        launch_site: class.map(|class| launch_site_for(&name, class, gathered)).unwrap_or_default(),
        options: gathered.options.engine(),
        pools: vec![Arc::new(pool)],
        pods: vec![Arc::new(pod)],
        now: gathered.now,
        ..Snapshot::default()
    }
}

/// What NodeOverlays make of a catalogue for a claim that belongs to a pool; why that is not known yet, if so.
fn overlaid(claim: &NodeClaim, gathered: &Gathered, base: Arc<Catalog>) -> (Arc<Catalog>, Option<String>) {
    let name = claim.labels().get(names::LABEL_NODEPOOL);
    let pool = name.and_then(|name| gathered.pools.iter().find(|pool| pool.name_any() == *name));
    let (Some(overlays), Some(pool)) = (&gathered.overlays, pool) else { return (base, None) };
    let changes = overlays.changes(pool, &base);
    let unknown = (!overlays.knows(&pool.name_any())).then(|| not_evaluated(&pool.name_any()));
    (if changes.is_empty() { base } else { Arc::new(changes.applied_to(&base)) }, unknown)
}
