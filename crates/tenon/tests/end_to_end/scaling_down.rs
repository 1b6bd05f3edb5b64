//! Does a Deployment that is scaled down lose the pods of the node that would be removed next, and is nothing left when that is
//! switched off?

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};

use crate::bench::quick_guests;
use crate::ground::{Kind, scenarios};
use crate::world::{NAMESPACE, World};

/// What the controller writes on pods, and that it wrote it.
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const MARK: &str = "tenon.dev/pod-deletion-cost";

/// Values of the chart with which the role has the right to patch pods.
const VALUES: &str = "false,settings.featureGates.podDeletionCostManagement=true";

/// Nodes are ranked once a minute, and those to which pods are expected stay out of it.
const RANKED_WITHIN: Duration = Duration::from_secs(400);

/// The node and the cost of every pod, by the node.
async fn costs(world: &World) -> anyhow::Result<BTreeMap<String, Option<String>>> {
    let pods: Api<Pod> = Api::namespaced(world.admin.clone(), NAMESPACE);
    let list = pods.list(&ListParams::default().labels("app=web")).await?.items;
    let cost = |pod: &Pod| {
        let annotations = pod.annotations();
        annotations.get(COST).filter(|cost| annotations.get(MARK) == Some(cost)).cloned()
    };
    Ok(list.iter().filter_map(|pod| Some((pod.spec.as_ref()?.node_name.clone()?, cost(pod)))).collect())
}

scenarios! {
    j7_a_deployment_that_is_scaled_down_empties_the_node_that_would_go_next,
}

async fn j7_a_deployment_that_is_scaled_down_empties_the_node_that_would_go_next(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    let is_real = kind == Kind::Real;
    if is_real {
        world.real()?.grant(VALUES).await?;
    }
    world.add_rules().await?;
    world.switch("PodDeletionCostManagement=true");
    world.start_controller()?;
    world.deploy("web", 2).await?;
    world.until_running("web", 2).await?;
    let ranked = world.until_within(RANKED_WITHIN, "both pods have a cost", async || {
        let found = costs(&world).await?;
        Ok((found.len() == 2 && found.values().all(Option::is_some)).then_some(found))
    });
    let ranked: Vec<(String, String)> =
        ranked.await?.into_iter().map(|(node, cost)| (node, cost.unwrap_or_default())).collect();
    let ranks: Vec<&str> = ranked.iter().map(|(_, cost)| cost.as_str()).collect();
    assert_eq!(ranks, ["-2", "-1"], "equal nodes are ranked by name");
    world.scale("web", 1).await?;
    let kept = world.until_within(RANKED_WITHIN, "one node is left", async || {
        let nodes = world.nodes().await?;
        Ok((nodes.len() == 1).then(|| nodes[0].name_any()))
    });
    assert_eq!(kept.await?, ranked[1].0);
    if is_real {
        world.real()?.stop_controller()?;
        world.switch("PodDeletionCostManagement=false");
        world.start_controller()?;
        world
            .until_within(RANKED_WITHIN, "what was written is gone", async || {
                let found = costs(&world).await?;
                Ok((found.len() == 1 && found.values().all(Option::is_none)).then_some(()))
            })
            .await?;
    }
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}
