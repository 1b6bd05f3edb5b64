//! Every call of the client under every fault that can meet it: does it end in the class the table of errors says?
//!
//! What a fault means is read from `docs/dev/pve-errors.md`, so the matrix cannot agree with itself alone. The estate of a
//! fault that lets something happen is used once; where nothing happens, one serves all.

use std::collections::BTreeSet;
use std::path::Path;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tenon_pve::{Result, TaskOutcome, Transport};
use tenon_sim::{FaultEffect, FaultMatch, FaultRule};

use crate::error_table::rows;
use crate::recorded::meaning_of;
use crate::site::{CALLS, Case, MINUTE, Made, Site, Trait, client_over};

/// How a call ended, as the table writes it: class and kind, and the advice. `None` for a success.
type End = Option<(String, String)>;

/// Makes a call and follows its task.
async fn end(site: &Site, case: &Case) -> End {
    let made = match case.run(site).await {
        Ok(Made::Task(upid)) if !case.is(Trait::Network) => site.client.await_task(&upid, MINUTE).await.map(drop),
        other => other.map(drop),
    };
    told(made)
}

/// The same for a task that is followed whatever it needs.
async fn end_of_task(site: &Site, case: &Case) -> End {
    let Ok(Made::Task(upid)) = case.run(site).await else { panic!("{} starts no task", case.name) };
    told(site.client.await_task(&upid, MINUTE).await.map(drop))
}

fn told(made: Result<()>) -> End {
    let error = made.err()?;
    Some((format!("`{}`", meaning_of(error.cause())), format!("`{:?}`", error.advice())))
}

/// What the table says of a situation.
fn says(situation: &str) -> End {
    let row = rows().remove(situation).unwrap_or_else(|| panic!("the table has no row for: {situation}"));
    Some((row[1].clone(), row[2].clone()))
}

/// A rule for the request that decides a call.
fn strike(site: &Site, case: &Case, effect: FaultEffect) {
    site.estate.add_fault(FaultRule::new(FaultMatch::call(case.method, case.path), effect));
}

/// Whether a call starts a task that it tells.
async fn starts_task(case: &Case) -> bool {
    matches!(case.run(&Site::new().await).await, Ok(Made::Task(_)))
}

async fn tasks() -> Vec<&'static Case> {
    let mut cases = Vec::new();
    for case in CALLS {
        if starts_task(case).await {
            cases.push(case);
        }
    }
    cases
}

/// Says all that is wrong at once.
struct Differences(Vec<String>, usize);

impl Differences {
    fn none() -> Differences {
        Differences(Vec::new(), 0)
    }

    fn note(&mut self, what: &str, case: &Case, (found, wanted): (End, End)) {
        self.1 += 1;
        if found != wanted {
            self.0
                .push(format!("{} {} under {what}: {found:?}, but the table says {wanted:?}", case.method, case.name));
        }
    }

    fn show(self, least: usize) {
        assert!(self.0.is_empty(), "{} of {} cells:\n{}", self.0.len(), self.1, self.0.join("\n"));
        assert!(self.1 >= least, "only {} cells", self.1);
        println!("{} cells", self.1);
    }
}

#[test]
fn every_public_call_of_the_client_is_in_the_matrix() {
    let mut declared = BTreeSet::new();
    for file in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let path = file.unwrap().path();
        let text = if path.is_file() { std::fs::read_to_string(path).unwrap() } else { String::new() };
        let names = text.split("\n    pub async fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
        declared.extend(names.map(str::to_owned));
    }
    let listed: BTreeSet<String> = crate::site::names().into_keys().map(str::to_owned).collect();
    assert_eq!(listed, declared, "tests/wire/site.rs lists the calls");
}

#[tokio::test(start_paused = true)]
async fn without_a_fault_every_call_succeeds() {
    let mut differences = Differences::none();
    for case in CALLS {
        differences.note("no fault", case, (end(&Site::new().await, case).await, None));
    }
    differences.show(80);
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_has_the_meaning_of_its_words() {
    let site = Site::new().await;
    let mut differences = Differences::none();
    for (situation, row) in rows() {
        let words = row[0].trim_matches('`');
        let Some((status, text)) = words.split_once(' ').filter(|_| row[0].starts_with('`')) else { continue };
        let status: u16 = status.parse().unwrap();
        // A 200 is no refusal, and the words of a 400 are in its body, which a rule does not write.
        if status == 200 || status == 400 {
            continue;
        }
        for case in CALLS {
            strike(&site, case, FaultEffect::Refuse { status, text: text.to_owned() });
            let wanted = Some((row[1].clone(), row[2].clone()));
            // To this call it is an answer: the id is taken.
            let wanted = wanted.filter(|(kind, _)| case.name != "is_id_free" || kind != "`Refused AlreadyExists`");
            differences.note(&situation, case, (end(&site, case).await, wanted));
            site.estate.remove_faults();
        }
    }
    differences.show(3000);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_may_be_done() {
    let proxy = FaultEffect::FailAfter { status: 596, text: "Broken pipe".to_owned() };
    let faults = [
        (FaultEffect::TimeoutBefore, "no reply within 30 s"),
        (FaultEffect::TimeoutAfter, "no reply within 30 s"),
        (FaultEffect::DropReply, "the connection breaks after a write was sent"),
        (FaultEffect::CutBody, "the connection breaks after a write was sent"),
        (proxy, "the reply of the host is lost in the Proxmox proxy"),
    ];
    let mut differences = Differences::none();
    for (effect, situation) in faults {
        for case in CALLS {
            let site = Site::new().await;
            strike(&site, case, effect.clone());
            differences.note(&format!("{effect:?}"), case, (end(&site, case).await, says(situation)));
        }
    }
    differences.show(400);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_after_its_effect_has_the_meaning_of_its_words() {
    let text = "VM is locked (clone)".to_owned();
    let mut differences = Differences::none();
    for case in CALLS {
        let site = Site::new().await;
        strike(&site, case, FaultEffect::FailAfter { status: 500, text: text.clone() });
        let found = end(&site, case).await;
        differences.note("a failure after the effect", case, (found, says("the VM is locked by an operation")));
    }
    differences.show(80);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_has_the_meaning_of_its_words() {
    let (site, tasks) = (Site::new().await, tasks().await);
    let mut differences = Differences::none();
    for (situation, row) in rows() {
        let Some(words) = row[0].strip_prefix("task: `").and_then(|rest| rest.strip_suffix('`')) else { continue };
        if words == "unexpected status" {
            continue;
        }
        for case in &tasks {
            strike(&site, case, FaultEffect::TaskFails { text: words.to_owned(), after_effect: false });
            let wanted = Some((row[1].clone(), row[2].clone()));
            let found = end_of_task(&site, case).await;
            site.estate.remove_faults();
            differences.note(&situation, case, (found, wanted));
        }
    }
    differences.show(300);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_late_dies_stalls_or_warns_is_told_so() {
    let late = FaultEffect::TaskFails { text: "start failed: QEMU exited with code 1".to_owned(), after_effect: true };
    let faults = [
        (late, says("QEMU does not start")),
        (FaultEffect::TaskDies, says("the worker of a task is killed")),
        (FaultEffect::TaskStalls, says("a task runs longer than its time limit")),
    ];
    let (tasks, mut differences) = (tasks().await, Differences::none());
    for case in &tasks {
        for (effect, wanted) in &faults {
            let needs_network = matches!(effect, FaultEffect::TaskFails { .. }) && case.is(Trait::Network);
            if needs_network {
                continue;
            }
            let site = Site::new().await;
            strike(&site, case, effect.clone());
            differences.note(&format!("{effect:?}"), case, (end_of_task(&site, case).await, wanted.clone()));
        }
        if !case.is(Trait::Network) {
            let site = Site::new().await;
            strike(&site, case, FaultEffect::TaskWarns { text: "old".to_owned() });
            let Ok(Made::Task(upid)) = case.run(&site).await else { panic!("{}", case.name) };
            assert_eq!(site.client.await_task(&upid, MINUTE).await.unwrap(), TaskOutcome::Warnings(1), "{}", case.name);
        }
    }
    differences.show(50);
}

#[tokio::test(start_paused = true)]
async fn a_file_lock_that_is_never_had_is_waited_for_by_those_who_need_it() {
    let mut differences = Differences::none();
    let situation = "another client changes the VM, or its last QEMU process is being cleaned up";
    for case in CALLS {
        let site = Site::new().await;
        strike(&site, case, FaultEffect::LockTimeout);
        let wanted = if case.is(Trait::Locks) { says(situation) } else { None };
        differences.note("a lock", case, (end(&site, case).await, wanted));
    }
    differences.show(80);
}

#[tokio::test(start_paused = true)]
async fn without_quorum_reads_work_and_writes_wait() {
    let mut differences = Differences::none();
    for case in CALLS {
        let site = Site::new().await;
        site.estate.set_quorum_lost(true);
        let wanted = match case {
            case if case.is(Trait::NeedsQuorum) => says("no quorum, found at once"),
            case if case.is(Trait::TaskNeedsQuorum) => says("no quorum, found by a task"),
            _ => None,
        };
        differences.note("no quorum", case, (end(&site, case).await, wanted));
    }
    differences.show(80);
}

#[tokio::test(start_paused = true)]
async fn calls_for_a_dead_host_may_be_done_and_others_work() {
    let site = Site::new().await;
    site.estate.set_host_online("pve1", false).unwrap();
    let mut differences = Differences::none();
    for case in CALLS.iter().filter(|case| case.asks_a_host() || case.method == "GET") {
        let wanted = if case.asks_a_host() { says("the host is offline") } else { None };
        differences.note("a dead host", case, (end(&site, case).await, wanted));
    }
    differences.show(70);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_is_told_by_every_call() {
    let site = Site::new().await;
    site.estate.revoke_token("tenon@pve!sim");
    let mut differences = Differences::none();
    for case in CALLS {
        let wanted = says("the token is wrong, expired or revoked");
        differences.note("a revoked token", case, (end(&site, case).await, wanted));
    }
    differences.show(80);
}

#[derive(Debug, thiserror::Error)]
#[error("connection refused")]
struct Refused;

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_takes_was_not_sent() {
    let mut site = Site::new().await;
    let nobody = tower::service_fn(|_: Request<Full<Bytes>>| async { Err::<Response<Full<Bytes>>, Refused>(Refused) });
    site.client = client_over(Transport::over(nobody, |_: &Refused| true));
    let mut differences = Differences::none();
    for case in CALLS {
        let wanted = says("no endpoint takes a connection");
        differences.note("no connection", case, (end(&site, case).await, wanted));
    }
    differences.show(80);
}

#[tokio::test(start_paused = true)]
async fn a_digest_that_does_not_match_is_a_change_by_somebody_else() {
    let mut differences = Differences::none();
    for case in CALLS {
        let site = Site::new().await;
        strike(&site, case, FaultEffect::WrongDigest);
        let wanted =
            if case.is(Trait::Digest) { says("the configuration was changed since it was read") } else { None };
        differences.note("a wrong digest", case, (end(&site, case).await, wanted));
    }
    differences.show(80);
}
