//! What a host's network configuration, devices and processors look like to those who list them.

use serde_json::{Map, Value, json};

use crate::config::InterfaceSpec;
use crate::keys::CPU_MODELS;
use crate::params::Call;
use crate::state::State;
use crate::wire::{Answer, Refusal, Reply};

fn row(state: &State, host: &str, spec: &InterfaceSpec) -> Map<String, Value> {
    let usual = match spec.kind.as_str() {
        "bridge" => {
            let number = 10 + state.config.hosts.iter().position(|h| h.name == host).unwrap_or(0);
            let address = format!("198.51.100.{number}");
            json!({
                "active": 1, "autostart": 1, "bridge_fd": "0", "bridge_ports": "", "bridge_stp": "off", "families": ["inet"],
                "method": "static", "method6": "manual", "priority": 4, "address": address,
                "cidr": format!("{address}/24"), "netmask": "24",
            })
        }
        _ => json!({ "active": 1, "exists": 1, "families": ["inet"], "method": "manual", "method6": "manual" }),
    };
    let mut row = usual.as_object().cloned().unwrap_or_default();
    row.insert("iface".into(), spec.name.as_str().into());
    row.insert("type".into(), spec.kind.as_str().into());
    row.extend(spec.row.clone());
    row.retain(|_, value| !value.is_null());
    row
}

fn interfaces(state: &State) -> Vec<InterfaceSpec> {
    let mut all = state.config.interfaces.clone();
    let known: Vec<String> = all.iter().map(|spec| spec.name.clone()).collect();
    let others = state.config.bridges.iter().filter(|bridge| !known.contains(bridge));
    all.extend(others.map(|bridge| InterfaceSpec::new(bridge, "bridge")));
    all
}

fn is_bridge(spec: &InterfaceSpec) -> bool {
    matches!(spec.kind.as_str(), "bridge" | "OVSBridge")
}

/// A bridge is shown to whoever may see its network.
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let wanted = |spec: &&InterfaceSpec| match call.text("type") {
        None | Some("include_sdn") => true,
        Some("any_bridge" | "any_local_bridge") => is_bridge(spec),
        Some(kind) => spec.kind == kind,
    };
    let seen = |spec: &&InterfaceSpec| {
        let path = format!("/sdn/zones/localnetwork/{}", spec.name);
        !is_bridge(spec) || state.may(&call.user, &path, "SDN.Audit")
    };
    let all = interfaces(state);
    let mut rows: Vec<Value> =
        all.iter().filter(wanted).filter(seen).map(|spec| row(state, call.node(), spec).into()).collect();
    state.chance.shuffle(&mut rows);
    Ok(Reply::data(rows.into()))
}

pub(crate) fn show(state: &mut State, call: &Call) -> Answer {
    let all = interfaces(state);
    let spec = all.iter().find(|spec| spec.name == call.word("iface"));
    let spec = spec.ok_or_else(|| Refusal::invalid_field("iface", "interface does not exist"))?;
    let mut row = row(state, call.node(), spec);
    // The name is in the path, so it is not told again.
    row.remove("iface");
    Ok(Reply::data(row.into()))
}

/// The one device a virtual host has.
pub(crate) fn pci(_: &mut State, _: &Call) -> Answer {
    Ok(Reply::data(json!([{
        "id": "0000:00:01.0", "class": "0xffff00", "vendor": "0x1af4", "vendor_name": "Red Hat, Inc.", "device": "0x1045",
        "device_name": "Virtio 1.0 balloon", "subsystem_vendor": "0x1af4", "subsystem_vendor_name": "Red Hat, Inc.",
        "subsystem_device": "0x1045", "iommugroup": -1,
    }])))
}

pub(crate) fn cpu_models(state: &mut State, _: &Call) -> Answer {
    let row = |vendor: &str, name: &str| json!({ "name": name, "vendor": vendor, "custom": 0 });
    let models = CPU_MODELS.iter().flat_map(|(vendor, names)| names.split(' ').map(move |name| row(vendor, name)));
    let mut rows: Vec<Value> = models.collect();
    state.chance.shuffle(&mut rows);
    Ok(Reply::data(rows.into()))
}
