//! When the Go provider's controllers are started again, do they find all that they read, on nodes that Tenon adopted and on
//! nodes that Tenon created?

use std::collections::BTreeMap;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;
use tenon_api::{NodeClaim, hash_stamp, names};
use tenon_pve::{Smbios, VmConfig};
use tenon_sim::VmView;

use crate::bench::quick_guests;
use crate::ground::{Kind, scenarios};
use crate::takeover_fixtures::{IMAGE, NODES, leave_nodes};
use crate::world::{World, record_of};

scenarios! {
    the_go_provider_finds_all_that_it_reads_on_adopted_nodes_and_on_ours,
}

/// A node with everything that the Go provider reads of it.
struct Known {
    claim: NodeClaim,
    node: Node,
    vm: VmView,
}

impl World {
    async fn known(&self, claim: NodeClaim) -> anyhow::Result<Known> {
        let vmid = record_of(&claim)?.vmid.get();
        let node = Api::<Node>::all(self.admin.clone()).get(&claim.name_any()).await?;
        Ok(Known { claim, node, vm: self.estate.vm(vmid).context("there is no VM")? })
    }
}

async fn the_go_provider_finds_all_that_it_reads_on_adopted_nodes_and_on_ours(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    leave_nodes(&world, &NODES[..1]).await?;
    world.start_controller()?;
    world.until_condition::<NodeClaim>((NODES[0].name, "Adopted"), ("True", "Adopted")).await?;
    // Too large for the node that is there.
    let container = json!({ "resources": { "requests": { "cpu": "5", "memory": "1Gi" } } });
    let tolerant = json!({ "tolerations": [{ "key": "dedicated", "operator": "Exists" }] });
    world.deploy_pods(("web", 1), container, tolerant).await?;
    world.until_running("web", 1).await?;
    let status = names::ANNOTATION_CLOUDINIT_STATUS;
    let claims = world
        .until("both nodes are taken over, and have deleted their first-boot data", async || {
            let claims = world.claims().await?;
            let is_done = claims.iter().all(|claim| {
                let annotations = claim.annotations();
                let is_ours = hash_stamp::POOL.is_ours(annotations) && hash_stamp::CLASS.is_ours(annotations);
                annotations.contains_key(status) && is_ours
            });
            Ok((claims.len() == 2 && is_done).then_some(claims))
        })
        .await?;
    for claim in claims {
        let known = world.known(claim).await?;
        known.has_one_name_and_one_id()?;
        known.says_who_it_is()?;
        known.has_the_labels()?;
        known.has_not_drifted();
        known.is_cleaned_up();
    }
    let secrets: Api<Secret> = Api::namespaced(world.admin.clone(), "kube-system");
    let tokens = ListParams::default().labels(&format!("{}=true", names::LABEL_BOOTSTRAP_TOKEN));
    assert_eq!(secrets.list(&tokens).await?.items.len(), 0, "no bootstrap token is left");
    world.end().await
}

impl Known {
    /// Get and Delete go by the providerID; Get wants a Node of the VM's name.
    fn has_one_name_and_one_id(&self) -> anyhow::Result<()> {
        let name = self.claim.name_any();
        assert_eq!((&self.vm.name, self.node.name_any()), (&name, name.clone()));
        let id = format!("proxmox://lab/{}", self.vm.vmid);
        let status = self.claim.status.as_ref().context("no status")?;
        assert_eq!((status.provider_id.as_ref(), status.node_name.as_ref()), (Some(&id), Some(&name)));
        assert_eq!(self.node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref()), Some(&id));
        Ok(())
    }

    /// The host daemon reads the description, a cloud controller manager the SMBIOS.
    fn says_who_it_is(&self) -> anyhow::Result<()> {
        let Known { claim, node, vm } = self;
        let first = vm.config["description"].lines().next().unwrap_or_default();
        assert_eq!(first, "Karpenter managed instance, class=default, capacity-type=on-demand");
        let line = format!("smbios1: {}", vm.config["smbios1"]);
        let config = VmConfig::from_lines(&line).map_err(|(_, why)| anyhow::anyhow!("{why}"))?;
        let smbios: Smbios = config.option("smbios1").context("no smbios1")?;
        let label = claim.labels().get(names::LABEL_INSTANCE_TYPE).cloned();
        assert_eq!(smbios.text("serial"), Some(format!("h={};i={}", claim.name_any(), vm.vmid)));
        assert_eq!(smbios.text("sku"), label);
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref()).context("no nodeInfo")?;
        assert!(config.uuid().is_some_and(|uuid| uuid.eq_ignore_ascii_case(&info.system_uuid)));
        Ok(())
    }

    /// The in-place updates and the detachment of seeds look for the VM on the host that the zone label names.
    fn has_the_labels(&self) -> anyhow::Result<()> {
        let Known { claim, node, vm } = self;
        let wanted = BTreeMap::from([
            (names::LABEL_NODEPOOL, "default"),
            (names::LABEL_NODECLASS, "default"),
            (names::LABEL_REGION, "lab"),
            (names::LABEL_ZONE, vm.host.as_str()),
            (names::LABEL_CAPACITY_TYPE, "on-demand"),
            (names::LABEL_INSTANCE_IMAGE_ID, IMAGE),
        ]);
        for labels in [claim.labels(), node.labels()] {
            for (key, value) in &wanted {
                assert_eq!(labels.get(*key).map(String::as_str), Some(*value), "{key} of {}", claim.name_any());
            }
            for key in [names::LABEL_INSTANCE_TYPE, names::LABEL_INSTANCE_FAMILY, names::LABEL_INSTANCE_CPU_TYPE] {
                assert!(labels.contains_key(key), "{key} of {}", claim.name_any());
            }
        }
        for key in [names::LABEL_REGISTERED, names::LABEL_INITIALIZED] {
            assert_eq!(node.labels().get(key).map(String::as_str), Some("true"), "{key}");
        }
        assert!(claim.finalizers().iter().any(|name| name == names::FINALIZER));
        assert!(node.finalizers().iter().any(|name| name == names::FINALIZER));
        assert!(node.owner_references().iter().any(|owner| Some(&owner.uid) == claim.uid().as_ref()));
        assert!(claim.owner_references().iter().any(|owner| owner.kind == "NodePool" && owner.name == "default"));
        let conditions = claim.status.as_ref().and_then(|status| status.conditions.clone()).context("no conditions")?;
        for type_ in ["Launched", "Registered", "Initialized"] {
            let is_met =
                |told: &&tenon_api::Condition| told.type_ == type_ && told.status == tenon_api::ConditionStatus::True;
            assert!(conditions.iter().find(is_met).is_some(), "{type_} of {}", claim.name_any());
        }
        Ok(())
    }

    /// Hashes of two versions are not compared, and the image is the template's.
    fn has_not_drifted(&self) {
        let annotation = |name: &str| self.claim.annotations().get(name).map(String::as_str);
        assert!(annotation(names::ANNOTATION_NODECLASS_HASH).is_some());
        assert_ne!(annotation(names::ANNOTATION_NODECLASS_HASH_VERSION), Some("v1"));
        assert_ne!(annotation(names::ANNOTATION_NODEPOOL_HASH_VERSION), Some("v3"));
        let status = self.claim.status.as_ref();
        assert_eq!(status.and_then(|status| status.image_id.as_deref()), Some(IMAGE));
    }

    /// It would take a seed out of the drive, delete the image and the tag, and delete the token; and it cannot destroy a VM
    /// that is protected.
    fn is_cleaned_up(&self) {
        let has = |key: &str, words: &str| self.vm.config.get(key).is_some_and(|value| value.contains(words));
        assert!(!has("ide2", ".iso") && !has("tags", "go-proxmox+cloud-init") && !has("protection", "1"));
        assert!(has("tags", "karpenter"), "tags of the class");
        assert_eq!(self.claim.annotations()[names::ANNOTATION_CLOUDINIT_STATUS], "Initialized");
    }
}
