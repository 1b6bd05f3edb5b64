//! What a ProxmoxNodeClass changes of VMs that run: after a refusal and after kill -9 it is done once, and whole.

use std::time::Duration;

use anyhow::Context as _;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tenon_api::{ProxmoxNodeClass, hash, names};
use tenon_sim::{FaultKind, FaultSpec, VmView};

use crate::bench::quick_guests;
use crate::embedded::Gate;
use crate::ground::Kind;
use crate::world::World;

/// What the class says at first, and then.
const FIRST: &str =
    r#"{ "tags": ["a"], "securityGroups": [{ "name": "web" }, { "name": "ssh" }], "resourcePool": "team" }"#;
const THEN: &str =
    r#"{ "tags": ["b"], "securityGroups": [{ "name": "ssh" }, { "name": "db" }], "resourcePool": "other" }"#;

/// One node of a class that is about to change.
async fn one_node() -> anyhow::Result<Option<(World, VmView)>> {
    let Some(mut world) = World::new(Kind::Embedded, quick_guests()).await? else { return Ok(None) };
    for pool in ["team", "other"] {
        world.estate.add_pool(pool);
    }
    world.add_template("debian-13").await?;
    world.add_class(serde_json::from_str(FIRST)?).await?;
    world.add_pool(json!({})).await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    let vm = view(&world)?;
    Ok(Some((world, vm)))
}

fn view(world: &World) -> anyhow::Result<VmView> {
    world.estate.vms().into_iter().find(|vm| vm.vmid >= 20_000).context("there is no VM")
}

/// Changes the class; the hash that a VM has when all of it was applied.
async fn change_class(world: &World) -> anyhow::Result<String> {
    let classes = Api::<ProxmoxNodeClass>::all(world.admin.clone());
    let spec: Value = serde_json::from_str(THEN)?;
    let class = classes.patch("default", &PatchParams::default(), &Patch::Merge(&json!({ "spec": spec }))).await?;
    Ok(hash::of_class_in_place(&class))
}

/// What the only NodeClaim says was applied.
async fn applied(world: &World) -> anyhow::Result<String> {
    let claims = world.claims().await?;
    let claim = claims.first().context("there is no NodeClaim")?;
    Ok(claim.annotations().get(names::ANNOTATION_IN_PLACE_HASH).cloned().unwrap_or_default())
}

/// The VM is as the class says now, and has nothing twice.
async fn is_as_the_class_says(world: &World, wanted: &str) -> anyhow::Result<()> {
    world.until("the VM is as the class says", async || Ok((applied(world).await? == wanted).then_some(()))).await?;
    let vm = view(world)?;
    let path = format!("/nodes/{}/qemu/{}/firewall/rules", vm.host, vm.vmid);
    let rules = world.proxmox("GET", &path, &[]).await?;
    let rules: Vec<&str> =
        rules["data"].as_array().into_iter().flatten().filter_map(|rule| rule["action"].as_str()).collect();
    assert_eq!(rules, ["ssh", "db"]);
    assert_eq!(vm.config["tags"], "b");
    let shown = world.proxmox("GET", "/cluster/resources", &[]).await?;
    let row = shown["data"].as_array().into_iter().flatten().find(|row| row["vmid"] == json!(vm.vmid)).cloned();
    assert_eq!(row.context("the VM is not listed")?["pool"], "other");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_is_an_event_is_not_recorded_as_done_and_is_made_a_minute_later() -> anyhow::Result<()> {
    let Some((world, _)) = one_node().await? else { return Ok(()) };
    let before = applied(&world).await?;
    let text = "Permission check failed (/vms/20000, VM.Config.Options)".to_owned();
    world.estate.fail_next(FaultSpec::new("PUT", "/config", FaultKind::Refuse { status: 403, text }));
    let wanted = change_class(&world).await?;
    let told = world.until_event("InPlaceUpdateFailed", "VM.Config.Options").await?;
    assert!(told.contains("ProxmoxNodeClass default to VM 20000") && told.ends_with("retrying"), "{told}");
    assert_eq!(applied(&world).await?, before, "what was refused is not recorded as done");
    assert_eq!(view(&world)?.config["tags"], "a");
    is_as_the_class_says(&world, &wanted).await?;
    world.end().await
}

#[tokio::test(start_paused = true)]
async fn a_controller_killed_after_any_change_of_an_update_finishes_it() -> anyhow::Result<()> {
    for (method, path) in
        [("PUT", "/config"), ("POST", "/firewall/rules"), ("DELETE", "/firewall/rules"), ("PUT", "/pools")]
    {
        let Some((mut world, vm)) = one_node().await? else { return Ok(()) };
        let before = world.estate.ledger().len();
        // The change is carried out, and its reply never read.
        world.estate.fail_next(FaultSpec::new(method, path, FaultKind::DropReply));
        let wanted = change_class(&world).await?;
        world
            .until(&format!("{method} {path} is sent"), async || {
                let ledger = world.estate.ledger();
                let is_it = |entry: &tenon_sim::LedgerEntry| entry.method == method && entry.path.contains(path);
                Ok(ledger.iter().skip(before).any(is_it).then_some(()))
            })
            .await?;
        world.kill_controller()?;
        assert_ne!(applied(&world).await?, wanted, "{method} {path}: the update was not over");
        world.start_controller()?;
        is_as_the_class_says(&world, &wanted).await.with_context(|| format!("killed after {method} {path}"))?;
        assert_eq!(view(&world)?.vmid, vm.vmid);
        world.end().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn firewall_options_that_somebody_changed_stay_when_the_groups_change() -> anyhow::Result<()> {
    let Some((world, vm)) = one_node().await? else { return Ok(()) };
    let path = format!("/nodes/{}/qemu/{}/firewall/options", vm.host, vm.vmid);
    world.proxmox("PUT", &path, &[("policy_in", "ACCEPT")]).await?;
    let wanted = change_class(&world).await?;
    is_as_the_class_says(&world, &wanted).await?;
    assert_eq!(world.proxmox("GET", &path, &[]).await?["data"]["policy_in"], "ACCEPT");
    world.end().await
}

/// What a metric of region lab says.
fn metric(world: &World, name: &str) -> anyhow::Result<i64> {
    let served = world.served("metrics", "/metrics")?;
    let line = served.lines().find(|line| line.starts_with(&format!("{name}{{region=\"lab\"}}")));
    let value = line.and_then(|line| line.rsplit(' ').next()).context("no such metric")?;
    Ok(value.parse()?)
}

/// The time of an embedded world, which begins with its estate.
fn unix_time(world: &World) -> i64 {
    let begun = tenon_sim::ClusterConfig::default().epoch_s;
    i64::try_from(begun + world.estate.elapsed().as_secs()).unwrap_or(i64::MAX)
}

#[tokio::test(start_paused = true)]
async fn a_class_says_since_when_its_proxmox_cluster_is_silent_and_stays_ready() -> anyhow::Result<()> {
    let Some((mut world, _)) = one_node().await? else { return Ok(()) };
    // Asked every 10 s at least, and told as often as every loop comes round.
    let listed = metric(&world, "tenon_region_last_listing_timestamp_seconds")?;
    assert!((unix_time(&world) - 20..=unix_time(&world)).contains(&listed), "{listed}");
    world.embedded()?.answer(Gate::Closed);
    let closed_at = unix_time(&world);
    let ready = ("True", "InstanceTemplateReady");
    let admin = world.admin.clone();
    let message = |words: &'static str| {
        let classes = Api::<ProxmoxNodeClass>::all(admin.clone());
        async move {
            let class = classes.get("default").await?;
            let conditions = class.status.and_then(|status| status.conditions).unwrap_or_default();
            let found = conditions.into_iter().find(|one| one.type_ == "InstanceTemplateReady");
            anyhow::Ok(found.filter(|one| one.message.contains(words)).map(|one| one.message))
        }
    };
    let told = world.until("the class tells of it", async || message("the region was last listed at").await).await?;
    assert!(told.starts_with("Proxmox API of region lab unavailable: "), "{told}");
    world.until_condition::<ProxmoxNodeClass>(("default", "InstanceTemplateReady"), ready).await?;
    world.let_pass(Duration::from_secs(60)).await?;
    let (up, listed) =
        (metric(&world, "tenon_region_up")?, metric(&world, "tenon_region_last_listing_timestamp_seconds")?);
    assert!(up == 0 && (closed_at - 20..=closed_at).contains(&listed), "{up} {listed} {closed_at}");
    world.embedded()?.answer(Gate::Open);
    let is_over = async || Ok(message("last listed").await?.is_none().then_some(()));
    world.until("the class tells of it no more", is_over).await?;
    world
        .until("the metric follows", async || {
            let listed = metric(&world, "tenon_region_last_listing_timestamp_seconds")?;
            Ok((metric(&world, "tenon_region_up")? == 1 && listed >= unix_time(&world) - 20).then_some(()))
        })
        .await?;
    world.end().await
}
