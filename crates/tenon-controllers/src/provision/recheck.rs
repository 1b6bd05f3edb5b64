//! May a node that was planned still be made? Between a plan and its claims a pool may go, fail, or be given lower limits.

use std::collections::BTreeMap;

use kube::ResourceExt;
use tenon_api::NodePool;
use tenon_model::{NewNode, Quantity, Resources, Snapshot};

use super::claims::ClaimError;
use super::snapshot::not_ready;
use crate::status::POOL_CONDITIONS;

/// What a limit on the number of nodes is called.
const NODES: &str = "nodes";

/// What each pool has, with the claims that were made since.
#[derive(Debug, Default)]
pub struct Usage {
    used: BTreeMap<String, Resources>,
}

impl Usage {
    /// What each pool had when the plan was made.
    pub fn at(snapshot: &Snapshot) -> Usage {
        Usage { used: snapshot.pools.iter().map(|pool| (pool.name.clone(), pool.used.clone())).collect() }
    }

    /// A claim was made: it counts from now on, at the size that its pool has under the name that was written down.
    pub fn add(&mut self, node: &NewNode, snapshot: &Snapshot) {
        let used = self.used.entry(node.pool.clone()).or_default();
        let pool = snapshot.pools.iter().find(|pool| pool.name == node.pool);
        if let Some(size) = pool.and_then(|pool| pool.catalog.find(&node.chosen.instance_type)) {
            used.add(&size.capacity);
        }
        used.add(&Resources::default().with(NODES, Quantity::whole(1)));
    }

    /// Whether one more node of a pool may be made, as the pool is now. Only what the pool has is compared, not what the
    /// new node brings: the plan saw to that, with the limits it knew.
    pub fn allows(&self, planned: &NodePool, now: Option<&NodePool>) -> Result<(), ClaimError> {
        let name = planned.name_any();
        let is_same = |pool: &&NodePool| pool.uid() == planned.uid() && pool.metadata.deletion_timestamp.is_none();
        let pool = now.filter(is_same).ok_or_else(|| ClaimError::NotFound(name.clone()))?;
        let conditions = pool.status.iter().flat_map(|status| status.conditions.iter().flatten());
        if let Some(why) = not_ready(conditions, POOL_CONDITIONS) {
            return Err(ClaimError::NotReady { pool: name, why });
        }
        let nothing = Resources::default();
        let used = self.used.get(&name).unwrap_or(&nothing);
        for (resource, limit) in pool.spec.limits.iter().flatten() {
            let (Some(limit), used) = (tenon_api::quantity_of(limit), used.get(resource)) else { continue };
            if used > limit {
                return Err(ClaimError::OverLimit { pool: name, resource: resource.clone(), used, limit });
            }
        }
        Ok(())
    }
}
