//! What the cloud-init drive of a VM says: which keys feed it, and the texts on it.

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::keys;
use crate::params::Call;
use crate::property::{NetDev, parts};
use crate::state::State;
use crate::vm::{Vm, wire_value};
use crate::wire::{Answer, Refusal, Reply};

/// Keys without a number that end up on the drive.
const KEYS: &[&str] =
    &["cicustom", "cipassword", "citype", "ciupgrade", "ciuser", "nameserver", "searchdomain", "sshkeys"];

pub(crate) fn pending(state: &mut State, call: &Call) -> Answer {
    let vm = state.vm_on(call.node(), call.vmid())?;
    let set = KEYS.iter().filter_map(|key| Some((key, vm.get(key)?)));
    let mut rows: Vec<Value> = set.map(|(key, value)| json!({ "key": key, "value": wire_value(key, value) })).collect();
    state.chance.shuffle(&mut rows);
    Ok(Reply::data(rows.into()))
}

pub(crate) fn regenerate(state: &mut State, call: &Call) -> Answer {
    let vm = state.vm_on(call.node(), call.vmid())?;
    vm.check_lock().map_err(Refusal::failed)?;
    if !vm.drives().iter().any(|(_, d)| d.is_cloudinit()) {
        return Err(Refusal::failed("no cloud-init drive found").into());
    }
    check_snippets(state, vm, call.node()).map_err(Refusal::failed)?;
    Ok(Reply::null())
}

/// Whether what `cicustom` names is there; nobody asks before the drive is written.
pub(crate) fn check_snippets(state: &State, vm: &Vm, host: &str) -> Result<(), String> {
    let custom = vm.get("cicustom").unwrap_or("");
    match parts(custom, "user").iter().find(|(_, file)| state.volume(file, host).is_none()) {
        Some((_, file)) => Err(format!("volume '{file}' does not exist")),
        None => Ok(()),
    }
}

pub(crate) fn dump(state: &mut State, call: &Call) -> Answer {
    let vm = state.vm_on(call.node(), call.vmid())?;
    let text = match call.word("type") {
        "user" => user_data(vm),
        "network" => network_data(vm),
        _ => format!("instance-id: {}\n", vm.digest()),
    };
    Ok(Reply::data(text.into()))
}

fn user_data(vm: &Vm) -> String {
    let name = vm.name();
    let mut text = format!("#cloud-config\nhostname: {name}\nmanage_etc_hosts: true\n");
    if let Some(domain) = vm.get("searchdomain") {
        text.push_str(&format!("fqdn: {name}.{domain}\n"));
    }
    if let Some(user) = vm.get("ciuser") {
        text.push_str(&format!("user: {user}\n"));
    }
    if vm.get("cipassword").is_some() {
        text.push_str("password: **********\n");
    }
    if let Some(keys) = vm.get("sshkeys") {
        text.push_str("ssh_authorized_keys:\n");
        let keys = percent_decode_str(keys).decode_utf8_lossy().into_owned();
        keys.lines().for_each(|key| text.push_str(&format!("  - {key}\n")));
    }
    text.push_str("chpasswd:\n  expire: False\nusers:\n  - default\n");
    if vm.get("ciupgrade") != Some("0") {
        text.push_str("package_upgrade: true\n");
    }
    text
}

fn network_data(vm: &Vm) -> String {
    let mut text = String::from("version: 1\nconfig:\n");
    for (key, value) in vm.config.iter().filter(|(key, _)| keys::is_net(key)) {
        let (n, mac) = (&key[3..], NetDev::read(value).mac.unwrap_or_default().to_ascii_lowercase());
        text.push_str(&format!(
            "    - type: physical\n      name: eth{n}\n      mac_address: '{mac}'\n      subnets:\n"
        ));
        let config = vm.get(&format!("ipconfig{n}")).unwrap_or("").to_string();
        let all = parts(&config, "ip");
        let gateway =
            |name: &str| all.iter().find(|(k, _)| *k == name).map(|(_, v)| format!("        gateway: '{v}'\n"));
        for (name, value) in &all {
            let subnet = match (*name, *value) {
                ("ip", "dhcp") => "      - type: dhcp4\n".to_string(),
                ("ip6", "dhcp") => "      - type: dhcp6\n".to_string(),
                ("ip6", "auto") => "      - type: ipv6_slaac\n".to_string(),
                ("ip", address) => {
                    format!("      - type: static\n        address: '{address}'\n{}", gateway("gw").unwrap_or_default())
                }
                ("ip6", address) => format!(
                    "      - type: static6\n        address: '{address}'\n{}",
                    gateway("gw6").unwrap_or_default()
                ),
                _ => continue,
            };
            text.push_str(&subnet);
        }
    }
    if let Some(servers) = vm.get("nameserver") {
        text.push_str("    - type: nameserver\n      address:\n");
        servers.split(' ').for_each(|server| text.push_str(&format!("      - '{server}'\n")));
    }
    text
}
