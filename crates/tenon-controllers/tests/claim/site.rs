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
use tenon_pve::{Client, Endpoint, Token, Transport, VmConfig};
use tenon_sim::{Estate, EstateConfig, TemplateSpec, VmView};
use tower::{Service, ServiceExt};

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

/// The token that may do everything.
const ADMIN: (&str, &str) = ("tenon@pve!sim", "11111111-2222-3333-4444-555555555555");

/// What SECURITY.md asks for, by path.
const POOL_RIGHTS: &[(&str, &str)] = &[
    (
        "/pool/k8s",
        "VM.Allocate,VM.Audit,VM.PowerMgmt,VM.Config.CDROM,VM.Config.CPU,VM.Config.Cloudinit,VM.Config.Disk,\
         VM.Config.HWType,VM.Config.Memory,VM.Config.Network,VM.Config.Options",
    ),
    ("/vms/9000", "VM.Audit,VM.Clone"),
    ("/storage/shared", "Datastore.Allocate,Datastore.AllocateSpace,Datastore.AllocateTemplate,Datastore.Audit"),
    ("/sdn/zones/localnetwork", "SDN.Use,SDN.Audit"),
    ("/nodes", "Sys.Audit"),
];

pub(crate) const FIRST_ID: u32 = 20_000;

impl Site {
    pub(crate) fn new() -> Site {
        let estate = Estate::new(EstateConfig::default());
        let template =
            TemplateSpec { host: "pve1".to_owned(), vmid: 9000, name: "debian".to_owned(), ..TemplateSpec::default() };
        estate.add_template(&template).unwrap();
        Site { estate, token: (ADMIN.0.to_owned(), ADMIN.1.to_owned()), pool: None }
    }

    /// The same with a token whose rights on VMs come from a resource pool.
    pub(crate) async fn pool_scoped() -> Site {
        Site::with_rights(POOL_RIGHTS).await
    }

    /// The same but for one privilege.
    pub(crate) async fn pool_scoped_without(privilege: &str) -> Site {
        let rights: Vec<(&str, String)> = POOL_RIGHTS
            .iter()
            .map(|(path, all)| (*path, all.split(',').filter(|one| *one != privilege).collect::<Vec<_>>().join(",")))
            .collect();
        let rights: Vec<(&str, &str)> = rights.iter().map(|(path, all)| (*path, all.as_str())).collect();
        Site::with_rights(&rights).await
    }

    async fn with_rights(rights: &[(&str, &str)]) -> Site {
        let mut site = Site::new();
        site.estate.add_pool("k8s");
        site.admin("POST", "/access/users", &[("userid", "few@pve")]).await;
        for (number, (path, privileges)) in rights.iter().enumerate() {
            let role = format!("Role{number}");
            site.admin("POST", "/access/roles", &[("roleid", &role), ("privs", privileges)]).await;
            site.admin("PUT", "/access/acl", &[("path", path), ("roles", &role), ("users", "few@pve")]).await;
        }
        let made = site.admin("POST", "/access/users/few@pve/token/k8s", &[("privsep", "0")]).await;
        site.token = ("few@pve!k8s".to_owned(), made["data"]["value"].as_str().unwrap().to_owned());
        site.pool = Some("k8s".to_owned());
        site
    }

    /// A call of the administrator's.
    pub(crate) async fn admin(&self, method: &str, path: &str, params: &[(&str, &str)]) -> serde_json::Value {
        self.call_as(ADMIN, method, path, params).await
    }

    /// A call with somebody's token.
    pub(crate) async fn call_as(
        &self,
        token: (&str, &str),
        method: &str,
        path: &str,
        params: &[(&str, &str)],
    ) -> serde_json::Value {
        let body =
            params.iter().map(|(name, value)| format!("{name}={}", value.replace('/', "%2F").replace('=', "%3D")));
        let request = http::Request::builder()
            .method(method)
            .uri(format!("https://pve.example/api2/json{path}"))
            .header("authorization", format!("PVEAPIToken={}={}", token.0, token.1))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(axum::body::Body::from(body.collect::<Vec<_>>().join("&")))
            .unwrap();
        let reply = self.estate.service().oneshot(request).await.unwrap();
        let status = reply.status();
        let bytes = axum::body::to_bytes(reply.into_body(), usize::MAX).await.unwrap();
        assert!(status.is_success(), "{method} {path}: {status} {}", String::from_utf8_lossy(&bytes));
        serde_json::from_slice(&bytes).unwrap()
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
