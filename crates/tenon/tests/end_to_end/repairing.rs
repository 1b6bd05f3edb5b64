//! Are broken nodes replaced before they go, one for one in static pools, rebooted where a policy says so, and left alone where an
//! operator, a budget or too many others say so?

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tenon_api::NodeClaim;

use crate::bench::quick_guests;
use crate::ground::{Kind, scenarios};
use crate::world::{NAMESPACE, World, record_of};

/// What replaces and reboots broken nodes.
const GATE: &str = "NodeRepair=true";

/// A kubelet falls silent after a minute, is tolerated, and a launch and a drain follow.
const PATIENCE: Duration = Duration::from_secs(300);

/// On the embedded ground time costs nothing, so the default policies hold there.
const PATIENCE_BY_DEFAULT: Duration = Duration::from_secs(1800);

/// The default policies, but for how long they tolerate: nobody waits a quarter of an hour for a real clock.
const SOON: &str = "
- {conditionType: Ready, conditionStatus: 'False', reasonRegex: '.*', tolerationDuration: 5s, action: ReplaceNode}
- {conditionType: Ready, conditionStatus: Unknown, tolerationDuration: 5s, action: ReplaceNode}
";

/// A node that is silent is rebooted, its pods are not waited for.
const REBOOT: &str = "
- {conditionType: Ready, conditionStatus: 'False', tolerationDuration: 15m, action: ReplaceNode}
- {conditionType: Ready, conditionStatus: Unknown, reasonRegex: NodeStatusUnknown, tolerationDuration: 5s,
   terminationGracePeriod: 0s, priority: 10, action: RebootNode}
";

scenarios! {
    j2_a_node_that_falls_silent_is_replaced_before_it_goes,
    j2_a_silent_node_that_is_not_to_be_repaired_stays_until_that_is_taken_back,
    j2_where_more_than_a_fifth_is_silent_nothing_is_repaired_until_few_are,
    j2_a_silent_node_of_a_static_pool_is_replaced_one_for_one,
    j3_a_silent_node_is_rebooted_and_keeps_its_name_and_its_vm,
    a_vm_that_somebody_stopped_is_started_again_first_and_twice_a_day_at_most,
}

impl World {
    /// A world whose broken nodes are repaired. On a real clock they are tolerated for a shorter time, as an operator may say.
    async fn repairing(kind: Kind, policies: &str, gates: &str) -> anyhow::Result<Option<World>> {
        let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(None) };
        world.add_rules().await?;
        world.switch(gates);
        if kind == Kind::Real || policies != SOON {
            world.repair_by(policies);
        }
        world.start_controller()?;
        world.disrupt_with(json!({ "consolidateAfter": "Never", "budgets": [{ "nodes": "1" }] })).await?;
        Ok(Some(world))
    }

    /// Somebody stops the VM of a node in Proxmox: its kubelet falls silent.
    async fn silence(&self, claim: &NodeClaim) -> anyhow::Result<()> {
        let record = record_of(claim)?;
        let path = format!("/nodes/{}/qemu/{}/status/stop", record.host(), record.vmid);
        self.proxmox("POST", &path, &[]).await?;
        Ok(())
    }

    /// The status of a node's condition Ready.
    async fn readiness(&self, name: &str) -> anyhow::Result<Option<String>> {
        let node = Api::<Node>::all(self.admin.clone()).get_opt(name).await?;
        let conditions = node.and_then(|node| node.status?.conditions).unwrap_or_default();
        Ok(conditions.into_iter().find(|told| told.type_ == "Ready").map(|told| told.status))
    }

    /// Waits until a kubelet is silent for Kubernetes, too.
    async fn until_silent(&self, name: &str) -> anyhow::Result<()> {
        let what = format!("Node {name} is silent");
        let ask = async || Ok((self.readiness(name).await?.as_deref() == Some("Unknown")).then_some(()));
        self.until_within(PATIENCE, &what, ask).await
    }

    /// `kubectl annotate nodeclaim`.
    async fn annotate_claim(&self, name: &str, annotations: Value) -> anyhow::Result<()> {
        let claims: Api<NodeClaim> = Api::all(self.admin.clone());
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        claims.patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn end_without_pods(self, app: &str) -> anyhow::Result<()> {
        self.disrupt_with(json!({ "consolidateAfter": "1s", "budgets": [{ "nodes": "100%" }] })).await?;
        self.scale(app, 0).await?;
        self.until_nothing_is_left().await?;
        self.end().await
    }
}

fn patience(kind: Kind) -> Duration {
    if kind == Kind::Real { PATIENCE } else { PATIENCE_BY_DEFAULT }
}

fn names(claims: &[NodeClaim]) -> BTreeSet<String> {
    claims.iter().map(ResourceExt::name_any).collect()
}

async fn j2_a_node_that_falls_silent_is_replaced_before_it_goes(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::repairing(kind, SOON, GATE).await? else { return Ok(()) };
    // Pods that stay on a silent node until it is repaired: others are deleted after five minutes, and the node is empty then.
    let stay = ["not-ready", "unreachable"].map(
        |taint| json!({ "key": format!("node.kubernetes.io/{taint}"), "operator": "Exists", "effect": "NoExecute" }),
    );
    let container = json!({ "resources": { "requests": { "cpu": "9", "memory": "4Gi" } } });
    world.deploy_pods(("web", 2), container, json!({ "tolerations": stay })).await?;
    world.until_running("web", 2).await?;
    let before = world.claims().await?;
    let old = &before[0];
    world.silence(old).await?;
    let mut was_ready_first = false;
    world
        .until_within(patience(kind), "the silent node is gone", async || {
            let claims = world.claims().await?;
            let now = claims.iter().find(|claim| claim.uid() == old.uid());
            let goes = now.is_none_or(|claim| claim.metadata.deletion_timestamp.is_some());
            if goes && !was_ready_first {
                let new: Vec<&NodeClaim> =
                    claims.iter().filter(|claim| !names(&before).contains(&claim.name_any())).collect();
                anyhow::ensure!(new.len() == 1, "it goes before its replacement is there\n{}", world.tail());
                let ready = world.readiness(&new[0].name_any()).await?;
                anyhow::ensure!(
                    ready.as_deref() == Some("True"),
                    "it goes before its replacement is ready\n{}",
                    world.tail()
                );
                was_ready_first = true;
            }
            Ok(now.is_none().then_some(()))
        })
        .await?;
    assert!(was_ready_first);
    world.until_running("web", 2).await?;
    let note = world.until_event("DisruptionTerminating", "is unhealthy; replacement NodeClaim").await?;
    assert!(note.ends_with("is ready"), "{note}");
    assert_eq!(world.clones().len(), 3, "one replacement\n{}", world.tail());
    assert!(names(&world.claims().await?).contains(&before[1].name_any()), "the other node stays");
    world.end_without_pods("web").await
}

/// One node falls silent, with whatever controller runs, and another comes for it.
pub(crate) async fn a_silent_node_is_replaced(world: &World) -> anyhow::Result<()> {
    world.deploy("fragile", 1).await?;
    world.until_running("fragile", 1).await?;
    let claim = world.claims().await?.pop().context("there is no claim")?;
    world.silence(&claim).await?;
    world
        .until_within(PATIENCE, "the silent node is replaced", async || {
            Ok((!names(&world.claims().await?).contains(&claim.name_any())).then_some(()))
        })
        .await?;
    world.until_running("fragile", 1).await?;
    world.until_event("DisruptionTerminating", "is unhealthy; replacement NodeClaim").await?;
    world.scale("fragile", 0).await?;
    world.until_nothing_is_left().await
}

async fn j2_a_silent_node_that_is_not_to_be_repaired_stays_until_that_is_taken_back(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::repairing(kind, SOON, GATE).await? else { return Ok(()) };
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    let claim = world.claims().await?.pop().context("there is no claim")?;
    let name = claim.name_any();
    world.annotate_claim(&name, json!({ "karpenter.sh/do-not-repair": "true" })).await?;
    world.silence(&claim).await?;
    world.until_silent(&name).await?;
    let words = format!("NodeClaim {name} has karpenter.sh/do-not-repair");
    world
        .until_within(patience(kind), "it is said why the node stays", async || {
            let told = world.events("DisruptionBlocked").await?;
            Ok(told.iter().any(|note| note.contains(&words)).then_some(()))
        })
        .await?;
    assert!(names(&world.claims().await?).contains(&name), "{}", world.tail());
    world.annotate_claim(&name, json!({ "karpenter.sh/do-not-repair": null })).await?;
    world
        .until_within(patience(kind), "the node is replaced", async || {
            Ok((!names(&world.claims().await?).contains(&name)).then_some(()))
        })
        .await?;
    world.until_running("web", 1).await?;
    world.end_without_pods("web").await
}

async fn j2_where_more_than_a_fifth_is_silent_nothing_is_repaired_until_few_are(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::repairing(kind, SOON, GATE).await? else { return Ok(()) };
    // Small ones, so that there is room for another.
    let small = json!({ "resources": { "requests": { "cpu": "500m", "memory": "256Mi" } } });
    let term = json!({ "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": "kubernetes.io/hostname" });
    let apart =
        json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } } });
    world.deploy_pods(("web", 3), small, apart).await?;
    world.until_running("web", 3).await?;
    let claims = world.claims().await?;
    for claim in &claims[..2] {
        world.silence(claim).await?;
    }
    for claim in &claims[..2] {
        world.until_silent(&claim.name_any()).await?;
    }
    let words = "nodes of NodePool default are unhealthy, and nodes are repaired only up to 1 (20%)";
    world
        .until_within(patience(kind), "it is said that too many are broken", async || {
            let told = world.events("NodeRepairBlocked").await?;
            Ok(told.iter().any(|note| note.contains(words)).then_some(()))
        })
        .await?;
    // Pods that Kubernetes itself moves off silent nodes may need nodes; none of the old ones goes.
    let now = names(&world.claims().await?);
    assert!(names(&claims).is_subset(&now), "{now:?}\n{}", world.tail());
    let record = record_of(&claims[0])?;
    let path = format!("/nodes/{}/qemu/{}/status/start", record.host(), record.vmid);
    world.proxmox("POST", &path, &[]).await?;
    world
        .until_within(patience(kind), "the one that is still broken is replaced", async || {
            let now = names(&world.claims().await?);
            Ok((!now.contains(&claims[1].name_any())).then_some(()))
        })
        .await?;
    assert!(names(&world.claims().await?).contains(&claims[0].name_any()), "{}", world.tail());
    world.until_running("web", 3).await?;
    world.end_without_pods("web").await
}

async fn j2_a_silent_node_of_a_static_pool_is_replaced_one_for_one(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.add_template("debian-13").await?;
    world.add_class(json!({})).await?;
    let spec = json!({ "replicas": 2, "limits": { "nodes": 3 }, "disruption": { "budgets": [{ "nodes": "1" }] } });
    world.add_pool_named("fixed", spec).await?;
    world.switch("NodeRepair=true,StaticCapacity=true");
    if kind == Kind::Real {
        world.repair_by(SOON);
    }
    world.start_controller()?;
    let ready = async |world: &World| -> anyhow::Result<usize> {
        let mut ready = 0;
        for claim in world.claims().await? {
            ready += usize::from(world.readiness(&claim.name_any()).await?.as_deref() == Some("True"));
        }
        Ok(ready)
    };
    world.until("both nodes are ready", async || Ok((ready(&world).await? == 2).then_some(()))).await?;
    let before = world.claims().await?;
    world.silence(&before[0]).await?;
    let mut most = 0;
    world
        .until_within(patience(kind), "the silent node is replaced", async || {
            let claims = world.claims().await?;
            most = most.max(claims.len());
            let is_gone = !names(&claims).contains(&before[0].name_any());
            Ok((is_gone && claims.len() == 2 && ready(&world).await? == 2).then_some(()))
        })
        .await?;
    assert_eq!((most, world.clones().len()), (3, 3), "one for one\n{}", world.tail());
    assert!(names(&world.claims().await?).contains(&before[1].name_any()));
    let pools: Api<tenon_api::NodePool> = Api::all(world.admin.clone());
    let none = Patch::Merge(json!({ "spec": { "replicas": 0 } }));
    pools.patch_scale("fixed", &PatchParams::default(), &none).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn j3_a_silent_node_is_rebooted_and_keeps_its_name_and_its_vm(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::repairing(kind, REBOOT, GATE).await? else { return Ok(()) };
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    let claim = world.claims().await?.pop().context("there is no claim")?;
    let (name, vms) = (claim.name_any(), world.vms());
    let boot_id = async |world: &World| -> anyhow::Result<Option<String>> {
        let node = Api::<Node>::all(world.admin.clone()).get_opt(&name).await?;
        Ok(node.and_then(|node| Some(node.status?.node_info?.boot_id)))
    };
    let before = boot_id(&world).await?;
    world.silence(&claim).await?;
    world.until_silent(&name).await?;
    world
        .until_within(PATIENCE, "the reboot is over", async || {
            let told = world.condition::<NodeClaim>(&name, "Rebooting").await?;
            Ok(told.filter(|told| told.reason == "RebootSucceeded").map(drop))
        })
        .await?;
    assert_ne!(boot_id(&world).await?, before);
    world
        .until("the node takes pods again", async || {
            let told = world.condition::<NodeClaim>(&name, "Initialized").await?;
            let is_ready = world.readiness(&name).await?.as_deref() == Some("True");
            Ok(told.filter(|told| is_ready && format!("{:?}", told.status) == "True").map(drop))
        })
        .await?;
    assert_eq!(
        (world.vms(), world.clones().len(), names(&world.claims().await?).len()),
        (vms, 1, 1),
        "{}",
        world.tail()
    );
    world.until_event("RebootObserved", &name).await?;
    let pods: Api<Pod> = Api::namespaced(world.admin.clone(), NAMESPACE);
    let on = pods.list(&ListParams::default()).await?.items;
    assert!(on.iter().all(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(&name))));
    world.end_without_pods("web").await
}

async fn a_vm_that_somebody_stopped_is_started_again_first_and_twice_a_day_at_most(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.add_rules().await?;
    world.switch(GATE);
    world.repair_by(SOON);
    world.start_stopped_vms();
    world.start_controller()?;
    world.disrupt_with(json!({ "consolidateAfter": "Never", "budgets": [{ "nodes": "1" }] })).await?;
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    let claim = world.claims().await?.pop().context("there is no claim")?;
    let (name, vms) = (claim.name_any(), world.vms());
    // On a real clock every silence takes two minutes.
    for _ in 0..if kind == Kind::Real { 1 } else { 2 } {
        world.silence(&claim).await?;
        world.until_silent(&name).await?;
        world
            .until_within(PATIENCE, "the VM was started", async || {
                let told = world.condition::<NodeClaim>(&name, "Rebooting").await?;
                let initialized = world.condition::<NodeClaim>(&name, "Initialized").await?;
                let is_up = initialized.is_some_and(|told| format!("{:?}", told.status) == "True")
                    && world.readiness(&name).await?.as_deref() == Some("True");
                Ok(told.filter(|told| is_up && told.reason == "RebootSucceeded").map(drop))
            })
            .await?;
        assert_eq!((world.vms(), world.clones().len()), (vms.clone(), 1), "{}", world.tail());
    }
    world.until_event("StartingStoppedVm", &format!("of NodeClaim {name} on host")).await?;
    if kind == Kind::Real {
        return world.end_without_pods("web").await;
    }
    world.silence(&claim).await?;
    world
        .until_within(patience(kind), "the node is replaced", async || {
            Ok((!names(&world.claims().await?).contains(&name)).then_some(()))
        })
        .await?;
    assert_eq!(world.clones().len(), 2, "{}", world.tail());
    world.until_running("web", 1).await?;
    world.end_without_pods("web").await
}
