//! One pod that cannot be evicted, one orphan that cannot be destroyed, one region that does not answer: do all others go on?

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use http::{Request, Response};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use kube::client::Body;
use kube::{Client, ResourceExt};
use serde_json::json;
use tenon_model::VmId;
use tenon_pve::OwnerMark;
use tenon_sim::{TemplateSpec, VmSpec};

use crate::bench::quick_guests;
use crate::embedded::Gate;
use crate::ground::Kind;
use crate::world::World;

/// What a webhook says.
const DENIED: &str = "admission webhook \"keep.example.com\" denied the request: not before Monday";

/// A client whose evictions of one pod are refused while the flag is up. How often.
fn refusing(client: Client, pod: String, is_up: Arc<AtomicBool>) -> (Client, Arc<AtomicUsize>) {
    let refused = Arc::new(AtomicUsize::new(0));
    let counted = refused.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_it = request.uri().path().ends_with(&format!("/{pod}/eviction")) && is_up.load(Ordering::SeqCst);
        let (client, counted) = (client.clone(), counted.clone());
        async move {
            if !is_it {
                return client.send(request).await.map_err(io::Error::other);
            }
            counted.fetch_add(1, Ordering::SeqCst);
            let status = json!({
                "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 500, "message": DENIED,
                "reason": "InternalError", "metadata": {},
            });
            let body = Body::from(status.to_string().into_bytes());
            Response::builder().status(500).body(body).map_err(io::Error::other)
        }
    });
    (Client::new(service, "default"), refused)
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_eviction_a_webhook_refuses_is_named_and_keeps_no_other_pod() -> anyhow::Result<()> {
    let Some(mut world) = World::running(Kind::Embedded).await? else { return Ok(()) };
    let container = json!({ "resources": { "requests": { "cpu": "1", "memory": "1Gi" } } });
    world.deploy_pods(("web", 4), container, json!({})).await?;
    world.until_running("web", 4).await?;
    let claim = world.claims().await?.remove(0).name_any();
    let mut before: Vec<String> = world.pods("web").await?.iter().map(ResourceExt::name_any).collect();
    before.sort();
    let (first, is_up) = (before[0].clone(), Arc::new(AtomicBool::new(true)));
    world.kill_controller()?;
    let (client, refused) = refusing(world.admin.clone(), first.clone(), is_up.clone());
    world.connect(client)?;
    world.start_controller()?;
    world.delete_claim(&claim).await?;

    world
        .until("the other pods of the node are evicted", async || {
            let left: Vec<String> = world.pods("web").await?.iter().map(ResourceExt::name_any).collect();
            Ok(before.iter().all(|name| left.contains(name) == (*name == first)).then_some(()))
        })
        .await?;
    let words = format!("Cannot evict pod work/{first} from Node {claim}: {DENIED}");
    world.until_told(("NodeClaim", &claim), "FailedDraining", &words).await?;
    world.until_told(("Node", &claim), "FailedDraining", &words).await?;
    let so_far = refused.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(100)).await;
    let tries = refused.load(Ordering::SeqCst) - so_far;
    assert!((8..22).contains(&tries), "{tries} tries in 100 s: it waits up to ten seconds");

    is_up.store(false, Ordering::SeqCst);
    world
        .until("the node is drained and removed", async || {
            Ok(world.claims().await?.iter().all(|other| other.name_any() != claim).then_some(()))
        })
        .await?;
    world.until_running("web", 4).await?;
    world.end().await
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_cannot_be_destroyed_and_a_region_that_is_silent_keep_no_other_orphan() -> anyhow::Result<()> {
    let Some(mut world) = World::new(Kind::Embedded, quick_guests()).await? else { return Ok(()) };
    let namespaces: Api<Namespace> = Api::all(world.admin.clone());
    let cluster = namespaces.get("kube-system").await?.uid().context("kube-system has no uid")?;
    for (vmid, protection) in [(20_001, "1"), (20_002, "0"), (20_003, "0")] {
        let claim = "0d6cb2c4-0000-4000-8000-000000000000".to_owned();
        let mark = OwnerMark { cluster: cluster.clone(), claim, vmid: VmId::try_from(vmid)? };
        let config = BTreeMap::from([
            ("description".to_owned(), format!("Karpenter managed instance, class=default\n{mark}")),
            ("protection".to_owned(), protection.to_owned()),
            // It was configured: the protection is somebody's wish, not the template's.
            ("smbios1".to_owned(), format!("base64=1,serial=aD14,uuid=9e01f0b4-0000-4000-8000-0000000{vmid}")),
        ]);
        let base = TemplateSpec { vmid, name: format!("orphan-{vmid}"), config, ..TemplateSpec::default() };
        world.estate.add_vm(&VmSpec { base, running: false })?;
    }
    world.embedded()?.beside = Some(Gate::Hangs);
    world.start_controller()?;
    world
        .until_within(Duration::from_secs(200), "the other orphans are destroyed", async || {
            Ok((world.vms() == [20_001]).then_some(()))
        })
        .await?;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let log = world.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("garbage collection failed")).collect();
    assert_eq!(lines.len(), 1, "the same again is no news: {lines:#?}");
    assert!(lines[0].contains("orphaned VM 20001 on host pve1 in region lab"), "{}", lines[0]);
    assert!(lines[0].contains("on host pve1 run: qm set 20001 --protection 0"), "{}", lines[0]);
    let counted = world.embedded()?.served("metrics")?;
    assert!(!counted.contains("tenon_pass_errors_total{controller=\"nodeclaim.garbagecollection\"} 0"), "{counted}");
    world.end().await
}
