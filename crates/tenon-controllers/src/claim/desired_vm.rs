//! What VM a claim should have: all of it decided beforehand, so that acting is typing it in.

use bytes::Bytes;
use tenon_api::{CloneMode, SecurityGroup};
use tenon_model::{HostName, LaunchRecord, LaunchStep, VmId};
use tenon_pve::{CloneKind, CloneRequest, OwnerMark, Proof, Smbios, SmbiosText, VmConfig};

use super::seed_file::{DRIVE, SeedFile};
use super::{bound_cpus, card_addresses, network_card};

/// The VM that a claim should have.
pub struct DesiredVm<'a> {
    /// Whose it is.
    pub owner: Owner,
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
    /// Where its disk is to lie; `None` leaves it with its template's.
    pub storage: Option<String>,
    /// How its disk is copied.
    pub clone_mode: CloneMode,
    /// What it is copied from.
    pub source: CloneSource,
    /// Security groups of its cards.
    pub security_groups: Vec<SecurityGroup>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its DNS servers; none leaves it with its template's.
    pub name_servers: Vec<String>,
    /// How it learns who it is.
    pub first_boot: FirstBoot<'a>,
}

/// The template that a VM is copied from, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CloneSource {
    /// The host it lies on; `None` if that is the VM's own.
    pub host: Option<HostName>,
    /// The storage of its disk, if the API token may read it.
    pub storage: Option<String>,
    /// Whether it is known to have no firewall rules, which a clone inherits.
    pub has_no_rules: bool,
}

/// Whose a VM is: what its proof is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The Kubernetes cluster.
    pub cluster: String,
    /// The uid of the NodeClaim.
    pub claim_uid: String,
}

impl Owner {
    /// What proves that the VM of this record is ours.
    pub fn proof(&self, record: &LaunchRecord) -> Proof {
        Proof { mark: self.mark(record.vmid), uuid: record.uuid.clone() }
    }

    pub(crate) fn mark(&self, vmid: VmId) -> OwnerMark {
        OwnerMark { cluster: self.cluster.clone(), claim: self.claim_uid.clone(), vmid }
    }
}

/// How a VM learns who it is when it boots first.
#[derive(Clone, Copy)]
pub enum FirstBoot<'a> {
    /// From a seed in its drive, rendered when its network cards are known.
    Seed(&'a Render<'a>),
    /// From Proxmox' own cloud-init drive, if its image has one; the image brings its own way to join.
    Image,
}

/// Renders a seed.
pub type Render<'a> = dyn Fn(&LaunchRecord, &VmConfig) -> Result<Bytes, String> + Send + Sync + 'a;

impl DesiredVm<'_> {
    /// The copy of this template. A linked clone shares its template's storage; a disk that is to lie elsewhere is copied whole.
    pub(crate) fn clone_request(&self, record: &LaunchRecord) -> Result<CloneRequest, String> {
        let elsewhere = self.storage.clone().filter(|wanted| self.source.storage.as_ref() != Some(wanted));
        let kind = match (self.clone_mode, elsewhere) {
            (CloneMode::Linked, Some(storage)) => {
                let lies_on = self.source.storage.as_deref().unwrap_or("another storage");
                return Err(format!(
                    "cloneMode Linked cannot put the disk on storage {storage}: template {} is on {lies_on}; set cloneMode to \
                     Auto or Full, or remove bootDevice.storage",
                    record.template
                ));
            }
            (CloneMode::Linked, None) => CloneKind::Linked,
            (CloneMode::Full, elsewhere) => CloneKind::Full(elsewhere),
            (CloneMode::Auto, None) if !record.full_clone => CloneKind::Linked,
            (CloneMode::Auto, elsewhere) => CloneKind::Full(elsewhere),
        };
        let bound = bound_cpus::in_description(record.pinning.as_ref());
        let head =
            format!("Karpenter managed instance, class={}, capacity-type={}{bound}", self.class, self.capacity_type);
        Ok(CloneRequest {
            template: record.template,
            vmid: record.vmid,
            name: self.name.clone(),
            description: format!("{head}\n{}", self.owner.mark(record.vmid)),
            pool: self.pool.clone(),
            kind,
            target: self.source.host.as_ref().map(|_| record.host().clone()),
        })
    }

    /// The storage that a clone is written to, if it is known.
    pub(crate) fn clone_storage(&self) -> Option<String> {
        self.storage.clone().or_else(|| self.source.storage.clone())
    }

    /// Whether a step of the launch has nothing to do for this VM.
    pub(crate) fn skips(&self, step: LaunchStep) -> bool {
        match step {
            LaunchStep::UploadSeed | LaunchStep::AttachSeed => matches!(self.first_boot, FirstBoot::Image),
            LaunchStep::Firewall => self.security_groups.is_empty(),
            _ => false,
        }
    }

    /// Identity and size: keys that are either all taken or all refused. The digest makes sure it is the VM that was proven.
    pub(crate) fn identity(&self, record: &LaunchRecord, config: &VmConfig) -> Vec<(String, String)> {
        let keys = [
            ("cores", self.cores.to_string()),
            // Cores count for each socket, and the template may have more than one.
            ("sockets", "1".to_owned()),
            ("memory", self.memory_mib.to_string()),
            ("smbios1", self.smbios(record, config)),
        ];
        let keys_of = |(key, value): (&str, String)| (key.to_owned(), value);
        let mut keys: Vec<(String, String)> = keys.into_iter().map(keys_of).collect();
        // A clone inherits the protection of its template, and then nobody could remove it.
        if config.get("protection").is_some_and(|value| value == "1") {
            keys.push(("protection".to_owned(), "0".to_owned()));
        }
        if !self.tags.is_empty() {
            keys.push(("tags".to_owned(), self.tags.join(";")));
        }
        keys.extend(network_card::options(self, config));
        keys.extend(card_addresses::options(&record.addresses, config));
        keys.extend(bound_cpus::options(record.pinning.as_ref(), config));
        if !self.name_servers.is_empty() {
            keys.push(("nameserver".to_owned(), self.name_servers.join(" ")));
        }
        if matches!(self.first_boot, FirstBoot::Image) {
            let is_given = |key: &String| record.addresses.iter().any(|card| card_addresses::key(card.card) == *key);
            keys.extend(addresses(config).into_iter().filter(|(key, _)| !is_given(key)));
        }
        keys.extend(config.digest().map(|digest| ("digest".to_owned(), digest.to_owned())));
        keys
    }

    /// The template's fields stay, the uuid among them: a write without it would lose it, and with it our proof.
    fn smbios(&self, record: &LaunchRecord, config: &VmConfig) -> String {
        let present: Smbios = config.option("smbios1").unwrap_or_default();
        let serial = format!("h={};i={}", self.name, record.vmid);
        present.with_text(SmbiosText::Sku, &self.instance_type).with_text(SmbiosText::Serial, &serial).to_string()
    }

    /// The seed in its drive. Proxmox puts the drive into the boot order by itself.
    pub(crate) fn drive(seed: &SeedFile) -> [(&'static str, String); 1] {
        [(DRIVE, format!("{},media=cdrom", seed.volume))]
    }
}

/// The storage a VM's disk lies on.
pub(crate) fn disk_storage(config: &VmConfig) -> Option<String> {
    config.boot_disk()?.1.storage().map(str::to_owned)
}

/// Every card asks for an address, unless its template was told one.
fn addresses(config: &VmConfig) -> Vec<(String, String)> {
    let numbers = config.network_cards().into_iter().map(|(key, _)| key.trim_start_matches("net").to_owned());
    let keys = numbers.map(|number| format!("ipconfig{number}"));
    keys.filter(|key| config.properties(key).is_none()).map(|key| (key, "ip=dhcp".to_owned())).collect()
}
