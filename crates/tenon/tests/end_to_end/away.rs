//! When a node is told to go, or has nothing to do, does all of it go, and nothing that somebody still wants?

use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Node, Secret};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tenon_api::{NodeClaim, NodePool, names};
use tenon_sim::{GuestConfig, ImageJoin};

use crate::bench::{bootstrap_token, from_json, quick_guests};
use crate::ground::{Kind, scenarios};
use crate::world::{NAMESPACE, World, record_of};

/// Longer than two looks for empty nodes and the pause between them: a node that may go would be going.
const WATCHED: Duration = Duration::from_secs(35);

/// A node, its VM, and the pod on it.
struct Home {
    name: String,
    vmid: u32,
    claim_uid: String,
    pod_uid: Option<String>,
}

impl World {
    /// Where the only pod of a deployment runs, if it does.
    async fn home(&self, app: &str) -> anyhow::Result<Option<Home>> {
        let pods = self.pods(app).await?;
        let phase = |pod: &k8s_openapi::api::core::v1::Pod| pod.status.clone().and_then(|told| told.phase);
        let is_up = |pod: &&k8s_openapi::api::core::v1::Pod| {
            phase(pod).as_deref() == Some("Running") && pod.metadata.deletion_timestamp.is_none()
        };
        let Some(pod) = pods.iter().find(is_up) else { return Ok(None) };
        let name = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).context("it runs nowhere")?;
        let claim = Api::<NodeClaim>::all(self.admin.clone()).get(&name).await?;
        let claim_uid = claim.uid().context("the claim has no uid")?;
        Ok(Some(Home { name, vmid: record_of(&claim)?.vmid.get(), claim_uid, pod_uid: pod.uid() }))
    }

    async fn until_home(&self, app: &str) -> anyhow::Result<Home> {
        self.until(&format!("the pod of {app} runs"), async || self.home(app).await).await
    }

    /// Waits until nothing is left of a node, and its pod has another.
    async fn until_moved(&self, app: &str, old: &Home) -> anyhow::Result<Home> {
        let nodes: Api<Node> = Api::all(self.admin.clone());
        let claims: Api<NodeClaim> = Api::all(self.admin.clone());
        self.until(&format!("nothing is left of {}", old.name), async || {
            let is_vm = self.estate.vms().iter().any(|vm| vm.name == old.name);
            let is_left = is_vm || nodes.get_opt(&old.name).await?.is_some();
            Ok((!is_left && claims.get_opt(&old.name).await?.is_none()).then_some(()))
        })
        .await?;
        let what = format!("{app} runs elsewhere");
        let new = self.until(&what, async || {
            Ok(self.home(app).await?.filter(|new| new.name != old.name && new.pod_uid != old.pod_uid))
        });
        let new = new.await?;
        let seed = format!("user-data-{}.iso", old.claim_uid);
        let is_kept = self.estate.volumes().iter().any(|volume| volume.volid.ends_with(&seed));
        assert!(!is_kept, "{seed} is still there");
        Ok(new)
    }

    async fn until_fenced(&self, name: &str) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(self.admin.clone());
        self.until(&format!("node {name} takes no more pods"), async || {
            let taints = nodes.get_opt(name).await?.and_then(|node| node.spec?.taints).unwrap_or_default();
            let is_it = |key: &str, effect: &str| key == "karpenter.sh/disrupted" && effect == "NoSchedule";
            Ok(taints.iter().any(|taint| is_it(&taint.key, &taint.effect)).then_some(()))
        })
        .await
    }

    async fn patch_pool(&self, spec: Value) -> anyhow::Result<()> {
        let pools: Api<NodePool> = Api::all(self.admin.clone());
        pools.patch("default", &PatchParams::default(), &Patch::Merge(json!({ "spec": spec }))).await?;
        Ok(())
    }

    async fn protect(&self, node: &str, wish: Value) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(self.admin.clone());
        let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_DO_NOT_DISRUPT: wish } } });
        nodes.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }
}

scenarios! {
    whoever_deletes_a_claim_or_its_node_gets_the_whole_machine_removed_and_pods_move,
    a_budget_holds_a_drain_up_and_says_so_until_it_is_gone,
    an_empty_node_stays_while_its_pool_or_its_owner_wants_it_and_goes_then,
    an_image_that_joins_by_itself_gets_no_seed_and_no_token_and_a_namesake_is_reported,
}

async fn whoever_deletes_a_claim_or_its_node_gets_the_whole_machine_removed_and_pods_move(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = World::running(kind).await? else { return Ok(()) };
    a_claim_goes_before_its_node_came(&mut world).await?;
    world.deploy("web", 1).await?;
    let first = world.until_home("web").await?;
    let pod = world.pod("web").await?;
    world.delete_claim(&first.name).await?;
    world.until_fenced(&first.name).await?;
    world.until_told(("Pod", &pod), "Evicted", &format!("Node {} is being removed", first.name)).await?;
    let second = world.until_moved("web", &first).await?;

    Api::<Node>::all(world.admin.clone()).delete(&second.name, &DeleteParams::default()).await?;
    world.until_fenced(&second.name).await?;
    let third = world.until_moved("web", &second).await?;
    world.until_told(("NodeClaim", &second.name), "NodeDeleted", "and its VM: Node").await?;
    assert_ne!(third.name, first.name);

    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

/// The VM runs and never joins; its seed and its token are there, and go with it.
async fn a_claim_goes_before_its_node_came(world: &mut World) -> anyhow::Result<()> {
    world.replace_guests(None).await;
    world.deploy("early", 1).await?;
    let claim = world.until("a claim is made", async || Ok(world.claims().await?.into_iter().next())).await?.name_any();
    world.until_condition::<NodeClaim>((&claim, "Registered"), ("Unknown", "NodeNotFound")).await?;
    let seeds = world.estate.volumes().iter().filter(|volume| volume.content == "iso").count();
    assert_eq!((seeds, tokens(world).await?, world.vms().len()), (1, 1, 1));
    world.scale("early", 0).await?;
    world.until("the pod is gone", async || Ok(world.pods("early").await?.is_empty().then_some(()))).await?;
    world.delete_claim(&claim).await?;
    world.until_nothing_is_left().await?;
    world.replace_guests(Some(quick_guests())).await;
    Ok(())
}

async fn a_budget_holds_a_drain_up_and_says_so_until_it_is_gone(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::running(kind).await? else { return Ok(()) };
    world.deploy("web", 1).await?;
    let home = world.until_home("web").await?;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(world.admin.clone(), NAMESPACE);
    let budget: PodDisruptionBudget = from_json(json!({
        "metadata": { "name": "web" },
        "spec": { "maxUnavailable": 0, "selector": { "matchLabels": { "app": "web" } } },
    }))?;
    budgets.create(&PostParams::default(), &budget).await?;
    // An eviction is refused as well while nobody has looked at the budget; that is not what is shown here.
    world
        .until("the budget is judged", async || {
            let status = budgets.get("web").await?.status;
            Ok(status.filter(|status| status.expected_pods == Some(1)).map(drop))
        })
        .await?;

    world.delete_claim(&home.name).await?;
    world.until_fenced(&home.name).await?;
    let pod = world.pod("web").await?;
    let words = format!("Eviction of pod {NAMESPACE}/{pod} from Node {} is blocked: ", home.name);
    let told = world.until_told(("NodeClaim", &home.name), "FailedDraining", &words).await?;
    assert!(told.contains("disruption budget"), "{told}");
    world.until_told(("Node", &home.name), "FailedDraining", "1 pod is waiting to be evicted").await?;
    world.until_warned(&words).await?;
    world.let_pass(Duration::from_secs(10)).await?;
    let still = world.home("web").await?.context("the pod does not run any more")?;
    assert_eq!((still.name.as_str(), &still.pod_uid), (home.name.as_str(), &home.pod_uid));
    assert!(world.vms().contains(&home.vmid));
    let claims: Vec<String> = world.claims().await?.iter().map(ResourceExt::name_any).collect();
    assert_eq!(claims, [home.name.as_str()], "no node is made for a pod that may never come");

    budgets.delete("web", &DeleteParams::default()).await?;
    world.until_moved("web", &home).await?;
    world.end().await
}

async fn an_empty_node_stays_while_its_pool_or_its_owner_wants_it_and_goes_then(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.add_template("debian-13").await?;
    world.add_class(json!({})).await?;
    let budgets = json!([{ "nodes": "100%" }]);
    world.add_pool(json!({ "disruption": { "consolidateAfter": "Never", "budgets": budgets } })).await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    let home = world.until_home("web").await?;
    world.scale("web", 0).await?;
    world.until("the pod is gone", async || Ok(world.pods("web").await?.is_empty().then_some(()))).await?;
    let claim = ("NodeClaim", home.name.as_str());
    world.until_told(claim, "Unconsolidatable", "consolidateAfter: Never on NodePool default").await?;
    world.let_pass(WATCHED).await?;
    assert_eq!(world.vms(), [home.vmid]);

    world.protect(&home.name, json!("true")).await?;
    world.patch_pool(json!({ "disruption": { "consolidateAfter": "1s" } })).await?;
    let words = format!("Node {} has karpenter.sh/do-not-disrupt; remove the annotation", home.name);
    world.until_told(claim, "DisruptionBlocked", &words).await?;
    world.let_pass(WATCHED).await?;
    assert_eq!(world.vms(), [home.vmid]);
    assert!(world.claims().await?.iter().all(|claim| claim.metadata.deletion_timestamp.is_none()));

    world.protect(&home.name, Value::Null).await?;
    world.until_event("DisruptionTerminating", &format!("Node {} is empty", home.name)).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn an_image_that_joins_by_itself_gets_no_seed_and_no_token_and_a_namesake_is_reported(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    let guests = joining_guests(&world).await?;
    world.replace_guests(None).await;
    world.add_template("debian-13").await?;
    world.add_class(json!({ "metadataOptions": { "type": "none" } })).await?;
    world.add_pool(json!({})).await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    let claim = world.until("a claim is made", async || Ok(world.claims().await?.into_iter().next())).await?.name_any();
    a_namesake_is_reported(&world, &claim).await?;

    // The VM runs already, and boots now.
    world.replace_guests(Some(guests)).await;
    let home = world.until_home("web").await?;
    assert_eq!(home.name, claim);
    is_matched(&world, &home).await?;
    world.until_told(("NodeClaim", &claim), "UnregisteredTaintMissing", "karpenter.sh/unregistered").await?;
    assert_eq!(world.changes("/upload"), 0);
    assert!(world.estate.volumes().iter().all(|volume| volume.content != "iso"));
    assert_eq!(tokens(&world).await?, 0);
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn joining_guests(world: &World) -> anyhow::Result<GuestConfig> {
    let (server, ca_pem) = world.joined_at();
    let join = ImageJoin {
        server,
        ca_pem,
        bootstrap_token: bootstrap_token(&world.admin, "image1", "2099-01-01T00:00:00Z").await?,
        node_labels: String::new(),
        kubelet_config: Value::Null,
    };
    Ok(GuestConfig { image_join: Some(join), ..quick_guests() })
}

/// How many tokens were made for claims.
async fn tokens(world: &World) -> anyhow::Result<usize> {
    let secrets: Api<Secret> = Api::namespaced(world.admin.clone(), "kube-system");
    let ours = ListParams::default().labels(&format!("{}=true", names::LABEL_BOOTSTRAP_TOKEN));
    Ok(secrets.list(&ours).await?.items.len())
}

/// Another machine bears the claim's name: its Node is not taken for the claim's, nor touched.
async fn a_namesake_is_reported(world: &World, claim: &str) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(world.admin.clone());
    let other: Node = from_json(json!({ "metadata": { "name": claim } }))?;
    nodes.create(&PostParams::default(), &other).await?;
    let mut info = json!({ "systemUUID": "0f0f0f0f-0000-4000-8000-000000000001" });
    for key in [
        "machineID",
        "bootID",
        "kernelVersion",
        "osImage",
        "containerRuntimeVersion",
        "kubeletVersion",
        "kubeProxyVersion",
        "operatingSystem",
        "architecture",
    ] {
        info[key] = json!("other");
    }
    let status = json!({ "status": { "nodeInfo": info } });
    nodes.patch_status(claim, &PatchParams::default(), &Patch::Merge(status)).await?;
    let told = world.until_condition::<NodeClaim>((claim, "Registered"), ("Unknown", "NodeMismatch")).await?;
    let words = "another machine joined under this name; rename or remove Node";
    assert!(told.contains("0f0f0f0f-0000-4000-8000-000000000001") && told.contains(words), "{told}");
    world.until_told(("NodeClaim", claim), "NodeMismatch", words).await?;
    world.until_warned(words).await?;
    let found = nodes.get(claim).await?;
    assert_eq!(found.spec.and_then(|spec| spec.provider_id), None);
    nodes.delete(claim, &DeleteParams::default()).await?;
    Ok(())
}

/// The Node is the VM's by its uuid, and now says so itself.
async fn is_matched(world: &World, home: &Home) -> anyhow::Result<()> {
    let node = Api::<Node>::all(world.admin.clone()).get(&home.name).await?;
    let claim = Api::<NodeClaim>::all(world.admin.clone()).get(&home.name).await?;
    let id = node.spec.and_then(|spec| spec.provider_id).context("the node has no providerID")?;
    assert_eq!(Some(&id), claim.status.as_ref().and_then(|status| status.provider_id.as_ref()));
    assert_eq!(id, format!("proxmox://lab/{}", home.vmid));
    let info = node.status.and_then(|status| status.node_info).context("the node has no nodeInfo")?;
    let vm = world.estate.vm(home.vmid).context("there is no such vm")?;
    let smbios = vm.config.get("smbios1").context("the vm has no smbios1")?.to_lowercase();
    assert!(smbios.contains(&info.system_uuid.to_lowercase()), "{smbios} {}", info.system_uuid);
    Ok(())
}
