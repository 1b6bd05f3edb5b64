//! One look at all NodeOverlays and all NodePools: gather, decide, tell each overlay, publish.

use std::sync::Arc;

use kube::{Resource as _, ResourceExt};
use serde_json::json;
use tenon_api::planning::EvaluatedOverlays;
use tenon_api::{ConditionStatus, NodeOverlay, NodePool, ProxmoxNodeClass, event_reasons};

use super::verdict::{OVERLAY_CONDITIONS, VALIDATION, verdict};
use crate::context::{Context, is_our_class};
use crate::events::Event;
use crate::kube_error;
use crate::provision::evaluate_overlays;
use crate::status::{Verdict, stated, subject};
use crate::writes::{self, Written};

/// What is left to do after a look.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// Somebody wrote an overlay while it was looked at: nothing was published.
    pub(super) is_outdated: bool,
    /// What could not be done, each a sentence; the rest was.
    pub(super) errors: Vec<String>,
}

/// What was gathered.
struct Gathered {
    overlays: Vec<Arc<NodeOverlay>>,
    pools: Vec<Arc<NodePool>>,
    classes: Vec<Arc<ProxmoxNodeClass>>,
}

/// Looks once. An overlay that cannot be told keeps no plan waiting, but one that is another by now does: what was found of it
/// is not true any more.
pub(super) async fn pass(context: &Context, overlays: Vec<Arc<NodeOverlay>>) -> Left {
    let gathered = gather(context, overlays);
    let mut left = Left::default();
    let evaluated = decide(context, &gathered, &mut left);
    for overlay in &gathered.overlays {
        let verdict = verdict(evaluated.faults.get(&overlay.name_any()));
        match report(context, overlay, &verdict).await {
            Ok(Some(())) => {}
            Ok(None) => left.is_outdated = true,
            Err(error) => {
                left.errors.push(format!("cannot write status of NodeOverlay {}: {error}", overlay.name_any()));
            }
        }
    }
    if !left.is_outdated && context.memory.overlays.publish(evaluated) {
        tracing::info!(overlays = gathered.overlays.len(), pools = gathered.pools.len(), "applied NodeOverlays");
        context.watched.pods_changed.notify_one();
    }
    left
}

fn gather(context: &Context, mut overlays: Vec<Arc<NodeOverlay>>) -> Gathered {
    overlays.retain(|overlay| overlay.metadata.deletion_timestamp.is_none());
    overlays.sort_by_key(|overlay| overlay.name_any());
    let mut pools = context.watched.pools.state_filter(|pool| is_our_class(&pool.spec.template.spec.node_class_ref));
    pools.sort_by_key(|pool| pool.name_any());
    Gathered { overlays, pools, classes: context.watched.classes.state() }
}

/// What applies where. A pool whose class is missing is not looked at, and waits; the others do not.
fn decide(context: &Context, gathered: &Gathered, left: &mut Left) -> EvaluatedOverlays {
    let Gathered { overlays, pools, classes } = gathered;
    let is_there = |pool: &&Arc<NodePool>| classes.iter().any(|class| class.name_any() == class_of(pool));
    let without = pools.iter().filter(|pool| !is_there(pool));
    left.errors.extend(without.map(|pool| {
        let class = class_of(pool);
        format!("cannot apply NodeOverlays to NodePool {}: ProxmoxNodeClass {class} does not exist", pool.name_any())
    }));
    evaluate_overlays(overlays.iter().map(AsRef::as_ref), pools, classes, &context.settings.types)
}

fn class_of(pool: &NodePool) -> &str {
    &pool.spec.template.spec.node_class_ref.name
}

/// Writes what is new; nothing if somebody was faster. What does not hold is told once, when it is new.
async fn report(context: &Context, overlay: &NodeOverlay, verdict: &Verdict) -> Result<Option<()>, String> {
    let present = overlay.status.as_ref().and_then(|status| status.conditions.as_deref());
    let subject = subject(&overlay.metadata, &context.clock.time());
    let conditions = stated(OVERLAY_CONDITIONS, present, &subject, &[(VALIDATION, verdict)]);
    if present == Some(conditions.as_slice()) {
        return Ok(Some(()));
    }
    let written = writes::merge_status(&context.workload, overlay, &json!({ "conditions": conditions })).await;
    if let Written::Outdated = written.map_err(|error| kube_error::message(&error))? {
        return Ok(None);
    }
    if verdict.status() != ConditionStatus::True {
        let note = format!("{VALIDATION} is False ({}): {}", verdict.reason(), verdict.message());
        let event = Event::new(&event_reasons::VALIDATION_SUCCEEDED, note);
        context.events.publish_for(&overlay.object_ref(&()), &event).await;
    }
    Ok(Some(()))
}
