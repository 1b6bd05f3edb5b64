//! What may the nodes of each NodePool have, what do they have, and what do they cost?

use std::collections::BTreeMap;

use kube::ResourceExt;
use tenon_api::{NodeClaim, names, resources_of};

use super::{Cluster, amounts};
use crate::metrics::catalogue::karpenter;
use crate::metrics::exposition::Exposition;

/// Writes down every NodePool.
pub(super) fn show(cluster: &Cluster, page: &mut Exposition<'_>) {
    let costs = costs(cluster);
    for pool in &cluster.pools {
        let name = pool.name_any();
        let used = pool.status.as_ref().and_then(|status| status.resources.as_ref());
        for (metric, resources) in
            [(&karpenter::NODEPOOLS_LIMIT, pool.spec.limits.as_ref()), (&karpenter::NODEPOOLS_USAGE, used)]
        {
            let Some(mut lines) = page.of(metric) else { continue };
            for (resource, amount) in resources.iter().flat_map(|map| amounts(&resources_of(map)).collect::<Vec<_>>()) {
                lines.number(&[&resource, &name], amount);
            }
        }
        if let Some(mut lines) = page.of(&karpenter::NODEPOOLS_COST) {
            lines.number(&[&name], costs.get(name.as_str()).copied().unwrap_or_default());
        }
    }
}

/// The price of all launched NodeClaims, by NodePool.
fn costs(cluster: &Cluster) -> BTreeMap<&str, f64> {
    let prices: BTreeMap<&str, f64> =
        cluster.types.iter().map(|kind| (kind.name.as_str(), kind.price().value())).collect();
    let mut costs = BTreeMap::new();
    let is_launched = |claim: &NodeClaim| claim.status.as_ref().is_some_and(|status| status.provider_id.is_some());
    for claim in cluster.claims.iter().filter(|claim| is_launched(claim)) {
        let label = |key: &str| claim.labels().get(key).map(String::as_str);
        if let (Some(pool), Some(kind)) = (label(names::LABEL_NODEPOOL), label(names::LABEL_INSTANCE_TYPE)) {
            *costs.entry(pool).or_default() += prices.get(kind).copied().unwrap_or_default();
        }
    }
    costs
}
