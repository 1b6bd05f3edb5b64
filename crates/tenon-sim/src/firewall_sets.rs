//! The calls about a VM's IP sets and aliases.

use serde_json::{Value, json};

use crate::firewall::{Entry, IpSet, VmFirewall, check_digest, ip_version, section_digest};
use crate::params::Call;
use crate::state::State;
use crate::wire::{Answer, Refusal, Reply};

fn firewall<'a>(state: &'a mut State, call: &Call) -> &'a mut VmFirewall {
    state.firewall.vms.entry(call.vmid()).or_default()
}

fn seen(state: &State, call: &Call) -> VmFirewall {
    state.firewall.vms.get(&call.vmid()).cloned().unwrap_or_default()
}

fn with_comment(mut row: Value, comment: Option<&String>) -> Value {
    if let Some(comment) = comment {
        row["comment"] = comment.as_str().into();
    }
    row
}

pub(crate) fn ipsets(state: &mut State, call: &Call) -> Answer {
    let firewall = seen(state, call);
    let digest = section_digest(&firewall.ipsets);
    let row =
        |(name, set): (&String, &IpSet)| with_comment(json!({ "name": name, "digest": digest }), set.comment.as_ref());
    let rows: Vec<Value> = firewall.ipsets.iter().map(row).collect();
    Ok(Reply::data(rows.into()))
}

pub(crate) fn add_ipset(state: &mut State, call: &Call) -> Answer {
    let (name, comment) = (call.word("name").to_string(), call.text("comment").map(str::to_owned));
    let firewall = firewall(state, call);
    check_digest(call, &section_digest(&firewall.ipsets))?;
    if let Some(old) = call.text("rename") {
        let set = firewall.ipsets.remove(old);
        let set = set.ok_or_else(|| Refusal::failed(format!("IPSet '{old}' does not exist")))?;
        firewall.ipsets.insert(name, IpSet { comment: comment.or(set.comment), entries: set.entries });
        return Ok(Reply::null());
    }
    if firewall.ipsets.contains_key(&name) {
        return Err(Refusal::invalid_field("name", format!("IPSet '{name}' already exists")).into());
    }
    firewall.ipsets.insert(name, IpSet { comment, entries: Vec::new() });
    Ok(Reply::null())
}

fn known_set<'a>(firewall: &'a mut VmFirewall, call: &Call) -> Result<&'a mut IpSet, Refusal> {
    let name = call.word("name");
    firewall.ipsets.get_mut(name).ok_or_else(|| Refusal::failed(format!("no such ipset '{name}'")))
}

fn entry_row(entry: &Entry, digest: &str) -> Value {
    let mut row = with_comment(json!({ "cidr": entry.cidr, "digest": digest }), entry.comment.as_ref());
    if entry.nomatch {
        row["nomatch"] = 1.into();
    }
    row
}

pub(crate) fn ipset(state: &mut State, call: &Call) -> Answer {
    let mut firewall = seen(state, call);
    let digest = section_digest(&firewall.ipsets);
    let set = known_set(&mut firewall, call)?;
    let rows: Vec<Value> = set.entries.iter().map(|entry| entry_row(entry, &digest)).collect();
    Ok(Reply::data(rows.into()))
}

pub(crate) fn remove_ipset(state: &mut State, call: &Call) -> Answer {
    let firewall = firewall(state, call);
    check_digest(call, &section_digest(&firewall.ipsets))?;
    let set = known_set(firewall, call)?;
    if !set.entries.is_empty() && !call.flag("force") {
        return Err(Refusal::failed(format!("IPSet '{}' is not empty", call.word("name"))).into());
    }
    firewall.ipsets.remove(call.word("name"));
    Ok(Reply::null())
}

pub(crate) fn add_entry(state: &mut State, call: &Call) -> Answer {
    let set = known_set(firewall(state, call), call)?;
    let cidr = call.word("cidr").to_string();
    if set.entries.iter().any(|entry| entry.cidr == cidr) {
        return Err(Refusal::invalid_field("cidr", format!("address '{cidr}' already exists")).into());
    }
    let (comment, nomatch) = (call.text("comment").map(str::to_owned), call.flag("nomatch"));
    set.entries.insert(0, Entry { cidr, comment, nomatch });
    Ok(Reply::null())
}

fn known_entry(set: &IpSet, call: &Call) -> Result<usize, Refusal> {
    let cidr = call.word("cidr");
    let at = set.entries.iter().position(|entry| entry.cidr == cidr);
    at.ok_or_else(|| Refusal::failed(format!("no such IP/Network '{cidr}'")))
}

pub(crate) fn entry(state: &mut State, call: &Call) -> Answer {
    let mut firewall = seen(state, call);
    let digest = section_digest(&firewall.ipsets);
    let set = known_set(&mut firewall, call)?;
    let at = known_entry(set, call)?;
    Ok(Reply::data(entry_row(&set.entries[at], &digest)))
}

pub(crate) fn change_entry(state: &mut State, call: &Call) -> Answer {
    let firewall = firewall(state, call);
    check_digest(call, &section_digest(&firewall.ipsets))?;
    let set = known_set(firewall, call)?;
    let at = known_entry(set, call)?;
    let (comment, nomatch) = (call.text("comment").map(str::to_owned), call.flag("nomatch"));
    set.entries[at] = Entry { comment, nomatch, ..set.entries[at].clone() };
    Ok(Reply::null())
}

pub(crate) fn remove_entry(state: &mut State, call: &Call) -> Answer {
    let firewall = firewall(state, call);
    check_digest(call, &section_digest(&firewall.ipsets))?;
    let set = known_set(firewall, call)?;
    let at = known_entry(set, call)?;
    set.entries.remove(at);
    Ok(Reply::null())
}

fn alias_row(name: &str, alias: &Entry, digest: &str) -> Value {
    let row = json!({ "name": name, "cidr": alias.cidr, "digest": digest, "ipversion": ip_version(&alias.cidr) });
    with_comment(row, alias.comment.as_ref())
}

pub(crate) fn aliases(state: &mut State, call: &Call) -> Answer {
    let firewall = seen(state, call);
    let digest = section_digest(&firewall.aliases);
    let rows: Vec<Value> = firewall.aliases.iter().map(|(name, alias)| alias_row(name, alias, &digest)).collect();
    Ok(Reply::data(rows.into()))
}

pub(crate) fn add_alias(state: &mut State, call: &Call) -> Answer {
    let name = call.word("name").to_string();
    let firewall = firewall(state, call);
    if firewall.aliases.contains_key(&name) {
        return Err(Refusal::invalid_field("name", format!("alias '{name}' already exists")).into());
    }
    firewall.aliases.insert(name, alias_of(call));
    Ok(Reply::null())
}

fn alias_of(call: &Call) -> Entry {
    Entry { cidr: call.word("cidr").into(), comment: call.text("comment").map(str::to_owned), nomatch: false }
}

fn no_alias(name: &str) -> Refusal {
    Refusal::failed(format!("no such alias '{name}'"))
}

pub(crate) fn alias(state: &mut State, call: &Call) -> Answer {
    let (firewall, name) = (seen(state, call), call.word("name"));
    let alias = firewall.aliases.get(name).ok_or_else(|| no_alias(name))?;
    Ok(Reply::data(alias_row(name, alias, &section_digest(&firewall.aliases))))
}

pub(crate) fn change_alias(state: &mut State, call: &Call) -> Answer {
    let name = call.word("name");
    let firewall = firewall(state, call);
    check_digest(call, &section_digest(&firewall.aliases))?;
    firewall.aliases.remove(name).ok_or_else(|| no_alias(name))?;
    let new = call.text("rename").unwrap_or(name);
    firewall.aliases.insert(new.into(), alias_of(call));
    Ok(Reply::null())
}

pub(crate) fn remove_alias(state: &mut State, call: &Call) -> Answer {
    let name = call.word("name");
    let firewall = firewall(state, call);
    check_digest(call, &section_digest(&firewall.aliases))?;
    firewall.aliases.remove(name).ok_or_else(|| no_alias(name))?;
    Ok(Reply::null())
}
