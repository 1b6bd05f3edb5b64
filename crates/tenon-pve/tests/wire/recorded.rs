//! Every recording is made again by the client's own call and answered with the recorded reply.
//!
//! A row whose request the client cannot make, or makes otherwise, is listed with the reason; its reply is read all the
//! same. A row that is not as the lists say fails, in either direction.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tenon_pve::{Cause, Doubtful, Error, Password, RefusalKind, TaskOutcome, TaskProgress, Upid, read_reply};

use crate::calls::{self, Said};
use crate::recordings::{Canned, Recording, Seen, exchanges, lines, plain, reply};

/// Rows whose request the client does not make as it was recorded: the id, or its beginning with a star, and why.
const NOT_AS_RECORDED: &str = include_str!("recordings/not-as-recorded.txt");

/// What each row that is no success means: the id and the class and kind.
const MEANINGS: &str = include_str!("recordings/meanings.txt");

/// The lines of a table, without comments: what stands before the first tab, and what behind.
fn table(text: &str) -> Vec<(&str, &str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split_once('\t').unwrap_or_else(|| panic!("no tab in `{line}`"))).collect()
}

/// What a client made of a recording.
struct Replayed {
    /// What the call said, if there is a call; or its class and kind, and all it tells.
    outcome: Result<Option<Said>, (String, String)>,
    /// Why the call is not the recorded one, if it is not.
    otherwise: Option<String>,
}

async fn replay(row: &Recording) -> Replayed {
    let preludes = calls::preludes(row);
    let before = preludes.iter().map(|data| Some(reply(200, "OK", json!({ "data": data }).to_string())));
    let user = row.param("username").zip(row.param("password")).filter(|_| row.path == "/access/ticket");
    // Who logs in does so to ask for something.
    let behind = user.is_some().then(|| Some(reply(200, "OK", r#"{"data":{"version":"9.2"}}"#)));
    let canned = Canned::new(before.chain([row.reply()]).chain(behind));
    let made = match user {
        Some((name, password)) => {
            let client = canned.client_of(Password::new(name, password).unwrap());
            Some(client.version().await.map(|_| Said::Done))
        }
        None => calls::make(&canned.client(), row).await,
    };
    let seen = canned.seen.lock().unwrap().clone();
    if let (Some(outcome), Some(seen)) = (made, seen.get(preludes.len())) {
        let failed = |error: Error| (meaning_of(error.cause()), error.full_message());
        return Replayed { outcome: outcome.map(Some).map_err(failed), otherwise: difference(row, seen) };
    }
    // Only the reply is read: no call of the client makes this request.
    let outcome = match row.reply() {
        Some(reply) => read_reply(&reply).map(|_| None).map_err(|cause| (meaning_of(&cause), cause.to_string())),
        None => Err(("MaybeDone Lost".to_owned(), "closed".to_owned())),
    };
    Replayed { outcome, otherwise: Some("there is no such call".to_owned()) }
}

/// In what the request that was made is not the recorded one.
fn difference(row: &Recording, seen: &Seen) -> Option<String> {
    let trimmed = |path: &str| path.trim_matches('/').to_owned();
    if (row.method.as_str(), trimmed(&row.path)) != (seen.method.as_str(), trimmed(&seen.path)) {
        return Some(format!("{} {} instead of {} {}", seen.method, seen.path, row.method, row.path));
    }
    // Proxmox takes what stands in the path in the body too; the client does not repeat itself.
    let parts: Vec<&str> = row.path.split('/').collect();
    let is_repeated = |(name, value): &&(String, String)| {
        matches!(name.as_str(), "node" | "vmid" | "storage") && parts.contains(&value.as_str())
    };
    let recorded: Vec<&(String, String)> = row.params.iter().filter(|param| !is_repeated(param)).collect();
    let made: Vec<&(String, String)> = seen.params.iter().collect();
    if row.is_no_form {
        return Some("a body of another type".to_owned());
    }
    if recorded != made {
        return Some(format!("{made:?} instead of {recorded:?}"));
    }
    (row.file != seen.file).then(|| format!("file {:?} instead of {:?}", seen.file, row.file))
}

/// The class and kind of a failure.
pub(crate) fn meaning_of(cause: &Cause) -> String {
    match cause {
        Cause::NotSent(_) => "NotSent".to_owned(),
        Cause::MaybeDone(Doubtful::Lost(_)) => "MaybeDone Lost".to_owned(),
        Cause::MaybeDone(Doubtful::HostDown { .. }) => "MaybeDone HostDown".to_owned(),
        Cause::MaybeDone(Doubtful::Unreadable(_)) => "MaybeDone Unreadable".to_owned(),
        Cause::MaybeDone(Doubtful::WorkerDied(_)) => "MaybeDone WorkerDied".to_owned(),
        Cause::MaybeDone(Doubtful::StillRunning(_)) => "MaybeDone StillRunning".to_owned(),
        Cause::Refused(refusal) => format!("Refused {}", kind(&refusal.kind)),
    }
}

pub(crate) fn kind(kind: &RefusalKind) -> String {
    match kind {
        RefusalKind::Locked(lock) => format!("Locked({})", lock.as_deref().unwrap_or("file")),
        RefusalKind::Denied { path, privileges } => {
            format!("Denied({}, {})", path.as_deref().unwrap_or("?"), privileges.join("|"))
        }
        RefusalKind::RootOnly(option) => format!("RootOnly({option})"),
        RefusalKind::BadParameter(name) => format!("BadParameter({name})"),
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn every_recorded_request_is_made_by_a_call_of_the_client_or_listed_with_a_reason() {
    let listed = table(NOT_AS_RECORDED);
    let (mut unlisted, mut used) = (Vec::new(), BTreeSet::new());
    let mut as_recorded = 0;
    for row in exchanges() {
        let fits = |id: &str| id.strip_suffix('*').map_or(id == row.id, |start| row.id.starts_with(start));
        let entry = listed.iter().find(|(id, _)| fits(id)).map(|(id, _)| *id);
        match (replay(&row).await.otherwise, entry) {
            (None, None) => as_recorded += 1,
            (Some(_), Some(id)) => drop(used.insert(id)),
            (Some(otherwise), None) => unlisted.push(format!("{}\t{otherwise}", row.id)),
            (None, Some(id)) => unlisted.push(format!("{} is made as recorded, yet `{id}` is listed", row.id)),
        }
    }
    assert!(unlisted.is_empty(), "{} rows:\n{}", unlisted.len(), unlisted.join("\n"));
    let stale: Vec<_> = listed.iter().filter(|(id, _)| !used.contains(id)).collect();
    assert!(stale.is_empty(), "no row needs these: {stale:?}");
    assert!(as_recorded > 750, "{as_recorded}");
}

#[tokio::test]
async fn every_recorded_reply_means_what_the_table_says() {
    let mut expected: BTreeMap<&str, &str> = table(MEANINGS).into_iter().collect();
    let mut wrong = Vec::new();
    for row in exchanges() {
        let Replayed { outcome, .. } = replay(&row).await;
        // A refusal may be an answer: the id is taken.
        let done = if row.status == 200 { "Done" } else { "Told no" };
        let (meaning, told) = outcome.as_ref().err().cloned().unwrap_or_else(|| (done.to_owned(), String::new()));
        let expected = expected.remove(row.id.as_str()).unwrap_or("Done");
        if meaning != expected {
            wrong.push(format!("{}\t{meaning}\t(expected {expected}) {told}", row.id));
        } else if let Ok(Some(said)) = &outcome
            && row.status == 200
            && !said.is_in(row.data())
        {
            wrong.push(format!("{} does not say what the reply says", row.id));
        }
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    let tasks: Vec<&&str> = expected.keys().filter(|id| !id.ends_with(" task")).collect();
    assert!(tasks.is_empty(), "no row has these ids: {tasks:?}");
}

/// Tasks that were followed after a call, wherever they stand in a row.
fn tasks(row: &Value, found: &mut Vec<Value>) {
    match row {
        Value::Object(object) if object.contains_key("upid") && object.contains_key("status") => {
            found.push(row.clone());
        }
        Value::Object(object) => object.values().for_each(|value| tasks(value, found)),
        Value::Array(values) => values.iter().for_each(|value| tasks(value, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_recorded_task_ends_as_the_table_says() {
    let expected: BTreeMap<&str, &str> = table(MEANINGS).into_iter().collect();
    let (mut wrong, mut ended) = (Vec::new(), 0);
    for line in lines() {
        let (id, mut found) = (format!("{} task", line["id"].as_str().unwrap()), Vec::new());
        tasks(&line["after"], &mut found);
        for task in found {
            let upid: Upid = plain(&task["upid"]).parse().unwrap();
            let canned = Canned::new([Some(reply(200, "OK", json!({ "data": task }).to_string()))]);
            let meaning = match canned.client().task_progress(&upid).await.unwrap() {
                TaskProgress::Running => "Running".to_owned(),
                TaskProgress::Done(TaskOutcome::Ok) => "Done".to_owned(),
                TaskProgress::Done(TaskOutcome::Warnings(_)) => "Done".to_owned(),
                TaskProgress::Died => "MaybeDone WorkerDied".to_owned(),
                TaskProgress::Failed(refusal) => format!("Refused {}", kind(&refusal.kind)),
            };
            ended += 1;
            let is_running = task["status"] == "running";
            let expected = if is_running { "Running" } else { expected.get(id.as_str()).copied().unwrap_or("Done") };
            if meaning != expected {
                wrong.push(format!("{id}\t{meaning}\t(expected {expected}) {}", task["exitstatus"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} tasks:\n{}", wrong.len(), wrong.join("\n"));
    assert!(ended > 150, "{ended}");
}
