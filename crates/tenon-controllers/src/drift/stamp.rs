//! Writes hashes onto pools, classes and claims: each owner's claims first where another controller's are taken over, then
//! the owner, so that dying in between loses nothing.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;
use tenon_api::NodeClaim;
use tenon_api::drift::drifted_before;
use tenon_api::hash_stamp::{ClaimStamped, Stamp};

use super::pen::Pen;

/// Claims by name, as they are now.
pub(super) type Claims = BTreeMap<String, Arc<NodeClaim>>;

/// A pool or class, and the hash it should have.
pub(super) struct Owner<K> {
    pub(super) object: Arc<K>,
    pub(super) hash: String,
}

/// Sees to it that an owner carries the hash it should have. Returns it as it is then; one whose claims could not all be
/// written stays as it is until they can.
pub(super) async fn stamp<K>(
    pen: &mut Pen<'_>,
    (stamp, owner): (Stamp, Owner<K>),
    claims: &mut Claims,
    is_its: impl Fn(&NodeClaim) -> bool,
) -> Arc<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let Owner { object, hash } = owner;
    let mut all_done = true;
    for claim in claims.values_mut().filter(|claim| is_its(claim)) {
        let stamped = ClaimStamped { annotations: claim.annotations(), drifted: drifted_before(claim).is_some() };
        let Some(wanted) = stamp.for_claim(object.annotations(), stamped, &hash) else { continue };
        match pen.annotate(claim.as_ref(), json!(wanted)).await {
            Some(done) => *claim = Arc::new(done),
            None => all_done = false,
        }
    }
    let Some(wanted) = stamp.for_owner(object.annotations(), &hash).filter(|_| all_done) else { return object };
    let is_taken_over = !stamp.is_ours(object.annotations());
    let Some(done) = pen.annotate(object.as_ref(), json!(wanted)).await else { return object };
    if is_taken_over {
        tracing::info!(kind = %K::kind(&()), name = object.name_any(), hash, "now carries our hash, and so do its claims");
    }
    Arc::new(done)
}
