//! The VM that a ProxmoxTemplate describes, as configuration of Proxmox: with what it is created, and what is kept so.
//!
//! The keys and values are the reference's, but for what Proxmox refuses of them: flags of a processor joined by commas,
//! a display's memory that is no number, a disk format that a storage may not have.

use std::collections::BTreeMap;

use tenon_api::{Agent, Bios, CardModel, Cpu, NetworkCard, PciDevice, ProxmoxTemplateSpec, Vga, VgaType};
use tenon_model::TemplateBuild;
use tenon_pve::{Tags, TemplateMark, VmConfig, same_option};

/// What stands first in the description where `spec.description` is not set; the reference's words.
const DESCRIPTION: &str = "The virtual machine managed by Karpenter, do not delete it.";

/// Keys that are deleted where the object does not ask for them any more. Others are left as people set them.
const OPTIONAL: [&str; 5] = ["agent", "vga", "tags", "onboot", "nameserver"];

/// Keys with a number that are deleted likewise, as far as the object can have them.
const NUMBERED: [&str; 3] = ["net", "ipconfig", "hostpci"];

/// Devices of a kind that an object can have at most.
const DEVICES: usize = 6;

/// Configuration keys with their texts.
pub(super) type Options = Vec<(String, String)>;

/// What is wrong with the configuration of a VM.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// To be written.
    pub(super) set: Options,
    /// To be deleted.
    pub(super) delete: Vec<String>,
}

impl Difference {
    pub(super) fn is_none(&self) -> bool {
        self.set.is_empty() && self.delete.is_empty()
    }

    /// What it is about, in words.
    pub(super) fn keys(&self) -> String {
        let set = self.set.iter().map(|(key, _)| key.as_str());
        set.chain(self.delete.iter().map(String::as_str)).collect::<Vec<_>>().join(", ")
    }

    /// As parameters of a write that is refused if the configuration changed since.
    pub(super) fn params(&self, config: &VmConfig) -> Options {
        let mut params = self.set.clone();
        if !self.delete.is_empty() {
            params.push(("delete".to_owned(), self.delete.join(",")));
        }
        params.extend(config.digest().map(|digest| ("digest".to_owned(), digest.to_owned())));
        params
    }
}

/// The VM of one build.
#[derive(Debug, Clone, Copy)]
pub(super) struct DesiredTemplate<'a> {
    pub(super) spec: &'a ProxmoxTemplateSpec,
    /// The name of the object, which is that of the VM.
    pub(super) name: &'a str,
    pub(super) build: &'a TemplateBuild,
    pub(super) mark: &'a TemplateMark,
}

impl DesiredTemplate<'_> {
    /// What it is created with. Tags come later: a token whose rights come from a resource pool may not give them here.
    pub(super) fn creation(&self) -> Options {
        let TemplateBuild { image_storage, image_name, disk_storage, uuid, .. } = self.build;
        let mut options: Options = self.kept().into_iter().filter(|(key, _)| key != "tags").collect();
        // No format: on a storage of files the disk gets that of the image, and others take only their own.
        let disk = format!("{disk_storage}:0,import-from={image_storage}:import/{image_name},iothread=1");
        options.push(("scsi0".to_owned(), disk));
        options.push(("smbios1".to_owned(), format!("uuid={uuid}")));
        if let Some(tpm) = &self.spec.tpm {
            let version = word(&tpm.version);
            options.push(("tpmstate0".to_owned(), format!("{disk_storage}:4,version={version}")));
        }
        if self.spec.bios == Bios::Ovmf {
            options.push(("efidisk0".to_owned(), format!("{disk_storage}:0,efitype=4m")));
        }
        options.extend(self.spec.resource_pool.iter().map(|pool| ("pool".to_owned(), pool.clone())));
        options
    }

    /// What it is kept at as long as it is there.
    pub(super) fn kept(&self) -> Options {
        let spec = self.spec;
        let mut options: BTreeMap<String, String> = [
            ("acpi", "1"),
            ("cores", "1"),
            ("sockets", "1"),
            ("numa", "1"),
            ("memory", "1024"),
            ("balloon", "0"),
            ("ostype", "l26"),
            ("scsihw", "virtio-scsi-single"),
            ("boot", "order=scsi0"),
            ("tablet", "0"),
            ("name", self.name),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        let mut set = |key: &str, value: Option<String>| {
            options.extend(value.map(|value| (key.to_owned(), value)));
        };
        set("machine", Some(word(&spec.machine)));
        set("bios", Some(word(&spec.bios)));
        set("description", Some(self.description()));
        set("agent", spec.agent.as_ref().map(agent));
        set("cpu", Some(cpu(&spec.cpu)));
        set("vga", spec.vga.as_ref().map(vga));
        let has_console = spec.vga.as_ref().is_some_and(|vga| vga.type_ == VgaType::Serial0);
        set("serial0", has_console.then(|| "socket".to_owned()));
        for (index, card) in spec.network.iter().enumerate() {
            let number = card_number(card, index);
            set(&format!("net{number}"), Some(network(card)));
            set(&format!("ipconfig{number}"), Some(addresses(card)));
        }
        let servers: Vec<&str> =
            spec.network.iter().flat_map(|card| card.dns_servers.iter().flatten()).map(String::as_str).collect();
        set("nameserver", (!servers.is_empty()).then(|| servers.join(" ")));
        for (index, device) in spec.pci_devices.iter().flatten().enumerate() {
            set(&format!("hostpci{index}"), Some(pass_through(device)));
        }
        set("onboot", spec.on_boot.map(|on| flag(on).to_owned()));
        let tags = spec.tags.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(";");
        set("tags", Some(Tags::read(&tags).to_string()).filter(|tags| !tags.is_empty()));
        options.into_iter().collect()
    }

    /// The reference's text first, our line after it.
    fn description(&self) -> String {
        let text = self.spec.description.as_deref().unwrap_or(DESCRIPTION);
        format!("{text} Hash: {}\n{}", self.build.number, self.mark)
    }

    /// How a configuration differs from what is kept, in meaning, not in spelling.
    pub(super) fn difference(&self, config: &VmConfig) -> Difference {
        let mut difference = Difference::default();
        let wanted: BTreeMap<String, String> = self.kept().into_iter().collect();
        for (key, text) in &wanted {
            let text = with_mac(key, text, config);
            if !config.get(key).is_some_and(|present| same_option(key, &text, present)) {
                difference.set.push((key.clone(), text));
            }
        }
        let numbered = NUMBERED.iter().flat_map(|stem| (0..DEVICES).map(move |number| format!("{stem}{number}")));
        let optional = OPTIONAL.iter().map(|key| (*key).to_owned()).chain(numbered);
        // Proxmox keeps an empty text as a blank.
        let is_set = |key: &String| config.get(key).is_some_and(|present| !present.trim().is_empty());
        difference.delete = optional.filter(|key| !wanted.contains_key(key) && is_set(key)).collect();
        difference
    }
}

/// A card keeps the address it has: a template's is never used, and a new one would look like a change.
fn with_mac(key: &str, text: &str, config: &VmConfig) -> String {
    let is_card = key.strip_prefix("net").is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    let present = config.properties(key).filter(|_| is_card);
    let mac = present.iter().flat_map(tenon_pve::Properties::iter).map(|(_, value)| value).find(|value| is_mac(value));
    mac.map_or_else(|| text.to_owned(), |mac| format!("{text},macaddr={mac}"))
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == 6 && parts.iter().all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The word of an enumeration in the custom resource, which is Proxmox's own.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn flag(on: bool) -> &'static str {
    if on { "1" } else { "0" }
}

/// Parts that are there, divided by commas.
fn joined(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(",")
}

fn agent(agent: &Agent) -> String {
    joined([
        Some(format!("enabled={}", flag(agent.enabled))),
        agent.fs_freeze_on_backup.map(|on| format!("freeze-fs-on-backup={}", flag(on))),
        agent.fs_trim_cloned_disks.map(|on| format!("fstrim_cloned_disks={}", flag(on))),
        Some(format!("type={}", word(&agent.type_))),
    ])
}

fn cpu(cpu: &Cpu) -> String {
    let flags = cpu.flags.as_ref().filter(|flags| !flags.is_empty());
    joined([Some(format!("cputype={}", word(&cpu.type_))), flags.map(|flags| format!("flags={}", flags.join(";")))])
}

fn vga(vga: &Vga) -> String {
    joined([Some(format!("type={}", word(&vga.type_))), vga.memory.map(|memory| format!("memory={memory}"))])
}

/// The number of a card: that in its name, or its place in the list.
pub(super) fn card_number(card: &NetworkCard, index: usize) -> usize {
    let named = card.name.as_deref().and_then(|name| name.strip_prefix("net")?.parse().ok());
    named.unwrap_or(index)
}

fn network(card: &NetworkCard) -> String {
    joined([
        Some(format!("model={}", word(&card.model))),
        Some(format!("bridge={}", card.bridge)),
        card.firewall.map(|on| format!("firewall={}", flag(on))),
        // Proxmox gives an MTU only to cards of this model.
        (card.model == CardModel::Virtio).then(|| format!("mtu={}", card.mtu)),
        card.vlan.map(|vlan| format!("tag={vlan}")),
    ])
}

fn addresses(card: &NetworkCard) -> String {
    if card.address4.is_none() && card.address6.is_none() {
        return "ip=dhcp,ip6=auto".to_owned();
    }
    let part = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}={value}"));
    joined([
        part("ip", &card.address4),
        part("gw", &card.gateway4).filter(|_| card.address4.is_some()),
        part("ip6", &card.address6),
        part("gw6", &card.gateway6).filter(|_| card.address6.is_some()),
    ])
}

fn pass_through(device: &PciDevice) -> String {
    joined([
        Some(format!("mapping={}", device.mapping)),
        device.mdev.as_ref().map(|mdev| format!("mdev={mdev}")),
        device.pcie.map(|on| format!("pcie={}", flag(on))),
        device.xvga.map(|on| format!("x-vga={}", flag(on))),
    ])
}
