//! Nodes whose kubelet expects a cloud controller manager: with one, and without.

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tenon_api::{NodeClaim, names};

use crate::bench::quick_guests;
use crate::first_boot::{TEMPLATES, VALUES, add_secret, example, options, values};
use crate::ground::{Kind, scenarios};
use crate::world::World;

scenarios! {
    without_a_cloud_controller_manager_tenon_removes_the_taint_that_waits_for_one,
    with_a_cloud_controller_manager_a_node_waits_for_it_and_says_so,
}

/// A world whose kubelets run with `--cloud-provider=external`.
async fn with_external_kubelets(kind: Kind) -> anyhow::Result<Option<World>> {
    let Some(world) = World::new(kind, quick_guests()).await? else { return Ok(None) };
    let mut templates = example(TEMPLATES)?;
    if let Some(text) = templates.get_mut("user-data") {
        let external = text.replace("KUBELET_EXTRA_ARGS=", "KUBELET_EXTRA_ARGS=--cloud-provider=external ");
        assert_ne!(*text, external, "the example sets the kubelet's flags");
        *text = external;
    }
    add_secret(&world, TEMPLATES, &templates).await?;
    add_secret(&world, VALUES, &values(&world)?).await?;
    world.add_template("debian-13").await?;
    world.add_class(options()).await?;
    world.add_pool(json!({})).await?;
    Ok(Some(world))
}

fn has_taint(node: &Node) -> bool {
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.any(|taint| taint.key == names::TAINT_UNINITIALIZED)
}

fn provider_id(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.provider_id.as_deref()
}

async fn without_a_cloud_controller_manager_tenon_removes_the_taint_that_waits_for_one(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = with_external_kubelets(kind).await? else { return Ok(()) };
    world.without_ccm();
    world.start_controller()?;
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    let nodes = world.nodes().await?;
    assert!(nodes.len() == 1 && !has_taint(&nodes[0]), "{:?}", nodes[0].spec);
    assert_eq!(provider_id(&nodes[0]), Some("proxmox://lab/20000"));
    assert_eq!(nodes[0].labels().get(names::LABEL_INITIALIZED).map(String::as_str), Some("true"));
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn with_a_cloud_controller_manager_a_node_waits_for_it_and_says_so(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = with_external_kubelets(kind).await? else { return Ok(()) };
    world.start_controller()?;
    world.deploy("web", 1).await?;
    let (claim, _) = world.until_launch("a claim is there", |_| true).await?;
    let name = claim.name_any();
    let awaited = ("Unknown", "KnownEphemeralTaintsExist");
    let told = world.until_condition::<NodeClaim>((&name, "Initialized"), awaited).await?;
    assert!(told.contains(names::TAINT_UNINITIALIZED) && told.contains("--ccm=none"), "{told}");

    // What the Proxmox CCM does: its labels, which are the same as ours and some besides, and then the taint.
    let nodes: Api<Node> = Api::all(world.admin.clone());
    let node = nodes.get(&name).await?;
    assert!(has_taint(&node), "{:?}", node.spec);
    let id = provider_id(&node).map(str::to_owned);
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let left: Vec<_> = taints.filter(|taint| taint.key != names::TAINT_UNINITIALIZED).collect();
    let zone = node.labels().get(names::LABEL_ZONE);
    let labels = json!({
        names::LABEL_ZONE: zone, names::LABEL_REGION: "lab", "topology.proxmox.sinextra.dev/zone": zone,
        "topology.proxmox.sinextra.dev/region": "lab",
    });
    let spec = json!({ "taints": left, "providerID": id });
    let patch = json!({ "metadata": { "labels": labels }, "spec": spec });
    nodes.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    world.until_running("web", 1).await?;
    world.until_condition::<NodeClaim>((&name, "Initialized"), ("True", "Initialized")).await?;
    assert_eq!(world.claims().await?.len(), 1);
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}
