//! Is a node that Tenon made itself what its pool says, until something changes, and is it replaced then?

use std::time::Duration;

use kube::ResourceExt;
use serde_json::json;
use tenon_api::{hash, names};
use tenon_sim::TemplateSpec;

use crate::bench::quick_guests;
use crate::ground::{Kind, scenarios};
use crate::world::{World, record_of};

/// Several looks for drift.
const WATCHED: Duration = Duration::from_secs(20);

scenarios! {
    a_node_of_our_own_is_current_until_its_template_is_made_anew_and_is_replaced_then,
}

async fn a_node_of_our_own_is_current_until_its_template_is_made_anew_and_is_replaced_then(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.add_template("debian-13").await?;
    world.add_class(json!({})).await?;
    let class = json!({ "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" });
    // Demands that leave a choice: whoever makes the node has to choose, or it never meets them.
    let demands = json!([
        { "key": names::LABEL_ARCH, "operator": "In", "values": ["amd64", "arm64"] },
        { "key": "example.com/rack", "operator": "In", "values": ["b", "a"] },
        { "key": "example.com/shelf", "operator": "Exists" },
    ]);
    world.add_pool(json!({ "template": { "spec": { "requirements": demands, "nodeClassRef": class } } })).await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    world.let_pass(WATCHED).await?;
    let claim = world.claims().await?.remove(0);
    let version = claim.annotations().get(names::ANNOTATION_NODEPOOL_HASH_VERSION).map(String::as_str);
    assert_eq!(version, Some(hash::POOL_VERSION), "{:?}", claim.annotations());
    assert_eq!(world.drift_of(&claim.name_any()).await?, None, "{}", world.tail());
    assert!(!world.served("metrics", "/metrics")?.contains("tenon_nodeclaims_drifted{"));

    let record = record_of(&claim)?;
    let (vmid, host) = (record.template.get(), record.host().to_string());
    world.estate.remove_vm(vmid)?;
    world.estate.add_template(&TemplateSpec { host, vmid, name: "debian-13".into(), ..TemplateSpec::default() })?;
    let note = world.until_event("Drifted", "ImageDrift: the VM was created from image").await?;
    assert!(note.contains(&format!("now has image {vmid}-")), "{note}");
    world
        .until("another node is there instead", async || {
            let uids: Vec<_> = world.claims().await?.iter().map(ResourceExt::uid).collect();
            Ok((uids.len() == 1 && uids[0] != claim.uid()).then_some(()))
        })
        .await?;
    world.until_running("web", 1).await?;
    let new = world.claims().await?.remove(0);
    assert_eq!(world.drift_of(&new.name_any()).await?, None, "{}", world.tail());
    assert_eq!(world.vms().len(), 1, "{}", world.tail());
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}
