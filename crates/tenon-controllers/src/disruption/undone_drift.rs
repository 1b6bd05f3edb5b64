//! Which nodes say they have drifted although their NodePool or ProxmoxNodeClass went back? Conditions are written a moment after such
//! a change; until then nothing is replaced for a reason that is gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use tenon_api::drift::{drifted_before, is_undone};
use tenon_api::{NodeClaim, names};
use tenon_model::Snapshot;

use crate::context::Context;
use crate::provision::requirements;

/// Nodes of such claims have not drifted.
pub(super) fn forget_undone_drift(context: &Context, claims: &[Arc<NodeClaim>], snapshot: &mut Snapshot) {
    let drifted = claims.iter().filter(|claim| drifted_before(claim).is_some());
    let undone: BTreeSet<String> =
        drifted.filter(|claim| is_gone(context, claim)).map(|claim| claim.name_any()).collect();
    if undone.is_empty() {
        return;
    }
    for node in &mut snapshot.nodes {
        if node.disruption.as_ref().is_some_and(|facts| undone.contains(&facts.claim.name))
            && let Some(facts) = &mut Arc::make_mut(node).disruption
        {
            Arc::make_mut(facts).claim.drifted_since = None;
        }
    }
}

fn is_gone(context: &Context, claim: &NodeClaim) -> bool {
    let Some(pool) = claim.labels().get(names::LABEL_NODEPOOL) else { return false };
    let Some(pool) = context.watched.pools.get(&ObjectRef::new(pool)) else { return false };
    let class = context.watched.classes.get(&ObjectRef::new(&claim.spec.node_class_ref.name));
    is_undone(claim, &pool, &requirements(&pool.spec.template.spec.requirements), class.as_deref())
}
