//! Which VM config keys are what: numbers, drives, network devices; and how tags and sizes are written.

use crate::schema::{self, Kind, words};

/// Keys that only root itself may set, never a token.
pub(crate) const ROOT_ONLY: &[&str] =
    &["affinity", "amd-sev", "args", "hugepages", "intel-tdx", "keephugepages", "lock", "vmgenid"];
const BUSES: &[&str] = &["ide", "sata", "scsi", "virtio"];

/// CPU models of QEMU by vendor, as `GET …/capabilities/qemu/cpu` lists them.
pub(crate) const CPU_MODELS: &[(&str, &str)] = &[
    ("default", "host max kvm32 kvm64 qemu32 qemu64 x86-64-v2 x86-64-v2-AES x86-64-v3 x86-64-v4"),
    (
        "GenuineIntel",
        "486 pentium pentium2 pentium3 coreduo core2duo Conroe Penryn Nehalem Nehalem-IBRS Westmere Westmere-IBRS \
         SandyBridge SandyBridge-IBRS IvyBridge IvyBridge-IBRS Haswell Haswell-IBRS Haswell-noTSX Haswell-noTSX-IBRS \
         Broadwell Broadwell-IBRS Broadwell-noTSX Broadwell-noTSX-IBRS Skylake-Client Skylake-Client-IBRS \
         Skylake-Client-noTSX-IBRS Skylake-Client-v4 Skylake-Server Skylake-Server-IBRS Skylake-Server-noTSX-IBRS \
         Skylake-Server-v4 Skylake-Server-v5 Cascadelake-Server Cascadelake-Server-noTSX Cascadelake-Server-v2 \
         Cascadelake-Server-v4 Cascadelake-Server-v5 Cooperlake Cooperlake-v2 KnightsMill Icelake-Client \
         Icelake-Client-noTSX Icelake-Server Icelake-Server-noTSX Icelake-Server-v3 Icelake-Server-v4 Icelake-Server-v5 \
         Icelake-Server-v6 SapphireRapids SapphireRapids-v2 SapphireRapids-v3 GraniteRapids GraniteRapids-v2 SierraForest",
    ),
    (
        "AuthenticAMD",
        "athlon phenom Opteron_G1 Opteron_G2 Opteron_G3 Opteron_G4 Opteron_G5 EPYC EPYC-IBPB EPYC-v3 EPYC-v4 EPYC-Rome \
         EPYC-Rome-v2 EPYC-Rome-v3 EPYC-Rome-v4 EPYC-Milan EPYC-Milan-v2 EPYC-Genoa EPYC-Turin",
    ),
];

pub(crate) fn is_cpu_model(name: &str) -> bool {
    CPU_MODELS.iter().any(|(_, models)| models.split(' ').any(|model| model == name))
}

/// Whether a config may have this key, set by a caller.
pub(crate) fn is_settable(key: &str) -> bool {
    schema::option(key).is_some()
}

/// Whether the wire shows this key as a number.
pub(crate) fn is_number(key: &str) -> bool {
    schema::option(key).is_some_and(|option| matches!(option.kind, Kind::Bool | Kind::Int))
}

fn stem(key: &str) -> Option<&str> {
    schema::numbered(key).filter(|_| is_settable(key)).map(|(stem, _)| stem)
}

pub(crate) fn is_drive(key: &str) -> bool {
    stem(key).is_some_and(|stem| BUSES.contains(&stem))
}

/// Drives, and the two disks that are no drives to the boot order.
pub(crate) fn is_disk_key(key: &str) -> bool {
    is_drive(key) || key == "efidisk0" || key == "tpmstate0"
}

pub(crate) fn is_net(key: &str) -> bool {
    stem(key) == Some("net")
}

pub(crate) fn is_tag(text: &str) -> bool {
    let first = text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    first && text.chars().all(|c| c.is_ascii_alphanumeric() || "_+.-".contains(c))
}

/// Tags as they are stored: lower case, sorted, unique, joined by semicolons.
pub(crate) fn normal_tags(text: &str) -> String {
    let mut tags: Vec<String> = words(text).map(str::to_ascii_lowercase).collect();
    tags.sort();
    tags.dedup();
    tags.join(";")
}

/// Memory in MiB, from `1024` or `current=1024`.
pub(crate) fn memory_mib(text: &str) -> Option<u64> {
    text.strip_prefix("current=").unwrap_or(text).parse().ok()
}

/// Bytes of a size such as `1.5G`; units are upper case only. On purpose not the parser of the model: the client uses that
/// one, and a mistake in it must not agree with itself here.
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

/// A size for people, as progress lines show it.
pub(crate) fn human_size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return format!("{value:.1} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}
