//! What the named formats accept, and how each refuses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::property::parse_property;
use crate::keys;
use crate::roles;
use crate::version::PveVersion;

/// Checks a value by the name of its format. A name that is not known here accepts everything, as PVE does with name
/// servers.
pub(super) fn check_named(format: &str, text: &str) -> Result<(), String> {
    if let Some(single) = format.strip_suffix("-list").filter(|_| format != "address-list") {
        return words(text).try_for_each(|word| check_one(single, word));
    }
    check_one(format, text)
}

/// The words of a list parameter.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ';', ' ', '\0', '\n', '\t']).filter(|word| !word.is_empty())
}

fn check_one(format: &str, text: &str) -> Result<(), String> {
    let looks = |good: bool, what: &str| {
        if good { Ok(()) } else { Err(format!("value does not look like a valid {what}\n")) }
    };
    match format {
        "pve-vmid" => looks(text.parse().is_ok_and(|n: u64| (100..=999_999_999).contains(&n)), "VM ID"),
        "pve-node" => looks(is_label(text), "node name"),
        "dns-name" => looks(!text.is_empty() && text.split('.').all(is_label), "DNS name"),
        "mac-addr" => looks(is_unicast_mac(text), "unicast MAC address"),
        "ipv4" => looks(text.parse::<Ipv4Addr>().is_ok(), "IPv4 address"),
        "ipv6" => looks(text.parse::<Ipv6Addr>().is_ok(), "IPv6 address"),
        "pve-ipv4-config" => looks(text == "dhcp" || is_cidr(text, 32), "ipv4 network configuration"),
        "pve-ipv6-config" => looks(matches!(text, "dhcp" | "auto") || is_cidr(text, 128), "ipv6 network configuration"),
        "CIDR" => looks(is_cidr(text, 128) || is_cidr(text, 32), "IP network"),
        "IPorCIDR" => looks(is_ip_or_cidr(text), "IP address or CIDR network"),
        "IPorCIDRorAlias" => looks(is_ip_or_cidr(text) || is_alias(text), "IP address or CIDR network"),
        "pve-userid" => {
            is_userid(text).then_some(()).ok_or(format!("value '{text}' does not look like a valid user name\n"))
        }
        _ => check_text(format, text),
    }
}

/// Formats whose refusal quotes the value or says something of its own.
fn check_text(format: &str, text: &str) -> Result<(), String> {
    let (good, refusal) = match format {
        "pve-storage-id" => (is_storage_id(text), format!("storage ID '{text}' contains illegal characters")),
        "pve-configid" => (is_config_id(text), format!("invalid configuration ID '{text}'")),
        "pve-tag" => (keys::is_tag(text), "invalid characters in tag".into()),
        "pve-poolid" => (is_pool_id(text), format!("pool name '{text}' contains invalid characters")),
        "pve-roleid" => (is_config_id(text), format!("role name '{text}' contains invalid characters")),
        "pve-priv" => (roles::is_privilege(PveVersion::V9_2, text), format!("invalid privilege '{text}'")),
        "pve-priv-8-4" => (roles::is_privilege(PveVersion::V8_4, text), format!("invalid privilege '{text}'")),
        "pve-iface" => (is_iface(text), format!("invalid network interface name '{text}'")),
        "pve-bridge-id" => (is_iface(text), format!("invalid bridge name '{text}'")),
        "pve-volume-id" => (is_volume_id(text), format!("unable to parse volume ID '{text}'")),
        "pve-volume-id-or-absolute-path" => {
            (text.starts_with('/') || is_volume_id(text), format!("unable to parse volume ID '{text}'"))
        }
        "pve-volume-id-or-qm-path" => (
            matches!(text, "none" | "cdrom") || text.starts_with('/') || is_volume_id(text),
            format!("unable to parse volume ID '{text}'"),
        ),
        "pve-qm-bootdev" => (is_boot_device(text), format!("invalid boot device '{text}'")),
        "pve-cpuset" => (is_cpu_set(text), "unable to parse cpuset option".into()),
        "pve-hotplug-features" => {
            let odd = words(text).find(|word| !FEATURES.contains(word)).filter(|_| !matches!(text, "0" | "1"));
            (odd.is_none(), format!("invalid hotplug feature '{}'", odd.unwrap_or("")))
        }
        "pve-startup-order" => (is_startup(text), "unable to parse startup options".into()),
        "disk-size" => {
            (keys::parse_size(text).is_some(), format!("value does not look like a valid disk size: {text}"))
        }
        "urlencoded" => (is_urlencoded(text), format!("invalid urlencoded string: {text}")),
        "pve-storage-content" => (is_content(text), format!("invalid content type '{text}'")),
        "pve-task-status-type" => {
            (matches!(text, "unknown" | "ok" | "error" | "warning"), format!("invalid task status type '{text}'"))
        }
        "pve-fw-addr-spec" => return check_addresses(text),
        "pve-fw-dport-spec" | "pve-fw-sport-spec" => return check_ports(text),
        _ => (true, String::new()),
    };
    if good { Ok(()) } else { Err(format!("{refusal}\n")) }
}

fn is_label(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    edge(text.chars().next())
        && edge(text.chars().last())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

fn is_unicast_mac(text: &str) -> bool {
    let groups: Vec<&str> = text.split(':').collect();
    let hex = |g: &&str| g.len() == 2 && g.bytes().all(|b| b.is_ascii_hexdigit());
    let first = groups.first().and_then(|g| u8::from_str_radix(g, 16).ok()).unwrap_or(1);
    groups.len() == 6 && groups.iter().all(hex) && first & 1 == 0
}

fn is_cidr(text: &str, bits: u8) -> bool {
    let Some((address, prefix)) = text.split_once('/') else { return false };
    let fits = prefix.parse::<u8>().is_ok_and(|n| n <= bits);
    fits && if bits == 32 { address.parse::<Ipv4Addr>().is_ok() } else { address.parse::<Ipv6Addr>().is_ok() }
}

fn is_ip_or_cidr(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok() || is_cidr(text, 32) || is_cidr(text, 128)
}

fn is_alias(text: &str) -> bool {
    let bare = text.strip_prefix("dc/").or_else(|| text.strip_prefix("guest/")).unwrap_or(text);
    bare.len() >= 2
        && bare.starts_with(|c: char| c.is_ascii_alphabetic())
        && bare.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

fn is_userid(text: &str) -> bool {
    text.rsplit_once('@')
        .is_some_and(|(name, realm)| !name.is_empty() && !name.contains([':', '/', ' ']) && is_config_id(realm))
}

fn is_storage_id(text: &str) -> bool {
    text.len() >= 2
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

fn is_config_id(text: &str) -> bool {
    text.len() >= 2
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

/// Pools may be nested: `a/b/c`.
fn is_pool_id(text: &str) -> bool {
    let part = |p: &str| !p.is_empty() && p.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let depth = text.split('/').count();
    depth <= 3 && text.split('/').all(part)
}

fn is_iface(text: &str) -> bool {
    (2..=20).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.:-".contains(c))
}

fn is_volume_id(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(storage, name)| is_storage_id(storage) && !name.is_empty() && !name.contains(' '))
}

fn is_boot_device(text: &str) -> bool {
    let known = |stem: &str| ["hostpci", "ide", "net", "sata", "scsi", "usb", "virtio"].contains(&stem);
    super::numbered(text).is_some_and(|(stem, _)| known(stem)) && super::option(text).is_some()
}

fn is_cpu_set(text: &str) -> bool {
    let number = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let range = |t: &str| t.split_once('-').map_or_else(|| number(t), |(a, b)| number(a) && number(b));
    text.split(',').all(range)
}

const FEATURES: &[&str] = &["network", "disk", "cpu", "memory", "usb", "cloudinit"];

fn is_startup(text: &str) -> bool {
    let number = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let part = |p: &str| number(["order=", "up=", "down="].iter().find_map(|name| p.strip_prefix(name)).unwrap_or(p));
    text.split(',').filter(|p| !p.trim().is_empty()).all(part)
}

fn is_urlencoded(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "-%_.!~*'()".contains(c))
}

fn is_content(text: &str) -> bool {
    ["images", "rootdir", "vztmpl", "iso", "backup", "snippets", "import", "none"].contains(&text)
}

fn check_addresses(text: &str) -> Result<(), String> {
    for part in text.split(',') {
        if part.starts_with('+') || is_alias(part) {
            continue;
        }
        for address in part.split('-') {
            let bare = address.split('/').next().unwrap_or("");
            if let Some(quad) = bad_quad(bare) {
                return Err(format!("invalid IP address: Invalid quad in IP address {bare} - {quad}\n"));
            }
            if !is_ip_or_cidr(address) {
                return Err(format!("invalid IP address: {address}\n"));
            }
        }
    }
    Ok(())
}

fn bad_quad(text: &str) -> Option<&str> {
    let quads: Vec<&str> = text.split('.').collect();
    let digits = |q: &&str| !q.is_empty() && q.bytes().all(|b| b.is_ascii_digit());
    quads.iter().all(digits).then(|| quads.iter().find(|q| q.parse::<u32>().is_ok_and(|n| n > 255)).copied())?
}

fn check_ports(text: &str) -> Result<(), String> {
    let port = |t: &str| t.parse::<u32>().is_ok_and(|n| n <= 65535) || t.starts_with(|c: char| c.is_ascii_alphabetic());
    let range = |t: &str| t.split_once(':').map_or_else(|| port(t), |(a, b)| port(a) && port(b));
    match text.split(',').find(|part| !range(part)) {
        Some(part) => Err(format!("invalid port '{part}'\n")),
        None => Ok(()),
    }
}

/// The model of a `cpu` value must be one that QEMU or an administrator has defined.
pub(super) fn check_cpu(text: &str) -> Result<(), String> {
    let parts = parse_property("pve-vm-cpu-conf", text);
    let Some(model) = parts.get("cputype") else { return Ok(()) };
    if let Some(custom) = model.strip_prefix("custom-") {
        return Err(format!("Custom cputype '{custom}' not found\n"));
    }
    if keys::is_cpu_model(model) {
        return Ok(());
    }
    Err(format!("Built-in cputype '{model}' is not defined (missing 'custom-' prefix?)\n"))
}
