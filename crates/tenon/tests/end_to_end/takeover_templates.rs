//! What does the Go provider leave behind of a template that it built, and what must not become of it?

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tenon_api::template_image::image_id;
use tenon_api::{ProxmoxTemplate, names};
use tenon_sim::TemplateSpec;

use crate::bench::from_json;
use crate::takeover_fixtures::{GoNode, IMAGE, leave_class_and_pool, leave_nodes_of};
use crate::world::World;

/// Name of the ProxmoxTemplate and of its VM templates.
pub(crate) const NAME: &str = "talos";

/// One VM template for each host, as the storage is local.
const BUILT: [(&str, u32); 3] = [("pve1", 1000), ("pve2", 1001), ("pve3", 1002)];

/// These nodes, from a template that the Go provider built and keeps.
pub(crate) async fn leave_managed(world: &World, nodes: &[GoNode]) -> anyhow::Result<()> {
    for (host, vmid) in BUILT {
        world.estate.add_template(&built(host, vmid))?;
    }
    let templates: Api<ProxmoxTemplate> = Api::all(world.admin.clone());
    let template: ProxmoxTemplate = from_json(template())?;
    let image = image_id(&template.spec.source_image)?;
    templates.create(&PostParams::default(), &template).await?;
    let zones = BUILT.map(|(host, vmid)| format!("lab/{host}/{vmid}"));
    let status = json!({ "zones": zones, "imageID": image, "resources": { "zones": "3" } });
    templates.patch_status(NAME, &PatchParams::default(), &Patch::Merge(json!({ "status": status }))).await?;
    let owner = leave_class_and_pool(world, ("ProxmoxTemplate", NAME)).await?;
    leave_nodes_of(world, nodes, &owner).await
}

/// The object with the finalizer and the hashes of the Go provider.
fn template() -> Value {
    json!({
        "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxTemplate",
        "metadata": {
            "name": NAME, "finalizers": [names::TEMPLATE_FINALIZER],
            "annotations": {
                names::ANNOTATION_TEMPLATE_HASH: IMAGE, names::ANNOTATION_TEMPLATE_HASH_VERSION: "v1",
                names::ANNOTATION_TEMPLATE_IN_PLACE_HASH: "14695981039346656037",
            },
        },
        "spec": {
            "sourceImage": { "url": "https://images.example.com/talos-1.13.qcow2", "imageName": "talos.qcow2" },
            "storageIDs": ["local"], "network": [{ "bridge": "vmbr0" }],
        },
    })
}

/// A VM template with every option that the Go provider gives it.
fn built(host: &str, vmid: u32) -> TemplateSpec {
    let description = format!("The virtual machine managed by Karpenter, do not delete it. Hash: {IMAGE}");
    let net = format!("virtio=BC:24:11:00:10:{:02X},bridge=vmbr0,mtu=1500", vmid % 256);
    let config = [
        ("acpi", "1"),
        ("balloon", "0"),
        ("bios", "seabios"),
        ("boot", "order=scsi0"),
        ("cores", "1"),
        ("cpu", "cputype=x86-64-v2-AES"),
        ("description", &description),
        ("ipconfig0", "ip=dhcp,ip6=auto"),
        ("machine", "q35"),
        ("memory", "1024"),
        ("net0", &net),
        ("numa", "1"),
        ("ostype", "l26"),
        ("scsihw", "virtio-scsi-single"),
        ("sockets", "1"),
        ("tablet", "0"),
    ];
    TemplateSpec {
        host: host.into(),
        vmid,
        name: NAME.into(),
        storage: "local".into(),
        cloudinit_drive: false,
        config: config.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        ..TemplateSpec::default()
    }
}

/// What proves that VM templates are the ones of before: for each id the host and the UUID, and what they are made from.
pub(crate) type Templates = BTreeMap<u32, [String; 3]>;

impl World {
    /// The VM templates that a controller built.
    pub(crate) fn built_templates(&self) -> Templates {
        let vms = self.estate.vms().into_iter().filter(|vm| (1000..9000).contains(&vm.vmid));
        let kept = |vm: tenon_sim::VmView| {
            let option = |key: &str| vm.config.get(key).cloned().unwrap_or_default();
            let made_from = option("description").lines().next().unwrap_or_default().to_owned();
            (vm.vmid, [vm.host.clone(), option("smbios1"), made_from])
        };
        vms.map(kept).collect()
    }

    /// Where the status of a ProxmoxTemplate says that its VM templates are.
    pub(crate) async fn template_zones(&self, name: &str) -> anyhow::Result<Vec<String>> {
        let template = Api::<ProxmoxTemplate>::all(self.admin.clone()).get(name).await?;
        let mut zones = template.status.and_then(|status| status.zones).unwrap_or_default();
        zones.sort();
        Ok(zones)
    }

    /// An annotation of a ProxmoxTemplate.
    pub(crate) async fn template_annotation(&self, name: &str, key: &str) -> anyhow::Result<Option<String>> {
        let template = Api::<ProxmoxTemplate>::all(self.admin.clone()).get(name).await?;
        Ok(template.annotations().get(key).cloned())
    }
}
