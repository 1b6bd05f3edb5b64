//! What the calls under `/nodes/{n}/tasks` show of the workers.

use serde_json::{Value, json};

use crate::params::Call;
use crate::rights::require;
use crate::state::State;
use crate::tasks::Task;
use crate::wire::{Answer, Refusal, Reply};

use std::time::Duration;

/// `DELETE` on a running task takes a moment, because the worker is given time to clean up.
const STOP_DELAY: Duration = Duration::from_secs(1);

fn row(task: &Task) -> Value {
    let (user, token) = task.user.split_once('!').unwrap_or((&task.user, ""));
    let mut row = json!({
        "upid": task.upid, "node": task.node, "type": task.kind, "id": task.id, "user": user,
        "pid": task.pid, "pstart": task.pstart, "starttime": task.starttime,
    });
    if !token.is_empty() {
        row["tokenid"] = token.into();
    }
    row
}

/// The nine parts of a UPID, if it has them.
fn is_upid(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let hex = |t: &str| t.len() >= 8 && t.chars().all(|c| c.is_ascii_hexdigit());
    parts.len() == 9 && parts[0] == "UPID" && !parts[1].is_empty() && parts[2..5].iter().all(|p| hex(p))
}

fn find<'a>(state: &'a State, call: &Call) -> Result<Option<&'a Task>, Refusal> {
    let upid = call.word("upid");
    if !is_upid(upid) {
        return Err(Refusal::invalid_field("upid", "unable to parse worker upid"));
    }
    Ok(state.tasks.by_upid.get(upid).filter(|task| task.node == call.node()))
}

fn found<'a>(state: &'a State, call: &Call, privilege: &str) -> Result<&'a Task, Refusal> {
    let task = find(state, call)?.ok_or_else(|| Refusal::invalid_field("upid", "no such task"))?;
    check_owner(state, call, task, privilege)?;
    Ok(task)
}

/// One's own tasks one may always look at; those of others need a right on the host.
fn check_owner(state: &State, call: &Call, task: &Task, privilege: &str) -> Result<(), Refusal> {
    if task.user == call.user {
        return Ok(());
    }
    require(state, &call.user, &format!("/nodes/{}", call.node()), privilege)
}

pub(crate) fn status(state: &mut State, call: &Call) -> Answer {
    let task = found(state, call, "Sys.Audit")?;
    let mut row = row(task);
    match &task.end {
        None => row["status"] = "running".into(),
        Some((_, exit)) => {
            row["status"] = "stopped".into();
            row["exitstatus"] = exit.as_str().into();
        }
    }
    Ok(Reply::data(row))
}

pub(crate) fn log(state: &mut State, call: &Call) -> Answer {
    let unknown = [String::from("unable to open file - No such file or directory")];
    let silent = [String::from("no content")];
    let task = find(state, call)?;
    if let Some(task) = task {
        check_owner(state, call, task, "Sys.Audit")?;
    }
    let lines = match task {
        None => &unknown[..],
        Some(task) if task.log.is_empty() => &silent[..],
        Some(task) => &task.log[..],
    };
    let start = usize::try_from(call.int("start").unwrap_or(0)).unwrap_or(0);
    let limit = match call.int("limit").unwrap_or(50) {
        0 => usize::MAX,
        some => usize::try_from(some).unwrap_or(0),
    };
    let rows = lines.iter().enumerate().skip(start).take(limit);
    let rows: Vec<Value> = rows.map(|(n, text)| json!({ "n": n + 1, "t": text })).collect();
    Ok(Reply { total: Some(lines.len()), ..Reply::data(rows.into()) })
}

pub(crate) fn stop(state: &mut State, call: &Call) -> Answer {
    let task = found(state, call, "Sys.Modify")?;
    if task.end.is_some() {
        return Ok(Reply::null());
    }
    let upid = task.upid.clone();
    state.interrupt_task(&upid);
    Ok(Reply { delay: STOP_DELAY, ..Reply::null() })
}

pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let source = call.text("source").unwrap_or("archive");
    let everybody = state.may(&call.user, &format!("/nodes/{}", call.node()), "Sys.Audit");
    let seen = |task: &Task| everybody || task.user == call.user;
    let newest_first = state.tasks.order.iter().rev().filter_map(|upid| state.tasks.by_upid.get(upid));
    let chosen: Vec<&Task> =
        newest_first.filter(|t| t.node == call.node() && in_source(t, source) && matches(t, call) && seen(t)).collect();
    let start = usize::try_from(call.int("start").unwrap_or(0)).unwrap_or(0);
    let limit = usize::try_from(call.int("limit").unwrap_or(50)).unwrap_or(0);
    let rows: Vec<Value> = chosen.iter().skip(start).take(limit).map(|task| list_row(task)).collect();
    Ok(Reply { total: Some(chosen.len()), ..Reply::data(rows.into()) })
}

/// The recent tasks of all hosts.
pub(crate) fn cluster(state: &mut State, call: &Call) -> Answer {
    let everybody = state.may(&call.user, "/", "Sys.Audit");
    let newest_first = state.tasks.order.iter().rev().filter_map(|upid| state.tasks.by_upid.get(upid));
    let seen = newest_first.filter(|task| everybody || task.user == call.user).take(25);
    Ok(Reply::data(seen.map(cluster_row).collect::<Vec<_>>().into()))
}

/// Hosts tell each other less of a task, and whether it is in the archive.
fn cluster_row(task: &Task) -> Value {
    let mut row = list_row(task);
    if let Some(row) = row.as_object_mut() {
        row.remove("pid");
        row.remove("pstart");
        row.insert("saved".into(), if task.end.is_some() { "1" } else { "0" }.into());
    }
    row
}

fn in_source(task: &Task, source: &str) -> bool {
    match source {
        "active" => task.end.is_none(),
        "archive" => task.end.is_some(),
        _ => true,
    }
}

fn matches(task: &Task, call: &Call) -> bool {
    let vmid = call.text("vmid").is_none_or(|vmid| task.id == vmid);
    let kind = call.text("typefilter").is_none_or(|kind| task.kind == kind);
    let since = call.int("since").is_none_or(|at| i64::try_from(task.starttime).is_ok_and(|s| s >= at));
    let until = call.int("until").is_none_or(|at| i64::try_from(task.starttime).is_ok_and(|s| s <= at));
    // A filter with a token part matches nothing, because PVE compares it with the bare user.
    let user = call.text("userfilter").is_none_or(|u| task.user.split('!').next().is_some_and(|t| t.contains(u)));
    let exit = task.end.as_ref().map_or("", |(_, exit)| exit.as_str());
    let class = match exit {
        "OK" => "ok",
        "" | "unexpected status" => "unknown",
        _ if exit.starts_with("WARNINGS") => "warning",
        _ => "error",
    };
    let errors = !call.flag("errors") || class == "error" || class == "unknown";
    let status = call.text("statusfilter").is_none_or(|wanted| wanted.split([',', ';', ' ']).any(|w| w == class));
    vmid && kind && since && until && user && errors && status
}

fn list_row(task: &Task) -> Value {
    let mut row = row(task);
    if let Some((at, exit)) = &task.end {
        row["status"] = exit.as_str().into();
        row["endtime"] = (*at).into();
    }
    row
}
