//! Does `tenon plan` show what the controller then makes, from the same cluster and the same Proxmox?

use std::process::{Command, Output};

use anyhow::Context as _;
use kube::ResourceExt;
use serde_json::Value;
use tenon_api::{NodePool, names};

use crate::bench::quick_guests;
use crate::ground::Kind;
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_from_the_cluster_and_its_proxmox_is_what_the_controller_then_makes() -> anyhow::Result<()> {
    let Some(mut world) = World::new(Kind::Real, quick_guests()).await? else { return Ok(()) };
    world.add_rules().await?;
    world.start_controller()?;
    world.until_condition::<NodePool>(("default", "Ready"), ("True", "Ready")).await?;
    world.kill_controller()?;
    world.deploy("web", 2).await?;

    let planned = world
        .until("a plan has both pods", async || {
            let plan = plan(&world).await?;
            let nodes = plan["newNodeClaims"].as_array().context("a plan has nodes")?;
            let mut offers: Vec<String> = nodes.iter().map(|node| offer(&node["offering"])).collect();
            offers.sort();
            Ok((plan["stats"]["pods"] == 2).then_some(offers))
        })
        .await?;
    assert_eq!(planned.len(), 2, "{planned:?}");
    assert_eq!((world.claims().await?.len(), world.vms().len()), (0, 0), "a plan makes nothing");

    world.start_controller()?;
    world.until_running("web", 2).await?;
    let made = |claim: &tenon_api::NodeClaim| {
        let label = |name: &str| claim.labels().get(name).cloned().unwrap_or_default();
        format!("{} in {}", label(names::LABEL_INSTANCE_TYPE), label(names::LABEL_ZONE))
    };
    let mut made: Vec<String> = world.claims().await?.iter().map(made).collect();
    made.sort();
    assert_eq!(made, planned);
    world.end().await
}

fn offer(offering: &Value) -> String {
    let text = |key: &str| offering[key].as_str().unwrap_or_default();
    format!("{} in {}", text("instanceType"), text("zone"))
}

/// The plan, as a user gets it.
async fn plan(world: &World) -> anyhow::Result<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
    let (kubeconfig, cloud) = (world.testbed()?.kubeconfig().to_owned(), world.cloud_config()?);
    command.args(["plan", "-o", "json", "--kubeconfig"]).arg(kubeconfig).arg("--cloud-config").arg(cloud);
    let ran: Output = tokio::task::spawn_blocking(move || command.output()).await??;
    anyhow::ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Ok(serde_json::from_slice(&ran.stdout)?)
}
