//! Network devices, drives and SMBIOS fields: what property strings say, and how PVE writes them back.
//!
//! Network devices and drives are re-serialised with sorted keys; the others stay as they were sent.

use std::collections::BTreeMap;

use crate::keys;
use crate::schema::{numbered, parse_property};

/// The parts of a stored property string; a part without `=` belongs to `default`.
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
    pub(crate) fn read(text: &str) -> Self {
        let mut options = parse_property("net", text);
        let (model, mac) = (options.remove("model").unwrap_or_default(), options.remove("macaddr"));
        Self { model, mac, options }
    }

    pub(crate) fn print(&self) -> String {
        let mac = self.mac.as_deref().unwrap_or("");
        join(format!("{}={mac}", self.model), &self.options)
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
    /// Reads what a caller sent for this key, which the schema has accepted.
    pub(crate) fn read(key: &str, text: &str) -> Self {
        let format = match numbered(key) {
            _ if matches!(key, "efidisk0" | "tpmstate0") => key.to_string(),
            Some(("unused", _)) => "unused".to_string(),
            Some((bus, _)) => format!("drive-{bus}"),
            None => "drive-ide".to_string(),
        };
        let mut options = parse_property(&format, text);
        Self { file: options.remove("file").unwrap_or_default(), options }
    }

    /// Reads a stored value.
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
        let name = self.volume().map_or("", |(_, name)| name);
        let file = name.rsplit('/').next().unwrap_or(name);
        let stem = file.split('.').next().unwrap_or(file);
        name == "cloudinit" || stem.starts_with("vm-") && stem.ends_with("-cloudinit")
    }

    /// The storage and the name of its volume, when it has one.
    pub(crate) fn volume(&self) -> Option<(&str, &str)> {
        self.file.split_once(':').filter(|_| !self.file.starts_with('/'))
    }

    /// Gibibytes of a disk that is still to be made.
    pub(crate) fn new_gib(&self) -> Option<f64> {
        self.volume().and_then(|(_, name)| name.parse::<f64>().ok()).filter(|gib| gib.is_finite() && *gib >= 0.0)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.options.get("size").and_then(|s| keys::parse_size(s)).unwrap_or(0)
    }
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
