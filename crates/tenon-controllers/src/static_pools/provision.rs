//! Makes the claims that are missing in a pool of fixed size.

use kube::ResourceExt;
use kube::api::{Api, PostParams};
use tenon_api::{NodeClaim, NodePool, event_reasons};

use super::claim_template::bare_claim;
use crate::context::Context;
use crate::events::Event;
use crate::kube_error;
use crate::metrics::Created;

/// How this half is called in metrics.
const CONTROLLER: &str = "static.provisioning";

/// Makes so many claims; which half failed, if one did. The first that cannot be made ends it: whether it was made after
/// all, the next look says.
pub(super) async fn make(context: &Context, pool: &NodePool, count: u32) -> Result<(), &'static str> {
    let api: Api<NodeClaim> = Api::all(context.workload.clone());
    let grace = context.settings.termination_grace_period.as_deref();
    let (name, claim) = (pool.name_any(), bare_claim(pool, grace));
    for _ in 0..count {
        match api.create(&PostParams::default(), &claim).await {
            Ok(made) => {
                let counted = Created {
                    reason: "provisioned".to_owned(),
                    nodepool: name.clone(),
                    // Nothing is relaxed for a claim that lists no sizes.
                    min_values_relaxed: "false".to_owned(),
                };
                context.metrics.claims_created.get_or_create(&counted).inc();
                tracing::info!(claim = made.name_any(), pool = name, "created NodeClaim for static NodePool");
            }
            Err(error) => {
                let error = kube_error::message(&error);
                let note = format!("Cannot create a NodeClaim for static NodePool {name}: {error}; retrying");
                context.events.publish(pool, &Event::new(&event_reasons::NODE_CLAIM_NOT_CREATED, note)).await;
                return Err(CONTROLLER);
            }
        }
    }
    Ok(())
}
