//! When Tenon takes a cluster over from the Go controllers, does every node stay, and does drift mean something from then on?

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tenon_api::{NodeClaim, NodePool, ProxmoxNodeClass, hash, hash_stamp, names};
use tenon_sim::{LedgerEntry, VmView};

use crate::bench::quick_guests;
use crate::ground::{Kind, scenarios};
use crate::takeover_fixtures::{GoNode, IMAGE, NODES, OLD_HASH, leave_behind, leave_claims, template};
use crate::world::World;

/// Longer than two looks for empty nodes and the pause between them, and several for drift: a node that may go would be
/// going. Where time costs nothing, it passes often enough for two looks for VMs without claims.
const WATCHED: Duration = Duration::from_secs(40);

/// The first node, which stands on host pve1, and the last, which stands on pve2. The one between had drifted before.
const FIRST: &str = NODES[0].name;
const DRIFTED: &str = NODES[1].name;
const LAST: &str = NODES[2].name;

scenarios! {
    nodes_of_the_go_controllers_stay_as_they_are_and_drift_when_something_really_changes,
}

/// What must not change of an object, whatever becomes of hashes and conditions: its uid, and what it is.
type Kept = BTreeMap<String, (Option<String>, Value)>;

impl World {
    async fn kept_claims(&self) -> anyhow::Result<Kept> {
        let kept = |claim: NodeClaim| {
            assert!(claim.metadata.deletion_timestamp.is_none(), "{} goes\n{}", claim.name_any(), self.tail());
            let what = json!([claim.spec, claim.labels(), claim.finalizers(), claim.owner_references()]);
            (claim.name_any(), (claim.uid(), what))
        };
        Ok(self.claims().await?.into_iter().map(kept).collect())
    }

    async fn kept_nodes(&self) -> anyhow::Result<Kept> {
        let kept = |node: Node| {
            assert!(node.metadata.deletion_timestamp.is_none(), "{} goes\n{}", node.name_any(), self.tail());
            let maps = [node.labels(), node.annotations()];
            let maps = maps.map(|map| map.iter().filter(|(key, _)| !is_the_clusters(key)).collect::<BTreeMap<_, _>>());
            let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
            let taints: Vec<_> = taints.map(|taint| &taint.key).filter(|key| !is_the_clusters(key)).collect();
            (node.name_any(), (node.uid(), json!([maps, taints, node.finalizers(), node.owner_references()])))
        };
        Ok(self.nodes().await?.into_iter().map(kept).collect())
    }

    async fn claim(&self, name: &str) -> anyhow::Result<NodeClaim> {
        Ok(Api::<NodeClaim>::all(self.admin.clone()).get(name).await?)
    }

    /// Why a claim says it has drifted.
    pub(crate) async fn drift_of(&self, name: &str) -> anyhow::Result<Option<String>> {
        let conditions = self.claim(name).await?.status.and_then(|status| status.conditions).unwrap_or_default();
        let told = conditions.into_iter().find(|told| told.type_ == "Drifted");
        Ok(told.map(|told| format!("{:?} {}", told.status, told.reason)))
    }

    /// Waits until the last node has drifted for this reason. All others were judged before it.
    async fn until_drifted(&self, reason: &str) -> anyhow::Result<()> {
        let told = format!("True {reason}");
        let what = format!("{LAST} says {told}");
        self.until(&what, async || Ok((self.drift_of(LAST).await?.as_ref() == Some(&told)).then_some(()))).await?;
        self.until_event("Drifted", reason).await.map(drop)
    }

    async fn until_current(&self) -> anyhow::Result<()> {
        self.until("the last node has not drifted any more", async || {
            Ok(self.drift_of(LAST).await?.is_none().then_some(()))
        })
        .await
    }

    async fn change_pool(&self, template: Value) -> anyhow::Result<()> {
        let pools: Api<NodePool> = Api::all(self.admin.clone());
        let patch = Patch::Merge(json!({ "spec": { "template": template } }));
        pools.patch("default", &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn change_class(&self, spec: Value) -> anyhow::Result<()> {
        let classes: Api<ProxmoxNodeClass> = Api::all(self.admin.clone());
        classes.patch("default", &PatchParams::default(), &Patch::Merge(json!({ "spec": spec }))).await?;
        Ok(())
    }

    /// Somebody made the template on the second host anew.
    fn change_image(&self, image: &str) -> anyhow::Result<()> {
        self.estate.remove_vm(1001)?;
        Ok(self.estate.add_template(&template("pve2", 1001, image))?)
    }
}

/// Whether a label, an annotation or a taint is one that the cluster's own controllers come and go with.
fn is_the_clusters(key: &str) -> bool {
    let ours = [names::LABEL_HOST];
    let cluster = [
        "beta.kubernetes.io/",
        "node.alpha.kubernetes.io/",
        "node.kubernetes.io/not-",
        "node.kubernetes.io/unreachable",
    ];
    cluster.into_iter().chain(ours).any(|prefix| key.starts_with(prefix))
}

async fn nodes_of_the_go_controllers_stay_as_they_are_and_drift_when_something_really_changes(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    leave_behind(&world).await?;
    let (claims, nodes, vms) = (world.kept_claims().await?, world.kept_nodes().await?, world.estate.vms());
    world.start_controller()?;

    world.until("pool, class and claims carry our hashes", async || is_stamped(&world).await).await?;
    for _ in 0..if kind == Kind::Real { 1 } else { 4 } {
        world.let_pass(WATCHED).await?;
    }
    assert_eq!(without_descriptions(world.estate.vms()), without_descriptions(vms), "{}", world.tail());
    assert_eq!(world.kept_claims().await?, claims, "{}", world.tail());
    assert_eq!(world.kept_nodes().await?, nodes, "{}", world.tail());
    assert_eq!(is_stamped(&world).await?, Some(()), "{}", world.tail());
    assert_eq!((world.drift_of(FIRST).await?, world.drift_of(LAST).await?), (None, None), "{}", world.tail());
    assert_eq!(world.events("Drifted").await?, Vec::<String>::new());

    only_what_changed_drifts(&world).await?;
    everything_of_the_class_drifts(&world).await?;
    everything_of_the_pool_drifts(&world).await?;

    assert_eq!(world.kept_claims().await?, claims, "{}", world.tail());
    assert_eq!(world.kept_nodes().await?, nodes, "{}", world.tail());
    for GoNode { vmid, .. } in NODES {
        let changes: Vec<String> = changes(&world, vmid).into_iter().map(|call| call.path).collect();
        assert!(changes.iter().all(|path| path.ends_with("/config")), "nothing but options changes: {changes:?}");
    }
    assert_eq!(world.vms(), NODES.map(|node| node.vmid), "nothing was made: {}", world.tail());
    world.end().await
}

/// Taking a VM over adds a line to its description.
pub(crate) fn without_descriptions(mut vms: Vec<VmView>) -> Vec<VmView> {
    for vm in &mut vms {
        vm.config.remove("description");
        vm.config.remove("digest");
    }
    vms
}

/// Whether everything was taken over: our versions everywhere, our numbers everywhere but where drift was told before.
async fn is_stamped(world: &World) -> anyhow::Result<Option<()>> {
    let pool = Api::<NodePool>::all(world.admin.clone()).get("default").await?;
    let class = Api::<ProxmoxNodeClass>::all(world.admin.clone()).get("default").await?;
    let (pool_hash, class_hash) = (hash::of_pool(&pool), hash::of_class(&class));
    let pool_stamp = [&pool_hash, "v3-rs1"];
    let class_stamp = [&class_hash, "v1-rs1"];
    let of_pool = [names::ANNOTATION_NODEPOOL_HASH, names::ANNOTATION_NODEPOOL_HASH_VERSION];
    let of_class = [names::ANNOTATION_NODECLASS_HASH, names::ANNOTATION_NODECLASS_HASH_VERSION];
    let mut wrong =
        vec![read(pool.annotations(), of_pool) != pool_stamp, read(class.annotations(), of_class) != class_stamp];
    for name in [FIRST, LAST] {
        let claim = world.claim(name).await?;
        wrong.push(read(claim.annotations(), of_pool) != pool_stamp);
        wrong.push(read(claim.annotations(), of_class) != class_stamp);
    }
    let drifted = world.claim(DRIFTED).await?;
    wrong.push(read(drifted.annotations(), of_pool) != [OLD_HASH, "v3-rs1"]);
    wrong.push(world.drift_of(DRIFTED).await?.as_deref() != Some("True NodePoolDrifted"));
    Ok((!wrong.contains(&true)).then_some(()))
}

fn read<'a>(annotations: &'a BTreeMap<String, String>, keys: [&str; 2]) -> [&'a str; 2] {
    keys.map(|key| annotations.get(key).map_or("", String::as_str))
}

/// A demand, a tag and an image: the node on the first host has none of it.
async fn only_what_changed_drifts(world: &World) -> anyhow::Result<()> {
    let demands = |hosts: &[&str]| json!({ "spec": { "requirements": [{ "key": names::LABEL_ZONE, "operator": "In", "values": hosts }] } });
    world.change_pool(demands(&["pve1"])).await?;
    world.until_drifted("RequirementsDrifted").await?;
    assert_eq!(world.drift_of(FIRST).await?, None, "{}", world.tail());
    world.change_pool(demands(&["pve1", "pve2"])).await?;
    world.until_current().await?;

    // What a running VM can be given is no drift; that a pass was made since is shown by the image that comes after.
    world.change_class(json!({ "tags": ["karpenter", "new"] })).await?;
    world.change_image("999")?;
    world.until_drifted("ImageDrift").await?;
    assert_eq!(world.drift_of(FIRST).await?, None, "{}", world.tail());
    world.change_image(IMAGE)?;
    world.until_current().await
}

async fn everything_of_the_class_drifts(world: &World) -> anyhow::Result<()> {
    world.change_class(json!({ "bootDevice": { "size": "40G" } })).await?;
    world.until_drifted("NodeClassDrift").await?;
    assert_eq!(world.drift_of(FIRST).await?.as_deref(), Some("True NodeClassDrift"), "{}", world.tail());
    world.change_class(json!({ "bootDevice": { "size": "30G" } })).await?;
    world.until_current().await
}

async fn everything_of_the_pool_drifts(world: &World) -> anyhow::Result<()> {
    world.change_pool(json!({ "spec": { "expireAfter": "43200m" } })).await?;
    world.change_pool(json!({ "metadata": { "labels": { "team": "blue" } } })).await?;
    world.until_drifted("NodePoolDrifted").await?;
    assert_eq!(world.drift_of(FIRST).await?.as_deref(), Some("True NodePoolDrifted"), "{}", world.tail());
    world.change_pool(json!({ "metadata": { "labels": { "team": "red" } } })).await?;
    // The same hours in other words are no change.
    world.until_current().await
}

/// Everything but looks that was asked of a VM.
fn changes(world: &World, vmid: u32) -> Vec<LedgerEntry> {
    let (path, below) = (format!("/qemu/{vmid}"), format!("/qemu/{vmid}/"));
    let is_change =
        |entry: &LedgerEntry| entry.method != "GET" && (entry.path.ends_with(&path) || entry.path.contains(&below));
    world.estate.ledger().into_iter().filter(is_change).collect()
}

/// More claims than are written in one look, and a controller that dies between two: the pool says that it is taken over only
/// when all of its claims are, or those left over would never be.
#[tokio::test(start_paused = true)]
async fn many_claims_are_taken_over_bit_by_bit_and_their_pool_last_even_if_the_controller_dies() -> anyhow::Result<()> {
    let Some(mut world) = World::new(Kind::Embedded, quick_guests()).await? else { return Ok(()) };
    leave_claims(&world, 120).await?;
    world.start_controller()?;
    let some = world.until("some claims are taken over", async || some_taken_over(&world).await).await?;
    assert!((1..120).contains(&some), "{some} of 120");
    world.kill_controller()?;
    world.start_controller()?;
    world.until("all of them are", async || Ok((some_taken_over(&world).await? == Some(120)).then_some(()))).await?;
    let pools: Api<NodePool> = Api::all(world.admin.clone());
    world
        .until("and their pool is", async || {
            let is_ours = hash_stamp::POOL.is_ours(pools.get("default").await?.annotations());
            some_taken_over(&world).await?;
            Ok(is_ours.then_some(()))
        })
        .await?;
    world.let_pass(WATCHED / 4).await?;
    let drifted = world.events("Drifted").await?;
    assert_eq!(drifted, Vec::<String>::new(), "{}", world.tail());
    world.end().await
}

/// How many claims carry the hash of their pool in our version, if any; all of them, if the pool itself does.
async fn some_taken_over(world: &World) -> anyhow::Result<Option<usize>> {
    let pool = Api::<NodePool>::all(world.admin.clone()).get("default").await?;
    let claims = world.claims().await?;
    let stamp = hash_stamp::of_pool(&pool);
    let is_done = |claim: &&NodeClaim| stamp.iter().all(|(name, value)| claim.annotations().get(name) == Some(value));
    let done = claims.iter().filter(is_done).count();
    if hash_stamp::POOL.is_ours(pool.annotations()) {
        assert_eq!(done, claims.len(), "the pool is ahead of its claims\n{}", world.tail());
    }
    Ok((done > 0).then_some(done))
}
