//! The calls about firewall options, rules and security groups.

use serde_json::{Map, Value, json};

use crate::firewall::{Group, Rule, VmFirewall, check_digest, check_rule, rule_of, rule_row, section_digest};
use crate::params::Call;
use crate::schema::{self, words};
use crate::state::State;
use crate::wire::{Answer, Refusal, Reply};

const OPTION_KEYS: &[&str] = &[
    "dhcp",
    "enable",
    "ipfilter",
    "log_level_in",
    "log_level_out",
    "macfilter",
    "ndp",
    "policy_in",
    "policy_out",
    "radv",
];

fn firewall<'a>(state: &'a mut State, call: &Call) -> &'a mut VmFirewall {
    state.firewall.vms.entry(call.vmid()).or_default()
}

pub(crate) fn options(state: &mut State, call: &Call) -> Answer {
    let firewall = state.firewall.vms.get(&call.vmid()).cloned().unwrap_or_default();
    let call_path = "/nodes/{node}/qemu/{vmid}/firewall/options";
    let declared = schema::schema().calls.iter().find(|c| c.method == "PUT" && c.path == call_path);
    let typed = |key: &str, value: &str| -> Value {
        let number = declared.and_then(|c| c.props.get(key)).is_some_and(|p| p.kind == schema::Kind::Bool);
        value.parse::<i64>().ok().filter(|_| number).map_or_else(|| value.into(), Value::from)
    };
    let mut data: Map<String, Value> = firewall.options.iter().map(|(k, v)| (k.clone(), typed(k, v))).collect();
    data.insert("digest".into(), section_digest(&firewall.options).into());
    Ok(Reply::data(data.into()))
}

pub(crate) fn set_options(state: &mut State, call: &Call) -> Answer {
    let firewall = firewall(state, call);
    check_digest(call, &section_digest(&firewall.options))?;
    for key in words(call.word("delete")) {
        firewall.options.remove(key);
    }
    for key in OPTION_KEYS {
        if let Some(value) = call.text(key) {
            firewall.options.insert((*key).into(), value.into());
        }
    }
    Ok(Reply::null())
}

fn rows(rules: &[Rule], digest: &str) -> Reply {
    let rows = rules.iter().enumerate().map(|(pos, rule)| rule_row(rule, digest, pos.into()));
    Reply::data(rows.collect::<Vec<_>>().into())
}

/// One rule; unlike in the listing its position is text here.
fn one(rules: &[Rule], digest: &str, call: &Call) -> Answer {
    let pos = position(rules, call)?;
    Ok(Reply::data(rule_row(&rules[pos], digest, pos.to_string().into())))
}

fn position(rules: &[Rule], call: &Call) -> Result<usize, Refusal> {
    let text = call.word("pos");
    let found = text.parse::<usize>().ok().filter(|pos| *pos < rules.len());
    found.ok_or_else(|| Refusal::failed(format!("no rule at position {text}")))
}

/// Changes or moves the rule at a position.
fn change(rules: &mut Vec<Rule>, call: &Call, sets: Option<&VmFirewall>) -> Answer {
    let pos = position(rules, call)?;
    if let Some(to) = call.int("moveto").and_then(|to| usize::try_from(to).ok()) {
        let rule = rules.remove(pos);
        // It goes before the rule that is at that position now.
        let to = if to > pos { to - 1 } else { to };
        rules.insert(to.min(rules.len()), rule);
        return Ok(Reply::null());
    }
    let mut changed = rules[pos].clone();
    for key in words(call.word("delete")) {
        changed.remove(key);
    }
    changed.extend(rule_of(call));
    check_rule(&changed, sets)?;
    rules[pos] = changed;
    Ok(Reply::null())
}

pub(crate) fn rules(state: &mut State, call: &Call) -> Answer {
    let firewall = state.firewall.vms.get(&call.vmid()).cloned().unwrap_or_default();
    Ok(rows(&firewall.rules, &section_digest(&firewall.rules)))
}

pub(crate) fn rule(state: &mut State, call: &Call) -> Answer {
    let firewall = state.firewall.vms.get(&call.vmid()).cloned().unwrap_or_default();
    one(&firewall.rules, &section_digest(&firewall.rules), call)
}

/// New rules come first, whatever position is asked for.
pub(crate) fn add_rule(state: &mut State, call: &Call) -> Answer {
    let firewall = firewall(state, call);
    check_digest(call, &section_digest(&firewall.rules))?;
    let rule = rule_of(call);
    check_rule(&rule, Some(firewall))?;
    firewall.rules.insert(0, rule);
    Ok(Reply::null())
}

pub(crate) fn change_rule(state: &mut State, call: &Call) -> Answer {
    let firewall = firewall(state, call);
    check_digest(call, &section_digest(&firewall.rules))?;
    let sets = firewall.clone();
    change(&mut firewall.rules, call, Some(&sets))
}

pub(crate) fn remove_rule(state: &mut State, call: &Call) -> Answer {
    let firewall = firewall(state, call);
    check_digest(call, &section_digest(&firewall.rules))?;
    let pos = position(&firewall.rules, call)?;
    firewall.rules.remove(pos);
    Ok(Reply::null())
}

pub(crate) fn groups(state: &mut State, _: &Call) -> Answer {
    let row = |(name, group): (&String, &Group)| {
        let mut row = json!({ "group": name, "digest": section_digest(&group.rules) });
        if let Some(comment) = &group.comment {
            row["comment"] = comment.as_str().into();
        }
        row
    };
    let rows: Vec<Value> = state.firewall.groups.iter().map(row).collect();
    Ok(Reply::data(rows.into()))
}

pub(crate) fn add_group(state: &mut State, call: &Call) -> Answer {
    let name = call.word("group").to_string();
    let comment = call.text("comment").map(str::to_owned);
    if let Some(old) = call.text("rename") {
        let group = state.firewall.groups.remove(old);
        let group = group.ok_or_else(|| Refusal::failed(format!("Security group '{old}' does not exist")))?;
        state.firewall.groups.insert(name, Group { comment: comment.or(group.comment), rules: group.rules });
        return Ok(Reply::null());
    }
    if state.firewall.groups.contains_key(&name) {
        return Err(Refusal::invalid_field("group", format!("Security group '{name}' already exists")).into());
    }
    state.firewall.groups.insert(name, Group { comment, rules: Vec::new() });
    Ok(Reply::null())
}

fn known_group<'a>(state: &'a mut State, call: &Call) -> Result<&'a mut Group, Refusal> {
    let name = call.word("group");
    let missing = || Refusal::failed(format!("no such security group '{name}'"));
    state.firewall.groups.get_mut(name).ok_or_else(missing)
}

pub(crate) fn group(state: &mut State, call: &Call) -> Answer {
    let group = known_group(state, call)?;
    Ok(rows(&group.rules, &section_digest(&group.rules)))
}

pub(crate) fn remove_group(state: &mut State, call: &Call) -> Answer {
    let group = known_group(state, call)?;
    if !group.rules.is_empty() {
        return Err(Refusal::failed(format!("Security group '{}' is not empty", call.word("group"))).into());
    }
    state.firewall.groups.remove(call.word("group"));
    Ok(Reply::null())
}

pub(crate) fn group_rule(state: &mut State, call: &Call) -> Answer {
    let group = known_group(state, call)?;
    one(&group.rules, &section_digest(&group.rules), call)
}

pub(crate) fn add_group_rule(state: &mut State, call: &Call) -> Answer {
    let group = known_group(state, call)?;
    check_digest(call, &section_digest(&group.rules))?;
    let rule = rule_of(call);
    check_rule(&rule, None)?;
    group.rules.insert(0, rule);
    Ok(Reply::null())
}

pub(crate) fn change_group_rule(state: &mut State, call: &Call) -> Answer {
    let group = known_group(state, call)?;
    check_digest(call, &section_digest(&group.rules))?;
    change(&mut group.rules, call, None)
}

pub(crate) fn remove_group_rule(state: &mut State, call: &Call) -> Answer {
    let group = known_group(state, call)?;
    check_digest(call, &section_digest(&group.rules))?;
    let pos = position(&group.rules, call)?;
    group.rules.remove(pos);
    Ok(Reply::null())
}
