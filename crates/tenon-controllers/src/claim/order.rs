//! What VM is to be made: all of it decided beforehand, so that acting is typing it in.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use tenon_model::{LaunchRecord, VmId};
use tenon_pve::{CloneRequest, OwnerMark, Proof, Properties, VmConfig};

/// What VM is to be made for a claim.
pub struct Order<'a> {
    /// The Kubernetes cluster, for the proof of ownership.
    pub cluster: String,
    /// The claim's uid, for the same.
    pub claim_uid: String,
    /// The name of claim, VM and node.
    pub name: String,
    /// The class, as the VM's description says it.
    pub class: String,
    /// The size, as the label says it.
    pub instance_type: String,
    /// `on-demand`, `spot` or `reserved`.
    pub capacity_type: String,
    /// The Proxmox pool it joins.
    pub pool: Option<String>,
    /// Its cores.
    pub cores: u32,
    /// Its memory.
    pub memory_mib: u64,
    /// Its disk, at least.
    pub disk_gib: u64,
    /// Its tags.
    pub tags: Vec<String>,
    /// Where its first-boot data comes from; `None` if the image brings its own.
    pub seed: Option<SeedSource<'a>>,
}

/// First-boot data for a VM, rendered when its network cards are known.
pub struct SeedSource<'a> {
    /// The storage that takes ISO images.
    pub storage: String,
    /// Renders the image.
    pub render: &'a (dyn Fn(&LaunchRecord, &VmConfig) -> Result<Bytes, String> + Send + Sync),
}

/// Where a VM's seed lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedFile {
    /// The file's name on its storage.
    pub name: String,
    /// The volume, as Proxmox names it.
    pub volume: String,
}

impl Order<'_> {
    pub(crate) fn proof(&self, record: &LaunchRecord) -> Proof {
        Proof { mark: self.mark(record.vmid), uuid: record.uuid.clone() }
    }

    fn mark(&self, vmid: VmId) -> OwnerMark {
        OwnerMark { cluster: self.cluster.clone(), claim: self.claim_uid.clone(), vmid }
    }

    pub(crate) fn clone_request(&self, record: &LaunchRecord) -> CloneRequest {
        let head = format!("Karpenter managed instance, class={}, capacity-type={}", self.class, self.capacity_type);
        CloneRequest {
            template: record.template,
            vmid: record.vmid,
            name: self.name.clone(),
            description: format!("{head}\n{}", self.mark(record.vmid)),
            pool: self.pool.clone(),
            full_to: None,
        }
    }

    /// Identity and size: keys that are either all taken or all refused. The digest makes sure it is the VM that was proven.
    pub(crate) fn identity(&self, record: &LaunchRecord, config: &VmConfig) -> Vec<(&'static str, String)> {
        let mut keys = vec![
            ("cores", self.cores.to_string()),
            ("memory", self.memory_mib.to_string()),
            ("smbios1", self.smbios(record, config)),
        ];
        if !self.tags.is_empty() {
            keys.push(("tags", self.tags.join(";")));
        }
        keys.extend(config.digest().map(|digest| ("digest", digest.to_owned())));
        keys
    }

    /// The template's fields stay, the uuid among them: a write without it would lose it, and with it our proof.
    fn smbios(&self, record: &LaunchRecord, config: &VmConfig) -> String {
        let present = config.properties("smbios1").unwrap_or_default();
        let was_encoded = present.get("base64") == Some("1");
        let mut fields = Properties::default();
        for (key, value) in present.iter().filter_map(|(key, value)| Some((key?, value))) {
            let is_text = !matches!(key, "uuid" | "base64");
            let value = if is_text && !was_encoded { BASE64.encode(value) } else { value.to_owned() };
            // A value out of a property string always fits into one.
            let _ = fields.set(key, &value);
        }
        let serial = BASE64.encode(format!("h={};i={}", self.name, record.vmid));
        for (key, value) in [("base64", "1"), ("sku", &BASE64.encode(&self.instance_type)), ("serial", &serial)] {
            let _ = fields.set(key, value);
        }
        fields.to_string()
    }

    /// The seed in its drive. Proxmox puts the drive into the boot order by itself.
    pub(crate) fn drive(seed: &SeedFile) -> [(&'static str, String); 1] {
        [("ide2", format!("{},media=cdrom", seed.volume))]
    }

    /// Where the seed of the VM under this id lies, if it gets one.
    pub fn seed_file(&self, vmid: VmId) -> Option<SeedFile> {
        let storage = &self.seed.as_ref()?.storage;
        let name = format!("user-data-{vmid}.iso");
        Some(SeedFile { volume: format!("{storage}:iso/{name}"), name })
    }
}
