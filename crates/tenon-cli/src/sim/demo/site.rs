//! The parts of the demo, put together: an API server and its actors, an estate and its guests, and the controllers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, PostParams};
use tenon_controllers::{Clients, Clock, Controllers, Settings};
use tenon_pve::{Endpoint, Token, Transport};
use tenon_sim::{Actors, Cluster, ClusterConfig, Estate, EstateConfig, GuestConfig, Guests, HostSpec, TemplateSpec};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::scene::HostRow;
use super::workload;

/// Cores and memory of each host.
const CORES: u32 = 16;
const MEMORY: u64 = 64 << 30;

/// Templates have these ids, VMs of the demo higher ones.
const FIRST_TEMPLATE: u32 = 9001;
const FIRST_VM: u32 = 20_000;

/// The hour at which every demo begins, so that equal seeds give equal demos.
const EPOCH: i64 = 1_794_700_000;

/// Where new nodes find the API server. Nobody listens there: guests are connected in memory.
const ENDPOINT: &str = "https://cluster.example:6443";

/// The parts.
pub(crate) struct Site {
    cluster: Cluster,
    estate: Estate,
    guests: Guests,
    actors: Actors,
    client: Client,
    controllers: JoinHandle<Result<(), tenon_controllers::RunError>>,
    stop: oneshot::Sender<()>,
    begun: Instant,
    volumes: usize,
}

/// What was asked of Proxmox.
pub(crate) struct Requests {
    pub(crate) clones: usize,
    pub(crate) destroys: usize,
    /// Requests that name a VM, its seed or its tasks.
    pub(crate) of_vms: usize,
}

impl Site {
    /// Puts everything together and starts it.
    pub(crate) async fn start(seed: u64, hosts: u32) -> anyhow::Result<Site> {
        let epoch = Timestamp::from_second(EPOCH).context("invalid start time of the demo")?;
        let epoch_s = u64::try_from(EPOCH).unwrap_or_default();
        let cluster = Cluster::new(ClusterConfig { seed, epoch_s, ..ClusterConfig::default() })
            .context("cannot create the simulated cluster")?;
        cluster.bind_bootstrappers();
        let client = cluster.client();
        for definition in tenon_api::definitions() {
            Api::all(client.clone())
                .create(&PostParams::default(), &definition)
                .await
                .context("cannot create a custom resource definition")?;
        }
        let estate = estate(seed, hosts, epoch_s)?;
        let volumes = estate.volumes().len();
        let connect = Arc::new(cluster.clone());
        let guests = Guests::start(&estate, GuestConfig { epoch_s: Some(epoch_s), connect, ..GuestConfig::default() });
        let actors = Actors::start(client.clone(), epoch);
        workload::apply_rules(&client).await?;
        let clock = Clock::Runtime { epoch, origin: Instant::now() };
        let clients = Clients {
            workload: client.clone(),
            home: None,
            regions: BTreeMap::from([("lab".to_owned(), pve(&estate)?)]).into(),
        };
        let settings = Settings { cluster_endpoint: Some(ENDPOINT.to_owned()), ..Settings::default() };
        let (stop, stopped) = oneshot::channel();
        let run = Controllers::new(clients, settings, clock).run(async move {
            // Whoever would tell is gone: that is as good.
            let _ = stopped.await;
        });
        let controllers = tokio::spawn(run);
        Ok(Site { cluster, estate, guests, actors, client, controllers, stop, begun: Instant::now(), volumes })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// How long it has been going on, on the demo's clock.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// What the hosts carry.
    pub(crate) fn hosts(&self) -> Vec<HostRow> {
        let mut rows: BTreeMap<String, HostRow> = BTreeMap::new();
        for vm in self.estate.vms() {
            let fresh = || HostRow { name: vm.host.clone(), cores: CORES, used: 0, vms: 0 };
            let row = rows.entry(vm.host.clone()).or_insert_with(fresh);
            if vm.vmid >= FIRST_VM {
                row.vms += 1;
                row.used += vm.config.get("cores").and_then(|cores| cores.parse::<u32>().ok()).unwrap_or_default();
            }
        }
        rows.into_values().collect()
    }

    /// How many VMs there are.
    pub(crate) fn vms(&self) -> usize {
        self.estate.vms().iter().filter(|vm| vm.vmid >= FIRST_VM).count()
    }

    /// What is there that was not there before: VMs, and disks or images on storages.
    pub(crate) fn leftovers(&self) -> usize {
        self.vms() + self.estate.volumes().len().saturating_sub(self.volumes)
    }

    /// What was asked of Proxmox so far.
    pub(crate) fn requests(&self) -> Requests {
        let ledger = self.estate.ledger();
        let is_vm = |path: &str| path.split('/').nth(3) == Some("qemu") && path.split('/').count() == 5;
        Requests {
            clones: ledger.iter().filter(|entry| entry.path.ends_with("/clone") && entry.status == 200).count(),
            destroys: ledger.iter().filter(|entry| entry.method == "DELETE" && is_vm(&entry.path)).count(),
            of_vms: ledger.iter().filter(|entry| entry.path != "/cluster/resources").count(),
        }
    }

    /// What went wrong last, as far as somebody noticed.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.actors.trouble()
    }

    /// The API server and the estate, to be served.
    pub(crate) fn parts(&self) -> (&Cluster, &Estate) {
        (&self.cluster, &self.estate)
    }

    /// Ends everything, and waits for it.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        let _ = self.stop.send(());
        self.controllers.await.context("the controllers stopped unexpectedly")??;
        self.actors.shutdown().await;
        self.guests.shutdown().await;
        Ok(())
    }
}

fn estate(seed: u64, hosts: u32, epoch: u64) -> anyhow::Result<Estate> {
    let names: Vec<String> = (1..=hosts).map(|number| format!("pve{number}")).collect();
    let specs = names.iter().map(|name| HostSpec::new(name, CORES, MEMORY)).collect();
    let estate = Estate::new(EstateConfig { hosts: specs, seed, epoch, ..EstateConfig::default() });
    for (vmid, host) in (FIRST_TEMPLATE..).zip(names) {
        let template = TemplateSpec { host, vmid, name: "debian-13".to_owned(), ..TemplateSpec::default() };
        estate.add_template(&template).with_context(|| format!("cannot create template {vmid}"))?;
    }
    Ok(estate)
}

/// The real client, over memory.
fn pve(estate: &Estate) -> anyhow::Result<tenon_pve::Client> {
    let endpoint = Endpoint::new("https://pve.example:8006").context("invalid address of the simulated Proxmox")?;
    let token = EstateConfig::default().tokens.into_iter().next().context("the simulated Proxmox has no API token")?;
    let transport = Transport::over(estate.service(), |_| false);
    Ok(tenon_pve::Client::new(vec![endpoint], transport, Token::new(&token.id, &token.secret)?))
}
