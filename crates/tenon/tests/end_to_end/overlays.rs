//! Does a NodeOverlay change which size is bought, and is that taken back, also for nodes that are there, when it goes?

use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};
use tenon_api::{NodeOverlay, names};

use crate::bench::{from_json, quick_guests};
use crate::ground::{Kind, scenarios};
use crate::world::World;

/// Values of the chart with which the role has the rights to read NodeOverlays and to write their status.
const VALUES: &str = "false,settings.featureGates.nodeOverlay=true";

/// A size that is larger than what the pod needs, and so is not the cheapest.
const LARGE: &str = "m1.2VCPU-16GB";

/// What the overlay says of itself.
const VALIDATION: &str = "ValidationSucceeded";

scenarios! {
    i6_i11_an_overlay_changes_which_size_is_bought_and_nodes_are_replaced_when_it_is_gone,
}

async fn add(world: &World, name: &str, spec: &Value) -> anyhow::Result<()> {
    let overlay: NodeOverlay = from_json(json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": { "name": name }, "spec": spec,
    }))?;
    Api::all(world.admin.clone()).create(&PostParams::default(), &overlay).await?;
    Ok(())
}

async fn remove(world: &World, name: &str) -> anyhow::Result<()> {
    Api::<NodeOverlay>::all(world.admin.clone()).delete(name, &DeleteParams::default()).await?;
    Ok(())
}

/// The size of the only claim, and whether it says that an overlay changed its price.
async fn bought(world: &World) -> anyhow::Result<Option<(String, bool)>> {
    let claims = world.claims().await?;
    let [claim] = claims.as_slice() else { return Ok(None) };
    let size = claim.labels().get(names::LABEL_INSTANCE_TYPE).cloned();
    let is_told = claim.annotations().get(names::ANNOTATION_PRICE_OVERLAY).is_some_and(|told| told == "true");
    Ok(size.map(|size| (size, is_told)))
}

async fn i6_i11_an_overlay_changes_which_size_is_bought_and_nodes_are_replaced_when_it_is_gone(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    if kind == Kind::Real {
        world.real()?.grant(VALUES).await?;
    }
    world.add_rules().await?;
    let wanted = json!([{ "key": names::LABEL_INSTANCE_TYPE, "operator": "In", "values": [LARGE] }]);
    add(&world, "favour", &json!({ "requirements": wanted, "priceAdjustment": "-100%" })).await?;
    world.switch("NodeOverlay=true");
    world.start_controller()?;
    let container = json!({ "resources": { "requests": { "cpu": "1", "memory": "1Gi" } } });
    world.deploy_pods(("web", 1), container, json!({})).await?;
    world.until_running("web", 1).await?;
    assert_eq!(bought(&world).await?, Some((LARGE.to_owned(), true)));
    world.until_condition::<NodeOverlay>(("favour", "Ready"), ("True", "Ready")).await?;
    add(&world, "everything", &json!({ "requirements": [], "price": "1" })).await?;
    let told = world.until_condition::<NodeOverlay>(("everything", VALIDATION), ("False", "Conflict")).await?;
    assert!(told.starts_with("conflict with NodeOverlay favour of the same weight 0: both change the price"), "{told}");
    remove(&world, "favour").await?;
    world.until_condition::<NodeOverlay>(("everything", VALIDATION), ("True", VALIDATION)).await?;
    remove(&world, "everything").await?;
    let now = world.until("the node is replaced by a cheaper one", async || {
        Ok(bought(&world).await?.filter(|(size, _)| size != LARGE))
    });
    let (size, is_told) = now.await?;
    assert!(!is_told, "{size}");
    world.until_running("web", 1).await?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}
