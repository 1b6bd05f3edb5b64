//! How long did the end of a NodeClaim, of its Node and of its VM take?

use jiff::Timestamp;
use kube::ResourceExt;
use tenon_api::condition_reasons::INSTANCE_TERMINATING;
use tenon_api::kube_objects::Node;
use tenon_api::{NodeClaim, names};

use super::gather::condition;
use crate::context::Context;
use crate::metrics::{Attempt, InPool};

/// How long a Node lived, and how long its end took.
pub(super) fn node(context: &Context, ended: &Node) {
    let nodepool = ended.labels().get(names::LABEL_NODEPOOL).cloned().unwrap_or_default();
    let (metrics, of) = (&context.metrics, InPool { nodepool });
    for (series, since) in [
        (&metrics.nodes_termination, &ended.metadata.deletion_timestamp),
        (&metrics.nodes_lifetime, &ended.metadata.creation_timestamp),
    ] {
        if let Some(since) = since {
            series.get_or_create(&of).observe(seconds_since(context, since.0));
        }
    }
}

/// How long the end of a NodeClaim and of its VM took.
pub(super) fn claim(context: &Context, ended: &NodeClaim, nodepool: &str) {
    let (metrics, of) = (&context.metrics, InPool { nodepool: nodepool.to_owned() });
    if let Some(deleted) = &ended.metadata.deletion_timestamp {
        metrics.claims_termination.get_or_create(&of).observe(seconds_since(context, deleted.0));
    }
    if let Some(begun) = condition(ended, &INSTANCE_TERMINATING) {
        let took = seconds_since(context, begun.last_transition_time.0);
        metrics.instances_termination.get_or_create(&of).observe(took);
        metrics.provided(Attempt::Delete, took);
    }
}

fn seconds_since(context: &Context, since: Timestamp) -> f64 {
    context.clock.now().duration_since(since).as_secs_f64().max(0.0)
}
