//! Beside a Proxmox cluster that is frozen, is everything about a healthy one as fast as without it?

use std::time::Duration;

use kube::api::{Api, PostParams};
use serde_json::json;
use tenon_api::{NodeClaim, NodePool, launch_record, names};
use tenon_model::{LaunchRecord, Place, Seconds};
use tokio::time::Instant;

use crate::bench::{from_json, quick_guests};
use crate::embedded::Gate;
use crate::ground::Kind;
use crate::world::World;

/// NodeClaims that wait for a VM in the region beside.
const FAILING: u32 = 200;

/// How much longer something may take.
const RATIO: f64 = 1.2;

/// How long things took, by the clock of the world.
#[derive(Debug)]
struct Times {
    planned: Duration,
    launched: Duration,
    drained: Duration,
}

impl World {
    /// Claims whose launch was written for the region beside. No pod may use them.
    async fn add_failing_claims(&self) -> anyhow::Result<()> {
        let claims: Api<NodeClaim> = Api::all(self.admin.clone());
        for number in 0..FAILING {
            let place = Place { region: "beside".to_owned(), host: "pve1".parse()? };
            let record = LaunchRecord::new(place, (21_000 + number).try_into()?, 9_001.try_into()?, Seconds(0));
            let claim = from_json(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": {
                    // Before all others by name.
                    "name": format!("aaa-{number:03}"), "finalizers": [names::FINALIZER],
                    "annotations": { names::ANNOTATION_LAUNCH: launch_record::write(&record) },
                    "labels": { names::LABEL_NODEPOOL: "default", names::LABEL_INSTANCE_TYPE: "t1.1VCPU-2GB" },
                },
                "spec": {
                    "requirements": [], "taints": [{ "key": "example.com/beside", "effect": "NoSchedule" }],
                    "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
                },
            }))?;
            claims.create(&PostParams::default(), &claim).await?;
        }
        Ok(())
    }

    async fn until_planned(&self, count: usize) -> anyhow::Result<String> {
        self.until(&format!("{count} nodes are planned"), async || {
            let claims = self.claims().await?;
            let ours: Vec<_> = claims.iter().filter_map(|claim| claim.metadata.name.clone()).collect();
            let mut ours: Vec<String> = ours.into_iter().filter(|name| !name.starts_with("aaa-")).collect();
            Ok(if ours.len() >= count { ours.pop() } else { None })
        })
        .await
    }
}

/// A scale-up and a drain, beside a second region or none.
async fn times(beside: Option<Gate>) -> anyhow::Result<Option<Times>> {
    let Some(mut world) = World::new(Kind::Embedded, quick_guests()).await? else { return Ok(None) };
    world.add_rules().await?;
    world.embedded()?.beside = beside;
    if beside.is_some() {
        world.add_failing_claims().await?;
    }
    world.start_controller()?;
    world.until_condition::<NodePool>(("default", "Ready"), ("True", "Ready")).await?;
    // All that can fail has failed more than once.
    tokio::time::sleep(Duration::from_secs(100)).await;

    let begun = Instant::now();
    world.deploy("web", 3).await?;
    let name = world.until_planned(3).await?;
    let planned = begun.elapsed();
    world.until_running("web", 3).await?;
    let launched = begun.elapsed();
    let begun = Instant::now();
    world.delete_claim(&name).await?;
    world
        .until(&format!("nothing is left of {name}"), async || {
            let is_vm = world.estate.vms().iter().any(|vm| vm.name == name);
            Ok((!is_vm && Api::<NodeClaim>::all(world.admin.clone()).get_opt(&name).await?.is_none()).then_some(()))
        })
        .await?;
    let drained = begun.elapsed();
    world.end().await?;
    Ok(Some(Times { planned, launched, drained }))
}

#[tokio::test(start_paused = true)]
async fn beside_a_frozen_region_with_200_failing_claims_plans_launches_and_drains_are_as_fast_as_without()
-> anyhow::Result<()> {
    let (Some(without), Some(beside)) = (times(None).await?, times(Some(Gate::Hangs)).await?) else { return Ok(()) };
    println!("without: {without:?}\nbeside a frozen region: {beside:?}");
    for (what, without, beside) in [
        ("planning", without.planned, beside.planned),
        ("launches", without.launched, beside.launched),
        ("drains", without.drained, beside.drained),
    ] {
        let ratio = beside.as_secs_f64() / without.as_secs_f64();
        println!("{what}: {ratio:.2}");
        assert!(ratio <= RATIO, "{what} took {beside:?} instead of {without:?}");
    }
    Ok(())
}
