//! Firewall files: what is in them, how they are shown, and what a rule must look like beyond its schema.
//!
//! Nothing is enforced: packets do not exist here. The calls are in `firewall_calls` and `firewall_sets`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha1::{Digest, Sha1};

use crate::params::Call;
use crate::wire::Refusal;

/// The firewall of the datacenter and of every VM that has one. A VM need not exist to have one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Firewall {
    pub(crate) vms: BTreeMap<u32, VmFirewall>,
    pub(crate) groups: BTreeMap<String, Group>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct VmFirewall {
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) ipsets: BTreeMap<String, IpSet>,
    pub(crate) aliases: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) comment: Option<String>,
    pub(crate) rules: Vec<Rule>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct IpSet {
    pub(crate) comment: Option<String>,
    pub(crate) entries: Vec<Entry>,
}

/// An address with what is said about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) cidr: String,
    pub(crate) comment: Option<String>,
    pub(crate) nomatch: bool,
}

/// A rule by its keys.
pub(crate) type Rule = BTreeMap<String, String>;

/// Keys of a rule that are no keys of the call.
const RULE_KEYS: &[&str] = &[
    "action",
    "comment",
    "dest",
    "dport",
    "enable",
    "icmp-type",
    "iface",
    "log",
    "macro",
    "proto",
    "source",
    "sport",
    "type",
];

/// The checksum over one section of a file, which is that of nothing when the section is empty.
pub(crate) fn section_digest(section: &impl std::fmt::Debug) -> String {
    let text = format!("{section:?}");
    hex_sha1(if matches!(text.as_str(), "{}" | "[]") { "" } else { &text })
}

fn hex_sha1(text: &str) -> String {
    Sha1::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses a change to a file that is not the one the caller has seen.
pub(crate) fn check_digest(call: &Call, digest: &str) -> Result<(), Refusal> {
    if call.text("digest").is_none_or(|given| given == digest) {
        return Ok(());
    }
    Err(Refusal::failed("detected modified configuration - file changed by other user? Try again."))
}

/// The rule a call describes.
pub(crate) fn rule_of(call: &Call) -> Rule {
    let given = call.params.iter().filter(|(key, _)| RULE_KEYS.contains(&key.as_str()));
    given.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// What the schema can not say about a rule; all that is wrong is told at once.
pub(crate) fn check_rule(rule: &Rule, sets: Option<&VmFirewall>) -> Result<(), Refusal> {
    let mut errors = BTreeMap::new();
    let mut wrong = |field: &str, text: String| drop(errors.insert(field.to_string(), text));
    let get = |key: &str| rule.get(key).map_or("", String::as_str);
    if get("type") != "group" && !matches!(get("action"), "ACCEPT" | "DROP" | "REJECT") {
        wrong("action", format!("unknown action '{}'", get("action")));
    }
    if let Some(iface) = rule.get("iface").filter(|_| sets.is_some()) {
        let number = iface.strip_prefix("net").unwrap_or("");
        if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
            wrong("iface", "value does not match the regex pattern 'net\\d+'".into());
        }
    }
    for port in ["dport", "sport"] {
        if rule.contains_key(port) && !rule.contains_key("proto") && !rule.contains_key("macro") {
            wrong("proto", format!("missing property - '{port}' requires this property"));
        }
    }
    for side in ["source", "dest"] {
        let set = get(side).strip_prefix('+').map(|set| set.trim_start_matches("guest/"));
        if let Some(set) = set.filter(|set| !sets.is_some_and(|sets| sets.ipsets.contains_key(*set))) {
            wrong(side, format!("no such ipset '{set}'"));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Refusal::invalid(errors)) }
}

/// A rule as a listing shows it.
pub(crate) fn rule_row(rule: &Rule, digest: &str, pos: Value) -> Value {
    let mut row: Map<String, Value> = rule.iter().map(|(k, v)| (k.clone(), v.as_str().into())).collect();
    let enabled = rule.get("enable").and_then(|e| e.parse::<i64>().ok()).unwrap_or(0);
    row.insert("enable".into(), enabled.into());
    let sides = ["source", "dest"].into_iter().filter_map(|side| rule.get(side));
    if let Some(version) = sides.filter_map(|text| ip_version(text)).next() {
        row.insert("ipversion".into(), version.into());
    }
    row.insert("pos".into(), pos);
    row.insert("digest".into(), digest.into());
    row.into()
}

/// 4 or 6, when a text begins with an address.
pub(crate) fn ip_version(text: &str) -> Option<u8> {
    let first = text.split([',', '-', '/']).next()?;
    match first.parse::<std::net::IpAddr>().ok()? {
        std::net::IpAddr::V4(_) => Some(4),
        std::net::IpAddr::V6(_) => Some(6),
    }
}
