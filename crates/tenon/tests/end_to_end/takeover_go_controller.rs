//! Does a cluster go from the Go provider's own controller to Tenon and back, with nobody's node lost?
//!
//! One scenario, because each part needs what the one before left. It is skipped where the program could not be built.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tenon_api::{NodeClaim, ProxmoxTemplate, names};
use tenon_sim::{Estate, EstateConfig, WebFile};
use testbed::Program;
use testbed::proof::with_programs;

use crate::bench::{from_json, quick_guests};
use crate::first_boot::{TEMPLATES, VALUES, add_secret, example, options, values};
use crate::go_controller::GoController;
use crate::ground::Kind;
use crate::takeover::without_descriptions;
use crate::takeover_adoption::{ALL_GONE_WITHIN, NOTICED_WITHIN};
use crate::world::{World, record_of};

/// Nodes that the Go controller makes, one for each pod.
const NODES: usize = 12;

/// Hosts, each with a VM template of every ProxmoxTemplate.
const HOSTS: usize = 2;

/// A dozen clones, some of which it makes twice because it chose an id that another clone had.
const MADE_WITHIN: Duration = Duration::from_secs(180);

/// The template of the Go provider, and one that Tenon builds later.
const ITS_TEMPLATE: &str = "debian";
const OUR_TEMPLATE: &str = "fedora";

/// A template object of this name, whose image is there.
async fn add_managed_template(world: &World, name: &str) -> anyhow::Result<()> {
    let url = format!("https://images.example.com/{name}-1.qcow2");
    world.estate.publish(&url, WebFile::image(name, 3 << 30, 16 << 20));
    let template: ProxmoxTemplate = from_json(json!({
        "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxTemplate", "metadata": { "name": name },
        "spec": {
            "sourceImage": { "url": url, "imageName": format!("{name}-1.qcow2") },
            "storageIDs": ["local"], "agent": { "enabled": true }, "network": [{ "bridge": "vmbr0" }],
        },
    }))?;
    Api::all(world.admin.clone()).create(&PostParams::default(), &template).await?;
    Ok(())
}

/// A world whose class has its first-boot data in Secrets, as both controllers read them. The Go provider builds the VM templates
/// of one host after the other, so there are few hosts.
async fn prepared() -> anyhow::Result<Option<World>> {
    let mut config = EstateConfig::default();
    config.hosts.truncate(HOSTS);
    let Some(world) = World::on(Estate::new(config), Kind::Real, quick_guests()).await? else { return Ok(None) };
    add_secret(&world, TEMPLATES, &example(TEMPLATES)?).await?;
    add_secret(&world, VALUES, &values(&world)?).await?;
    add_managed_template(&world, ITS_TEMPLATE).await?;
    Ok(Some(world))
}

impl World {
    /// Class, pool and a pod for each node. They come when the template is there: the Go provider looks at a class that is not
    /// ready only every 15 seconds.
    async fn ask_for_nodes(&self) -> anyhow::Result<()> {
        let mut class = options();
        class["instanceTemplateRef"] = json!({ "kind": "ProxmoxTemplate", "name": ITS_TEMPLATE });
        class["bootDevice"] = json!({ "size": "30G", "storage": "local" });
        class["tags"] = json!(["karpenter"]);
        self.add_class(class).await?;
        let disruption =
            json!({ "consolidateAfter": "1s", "consolidationPolicy": "WhenEmpty", "budgets": [{ "nodes": "0" }] });
        self.add_pool(json!({ "disruption": disruption })).await?;
        let apart = json!([{
            "topologyKey": names::LABEL_HOSTNAME, "labelSelector": { "matchLabels": { "app": "web" } },
        }]);
        let apart = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": apart } });
        let container = json!({ "resources": { "requests": { "cpu": "500m", "memory": "512Mi" } } });
        self.deploy_pods(("web", u32::try_from(NODES)?), container, json!({ "affinity": apart })).await
    }

    /// Waits until so many nodes work and have deleted their first-boot data; their NodeClaims, by name.
    async fn until_nodes_work(&self, number: usize) -> anyhow::Result<BTreeMap<String, NodeClaim>> {
        let is_done = |claim: &NodeClaim| {
            let conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
            let is_initialized =
                conditions.filter(|told| told.type_ == "Initialized" && format!("{:?}", told.status) == "True").count()
                    == 1;
            let is_going = claim.metadata.deletion_timestamp.is_some();
            is_initialized && !is_going && claim.annotations().contains_key(names::ANNOTATION_CLOUDINIT_STATUS)
        };
        let what = format!("{number} nodes work");
        self.until_within(MADE_WITHIN, &what, async || {
            let claims = self.claims().await?;
            let is_all = claims.len() == number && claims.iter().all(is_done) && self.vms().len() == number;
            Ok(is_all.then(|| claims.into_iter().map(|claim| (claim.name_any(), claim)).collect()))
        })
        .await
    }

    /// A pod that is evicted comes back with another uid.
    async fn pod_uids(&self) -> anyhow::Result<BTreeSet<String>> {
        Ok(self.pods("web").await?.iter().filter_map(ResourceExt::uid).collect())
    }

    async fn until_template_is_built(&self, name: &str) -> anyhow::Result<()> {
        self.until(&format!("ProxmoxTemplate {name} is on every host"), async || {
            Ok((self.template_zones(name).await?.len() == HOSTS).then_some(()))
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_go_controller_hands_its_nodes_to_tenon_and_removes_nodes_of_both_afterwards() -> anyhow::Result<()> {
    let Some(programs) = with_programs(&[Program::Provider])? else { return Ok(()) };
    let program = programs.first().context("no program")?.path.clone();
    let Some(mut world) = prepared().await? else { return Ok(()) };
    let made = the_go_controller_makes_a_dozen(&world, &program).await?;
    world.start_controller()?;
    tenon_takes_over_without_a_restart(&world, &made).await?;
    let adopted = tenon_works_with_them(&world, made).await?;
    world.real()?.stop_controller()?;
    the_go_controller_removes_all(&world, &program, &adopted).await?;
    world.end().await
}

/// Returns its NodeClaims.
async fn the_go_controller_makes_a_dozen(world: &World, program: &Path) -> anyhow::Result<BTreeMap<String, NodeClaim>> {
    let go = GoController::start(world, program)?;
    let made = async {
        world.until_template_is_built(ITS_TEMPLATE).await?;
        world.ask_for_nodes().await?;
        let made = world.until_nodes_work(NODES).await?;
        world.until_running("web", NODES).await?;
        anyhow::Ok(made)
    };
    let made = made.await.with_context(|| go.tail())?;
    go.stop().await?;
    Ok(made)
}

async fn tenon_takes_over_without_a_restart(world: &World, made: &BTreeMap<String, NodeClaim>) -> anyhow::Result<()> {
    let nodes =
        |world: &World| without_descriptions(world.estate.vms().into_iter().filter(|vm| vm.vmid >= 20_000).collect());
    let before = (nodes(world), world.built_templates(), world.pod_uids().await?);
    let (power_changes, clones) = (world.power_changes(), world.clones().len());
    world.until_adopted(made.keys().map(String::as_str)).await?;
    world
        .until("the VM templates are adopted", async || {
            Ok((world.events("TemplateAdopted").await?.len() == HOSTS).then_some(()))
        })
        .await?;
    // Longer than drift and what is applied in place take to be judged.
    world.let_pass(Duration::from_secs(15)).await?;
    assert_eq!((nodes(world), world.built_templates(), world.pod_uids().await?), before, "{}", world.tail());
    assert_eq!((world.power_changes(), world.clones().len()), (power_changes, clones), "{}", world.tail());
    for reason in ["Drifted", "NotAdopted", "TemplateCreated", "TemplateNotAdopted"] {
        assert_eq!(world.events(reason).await?, Vec::<String>::new(), "{reason}");
    }
    for claim in world.claims().await? {
        let before = &made[&claim.name_any()];
        assert_eq!((claim.uid(), &claim.spec), (before.uid(), &before.spec), "{}", world.tail());
    }
    Ok(())
}

/// Returns the names of those that the Go controller made and that are left.
async fn tenon_works_with_them(world: &World, made: BTreeMap<String, NodeClaim>) -> anyhow::Result<BTreeSet<String>> {
    add_managed_template(world, OUR_TEMPLATE).await?;
    let mut names = made.keys();
    let (deleted, lost) = (names.next().context("no node")?, names.next().context("one node")?);
    let vm_of = |claim: &NodeClaim| anyhow::Ok(record_of(claim)?.vmid.get());
    let claims: Api<NodeClaim> = Api::all(world.admin.clone());
    let (deleted_vm, lost_vm) = (vm_of(&claims.get(deleted).await?)?, vm_of(&claims.get(lost).await?)?);

    // Somebody destroys a VM in Proxmox, and somebody deletes a Node.
    world.estate.remove_vm(lost_vm)?;
    let nodes: Api<Node> = Api::all(world.admin.clone());
    // As Kubernetes finds out by itself, a little later, that a kubelet is silent.
    nodes.patch_status(lost, &PatchParams::default(), &Patch::Strategic(silent())).await?;
    nodes.delete(deleted, &DeleteParams::default()).await?;
    world
        .until_within(NOTICED_WITHIN, "the VM that was destroyed is noticed", async || {
            let told = world.events("VMNotFound").await?;
            Ok(told.iter().any(|note| note.contains(&format!("VM {lost_vm} "))).then_some(()))
        })
        .await?;
    for name in [deleted, lost] {
        world.until_claim_is_gone(name).await?;
    }
    assert!(world.estate.vm(deleted_vm).is_none(), "{}", world.tail());
    // Most other nodes become empty: only now, or the one whose VM is lost could be deleted as empty before anybody looks for it.
    world.set_budget("100%").await?;
    world.scale("web", 4).await?;
    world
        .until_within(ALL_GONE_WITHIN, "empty nodes are gone", async || {
            Ok((world.claims().await?.len() == 4 && world.vms().len() == 4).then_some(()))
        })
        .await?;
    world.scale("web", 6).await?;
    world.until_running("web", 6).await?;
    let left = world.until_nodes_work(6).await?;
    world.until_template_is_built(OUR_TEMPLATE).await?;
    let adopted: BTreeSet<String> = left.into_keys().filter(|name| made.contains_key(name)).collect();
    assert!((1..=4).contains(&adopted.len()), "nodes of both are left: {adopted:?}\n{}", world.tail());
    Ok(adopted)
}

/// What the API server shows of a Node whose kubelet is silent.
fn silent() -> Value {
    json!({ "status": { "conditions": [{ "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.", "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }] } })
}

/// Nodes of both kinds go, and VM templates of both kinds stay.
async fn the_go_controller_removes_all(
    world: &World,
    program: &Path,
    adopted: &BTreeSet<String>,
) -> anyhow::Result<()> {
    let templates = world.built_templates();
    assert_eq!(templates.len(), 2 * HOSTS, "{templates:?}");
    let go = GoController::start(world, program)?;
    let all_gone = async {
        world
            .until("the Go controller has looked at both templates", async || {
                let synced = |name: &str| {
                    let log = go.log();
                    let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                    let is_it =
                        |line: Value| line["name"] == name && line["message"] == "Finished syncing Proxmox Templates";
                    lines.any(is_it)
                };
                Ok((synced(ITS_TEMPLATE) && synced(OUR_TEMPLATE)).then_some(()))
            })
            .await?;
        let names: BTreeSet<String> = world.claims().await?.iter().map(ResourceExt::name_any).collect();
        assert!(names.len() == 6 && names.is_superset(adopted), "it keeps them while pods need them: {names:?}");
        world.scale("web", 0).await?;
        world
            .until_within(ALL_GONE_WITHIN, "nodes of both are gone", async || {
                let left = world.claims().await?.len() + world.nodes().await?.len() + world.vms().len();
                Ok((left == 0).then_some(()))
            })
            .await
    };
    all_gone.await.with_context(|| go.tail())?;
    assert_eq!(world.built_templates(), templates, "{}", go.tail());
    for name in [ITS_TEMPLATE, OUR_TEMPLATE] {
        assert_eq!(world.template_zones(name).await?.len(), HOSTS, "{}", go.tail());
        let number = world.template_annotation(name, names::ANNOTATION_TEMPLATE_HASH).await?.context("no hash")?;
        assert!(
            templates.values().any(|[_, _, made_from]| made_from.ends_with(&format!("Hash: {number}"))),
            "{number}"
        );
    }
    // It looks for a seed on whichever storage Proxmox lists first, and leaves those that it does not find there.
    let is_its = |name: &str| {
        name.strip_prefix("user-data-")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()) && !rest.contains('-'))
    };
    let volumes = world.estate.volumes().into_iter().map(|volume| volume.volid);
    let ours: Vec<String> =
        volumes.filter(|volid| volid.split_once(":iso/").is_some_and(|(_, name)| !is_its(name))).collect();
    assert_eq!(ours, Vec::<String>::new(), "no seed of ours is left");
    go.stop().await
}
