//! What the nodes of each NodePool have together: `status.resources` and `status.nodes`, from the stores, every few seconds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use serde_json::json;
use tenon_api::planning::pool_totals;
use tenon_api::{NodePool, ResourceMap};
use tenon_model::{Quantity, Resources};

use crate::context::{Context, is_our_class};
use crate::kube_error;
use crate::metrics::Loop;
use crate::stop::Stop;
use crate::writes;

/// As often as Karpenter counts.
const EVERY: Duration = Duration::from_secs(5);

/// What every pool shows, even without a node.
const SHOWN: [&str; 5] = ["cpu", "memory", "pods", "ephemeral-storage", "nodes"];

/// Counts until told to stop.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    loop {
        pass(&context).await;
        tokio::select! {
            biased;
            () = stop.wait() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

/// Counts once. A pool that cannot be written keeps no other from being counted.
pub(crate) async fn pass(context: &Context) {
    let totals = pool_totals(context.watched.nodes.state(), context.watched.claims.state());
    let mut pools = context.watched.pools.state_filter(|pool| is_our_class(&pool.spec.template.spec.node_class_ref));
    pools.sort_by_key(|pool| pool.name_any());
    for pool in pools {
        let counted = shown(totals.get(&pool.name_any()).unwrap_or(&Resources::default()));
        if is_told(&pool, &counted) {
            continue;
        }
        let status = json!({ "resources": replacing(&pool, &counted.0), "nodes": counted.1 });
        // Somebody who was faster is no trouble: the next look is soon.
        if let Err(error) = writes::merge_status(&context.workload, pool.as_ref(), &status).await {
            context.metrics.errors.get_or_create(&Loop { controller: "nodepool.counter" }).inc();
            let error = kube_error::message(&error);
            tracing::warn!(pool = pool.name_any(), error, "cannot write resources of NodePool; retrying");
        }
    }
}

/// Resources as they stand in a status, and the number of nodes.
fn shown(total: &Resources) -> (ResourceMap, i64) {
    let nodes = total.get("nodes").value();
    let mut shown: BTreeMap<String, Quantity> =
        SHOWN.into_iter().map(|name| (name.to_owned(), Quantity::default())).collect();
    shown.extend(total.iter().map(|(name, amount)| (name.to_owned(), amount)));
    let text = |(name, amount): (String, Quantity)| (name, IntOrString::String(amount.to_string()));
    (shown.into_iter().map(text).collect(), nodes)
}

/// What is written: what is not counted any more is taken away, which a merge does only if it is told to.
fn replacing<'a>(pool: &'a NodePool, counted: &'a ResourceMap) -> BTreeMap<&'a str, Option<&'a IntOrString>> {
    let told = pool.status.iter().flat_map(|status| status.resources.iter().flatten());
    let mut all: BTreeMap<&str, Option<&IntOrString>> = told.map(|(name, _)| (name.as_str(), None)).collect();
    all.extend(counted.iter().map(|(name, amount)| (name.as_str(), Some(amount))));
    all
}

fn is_told(pool: &NodePool, (resources, nodes): &(ResourceMap, i64)) -> bool {
    pool.status.as_ref().is_some_and(|status| status.resources.as_ref() == Some(resources) && status.nodes == *nodes)
}
