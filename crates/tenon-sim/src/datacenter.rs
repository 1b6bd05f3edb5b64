//! What holds for the whole cluster: options, the next free id, high availability.

use serde_json::{Map, Value, json};

use crate::params::Call;
use crate::property::parts;
use crate::schema::words;
use crate::state::State;
use crate::wire::{Answer, Refusal, Reply};

pub(crate) fn options(state: &mut State, call: &Call) -> Answer {
    let mut data = Map::from_iter([("allowed-tags".to_string(), json!([]))]);
    // Without rights only what everybody needs for tagging is told.
    if state.may(&call.user, "/", "Sys.Audit") {
        data.insert("description".into(), "".into());
        data.insert("keyboard".into(), "en-us".into());
        data.insert("mac_prefix".into(), "BC:24:11".into());
        for (key, value) in &state.options {
            let shown = if value.contains('=') { object(value) } else { value.as_str().into() };
            data.insert(key.clone(), shown);
        }
    }
    Ok(Reply::data(data.into()))
}

/// A property string as an object.
fn object(text: &str) -> Value {
    parts(text, "").into_iter().map(|(key, value)| (key.to_string(), value.into())).collect::<Map<_, _>>().into()
}

pub(crate) fn set_options(state: &mut State, call: &Call) -> Answer {
    for key in words(call.word("delete")) {
        state.options.remove(key);
    }
    let set = call.params.iter().filter(|(key, _)| *key != "delete");
    state.options.extend(set.map(|(key, value)| (key.clone(), value.clone())));
    Ok(Reply::null())
}

/// The lowest free id of the range. Nothing is reserved: all who ask now get the same.
pub(crate) fn next_id(state: &mut State, call: &Call) -> Answer {
    if let Some(vmid) = call.id("vmid") {
        if state.is_id_in_use(vmid) {
            return Err(Refusal::invalid_field("vmid", format!("VM {vmid} already exists")).into());
        }
        return Ok(Reply::data(vmid.to_string().into()));
    }
    let range = state.options.get("next-id").cloned().unwrap_or_default();
    let bound = |name: &str| parts(&range, "").into_iter().find(|(k, _)| *k == name).and_then(|(_, v)| v.parse().ok());
    let (lower, upper) = (bound("lower").unwrap_or(100), bound("upper").unwrap_or(1_000_000));
    let free = (lower..upper).find(|id: &u32| !state.is_id_in_use(*id));
    let none =
        || Refusal::failed(format!("unable to get any free VMID in range [{lower}, {}]", upper.saturating_sub(1)));
    Ok(Reply::data(free.ok_or_else(none)?.to_string().into()))
}

pub(crate) fn ha_current(state: &mut State, _: &Call) -> Answer {
    let node = state.entry_host();
    let quorate = state.is_quorate();
    let status = if quorate { "OK".to_string() } else { format!("No quorum on node '{node}'!") };
    let mut rows = vec![
        json!({ "id": "quorum", "type": "quorum", "node": node, "status": status, "quorate": u8::from(quorate) }),
        json!({
            "id": "fencing", "type": "fencing", "node": node, "status": "standby (CRM watchdog standby)",
            "armed-state": "standby",
        }),
    ];
    state.chance.shuffle(&mut rows);
    Ok(Reply::data(rows.into()))
}

pub(crate) fn ha_manager(state: &mut State, _: &Call) -> Answer {
    let quorate = if state.is_quorate() { "1" } else { "0" };
    let quorum = json!({ "node": state.entry_host(), "quorate": quorate });
    // Hosts are named once the manager has had something to do.
    let state_of = |host: &String| if state.maintenance.contains(host) { "maintenance" } else { "online" };
    let states: Map<String, Value> = match state.maintenance.is_empty() {
        true => Map::new(),
        false => state.hosts.keys().map(|host| (host.clone(), state_of(host).into())).collect(),
    };
    Ok(Reply::data(json!({ "quorum": quorum, "manager_status": { "node_status": states } })))
}
