//! Roll-outs that stop: when the first replacement of a drifted node of a NodePool never takes pods, no more nodes of that pool are
//! replaced for drift, until what the replacement was made from is different.
//!
//! What it depended on is an annotation of the NodePool, so that a restart remembers it; the condition is written from that.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tenon_api::condition_reasons::{DRIFT_ROLLOUT_HALTED, DRIFTED, INITIALIZED, REPLACEMENT_FAILED};
use tenon_api::{Condition, NodeClaim, NodePool, event_reasons, hash, names};
use tenon_engine::disruption_command::Failure;
use tenon_model::DisruptionReason;

use super::candidate::Shown;
use super::queue::Running;
use crate::claim::{ClaimError, is_true};
use crate::context::{Context, is_our_class};
use crate::events::Event;
use crate::status::{POOL_CONDITIONS, Verdict, stated, subject};
use crate::writes::{self, Written};

/// A roll-out that was halted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Halted {
    /// What the replacement was made from.
    depends_on: String,
    /// The replacements, of which one was late: if it takes pods after all, nothing is wrong.
    replacements: Vec<String>,
    /// What is said of it.
    message: String,
}

/// Halts the roll-outs of the pools whose drifted nodes a command was to replace, where no node that is current has joined yet.
pub(super) async fn halt(
    context: &Context,
    shown: &Shown,
    running: &Running,
    failure: Failure,
) -> Result<(), ClaimError> {
    let record = &running.record;
    if record.reason != DisruptionReason::Drifted || !failure.is_of_replacement() {
        return Ok(());
    }
    let is_its = |claim: &&Arc<NodeClaim>| record.candidates.contains(&claim.name_any());
    let names = shown.claims.iter().filter(is_its).filter_map(|claim| pool_name(claim));
    let names: std::collections::BTreeSet<&str> = names.collect();
    for name in names {
        let pool = shown.pools.iter().find(|pool| pool.name_any() == name);
        let Some(pool) = pool.filter(|_| !has_current_node(shown, name)) else { continue };
        let was = match failure {
            Failure::TimedOut => "was not ready in time",
            _ => "was deleted before it was ready",
        };
        let halted = Halted {
            depends_on: dependencies(context, shown, pool),
            replacements: record.replacements.clone(),
            message: format!(
                "Replacement NodeClaim {} {was}. No more Nodes of NodePool {name} are replaced because of drift until \
                 spec.template of the NodePool, its ProxmoxNodeClass or the VM template changes",
                record.replacements.join(", ")
            ),
        };
        let text = serde_json::to_string(&halted).unwrap_or_default();
        if let Some(pool) = annotate(context, pool, Some(text)).await? {
            let event = Event::new(&event_reasons::DRIFT_ROLLOUT_HALTED, halted.message.clone());
            context.events.publish(&pool, &event).await;
            state(context, &pool, Some(&halted)).await?;
        }
    }
    Ok(())
}

/// Resumes roll-outs whose pool, class or template is another by now, and sees to it that conditions say what is true.
pub(super) async fn refresh(context: &Context, shown: &Shown) -> Result<(), ClaimError> {
    for pool in shown.pools.iter().filter(|pool| is_our_class(&pool.spec.template.spec.node_class_ref)) {
        let Some(text) = pool.annotations().get(names::ANNOTATION_ROLLOUT_HALTED) else {
            state(context, pool, None).await?;
            continue;
        };
        let halted = serde_json::from_str::<Halted>(text).ok();
        let stays = halted.filter(|halted| {
            halted.depends_on == dependencies(context, shown, pool) && !has_joined(shown, &halted.replacements)
        });
        if stays.is_some() {
            state(context, pool, stays.as_ref()).await?;
        } else if let Some(pool) = annotate(context, pool, None).await? {
            tracing::info!(pool = pool.name_any(), "resumed drift roll-out");
            state(context, &pool, None).await?;
        }
    }
    Ok(())
}

/// Whether some node of a pool takes pods and is what the pool says now.
fn has_current_node(shown: &Shown, pool: &str) -> bool {
    let mut claims = shown.claims.iter().filter(|claim| pool_name(claim) == Some(pool));
    claims.any(|claim| {
        let is_leaving = claim.metadata.deletion_timestamp.is_some();
        !is_leaving && is_true(claim, &INITIALIZED) && !is_true(claim, &DRIFTED)
    })
}

fn has_joined(shown: &Shown, replacements: &[String]) -> bool {
    let mut claims = shown.claims.iter().filter(|claim| replacements.contains(&claim.name_any()));
    claims.any(|claim| is_true(claim, &INITIALIZED))
}

fn pool_name(claim: &NodeClaim) -> Option<&str> {
    claim.labels().get(names::LABEL_NODEPOOL).map(String::as_str)
}

/// What new nodes of a pool are made from, as one word.
fn dependencies(context: &Context, shown: &Shown, pool: &NodePool) -> String {
    let mut hasher = DefaultHasher::new();
    hash::of_pool(pool).hash(&mut hasher);
    json!(pool.spec.template.spec.requirements).to_string().hash(&mut hasher);
    let class = context.watched.classes.get(&ObjectRef::new(&pool.spec.template.spec.node_class_ref.name));
    if let Some(class) = class {
        hash::of_class(&class).hash(&mut hasher);
        class.status.as_ref().and_then(|status| status.selected_zones.as_ref()).hash(&mut hasher);
    }
    // That the image behind a template is another is said only on the nodes that have the one before.
    let name = pool.name_any();
    let claims = shown.claims.iter().filter(|claim| pool_name(claim) == Some(&name));
    let images: std::collections::BTreeSet<String> = claims.filter_map(|claim| image_drift(claim)).collect();
    images.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn image_drift(claim: &NodeClaim) -> Option<String> {
    let conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_told = |condition: &&Condition| condition.type_ == DRIFTED.name() && condition.reason == "ImageDrift";
    conditions.into_iter().find(is_told).map(|condition| condition.message.clone())
}

async fn annotate(context: &Context, pool: &NodePool, text: Option<String>) -> Result<Option<NodePool>, ClaimError> {
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_ROLLOUT_HALTED: text } } });
    let written = writes::merge(&context.workload, pool, patch).await;
    let action = || format!("write annotation {} of NodePool {}", names::ANNOTATION_ROLLOUT_HALTED, pool.name_any());
    match written.map_err(|source| ClaimError::kube(&action(), source))? {
        Written::Done(pool) => Ok(Some(*pool)),
        Written::Outdated => Ok(None),
    }
}

/// The condition as it should be, if it is not.
async fn state(context: &Context, pool: &NodePool, halted: Option<&Halted>) -> Result<(), ClaimError> {
    let present = pool.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let said = present.iter().find(|condition| condition.type_ == DRIFT_ROLLOUT_HALTED.name());
    let conditions = match (halted, said) {
        (None, None) => return Ok(()),
        (Some(halted), Some(said)) if said.message == halted.message => return Ok(()),
        (None, Some(_)) => {
            present.into_iter().filter(|condition| condition.type_ != DRIFT_ROLLOUT_HALTED.name()).collect()
        }
        (Some(halted), _) => {
            let verdict = Verdict::holds_because(&REPLACEMENT_FAILED, halted.message.clone());
            let subject = subject(&pool.metadata, &context.clock.time());
            stated(POOL_CONDITIONS, Some(&present), &subject, &[(DRIFT_ROLLOUT_HALTED.name(), &verdict)])
        }
    };
    let written = writes::merge_status(&context.workload, pool, &json!({ "conditions": conditions })).await;
    let action = || format!("write condition {} of NodePool {}", DRIFT_ROLLOUT_HALTED.name(), pool.name_any());
    written.map(drop).map_err(|source| ClaimError::kube(&action(), source))
}
