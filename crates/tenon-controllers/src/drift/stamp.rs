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

use super::writer::Writer;

/// Claims by name, as they are now.
pub(super) type Claims = BTreeMap<String, Arc<NodeClaim>>;

/// A pool or class, and the hash it should have.
pub(super) struct Owner<K> {
    /// Which annotations it is written to.
    pub(super) stamp: Stamp,
    pub(super) object: Arc<K>,
    pub(super) hash: String,
}

/// Sees to it that an owner carries the hash it should have. Returns it as it is then; one whose claims could not all be
/// written stays as it is until they can.
pub(super) async fn stamp<K>(
    writer: &mut Writer<'_>,
    owner: Owner<K>,
    claims: &mut Claims,
    is_its: impl Fn(&NodeClaim) -> bool,
) -> Arc<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let Owner { stamp, object, hash } = owner;
    let mut all_done = true;
    for claim in claims.values_mut().filter(|claim| is_its(claim)) {
        let stamped = ClaimStamped { annotations: claim.annotations(), drifted: drifted_before(claim).is_some() };
        let Some(wanted) = stamp.for_claim(object.annotations(), stamped, &hash) else { continue };
        match writer.annotate(claim.as_ref(), json!(wanted)).await {
            Some(done) => *claim = Arc::new(done),
            None => all_done = false,
        }
    }
    let Some(wanted) = stamp.for_owner(object.annotations(), &hash).filter(|_| all_done) else { return object };
    let is_taken_over = !stamp.is_ours(object.annotations());
    let Some(done) = writer.annotate(object.as_ref(), json!(wanted)).await else { return object };
    if is_taken_over {
        tracing::info!(kind = %K::kind(&()), name = object.name_any(), hash, "wrote drift hash to object and its NodeClaims");
    }
    Arc::new(done)
}
