//! When the cloud config changes while the controller runs, does it work with the new one at once, and without a restart?

use std::time::Duration;

use serde_json::json;
use tenon_model::{CapacityRules, RegionCapacity};
use tenon_sim::{Estate, EstateConfig, TokenSpec};

use crate::bench::quick_guests;
use crate::ground::{Ground, Kind, scenarios};
use crate::world::{TOKEN, World};

/// The secret that a token gets.
const NEW_SECRET: &str = "99999999-8888-7777-6666-555555555555";

scenarios! {
    a_token_that_is_replaced_under_load_fails_no_launch,
    a_region_that_is_removed_keeps_its_nodes_untouched_until_it_is_added_again,
    a_host_that_the_cloud_config_excludes_gets_no_vm_until_it_is_no_longer_excluded,
}

async fn a_token_that_is_replaced_under_load_fails_no_launch(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::running(kind).await? else { return Ok(()) };
    world.estate.hold_tasks("qmclone");
    world.deploy("web", 3).await?;
    world.until("three clones have begun", async || Ok((world.clones().len() == 3).then_some(()))).await?;
    // Proxmox knows one secret of a token: the old one is refused from now on.
    world.estate.grant_token(TokenSpec::new(TOKEN.0, NEW_SECRET));
    world.estate.release_tasks();
    world.let_pass(Duration::from_secs(3)).await?;
    world.reconfigure((TOKEN.0, NEW_SECRET), true)?;
    world.until_running("web", 3).await?;
    assert_eq!(world.clones().len(), 3, "no launch failed: {}", world.tail());
    assert_eq!(world.claims().await?.len(), 3);
    assert_eq!(world.events("InsufficientCapacityError").await?, Vec::<String>::new());
    assert!(world.is_controller_running()?);
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_region_that_is_removed_keeps_its_nodes_untouched_until_it_is_added_again(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    let attic = Estate::new(EstateConfig::default());
    match kind {
        Kind::Real => world.real()?.serve_beside(&attic).await?,
        Kind::Embedded => world.embedded()?.second = Some(("attic".to_owned(), attic)),
    }
    world.add_rules().await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;

    world.reconfigure(TOKEN, false)?;
    world.until_event("RegionNotConfigured", "is kept and not touched: region lab is not in the cloud config").await?;
    let calls = world.estate.ledger().len();
    world.scale("web", 0).await?;
    world.let_pass(Duration::from_secs(30)).await?;
    assert_eq!((world.claims().await?.len(), world.vms().len()), (1, 1), "its empty node stays: {}", world.tail());
    assert_eq!(world.estate.ledger().len(), calls, "nothing is asked there any more");

    world.reconfigure(TOKEN, true)?;
    world.until_nothing_is_left().await?;
    let container = json!({ "resources": { "requests": { "cpu": "1", "memory": "1Gi" } } });
    world.deploy_pods(("again", 1), container, json!({})).await?;
    world.until_running("again", 1).await?;
    world.end().await
}

impl World {
    /// The controller that runs reads a cloud config that excludes these hosts.
    fn exclude(&mut self, hosts: &[&str]) -> anyhow::Result<()> {
        match self.ground() {
            Ground::Real(_) => self.real()?.excluded = hosts.iter().map(|host| (*host).to_owned()).collect(),
            Ground::Embedded(_) => {
                let away = || CapacityRules { excluded: true, ..CapacityRules::default() };
                let hosts: Result<_, _> =
                    hosts.iter().map(|host| Ok::<_, anyhow::Error>((host.parse()?, away()))).collect();
                self.embedded()?.rules = RegionCapacity { hosts: hosts?, ..RegionCapacity::default() };
            }
        }
        self.reconfigure(TOKEN, true)
    }
}

async fn a_host_that_the_cloud_config_excludes_gets_no_vm_until_it_is_no_longer_excluded(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = World::running(kind).await? else { return Ok(()) };
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    let first = world.hosts_of_vms();
    let others: Vec<&str> = ["pve1", "pve2", "pve3"].into_iter().filter(|host| first[0] != *host).collect();
    world.exclude(&others)?;
    // The file is read every five seconds.
    world.let_pass(Duration::from_secs(8)).await?;
    world.scale("web", 2).await?;
    let why = format!("hosts {} were skipped: the host is excluded in the cloud config", others.join(", "));
    world.until_event("FailedScheduling", &why).await?;
    assert_eq!(world.hosts_of_vms(), first, "{}", world.tail());
    world.exclude(&[])?;
    world.until_running("web", 2).await?;
    let hosts = world.hosts_of_vms();
    assert!(hosts.len() == 2 && hosts[0] != hosts[1], "{hosts:?}");
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}
