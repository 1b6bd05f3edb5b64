//! Two Kubernetes clusters that use the same Proxmox cluster: does either touch what the other made?

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tenon_api::ProxmoxNodeClass;
use tenon_model::VmIdRange;
use tenon_sim::{
    ApiAccess, Cluster, Connect, ConnectError, Estate, FaultEffect, FaultMatch, FaultRule, GuestConfig, Guests, Repeat,
    TokenSpec, VmView, VolumeView,
};

use crate::bench::quick_guests;
use crate::estate_audit::audit;
use crate::ground::Kind;
use crate::many_vms::{apart, container, estate, ours};
use crate::world::{TOKEN, World};

/// The token of the second cluster.
const OTHER: (&str, &str) = ("other@pve!b", "99999999-2222-3333-4444-555555555555");

/// More entries than this are not kept, and what is not kept cannot be judged.
const LEDGER_ENTRIES: usize = 200_000;

/// What each of the two clusters is given of the estate.
struct Sharing {
    ids: [VmIdRange; 2],
    /// The resource pools of their VMs at first.
    pools: [&'static str; 2],
    /// Those that their running VMs are moved to.
    moved_to: [&'static str; 2],
    /// How often each creates and deletes ten VMs.
    rounds: usize,
}

/// Leads each guest to the cluster whose address its first-boot data has.
#[derive(Debug)]
struct Router(BTreeMap<String, Cluster>);

impl Connect for Router {
    fn connect(&self, access: &ApiAccess) -> Result<kube::Client, ConnectError> {
        let cluster = self.0.get(access.server.trim_end_matches('/'));
        let unknown = || ConnectError::Other(format!("no cluster at {}", access.server));
        cluster.ok_or_else(unknown)?.connect(access)
    }
}

/// Replies are lost, and storages are found full, now and then.
fn add_faults(estate: &Estate) {
    for (path, effect, every) in [
        ("/nodes/*/qemu/*/clone", FaultEffect::DropReply, 9),
        ("/nodes/*/qemu/*/config", FaultEffect::DropReply, 23),
        ("/nodes/*/qemu/*/status/start", FaultEffect::DropReply, 11),
        ("/nodes/*/storage/*/upload", FaultEffect::DropReply, 13),
        ("/nodes/*/qemu/*/clone", FaultEffect::FullStorage, 17),
    ] {
        let method = if path.ends_with("config") { "PUT" } else { "POST" };
        let repeat = Repeat { every: Some(every), ..Repeat::default() };
        estate.add_fault(FaultRule::new(FaultMatch { repeat, ..FaultMatch::call(method, path) }, effect));
    }
}

/// VMs whose id is below those of nodes: templates.
fn templates(estate: &Estate) -> Vec<VmView> {
    estate.vms().into_iter().filter(|vm| vm.vmid < 20_000).collect()
}

impl World {
    /// Ten VMs are needed.
    async fn ten_vms_come(&self, round: usize) -> anyhow::Result<()> {
        if round == 0 {
            return self.deploy_pods(("web", 10), container("500m", "64Mi"), apart("web")).await;
        }
        self.scale("web", 10).await
    }

    async fn move_vms_to(&self, pool: &str) -> anyhow::Result<()> {
        let classes = Api::<ProxmoxNodeClass>::all(self.admin.clone());
        let patch = json!({ "spec": { "resourcePool": pool } });
        classes.patch("default", &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }
}

/// Both clusters create and delete VMs at the same time, with faults, and afterwards everything that was changed is judged.
async fn share(sharing: &Sharing) -> anyhow::Result<()> {
    let hosts = [("pve1", 64, 256), ("pve2", 64, 256), ("pve3", 64, 256)];
    let estate = estate(&hosts, |config| {
        config.tokens = vec![TokenSpec::new(TOKEN.0, TOKEN.1), TokenSpec::new(OTHER.0, OTHER.1)];
        config.pools = sharing.pools.iter().chain(&sharing.moved_to).map(|pool| (*pool).to_owned()).collect();
    })?;
    let (Some(mut a), Some(mut b)) = (
        World::over(Kind::Embedded, estate.clone(), Some(quick_guests())).await?,
        World::over(Kind::Embedded, estate.clone(), None).await?,
    ) else {
        return Ok(());
    };
    // One system for the VMs of both, which finds the cluster that its VM belongs to.
    a.replace_guests(None).await;
    b.configure_token(OTHER)?;
    let mut clusters = BTreeMap::new();
    for (number, world) in [&mut a, &mut b].into_iter().enumerate() {
        world.add_template("debian-13").await?;
        world.add_class(json!({ "resourcePool": sharing.pools[number] })).await?;
        world.add_pool(json!({})).await?;
        let embedded = world.embedded()?;
        embedded.server = format!("https://cluster-{number}.example:6443");
        embedded.cluster_id = Some(format!("cluster-{number}"));
        embedded.ids = sharing.ids[number];
        clusters.insert(embedded.server.clone(), embedded.cluster.clone());
    }
    let epoch_s = Some(tenon_sim::ClusterConfig::default().epoch_s);
    let guests = Guests::start(&estate, GuestConfig { connect: Arc::new(Router(clusters)), epoch_s, ..quick_guests() });
    let before = (estate.volumes(), templates(&estate));
    add_faults(&estate);
    a.start_controller()?;
    b.start_controller()?;
    for round in 0..sharing.rounds {
        for world in [&a, &b] {
            world.ten_vms_come(round).await?;
        }
        for world in [&a, &b] {
            // What a test says of itself when it fails is said by the last world.
            let tail = || {
                let logs: Vec<_> = ours(&estate).iter().map(|vm| guests.guest_log(vm.vmid)).collect();
                format!("round {round}\n{}\n{logs:#?}", b.tail())
            };
            world.until_running("web", 10).await.with_context(tail)?;
        }
        if round == 1 {
            for (world, pool) in [&a, &b].into_iter().zip(sharing.moved_to) {
                world.move_vms_to(pool).await?;
            }
            a.until("all VMs are in other pools", async || {
                let is_moved = |vm: &VmView| vm.pool.as_deref().is_some_and(|pool| sharing.moved_to.contains(&pool));
                Ok(ours(&estate).iter().all(is_moved).then_some(()))
            })
            .await?;
        }
        for world in [&a, &b] {
            world.scale("web", 0).await?;
        }
        for world in [&a, &b] {
            world.until("all claims are gone", async || Ok(world.claims().await?.is_empty().then_some(()))).await?;
        }
    }
    a.until("no VM is left", async || Ok(ours(&estate).is_empty().then_some(()))).await?;
    judge(&estate, &before.0, sharing.rounds)?;
    assert_eq!((estate.volumes(), templates(&estate)), before, "images and templates are as they were");
    guests.shutdown().await;
    a.end().await?;
    b.end().await
}

/// Whoever changed a VM or an image made it; and both did everything there is to do.
fn judge(estate: &Estate, first: &[VolumeView], rounds: usize) -> anyhow::Result<()> {
    let ledger = estate.ledger();
    ensure!(ledger.len() < LEDGER_ENTRIES, "the ledger lacks its beginning");
    let first: Vec<&str> = first.iter().map(|volume| volume.volid.as_str()).collect();
    let audit = audit(&ledger, &first, &estate.task_spans("qmclone"));
    println!("{:#?}", audit.own);
    ensure!(audit.findings.is_empty(), "{:#?}", audit.findings);
    for token in [TOKEN.0, OTHER.0] {
        let own = audit.own.get(token).cloned().unwrap_or_default();
        for kind in ["clone", "config", "start", "stop", "destroy", "upload", "delete image", "pool"] {
            let count = own.get(kind).copied().unwrap_or_default();
            let least = if kind == "pool" { 10 } else { rounds * 10 };
            ensure!(count >= least, "{token}: {count} of {kind}, and at least {least} are needed: {own:?}");
        }
    }
    Ok(())
}

fn range(first: u32, last: u32) -> anyhow::Result<VmIdRange> {
    Ok(VmIdRange::new(first.try_into()?, last.try_into()?)?)
}

#[tokio::test(start_paused = true)]
async fn two_clusters_share_pool_ids_and_storage_through_200_launches_with_faults_and_touch_only_their_own()
-> anyhow::Result<()> {
    let ids = [range(20_000, 29_999)?, range(20_000, 29_999)?];
    share(&Sharing { ids, pools: ["nodes"; 2], moved_to: ["nodes-2"; 2], rounds: 10 }).await
}

#[tokio::test(start_paused = true)]
async fn two_clusters_with_pools_and_ids_of_their_own_touch_only_their_own() -> anyhow::Result<()> {
    let ids = [range(20_000, 24_999)?, range(25_000, 29_999)?];
    share(&Sharing { ids, pools: ["a", "b"], moved_to: ["a-2", "b-2"], rounds: 2 }).await
}
