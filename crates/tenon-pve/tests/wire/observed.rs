//! Rows of the recordings that have no request of their own: what was seen over a while. Every reply in them is read.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tenon_pve::{RefusalKind, read_reply, same_option};

use crate::recordings::{Canned, lines, reply};

/// Rows in which there is no reply to be read, and what they are instead.
const WITHOUT_REPLIES: [(&str, &str); 10] = [
    ("nextid-parallel", "ids as texts"),
    ("req-keepalive", "headers of connections"),
    ("req-keepalive-explicit", "headers of connections"),
    ("req-keepalive-idle", "how long a connection lives"),
    ("req-keepalive-max", "how long a connection lives"),
    ("c3-start-lag-observed", "states of one VM, already shortened"),
    ("c3-migrate-changes", "nothing changed"),
    ("c3-death-observed", "states of hosts and storages, already shortened"),
    ("c3-death-longterm", "states of hosts and storages, already shortened"),
    ("timing-summary", "seconds"),
];

/// Rows that are about something else than replies.
const ABOUT_OTHERS: [(&str, &str); 4] = [
    ("vmid-reuse-identity", "two configurations side by side; has a test of its own"),
    ("minpriv-final-sets", "roles for which nothing failed"),
    ("minpriv-preadded-pool-observed", "rows already shortened"),
    ("task-log-default-limit", "numbers of lines"),
];

/// What is found in a row.
#[derive(Default)]
struct Found {
    configs: Vec<Value>,
    states: Vec<Value>,
    guests: Vec<Value>,
    tasks: usize,
    raw: Vec<String>,
    refusals: Vec<String>,
}

impl Found {
    fn count(&self) -> usize {
        let Found { configs, states, guests, tasks, raw, refusals } = self;
        configs.len() + states.len() + guests.len() + tasks + raw.len() + refusals.len()
    }

    fn look(&mut self, value: &Value) {
        let has = |key: &str| value.get(key).is_some_and(|value| !value.is_null());
        let is_guest = value.get("id").and_then(Value::as_str).is_some_and(|id| id.starts_with("qemu/"));
        match value {
            Value::Object(_) if has("upid") => self.tasks += 1,
            Value::Object(_) if value.get("digest").is_some_and(Value::is_string) => self.configs.push(value.clone()),
            Value::Object(_) if has("qmpstatus") => self.states.push(value.clone()),
            Value::Object(_) if is_guest && has("type") => self.guests.push(value.clone()),
            Value::Object(object) => object.values().for_each(|value| self.look(value)),
            Value::Array(values) => values.iter().for_each(|value| self.look(value)),
            Value::String(text) if text.starts_with("HTTP/1.1 ") => self.raw.push(text.clone()),
            Value::String(text) if text.contains("Permission check failed") || text.contains("does not exist") => {
                self.refusals.push(text.clone());
            }
            _ => {}
        }
    }

    async fn read(&self, id: &str) {
        let (host, vmid) = ("pve1".parse().unwrap(), "100".parse().unwrap());
        let client = |data: &Value| Canned::new([Some(reply(200, "OK", json!({ "data": data }).to_string()))]).client();
        for data in &self.configs {
            let config = client(data).vm_config(&host, vmid).await.unwrap();
            assert_eq!(config.digest(), data["digest"].as_str(), "{id}");
        }
        for data in &self.states {
            client(data).vm_status(&host, vmid).await.unwrap_or_else(|error| panic!("{id}: {}", error.full_message()));
        }
        let rows = Value::Array(self.guests.clone());
        let resources =
            client(&rows).resources().await.unwrap_or_else(|error| panic!("{id}: {}", error.full_message()));
        assert_eq!(resources.guests.len(), self.guests.len(), "{id}");
        for text in &self.raw {
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            let (status, reason) = head.lines().next().unwrap()["HTTP/1.1 ".len()..].split_once(' ').unwrap();
            let status: u16 = status.parse().unwrap();
            let outcome = read_reply(&reply(status, reason, body.to_owned()));
            assert_eq!(outcome.is_ok(), status == 200, "{id}: {outcome:?}");
        }
        for text in &self.refusals {
            let words = text.lines().next().unwrap();
            let error = Canned::new([Some(reply(500, words, ""))]).client().host_status(&host).await.unwrap_err();
            let kind = &error.refusal().unwrap().kind;
            let is_right = matches!(kind, RefusalKind::Denied { .. }) || *kind == RefusalKind::NotFound;
            assert!(is_right, "{id}: {text}: {kind:?}");
        }
    }
}

#[tokio::test]
async fn every_reply_in_a_row_without_a_request_is_read() {
    let mut without = BTreeSet::new();
    for line in lines().iter().filter(|line| line["request"].is_null()) {
        let (id, mut found) = (line["id"].as_str().unwrap().to_owned(), Found::default());
        found.look(&line["after"]["observed"]);
        found.read(&id).await;
        if found.count() == 0 {
            without.insert(id);
        }
    }
    let listed = WITHOUT_REPLIES.iter().chain(&ABOUT_OTHERS).map(|(id, _)| (*id).to_owned()).collect();
    assert_eq!(without, listed);
}

#[test]
fn two_vms_under_one_id_are_told_apart_as_recorded() {
    let line = lines().into_iter().find(|line| line["id"] == "vmid-reuse-identity").unwrap();
    for (key, row) in line["after"]["observed"].as_object().unwrap() {
        let (one, other) = (row[0].as_str().unwrap(), row[1].as_str().unwrap());
        assert_eq!(same_option(key, one, other), row[2] == false, "{key}");
    }
}
