//! Which VM config keys exist, and what their values must look like before anything is done with them.
//!
//! Checks here need no state: what they refuse is a 400 and nothing was executed.

use crate::property::{self, format_error};

const BOOLS: &[&str] = &[
    "acpi",
    "allow-ksm",
    "autostart",
    "ciupgrade",
    "freeze",
    "keephugepages",
    "kvm",
    "localtime",
    "numa",
    "onboot",
    "protection",
    "reboot",
    "tablet",
    "tdf",
    "template",
];
const INTS: &[(&str, i64)] = &[
    ("balloon", 0),
    ("cores", 1),
    ("cpuunits", 1),
    ("migrate_speed", 0),
    ("shares", 0),
    ("smp", 1),
    ("sockets", 1),
    ("vcpus", 1),
];
const TEXTS: &[&str] = &[
    "affinity",
    "agent",
    "amd-sev",
    "arch",
    "args",
    "audio0",
    "bios",
    "boot",
    "bootdisk",
    "cdrom",
    "cicustom",
    "cipassword",
    "citype",
    "ciuser",
    "cpu",
    "cpulimit",
    "description",
    "efidisk0",
    "hookscript",
    "hotplug",
    "hugepages",
    "intel-tdx",
    "ivshmem",
    "keyboard",
    "lock",
    "machine",
    "memory",
    "migrate_downtime",
    "name",
    "nameserver",
    "ostype",
    "rng0",
    "scsihw",
    "searchdomain",
    "smbios1",
    "spice_enhancements",
    "sshkeys",
    "startdate",
    "startup",
    "tags",
    "tpmstate0",
    "vga",
    "vmgenid",
    "vmstatestorage",
    "watchdog",
];
/// Numbered keys and how many of each there are.
const NUMBERED: &[(&str, u32)] = &[
    ("hostpci", 16),
    ("ide", 4),
    ("ipconfig", 32),
    ("net", 32),
    ("numa", 8),
    ("parallel", 3),
    ("sata", 6),
    ("scsi", 31),
    ("serial", 4),
    ("unused", 256),
    ("usb", 14),
    ("virtio", 16),
    ("virtiofs", 10),
];
/// Keys that only a root ticket may set, never a token.
pub(crate) const ROOT_ONLY: &[&str] = &["affinity", "amd-sev", "args", "hugepages", "lock", "vmgenid"];
const BUSES: &[&str] = &["ide", "sata", "scsi", "virtio"];
const PATTERN: &str = "value does not match the regex pattern";

/// The letters and the number of a key such as `net0`.
pub(crate) fn numbered(key: &str) -> Option<(&str, u32)> {
    let split = key.find(|c: char| c.is_ascii_digit())?;
    let (stem, digits) = key.split_at(split);
    if digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    let number = digits.parse().ok()?;
    NUMBERED.iter().any(|(name, count)| *name == stem && number < *count).then_some((stem, number))
}

pub(crate) fn is_settable(key: &str) -> bool {
    BOOLS.contains(&key) || INTS.iter().any(|(k, _)| *k == key) || TEXTS.contains(&key) || numbered(key).is_some()
}

/// Whether the wire shows this key as a number.
pub(crate) fn is_number(key: &str) -> bool {
    BOOLS.contains(&key) || INTS.iter().any(|(k, _)| *k == key)
}

pub(crate) fn is_drive(key: &str) -> bool {
    numbered(key).is_some_and(|(stem, _)| BUSES.contains(&stem))
}

/// Drives, and the two disks that are no drives to the boot order.
pub(crate) fn is_disk_key(key: &str) -> bool {
    is_drive(key) || key == "efidisk0" || key == "tpmstate0"
}

pub(crate) fn is_net(key: &str) -> bool {
    numbered(key).is_some_and(|(stem, _)| stem == "net")
}

/// Checks one value; the error is the text for its field.
pub(crate) fn check(key: &str, value: &str) -> Result<(), String> {
    if BOOLS.contains(&key) {
        return check_bool(value);
    }
    if let Some((_, min)) = INTS.iter().find(|(k, _)| *k == key) {
        return check_int(value, *min, i64::from(i32::MAX));
    }
    match key {
        "name" => check_dns(value),
        "description" if value.chars().count() > 8192 => Err("value may only be 8192 characters long".into()),
        "tags" => check_tags(value),
        "memory" => check_memory(value),
        "cpu" => check_cpu(value),
        "boot" => check_boot(value),
        "smbios1" => property::check_smbios(value),
        "sshkeys" => check_urlencoded(value),
        _ if is_net(key) => property::NetDev::parse(key, value).map(drop),
        _ if key.starts_with("ipconfig") => property::check_ipconfig(key, value),
        _ if is_drive(key) => property::Drive::parse(key, value).map(drop),
        _ => Ok(()),
    }
}

pub(crate) fn check_int(text: &str, min: i64, max: i64) -> Result<(), String> {
    let number: i64 = text.parse().map_err(|_| format!("type check ('integer') failed - got '{text}'"))?;
    if number < min {
        return Err(format!("value must have a minimum value of {min}"));
    }
    if number > max {
        return Err(format!("value must have a maximum value of {max}"));
    }
    Ok(())
}

pub(crate) fn check_bool(text: &str) -> Result<(), String> {
    if text == "0" || text == "1" { Ok(()) } else { Err(format!("type check ('boolean') failed - got '{text}'")) }
}

pub(crate) fn check_vmid(text: &str) -> Result<(), String> {
    let number: i64 = text.parse().map_err(|_| format!("type check ('integer') failed - got '{text}'"))?;
    if (100..=999_999_999).contains(&number) {
        Ok(())
    } else {
        Err("invalid format - value does not look like a valid VM ID\n".into())
    }
}

/// A DNS name as PVE sees it: labels of letters, digits and inner hyphens, of any length.
pub(crate) fn check_dns(text: &str) -> Result<(), String> {
    let label = |l: &str| {
        !l.is_empty()
            && !l.starts_with('-')
            && !l.ends_with('-')
            && l.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    if text.split('.').all(label) {
        Ok(())
    } else {
        Err("invalid format - value does not look like a valid DNS name\n".into())
    }
}

fn tag_parts(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ';', ' ']).filter(|t| !t.is_empty())
}

fn check_tags(text: &str) -> Result<(), String> {
    let good = |tag: &str| {
        let first = tag.chars().next().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        first && tag.chars().all(|c| c.is_ascii_alphanumeric() || "_+.-".contains(c))
    };
    if tag_parts(text).all(good) { Ok(()) } else { Err("invalid format - invalid characters in tag\n".into()) }
}

/// Tags as they are stored: lower case, sorted, unique, joined by semicolons.
pub(crate) fn normal_tags(text: &str) -> String {
    let mut tags: Vec<String> = tag_parts(text).map(str::to_ascii_lowercase).collect();
    tags.sort();
    tags.dedup();
    tags.join(";")
}

/// Memory in MiB, from `1024` or `current=1024`.
pub(crate) fn memory_mib(text: &str) -> Option<u64> {
    text.strip_prefix("current=").unwrap_or(text).parse().ok()
}

fn check_memory(text: &str) -> Result<(), String> {
    let bare = text.strip_prefix("current=").unwrap_or(text);
    check_int(bare, 16, i64::from(i32::MAX)).map_err(|e| format_error("memory.current", &e))
}

fn check_cpu(text: &str) -> Result<(), String> {
    const MODELS: &[&str] = &[
        "486",
        "Broadwell",
        "Cascadelake",
        "Conroe",
        "Cooperlake",
        "EPYC",
        "GraniteRapids",
        "Haswell",
        "Icelake",
        "IvyBridge",
        "KnightsMill",
        "Nehalem",
        "Opteron",
        "Penryn",
        "SandyBridge",
        "SapphireRapids",
        "SierraForest",
        "Skylake",
        "Westmere",
        "athlon",
        "core2duo",
        "coreduo",
        "custom-",
        "host",
        "kvm",
        "max",
        "pentium",
        "phenom",
        "qemu",
        "x86-64-v",
    ];
    let first = text.split(',').next().unwrap_or("");
    let model = first.strip_prefix("cputype=").unwrap_or(first);
    if first.contains('=') && !first.starts_with("cputype=") || MODELS.iter().any(|m| model.starts_with(m)) {
        return Ok(());
    }
    Err(format!("invalid format - Built-in cputype '{model}' is not defined (missing 'custom-' prefix?)\n"))
}

fn check_boot(text: &str) -> Result<(), String> {
    let Some(order) = text.strip_prefix("order=") else {
        let legacy = text.strip_prefix("legacy=").unwrap_or(text);
        let good = legacy.len() <= 4 && legacy.chars().all(|c| "acdn".contains(c));
        return if good { Ok(()) } else { Err(format_error("boot.legacy", PATTERN)) };
    };
    let known = |d: &str| is_drive(d) || is_net(d) || d.starts_with("hostpci") || d.starts_with("usb");
    match order.split(';').find(|d| !d.is_empty() && !known(d)) {
        Some(device) => Err(format_error("boot.order", &format!("invalid format - invalid boot device '{device}'\n"))),
        None => Ok(()),
    }
}

fn check_urlencoded(text: &str) -> Result<(), String> {
    if text.chars().all(|c| c.is_ascii_alphanumeric() || "-%_.!~*'()".contains(c)) {
        Ok(())
    } else {
        Err(format!("invalid format - invalid urlencoded string: {text}\n"))
    }
}

/// Bytes of a size such as `1.5G`; units are upper case only.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.char_indices().last()? {
        (at, 'K') => (&text[..at], 10),
        (at, 'M') => (&text[..at], 20),
        (at, 'G') => (&text[..at], 30),
        (at, 'T') => (&text[..at], 40),
        _ => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let numeric = |t: &str| !t.is_empty() && t.len() <= 12 && t.chars().all(|c| c.is_ascii_digit());
    if !numeric(whole) || !numeric(fraction) {
        return None;
    }
    let scale = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let parts = whole.parse::<u128>().ok()? * scale + fraction.parse::<u128>().ok()?;
    u64::try_from((parts << shift) / scale).ok()
}

/// A size as PVE writes it: the largest unit that divides it.
pub(crate) fn format_size(bytes: u64) -> String {
    let mut value = bytes;
    for unit in ["", "K", "M", "G"] {
        if !value.is_multiple_of(1024) || value == 0 {
            return format!("{value}{unit}");
        }
        value /= 1024;
    }
    format!("{value}T")
}
