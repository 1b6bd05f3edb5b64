//! The line with its own parts: a claim's launch is carried out on the estate, its guest joins the real cluster with the
//! seed we rendered, the real scheduler binds the pods it was made for, and all of it goes away again.
//!
//! What a controller will do between the parts (write the record down, make the token, match the node) stands here for it.

use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use tenon_api::{NodeClaim, launch_record, names};
use tenon_cloudinit::Bootstrap;
use tenon_controllers::claim::{
    LaunchPass, Order, ReleasePass, SeedFacts, SeedSource, pass, provider_id, release, seed_image,
};
use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{InstanceType, LaunchRecord, Seconds};
use tenon_sim::{Estate, Guests};
use testbed::Testbed;

use crate::bench::{bootstrap_token, eventually, quick_guests, ready_node};

/// What the line works with.
pub(crate) struct Line<'a> {
    pub(crate) testbed: &'a Testbed,
    pub(crate) admin: &'a Client,
    pub(crate) pve: &'a tenon_pve::Client,
    pub(crate) estate: &'a Estate,
}

/// Launches every claim, waits until the pods run, and takes everything away.
pub(crate) async fn claims_become_nodes_and_go(
    line: &Line<'_>,
    claims: &[NodeClaim],
    pods: &Api<Pod>,
) -> anyhow::Result<()> {
    let before = line.estate.volumes().len();
    let guests = Guests::start(line.estate, quick_guests());
    let mut launched = Vec::new();
    for (index, claim) in claims.iter().enumerate() {
        let token = bootstrap_token(line.admin, &format!("line0{index}"), "2099-01-01T00:00:00Z").await?;
        let record = launch(line, claim, &token).await?;
        let node = ready_node(line.admin, &claim.name_any(), || guests.guest_log(record.vmid.get())).await?;
        assert_eq!(node.spec.clone().unwrap_or_default().provider_id, Some(provider_id(&record)));
        register(line, claim, &node, &record).await?;
        launched.push(record);
    }
    eventually("the pods run on the nodes that were made for them", async || {
        let mut running = 0;
        for name in ["a", "b", "c"] {
            let pod = pods.get(name).await?;
            let phase = pod.status.and_then(|status| status.phase);
            running += usize::from(phase.as_deref() == Some("Running"));
        }
        Ok((running == 3).then_some(()))
    })
    .await?;
    for (claim, record) in claims.iter().zip(&launched) {
        take_away(line, claim, record).await?;
    }
    guests.shutdown().await;
    assert_eq!(line.estate.vms().iter().filter(|vm| vm.vmid >= 20_000).count(), 0);
    assert_eq!(line.estate.volumes().len(), before, "disks and seeds are gone");
    Ok(())
}

fn size_of(claim: &NodeClaim) -> anyhow::Result<InstanceType> {
    let name = &claim.labels()[names::LABEL_INSTANCE_TYPE];
    InstanceType::built_in().into_iter().find(|size| size.name == *name).with_context(|| format!("no size {name}"))
}

fn order<'a>(claim: &NodeClaim, size: &InstanceType, seed: Option<SeedSource<'a>>) -> anyhow::Result<Order<'a>> {
    Ok(Order {
        cluster: "cluster-1".to_owned(),
        claim_uid: claim.uid().unwrap_or_default(),
        name: claim.name_any(),
        class: claim.spec.node_class_ref.name.clone(),
        instance_type: size.name.clone(),
        capacity_type: size.capacity_type.as_str().to_owned(),
        pool: None,
        cores: u32::try_from(size.capacity.get(CPU).value())?,
        memory_mib: u64::try_from(size.capacity.get(MEMORY).value() >> 20)?,
        disk_gib: 30,
        tags: Vec::new(),
        seed,
    })
}

/// Passes until the VM runs, each starting from the record in the claim's annotation.
async fn launch(line: &Line<'_>, claim: &NodeClaim, token: &str) -> anyhow::Result<LaunchRecord> {
    let size = size_of(claim)?;
    let bootstrap = Bootstrap {
        api_server: line.testbed.server().to_owned(),
        ca_pem: line.testbed.ca_pem(),
        token: token.parse()?,
    };
    let facts = SeedFacts { claim, size: &size, kubelet: None, bootstrap };
    let render = |record: &LaunchRecord, config: &tenon_pve::VmConfig| seed_image(&facts, record, config);
    let order = order(claim, &size, Some(SeedSource { storage: "shared".to_owned(), render: &render }))?;
    let claims: Api<NodeClaim> = Api::all(line.admin.clone());
    for _ in 0..400 {
        let written = claims.get(&claim.name_any()).await?;
        let record = launch_record::read(&written.annotations()[names::ANNOTATION_LAUNCH])?;
        match pass(line.pve, &order, &record, Seconds(1_000)).await? {
            LaunchPass::Record(next) => {
                let annotation = json!({ names::ANNOTATION_LAUNCH: launch_record::write(&next) });
                let patch =
                    json!({ "metadata": { "resourceVersion": written.resource_version(), "annotations": annotation } });
                claims.patch(&claim.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
            }
            LaunchPass::Wait(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            LaunchPass::Launched => return Ok(record),
            other => bail!("the launch of {} ended with {other:?}", claim.name_any()),
        }
    }
    bail!("the launch of {} does not end", claim.name_any())
}

/// Matches the node to its claim: the uuid it reports is the one we wrote down. Then it may take pods.
async fn register(line: &Line<'_>, claim: &NodeClaim, node: &Node, record: &LaunchRecord) -> anyhow::Result<()> {
    let uuid =
        node.status.as_ref().and_then(|status| status.node_info.as_ref()).map(|info| info.system_uuid.to_lowercase());
    assert_eq!(uuid, record.uuid, "the node is the VM we made");
    let nodes: Api<Node> = Api::all(line.admin.clone());
    let spec = node.spec.clone().unwrap_or_default();
    let taints: Vec<_> =
        spec.taints.unwrap_or_default().into_iter().filter(|taint| taint.key != names::TAINT_UNREGISTERED).collect();
    let patch = json!({ "metadata": { "labels": claim.labels() }, "spec": { "taints": taints } });
    nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

async fn take_away(line: &Line<'_>, claim: &NodeClaim, record: &LaunchRecord) -> anyhow::Result<()> {
    let size = size_of(claim)?;
    let render = |_: &LaunchRecord, _: &tenon_pve::VmConfig| Err("nothing is rendered on the way back".to_owned());
    let order = order(claim, &size, Some(SeedSource { storage: "shared".to_owned(), render: &render }))?;
    let seed = order.seed_file(record.vmid);
    let released =
        eventually("the VM is gone", async || match release(line.pve, &order, record, seed.as_ref()).await? {
            ReleasePass::Released => Ok(Some(())),
            ReleasePass::Refuse(why) => bail!("refused: {why}"),
            _ => Ok(None),
        });
    released.await?;
    Api::<Node>::all(line.admin.clone()).delete(&claim.name_any(), &DeleteParams::default()).await?;
    Ok(())
}
