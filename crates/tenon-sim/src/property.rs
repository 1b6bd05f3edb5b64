//! How property strings (`virtio=MAC,bridge=vmbr0`) are read, refused and written back.
//!
//! Network devices and drives are re-serialised with sorted keys; SMBIOS and ipconfig stay as sent.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::keys;

const PATTERN: &str = "value does not match the regex pattern";
const UNKNOWN: &str = "property is not defined in schema and the schema does not allow additional properties";
const MODELS: &[&str] = &["e1000", "e1000e", "i82551", "ne2k_pci", "pcnet", "rtl8139", "virtio", "vmxnet3"];

/// The text of an error inside a property string.
pub(crate) fn format_error(path: &str, text: &str) -> String {
    format!("invalid format - format error\n{path}: {text}\n")
}

/// The parts of a property string; a part without `=` belongs to `default`.
pub(crate) fn parts<'a>(text: &'a str, default: &'a str) -> Vec<(&'a str, &'a str)> {
    let split = |part: &'a str| part.split_once('=').unwrap_or((default, part));
    text.split(',').filter(|p| !p.is_empty()).map(split).collect()
}

fn join(first: String, rest: &BTreeMap<String, String>) -> String {
    rest.iter().fold(first, |text, (key, value)| format!("{text},{key}={value}"))
}

/// A `netN` value.
#[derive(Clone, Debug)]
pub(crate) struct NetDev {
    pub(crate) model: String,
    pub(crate) mac: Option<String>,
    pub(crate) options: BTreeMap<String, String>,
}

impl NetDev {
    pub(crate) fn parse(key: &str, text: &str) -> Result<Self, String> {
        let mut net = Self { model: String::new(), mac: None, options: BTreeMap::new() };
        for (name, value) in parts(text, "model") {
            match name {
                "model" => net.model = value.to_string(),
                "macaddr" => net.mac = Some(value.to_string()),
                _ if MODELS.contains(&name) => {
                    net.model = name.to_string();
                    net.mac = Some(value.to_string());
                }
                _ => {
                    check_net_option(name, value).map_err(|e| format_error(&format!("{key}.{name}"), &e))?;
                    net.options.insert(name.to_string(), value.to_string());
                }
            }
        }
        if net.model.is_empty() {
            return Err(format_error(&format!("{key}.model"), "property is missing and it is not optional"));
        }
        if !MODELS.contains(&net.model.as_str()) {
            let text =
                format!("value '{}' does not have a value in the enumeration '{}'", net.model, MODELS.join(", "));
            return Err(format_error(&format!("{key}.model"), &text));
        }
        Ok(net)
    }

    pub(crate) fn print(&self) -> String {
        let mac = self.mac.as_deref().unwrap_or("");
        join(format!("{}={mac}", self.model), &self.options)
    }
}

fn check_net_option(name: &str, value: &str) -> Result<(), String> {
    match name {
        "queues" => keys::check_int(value, 0, 64),
        "mtu" => keys::check_int(value, 1, 65520),
        "tag" => keys::check_int(value, 1, 4094),
        "bridge" | "firewall" | "host-managed" | "link_down" | "rate" | "trunks" => Ok(()),
        _ => Err(UNKNOWN.into()),
    }
}

/// What a drive key points at.
#[derive(Clone, Debug)]
pub(crate) struct Drive {
    /// A volume id, `none`, `cdrom`, or a request such as `shared:32` or `shared:cloudinit`.
    pub(crate) file: String,
    pub(crate) options: BTreeMap<String, String>,
}

impl Drive {
    pub(crate) fn parse(key: &str, text: &str) -> Result<Self, String> {
        let mut drive = Self { file: String::new(), options: BTreeMap::new() };
        for (name, value) in parts(text, "file") {
            match name {
                "file" | "volume" => drive.file = value.to_string(),
                _ if DRIVE_OPTIONS.contains(&name) => drop(drive.options.insert(name.to_string(), value.to_string())),
                _ => return Err(format_error(&format!("{key}.{name}"), UNKNOWN)),
            }
        }
        if drive.file.is_empty() {
            return Err(format_error(&format!("{key}.file"), "property is missing and it is not optional"));
        }
        if drive.file.contains(":iso/") && !drive.is_cdrom() {
            return Err("explicit 'media=cdrom' is required for iso images".into());
        }
        Ok(drive)
    }

    /// Reads a stored value, which was checked when it was written.
    pub(crate) fn stored(text: &str) -> Self {
        let mut all = parts(text, "file").into_iter();
        let file = all.next().map_or("", |(_, value)| value).to_string();
        Self { file, options: all.map(|(k, v)| (k.to_string(), v.to_string())).collect() }
    }

    pub(crate) fn print(&self) -> String {
        join(self.file.clone(), &self.options)
    }

    pub(crate) fn is_cdrom(&self) -> bool {
        self.options.get("media").is_some_and(|m| m == "cdrom")
    }

    pub(crate) fn is_cloudinit(&self) -> bool {
        self.file.ends_with(":cloudinit") || self.file.contains("-cloudinit.")
    }

    /// The storage and the name of its volume, when it has one.
    pub(crate) fn volume(&self) -> Option<(&str, &str)> {
        self.file.split_once(':')
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.options.get("size").and_then(|s| keys::parse_size(s)).unwrap_or(0)
    }
}

const DRIVE_OPTIONS: &[&str] = &[
    "aio",
    "backup",
    "bps",
    "cache",
    "detect_zeroes",
    "discard",
    "efitype",
    "format",
    "import-from",
    "iops",
    "iothread",
    "mbps",
    "mbps_rd",
    "mbps_wr",
    "media",
    "queues",
    "replicate",
    "ro",
    "rerror",
    "scsiblock",
    "serial",
    "shared",
    "size",
    "snapshot",
    "ssd",
    "werror",
    "wwn",
];

/// SMBIOS fields must look like base64, whether or not they are declared so.
pub(crate) fn check_smbios(text: &str) -> Result<(), String> {
    if text.len() > 512 {
        return Err("value may only be 512 characters long".into());
    }
    for (name, value) in parts(text, "uuid") {
        let path = format!("smbios1.{name}");
        match name {
            "uuid" if !is_uuid(value) => return Err(format_error(&path, PATTERN)),
            "uuid" => {}
            "base64" => {}
            "family" | "manufacturer" | "product" | "serial" | "sku" | "version" => {
                if !looks_base64(value) {
                    return Err(format_error(&path, PATTERN));
                }
            }
            _ => return Err(format_error(&path, UNKNOWN)),
        }
    }
    Ok(())
}

fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let groups: Vec<&str> = text.split('-').collect();
    groups.len() == 5
        && groups.iter().zip(lengths).all(|(g, n)| g.len() == n && g.chars().all(|c| c.is_ascii_hexdigit()))
}

fn looks_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !body.is_empty()
        && text.len() - body.len() <= 2
        && body.chars().all(|c| c.is_ascii_alphanumeric() || "+/".contains(c))
}

/// The SMBIOS uuid of a `smbios1` value.
pub(crate) fn smbios_uuid(text: &str) -> Option<&str> {
    parts(text, "uuid").into_iter().find(|(k, _)| *k == "uuid").map(|(_, v)| v)
}

/// `smbios1` with another uuid, keys sorted as PVE prints them.
pub(crate) fn with_uuid(text: &str, uuid: &str) -> String {
    let mut all: BTreeMap<&str, &str> = parts(text, "uuid").into_iter().collect();
    all.insert("uuid", uuid);
    all.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",")
}

pub(crate) fn check_ipconfig(key: &str, text: &str) -> Result<(), String> {
    let all = parts(text.trim(), "ip");
    let has = |name: &str| all.iter().any(|(k, _)| *k == name);
    for (name, value) in &all {
        let path = format!("{key}.{name}");
        match *name {
            "ip" if *value != "dhcp" && !is_cidr4(value) => {
                let text = "invalid format - value does not look like a valid ipv4 network configuration\n";
                return Err(format_error(&path, text));
            }
            "ip6" if !matches!(*value, "dhcp" | "auto") && !is_cidr6(value) => {
                let text = "invalid format - value does not look like a valid ipv6 network configuration\n";
                return Err(format_error(&path, text));
            }
            "gw" if !has("ip") => {
                return Err(format_error(&format!("{key}.ip"), &format!("missing property required by '{path}'")));
            }
            "gw6" if !has("ip6") => {
                return Err(format_error(&format!("{key}.ip6"), &format!("missing property required by '{path}'")));
            }
            "ip" | "ip6" | "gw" | "gw6" => {}
            _ => return Err(format_error(&path, UNKNOWN)),
        }
    }
    Ok(())
}

fn is_cidr4(text: &str) -> bool {
    text.split_once('/').is_some_and(|(ip, n)| ip.parse::<Ipv4Addr>().is_ok() && n.parse::<u8>().is_ok_and(|n| n <= 32))
}

fn is_cidr6(text: &str) -> bool {
    text.split_once('/')
        .is_some_and(|(ip, n)| ip.parse::<Ipv6Addr>().is_ok() && n.parse::<u8>().is_ok_and(|n| n <= 128))
}
