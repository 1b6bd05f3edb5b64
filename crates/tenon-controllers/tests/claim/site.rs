//! An estate with a template, and a controller that can be killed between a request and its reply.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tenon_api::CloneMode;
use tenon_controllers::claim::{
    CloneSource, DesiredVm, FirstBoot, Owner, PowerOff, ReleasePass, SeenVms, VmReader, launch_pass, release,
};
use tenon_engine::launch::{LaunchResult, LaunchTime};
use tenon_model::{LaunchLimits, LaunchRecord, Place, Seconds};
use tenon_pve::pve_rights::{self, AclPlace, Privileges, REQUIRED};
use tenon_pve::{Client, Endpoint, Token, Transport, VmConfig};
use tenon_sim::{Estate, EstateConfig, StorageSpec, TemplateSpec, VmView};
use tower::{Service, ServiceExt};

use crate::role::{ADMIN, FEW, call_as, grant};

/// When the controller dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    Never,
    /// Just before this request leaves, counted from 0.
    Before(usize),
    /// After this request was carried out, before its reply is read.
    After(usize),
}

pub(crate) struct Site {
    pub(crate) estate: Estate,
    token: (String, String),
    /// The resource pool of its VMs.
    pool: Option<String>,
}

/// The access control path of a place, with the storages of disks and of seed images.
fn path(place: AclPlace, (disks, seeds): (&str, &str)) -> String {
    match place {
        AclPlace::NodePool => "/pool/k8s".to_owned(),
        AclPlace::NodeTemplates => "/vms/9000".to_owned(),
        AclPlace::Disks => format!("/storage/{disks}"),
        AclPlace::Seeds => format!("/storage/{seeds}"),
        AclPlace::Bridges => "/sdn/zones/localnetwork".to_owned(),
        AclPlace::Hosts => "/nodes".to_owned(),
        other => panic!("no launch needs {other:?}"),
    }
}

pub(crate) const FIRST_ID: u32 = 20_000;

impl Site {
    pub(crate) fn new() -> Site {
        Site::on(EstateConfig::default(), "shared")
    }

    fn on(config: EstateConfig, storage: &str) -> Site {
        let estate = Estate::new(config);
        let (host, name, storage) = ("pve1".to_owned(), "debian".to_owned(), storage.to_owned());
        let template = TemplateSpec { host, vmid: 9000, name, storage, ..TemplateSpec::default() };
        estate.add_template(&template).unwrap();
        Site { estate, token: (ADMIN.0.to_owned(), ADMIN.1.to_owned()), pool: None }
    }

    /// The same with a token whose rights on VMs come from a resource pool: those of SECURITY.md that all installations need.
    pub(crate) async fn pool_scoped() -> Site {
        Site::pool_scoped_without("none").await
    }

    /// The same but for one privilege, wherever it is held.
    pub(crate) async fn pool_scoped_without(privilege: &str) -> Site {
        let mut role = pve_rights::privileges(&REQUIRED);
        role.values_mut().for_each(|held| held.retain(|one| *one != privilege));
        Site::new().with_role(&role, |place| path(place, ("shared", "shared"))).await
    }

    /// Disks and seed images on storages of their own, and a token with this role.
    pub(crate) async fn with_places(role: &Privileges) -> Site {
        let storages = vec![
            StorageSpec::new("disks", &["images"], 1 << 40).shared(),
            StorageSpec::new("seeds", &["iso"], 1 << 40).shared(),
        ];
        let site = Site::on(EstateConfig { storages, ..EstateConfig::default() }, "disks");
        site.with_role(role, |place| path(place, ("disks", "seeds"))).await
    }

    async fn with_role(mut self, role: &Privileges, path: impl Fn(AclPlace) -> String) -> Site {
        self.estate.add_pool("k8s");
        let secret = grant(&self.estate, role, path).await;
        self.token = (FEW.to_owned(), secret);
        self.pool = Some("k8s".to_owned());
        self
    }

    /// A call of the administrator's.
    pub(crate) async fn admin(&self, method: &str, path: &str, params: &[(&str, &str)]) -> serde_json::Value {
        call_as(&self.estate, ADMIN, (method, path), params).await
    }

    /// A call with somebody's token.
    pub(crate) async fn call_as(
        &self,
        token: (&str, &str),
        method: &str,
        path: &str,
        params: &[(&str, &str)],
    ) -> serde_json::Value {
        call_as(&self.estate, token, (method, path), params).await
    }

    /// What this site's VMs are ordered as.
    pub(crate) fn order(&self) -> DesiredVm<'static> {
        DesiredVm { pool: self.pool.clone(), ..order() }
    }

    /// A controller's client, which dies when it is told to: from then on no request comes back.
    pub(crate) fn client(&self, death: Death) -> Client {
        let sent = Arc::new(AtomicUsize::new(0));
        let estate = self.estate.service();
        let mortal = tower::service_fn(move |request| {
            let (mut estate, number) = (estate.clone(), sent.fetch_add(1, Ordering::SeqCst));
            async move {
                let (before, after) = match death {
                    Death::Never => (usize::MAX, usize::MAX),
                    Death::Before(last) => (last, last),
                    Death::After(last) => (last + 1, last),
                };
                if number >= before {
                    std::future::pending::<()>().await;
                }
                let reply = estate.ready().await?.call(request).await?;
                if number >= after {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Infallible>(reply)
            }
        });
        let endpoint = Endpoint::new("https://pve.example:8006").unwrap();
        let token = Token::new(&self.token.0, &self.token.1).unwrap();
        Client::new(vec![endpoint], Transport::over(mortal, |_| false), token)
    }

    pub(crate) fn time(&self) -> LaunchTime {
        LaunchTime { now: self.now(), limits: LaunchLimits::default(), blocked_since: Seconds(0) }
    }

    pub(crate) fn now(&self) -> Seconds {
        Seconds(1_000_000 + i64::try_from(self.estate.elapsed().as_secs()).unwrap())
    }

    /// VMs that are no template.
    pub(crate) fn vms(&self) -> Vec<VmView> {
        self.estate.vms().into_iter().filter(|vm| vm.vmid != 9000).collect()
    }
}

fn render(record: &LaunchRecord, config: &VmConfig) -> Result<Bytes, String> {
    assert!(!config.network_cards().is_empty(), "the cards are known when the seed is rendered");
    Ok(Bytes::from(format!("seed of {}", record.vmid).repeat(100)))
}

pub(crate) fn order() -> DesiredVm<'static> {
    DesiredVm {
        owner: Owner { cluster: "cluster-1".to_owned(), claim_uid: "claim-1".to_owned() },
        name: "default-abc".to_owned(),
        class: "default".to_owned(),
        instance_type: "c1.2VCPU-4GB".to_owned(),
        capacity_type: "on-demand".to_owned(),
        pool: None,
        cores: 2,
        memory_mib: 4096,
        disk_gib: 30,
        storage: None,
        clone_mode: CloneMode::Auto,
        source: CloneSource { storage: Some("shared".to_owned()), ..CloneSource::default() },
        security_groups: Vec::new(),
        name_servers: Vec::new(),
        tags: vec!["k8s".to_owned()],
        first_boot: FirstBoot::Seed(&render),
    }
}

pub(crate) fn intent(number: u32, now: Seconds) -> LaunchRecord {
    let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
    let record = LaunchRecord::new(place, number.try_into().unwrap(), "9000".parse().unwrap(), now);
    LaunchRecord { seed_storage: Some("shared".to_owned()), ..record }
}

/// How a life of the controller ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Launched,
    Died,
    GaveUp(String),
    Refused(String),
}

/// One pass of a controller that remembers nothing of the passes before.
pub(crate) async fn launch_once(
    client: &Client,
    order: &DesiredVm<'_>,
    record: &LaunchRecord,
    time: &LaunchTime,
) -> Result<LaunchResult, tenon_pve::Error> {
    let seen = SeenVms::default();
    launch_pass(&VmReader { pve: client, seen: &seen }, order, record, time).await
}

/// One pass of a release that does not ask the guest.
pub(crate) async fn release_once(
    client: &Client,
    owner: &Owner,
    record: &LaunchRecord,
) -> Result<ReleasePass, tenon_pve::Error> {
    release(client, owner, record, PowerOff::Stop).await
}

/// Runs passes from the written record on, writing down after each, until the launch ends or the controller dies.
pub(crate) async fn live(site: &Site, client: &Client, record: &mut LaunchRecord) -> End {
    live_with(site, (client, &site.order()), record).await
}

/// The same for an order of one's own.
pub(crate) async fn live_with(site: &Site, with: (&Client, &DesiredVm<'_>), record: &mut LaunchRecord) -> End {
    let (client, order) = with;
    let seen = SeenVms::default();
    let reader = VmReader { pve: client, seen: &seen };
    // More than half an hour of looks.
    for _ in 0..5_000 {
        let time = site.time();
        // Longer than any call may take: only a dead controller gets no answer.
        let outcome = tokio::time::timeout(Duration::from_secs(25), launch_pass(&reader, order, record, &time)).await;
        match outcome {
            Err(_) => return End::Died,
            Ok(Err(_)) | Ok(Ok(LaunchResult::Wait(_))) => tokio::time::sleep(Duration::from_millis(500)).await,
            Ok(Ok(LaunchResult::Record(next))) => *record = next,
            Ok(Ok(LaunchResult::Relaunch { leftover, .. })) => {
                let next = (record.vmid.get() + 1).try_into().unwrap();
                *record = record.moved_to(next, leftover, site.now());
            }
            Ok(Ok(LaunchResult::GiveUp(why))) => return End::GaveUp(why),
            Ok(Ok(LaunchResult::Refuse(why))) => return End::Refused(why),
            Ok(Ok(LaunchResult::Launched)) => return End::Launched,
        }
    }
    panic!("a launch must end: {record:?}")
}

/// Releases until nothing is left, the VM is refused, or the controller dies (`None`).
pub(crate) async fn let_go(client: &Client, record: &LaunchRecord) -> Option<ReleasePass> {
    let owner = order().owner;
    for _ in 0..50 {
        let outcome =
            tokio::time::timeout(Duration::from_secs(25), release(client, &owner, record, PowerOff::Stop)).await;
        match outcome {
            Err(_) => return None,
            Ok(Err(_)) | Ok(Ok(ReleasePass::Wait(_) | ReleasePass::Locked(_) | ReleasePass::Hidden)) => {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Ok(Ok(ReleasePass::Again)) => {}
            Ok(Ok(end)) => return Some(end),
        }
    }
    panic!("a release must end: {record:?}")
}
