//! Which nodes of the Go provider does Tenon take over, what becomes of them then, and what does it say of the others?

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tenon_api::{NodeClaim, NodePool, names};
use tenon_sim::VmSpec;

use crate::bench::quick_guests;
use crate::ground::{Kind, scenarios};
use crate::takeover_fixtures::{GoNode, Kubelets, dozen, leave_rules};
use crate::takeover_templates::{NAME, leave_managed};
use crate::world::{World, record_of};

/// What an operator is promised.
pub(crate) const NOTICED_WITHIN: Duration = Duration::from_secs(60);

/// A dozen drains, shutdowns and releases.
pub(crate) const ALL_GONE_WITHIN: Duration = Duration::from_secs(300);

scenarios! {
    a_dozen_nodes_of_the_go_provider_become_ours_without_a_restart_and_go_like_others,
    vms_that_miss_a_mark_are_left_alone_and_their_claims_say_why,
}

impl World {
    pub(crate) async fn until_adopted<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> anyhow::Result<()> {
        for name in names {
            self.until_condition::<NodeClaim>((name, "Adopted"), ("True", "Adopted")).await?;
        }
        Ok(())
    }

    /// What the commands for people say, before a controller runs.
    pub(crate) async fn listed(&self, args: &[&str]) -> anyhow::Result<Vec<Value>> {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_tenon"));
        command.args(args).args(["-o", "json"]).arg("--cloud-config").arg(self.cloud_config()?);
        command.env("KUBECONFIG", self.testbed()?.kubeconfig());
        let output = command.output().await?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// How often a VM was started, stopped, shut down or reset.
    pub(crate) fn power_changes(&self) -> usize {
        let ledger = self.estate.ledger();
        ledger.iter().filter(|call| call.method == "POST" && call.path.contains("/status/")).count()
    }

    pub(crate) async fn set_budget(&self, nodes: &str) -> anyhow::Result<()> {
        let patch = json!({ "spec": { "disruption": { "budgets": [{ "nodes": nodes }] } } });
        let pools: Api<NodePool> = Api::all(self.admin.clone());
        pools.patch("default", &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    pub(crate) async fn until_claim_is_gone(&self, name: &str) -> anyhow::Result<()> {
        let claims: Api<NodeClaim> = Api::all(self.admin.clone());
        self.until_within(ALL_GONE_WITHIN, &format!("NodeClaim {name} is gone"), async || {
            Ok(claims.get_opt(name).await?.is_none().then_some(()))
        })
        .await
    }
}

async fn a_dozen_nodes_of_the_go_provider_become_ours_without_a_restart_and_go_like_others(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    let nodes = dozen();
    leave_managed(&world, &nodes).await?;
    let (templates, zones) = (world.built_templates(), world.template_zones(NAME).await?);
    if kind == Kind::Real {
        let rows = world.listed(&["adopt", "--dry-run"]).await?;
        assert!(rows.len() == nodes.len() && rows.iter().all(|row| row["state"] == "Adopts"), "{rows:#?}");
        let regions = world.listed(&["regions"]).await?;
        assert!(regions[0]["region"] == "lab" && regions[0]["quorate"] == true, "{regions:#?}");
        assert_eq!(regions[0]["missingPrivileges"], json!([]));
    }
    // In memory nobody watches over kubelets.
    let _kubelets = (kind == Kind::Real).then(|| Kubelets::of(&world, nodes.clone()));
    world.start_controller()?;
    world.until_adopted(nodes.iter().map(|node| node.name)).await?;
    for claim in world.claims().await? {
        let record = record_of(&claim)?;
        let vm = world.estate.vm(record.vmid.get()).unwrap_or_else(|| panic!("{record:?}"));
        let mark =
            format!("tenon.dev/owner cluster={} claim={}", cluster_of(&world).await?, claim.uid().unwrap_or_default());
        let description = &vm.config["description"];
        assert!(description.starts_with("Karpenter managed instance, class=default, "), "{description}");
        assert!(description.contains(&mark) && vm.host == record.host().as_str(), "{description}\n{record:?}");
    }
    world.let_pass(Duration::from_secs(30)).await?;
    assert_eq!((world.power_changes(), world.clones().len()), (0, 0), "{}", world.tail());
    assert_eq!(world.events("Drifted").await?, Vec::<String>::new());
    assert_eq!(world.events("NotAdopted").await?, Vec::<String>::new());
    // The VM templates are ours as well, and none was built anew.
    assert_eq!(world.events("TemplateAdopted").await?.len(), templates.len(), "{}", world.tail());
    assert_eq!((world.built_templates(), world.template_zones(NAME).await?), (templates, zones), "{}", world.tail());

    a_deleted_node_goes_and_a_destroyed_vm_is_noticed(&world, kind, &nodes).await?;

    // All others are empty.
    world.set_budget("100%").await?;
    world
        .until_within(ALL_GONE_WITHIN, "empty nodes are gone", async || {
            Ok((world.claims().await?.is_empty() && world.vms().is_empty()).then_some(()))
        })
        .await?;

    // Pods that come now get nodes of ours.
    let tolerant = json!({ "tolerations": [{ "key": "dedicated", "operator": "Exists" }] });
    let container = json!({ "resources": { "requests": { "cpu": "1", "memory": "1Gi" } } });
    world.deploy_pods(("web", 1), container, tolerant).await?;
    world.until_running("web", 1).await?;
    world.end().await
}

/// Of the first two nodes.
async fn a_deleted_node_goes_and_a_destroyed_vm_is_noticed(
    world: &World,
    kind: Kind,
    nodes: &[GoNode],
) -> anyhow::Result<()> {
    // Whoever deletes the Node wants its VM gone.
    Api::<Node>::all(world.admin.clone()).delete(nodes[0].name, &DeleteParams::default()).await?;
    world.until_claim_is_gone(nodes[0].name).await?;
    assert!(world.estate.vm(nodes[0].vmid).is_none(), "{}", world.tail());

    // Somebody destroys a VM in Proxmox.
    world.estate.remove_vm(nodes[1].vmid)?;
    let gone = nodes[1].name;
    let claims: Api<NodeClaim> = Api::all(world.admin.clone());
    world
        .until_within(NOTICED_WITHIN, "the VM that was destroyed is noticed", async || {
            let told = world.events("VMNotFound").await?;
            let is_told =
                told.iter().any(|note| note.contains(&format!("VM {} ", nodes[1].vmid)) || note.contains(gone));
            Ok((is_told || claims.get_opt(gone).await?.is_none()).then_some(()))
        })
        .await?;
    if kind == Kind::Embedded {
        // A real control plane finds out by itself that a kubelet is silent.
        let unknown = json!({ "status": { "conditions": [{
            "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }] } });
        let nodes: Api<Node> = Api::all(world.admin.clone());
        nodes.patch_status(gone, &PatchParams::default(), &Patch::Merge(&unknown)).await?;
    }
    world.until_claim_is_gone(gone).await?;
    Ok(())
}

async fn cluster_of(world: &World) -> anyhow::Result<String> {
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(world.admin.clone());
    Ok(namespaces.get("kube-system").await?.uid().unwrap_or_default())
}

/// What is wrong with a node, and what its claim says of that.
struct Odd {
    name: &'static str,
    reason: &'static str,
    spoil: fn(&mut VmSpec),
    has_node: bool,
}

const ODD: [Odd; 6] = [
    Odd {
        name: "odd-uuid",
        reason: "VMUUIDMismatch",
        spoil: |vm| in_smbios(vm, "uuid=1f0a2b3c", "uuid=99999999"),
        has_node: true,
    },
    Odd { name: "odd-name", reason: "VMNameMismatch", spoil: |vm| vm.base.name = "web".to_owned(), has_node: true },
    Odd {
        name: "odd-serial",
        reason: "VMSerialMismatch",
        spoil: |vm| in_smbios(vm, ",serial=", ",serial=AAAA"),
        has_node: true,
    },
    Odd {
        name: "odd-text",
        reason: "VMDescriptionMismatch",
        spoil: |vm| drop(vm.base.config.insert("description".to_owned(), "database".to_owned())),
        has_node: true,
    },
    Odd { name: "odd-host", reason: "VMMoved", spoil: |vm| vm.base.host = "pve3".to_owned(), has_node: true },
    Odd { name: "odd-node", reason: "NodeNotFound", spoil: |_| (), has_node: false },
];

fn in_smbios(vm: &mut VmSpec, from: &str, to: &str) {
    if let Some(smbios) = vm.base.config.get_mut("smbios1") {
        *smbios = smbios.replace(from, to);
    }
}

async fn vms_that_miss_a_mark_are_left_alone_and_their_claims_say_why(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    let pool = leave_rules(&world).await?;
    for (vmid, odd) in (20_100..).zip(&ODD) {
        let node = GoNode { name: odd.name, host: "pve1", vmid, drifted: false };
        let mut vm = node.vm();
        (odd.spoil)(&mut vm);
        world.estate.add_vm(&vm)?;
        if odd.has_node {
            node.write(&world, &pool).await?;
        } else {
            node.write_claim(&world, &pool).await?;
        }
    }
    let before = world.estate.vms();
    if kind == Kind::Real {
        let rows = world.listed(&["adopt", "--dry-run"]).await?;
        let is_explained =
            |row: &Value| row["state"] == "LeftAlone" && row["reason"].as_str().is_some_and(|why| why.contains(';'));
        assert!(rows.len() == ODD.len() && rows.iter().all(is_explained), "{rows:#?}");
    }
    world.start_controller()?;
    for odd in &ODD {
        let said = world.until_condition::<NodeClaim>((odd.name, "Adopted"), ("False", odd.reason)).await?;
        assert!(said.starts_with("Not adopted: ") && said.contains(';'), "{said}");
        world.until_told(("NodeClaim", odd.name), "NotAdopted", &said).await?;
    }
    // However empty they are and whatever the pool allows.
    world.set_budget("100%").await?;
    world.let_pass(Duration::from_secs(40)).await?;
    assert_eq!(world.estate.vms(), before, "{}", world.tail());
    assert_eq!(world.events("NotAdopted").await?.len(), ODD.len(), "once each");
    for claim in world.claims().await? {
        assert!(!claim.annotations().contains_key(names::ANNOTATION_LAUNCH));
    }
    world.end().await
}
