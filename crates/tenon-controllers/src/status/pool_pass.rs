//! Judges every NodePool by its own words and by its class, and writes what is new.

use std::collections::BTreeMap;

use kube::ResourceExt;
use serde_json::json;
use tenon_api::condition_reasons::{AWAITING_RECONCILIATION, NODE_REGISTRATION_HEALTHY};
use tenon_api::{NodePool, unknown_pool_values};
use tenon_engine::registration_health::JudgedPool;

use super::Verdict;
use super::pass::{FoundClass, Look, StatusContext, StatusError, StatusReport, StatusWrite, Writer, stated, subject};
use super::pool::{CLASS_READY, ObservedClass, POOL_CONDITIONS, VALIDATION, judge_pool};
use crate::context::is_our_class;
use crate::registration_book::condition;

/// Pools whose class is of another kind are another controller's.
pub(super) async fn judge_pools(
    context: &StatusContext,
    classes: &BTreeMap<String, FoundClass>,
    look: &Look,
    report: &mut StatusReport,
) -> Result<(), StatusError> {
    let pools = Writer::<NodePool>::list(context).await?;
    for pool in pools.objects.iter().filter(|pool| is_our_class(&pool.spec.template.spec.node_class_ref)) {
        let class = classes.get(&pool.spec.template.spec.node_class_ref.name);
        let verdict = judge_pool(&pool.spec, context.gates, class.map_or(&ObservedClass::Missing, |class| &class.seen));
        let outdated = class.and_then(|class| outdated_health(pool, class.generation));
        let mut said = vec![(VALIDATION, &verdict.validation), (CLASS_READY, &verdict.class)];
        said.extend(outdated.as_ref().map(|verdict| (NODE_REGISTRATION_HEALTHY.name(), verdict)));
        let present = pool.status.as_ref().and_then(|status| status.conditions.as_deref());
        let conditions = stated(POOL_CONDITIONS, present, &subject(&pool.metadata, &look.now), &said);
        let mut status = json!({ "conditions": conditions });
        if let Some(class) = class {
            status["nodeClassObservedGeneration"] = json!(class.generation);
        }
        warn_of_unknown_values(pool);
        let written = pools.write(pool, &status).await;
        let uid = pool.uid().unwrap_or_default();
        match (&written, &outdated) {
            // Only what was said is forgotten: somebody who was faster may just have said something else.
            (Ok(StatusWrite::Done), Some(_)) => context.registrations.reset(&uid),
            (_, Some(_)) => {}
            (_, None) => context.registrations.seed(&uid, pool),
        }
        report.add(pool, written, &said);
    }
    Ok(())
}

/// Once for each generation: a misspelled value beside a good one keeps no pool from being used.
fn warn_of_unknown_values(pool: &NodePool) {
    let mut conditions = pool.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_judged = |condition: &tenon_api::Condition| {
        condition.type_ == VALIDATION && condition.observed_generation == pool.metadata.generation
    };
    if conditions.any(is_judged) {
        return;
    }
    for (label, value) in unknown_pool_values(&pool.spec) {
        tracing::warn!(pool = pool.name_any(), label, value, "unknown value in requirements of NodePool; ignored");
    }
}

/// What is said of the health of a pool that is not the one its health was judged for; nothing if it is.
fn outdated_health(pool: &NodePool, class_generation: i64) -> Option<Verdict> {
    let judged = JudgedPool {
        condition: condition(pool).map(|found| found.observed_generation.unwrap_or_default()),
        generation: pool.metadata.generation.unwrap_or_default(),
        class_seen: pool.status.as_ref().and_then(|status| status.node_class_observed_generation),
        class_generation,
    };
    let name = pool.name_any();
    let message = format!("No Node of NodePool {name} was launched since the NodePool or its ProxmoxNodeClass changed");
    judged.is_outdated().then(|| Verdict::unknown(&AWAITING_RECONCILIATION, message))
}
