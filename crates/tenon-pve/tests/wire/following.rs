//! Tasks are followed at the host that runs them, to their end, for a bounded time, and again after a restart.

use std::time::Duration;

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};
use tenon_pve::{Cause, Doubtful, RefusalKind, TaskOutcome, Upid};

use crate::recordings::{Canned, reply};

const MINUTE: Duration = Duration::from_secs(60);

fn upid() -> Upid {
    "UPID:pv2:0000010B:000B6B6F:6AF97020:qmclone:1001:root@pam!test:".parse().unwrap()
}

fn data(data: &Value) -> Option<Response<Bytes>> {
    Some(reply(200, "OK", json!({ "data": data }).to_string()))
}

fn running() -> Option<Response<Bytes>> {
    data(&json!({ "status": "running" }))
}

fn ended(exit: &str) -> Option<Response<Bytes>> {
    data(&json!({ "status": "stopped", "exitstatus": exit }))
}

fn log(lines: &[(u64, &str)]) -> Option<Response<Bytes>> {
    data(&lines.iter().map(|(n, t)| json!({ "n": n, "t": t })).collect())
}

#[tokio::test(start_paused = true)]
async fn a_task_is_asked_for_at_the_host_in_its_name_until_it_ends() {
    let canned = Canned::new([running(), running(), ended("WARNINGS: 2")]);
    assert_eq!(canned.client().await_task(&upid(), MINUTE).await.unwrap(), TaskOutcome::Warnings(2));
    let seen = canned.seen.lock().unwrap();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|seen| seen.path == format!("/nodes/pv2/tasks/{}/status", upid())));
}

#[tokio::test(start_paused = true)]
async fn every_line_of_the_log_is_told_once_the_last_ones_too() {
    let canned = Canned::new([
        running(),
        log(&[(1, "creating a clone"), (2, "transferred 1 %")]),
        running(),
        log(&[]),
        ended("OK"),
        log(&[(3, "transferred 100 %"), (4, "TASK OK")]),
    ]);
    let mut told = Vec::new();
    let outcome = canned.client().await_task_telling(&upid(), MINUTE, |line| told.push(line.to_owned())).await;
    assert_eq!(outcome.unwrap(), TaskOutcome::Ok);
    assert_eq!(told, ["creating a clone", "transferred 1 %", "transferred 100 %", "TASK OK"]);
    let starts: Vec<Option<String>> = canned
        .seen
        .lock()
        .unwrap()
        .iter()
        .filter(|seen| seen.path.ends_with("/log"))
        .map(|seen| seen.params.iter().find(|(name, _)| name == "start").map(|(_, value)| value.clone()))
        .collect();
    assert_eq!(starts, [None, Some("2".to_owned()), Some("2".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_cannot_be_read_does_not_end_the_waiting() {
    let denied = Some(reply(403, "Permission check failed (/nodes/pv2, Sys.Audit)", ""));
    let canned = Canned::new([running(), denied.clone(), ended("OK"), denied]);
    let outcome = canned.client().await_task_telling(&upid(), MINUTE, |_| panic!("there are no lines")).await;
    assert_eq!(outcome.unwrap(), TaskOutcome::Ok);
}

#[tokio::test(start_paused = true)]
async fn a_few_lost_looks_are_forgiven_and_many_are_not() {
    let away = || Some(reply(595, "No route to host", ""));
    let canned = Canned::new([away(), None, away(), away(), running(), away(), ended("OK")]);
    assert_eq!(canned.client().await_task(&upid(), 10 * MINUTE).await.unwrap(), TaskOutcome::Ok);
    let canned = Canned::new([away()]);
    let error = canned.client().await_task(&upid(), 100 * MINUTE).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::MaybeDone(Doubtful::HostDown { .. })), "{}", error.full_message());
    assert_eq!(canned.seen.lock().unwrap().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_takes_too_long_can_be_followed_again_by_its_name() {
    let canned = Canned::new([running()]);
    let before = tokio::time::Instant::now();
    let error = canned.client().await_task(&upid(), MINUTE).await.unwrap_err();
    assert!(before.elapsed() < MINUTE + Duration::from_secs(3), "{:?}", before.elapsed());
    let Cause::MaybeDone(Doubtful::StillRunning(name)) = error.cause() else { panic!("{}", error.full_message()) };
    let resumed: Upid = name.parse().unwrap();
    let later = Canned::new([ended("VM is locked (backup)")]);
    let error = later.client().await_task(&resumed, MINUTE).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().kind, RefusalKind::Locked(Some("backup".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_task_nobody_knows_ends_the_waiting_at_once() {
    let body = r#"{"data":null,"errors":{"upid":"no such task"}}"#;
    let canned = Canned::new([Some(reply(400, "Parameter verification failed.", body))]);
    assert!(canned.client().await_task(&upid(), MINUTE).await.unwrap_err().is_not_found());
    assert_eq!(canned.seen.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_vm_is_not_destroyed_when_the_last_look_is_refused() {
    use tenon_pve::{OwnerMark, Proof};
    let mark = OwnerMark { cluster: "c".to_owned(), claim: "u".to_owned(), vmid: "20001".parse().unwrap() };
    let ours = json!({ "description": mark.to_string(), "digest": "d" });
    for refusal in [
        "checksum mismatch (file change by other user?)",
        "unable to open file '/etc/pve/nodes/pv1/qemu-server/20001.conf.tmp.162' - Permission denied",
        "can't lock file '/var/lock/qemu-server/lock-20001.conf' - got timeout",
    ] {
        let canned = Canned::new([data(&ours), Some(reply(500, refusal, ""))]);
        let (client, host) = (canned.client(), "pv1".parse().unwrap());
        let vm = client.prove(&host, &Proof { mark: mark.clone(), uuid: None }).await.unwrap().unwrap();
        client.destroy_proven(vm).await.unwrap_err();
        let methods: Vec<String> = canned.seen.lock().unwrap().iter().map(|seen| seen.method.clone()).collect();
        assert_eq!(methods, ["GET", "PUT"], "{refusal}");
    }
}
