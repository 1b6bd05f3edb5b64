//! An estate with a template, and a controller that can be killed between a request and its reply.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tenon_controllers::claim::{DesiredVm, FirstBoot, Owner, ReleasePass, launch_pass, release};
use tenon_engine::launch::LaunchResult;
use tenon_model::{LaunchRecord, Place, Seconds};
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
}

pub(crate) const FIRST_ID: u32 = 20_000;

impl Site {
    pub(crate) fn new() -> Site {
        let estate = Estate::new(EstateConfig::default());
        let template =
            TemplateSpec { host: "pve1".to_owned(), vmid: 9000, name: "debian".to_owned(), ..TemplateSpec::default() };
        estate.add_template(&template).unwrap();
        Site { estate }
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
        let token = Token::new("tenon@pve!sim", "11111111-2222-3333-4444-555555555555").unwrap();
        Client::new(vec![endpoint], Transport::over(mortal, |_| false), token)
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

/// Runs passes from the written record on, writing down after each, until the launch ends or the controller dies.
pub(crate) async fn live(site: &Site, client: &Client, record: &mut LaunchRecord) -> End {
    live_with(site, (client, &order()), record).await
}

/// The same for an order of one's own.
pub(crate) async fn live_with(site: &Site, with: (&Client, &DesiredVm<'_>), record: &mut LaunchRecord) -> End {
    let (client, order) = with;
    for _ in 0..200 {
        let now = site.now();
        // Longer than any call may take: only a dead controller gets no answer.
        let outcome = tokio::time::timeout(Duration::from_secs(25), launch_pass(client, order, record, now)).await;
        match outcome {
            Err(_) => return End::Died,
            Ok(Err(_)) | Ok(Ok(LaunchResult::Wait(_))) => tokio::time::sleep(Duration::from_millis(500)).await,
            Ok(Ok(LaunchResult::Record(next))) => *record = next,
            Ok(Ok(LaunchResult::Relaunch { incomplete, .. })) => {
                let next = (record.vmid.get() + 1).try_into().unwrap();
                *record = record.moved_to(next, incomplete, site.now());
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
        let outcome = tokio::time::timeout(Duration::from_secs(25), release(client, &owner, record)).await;
        match outcome {
            Err(_) => return None,
            Ok(Err(_)) | Ok(Ok(ReleasePass::Wait(_) | ReleasePass::Locked(_))) => {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Ok(Ok(ReleasePass::Again)) => {}
            Ok(Ok(end)) => return Some(end),
        }
    }
    panic!("a release must end: {record:?}")
}
