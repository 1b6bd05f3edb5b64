//! Rules strike the calls they name, and do to them what they say.

use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::json;
use tenon_sim::{Estate, EstateConfig, FaultEffect, FaultMatch, FaultRule, Repeat, StorageSpec, TemplateSpec};
use tower::ServiceExt;

use crate::estate::bench::{call, clone, config, estate, estate_with_vm, exit, get, put, request, run, upload};

const CLONE: &str = "/nodes/*/qemu/*/clone";
const START: &str = "/nodes/pve1/qemu/2001/status/start";

fn rule(when: FaultMatch, effect: FaultEffect) -> FaultRule {
    FaultRule::new(when, effect)
}

fn boom() -> FaultEffect {
    FaultEffect::Refuse { status: 500, text: "boom".into() }
}

async fn statuses(estate: &Estate, path: &str, calls: usize) -> Vec<u16> {
    let mut seen = Vec::new();
    for _ in 0..calls {
        seen.push(get(estate, path).await.status);
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn a_rule_strikes_by_method_path_host_storage_and_vm() {
    let estate = estate_with_vm().await;
    let cases = [
        (FaultMatch { method: Some("PUT".into()), ..FaultMatch::default() }, "/version", false),
        (FaultMatch::call("GET", "/nodes/*/status"), "/nodes/pve1/status", true),
        (FaultMatch::call("GET", "/nodes/*/status"), "/nodes/pve1/qemu/2001/status/current", false),
        (FaultMatch { host: Some("pve2".into()), ..FaultMatch::default() }, "/nodes/pve2/status", true),
        (FaultMatch { host: Some("pve2".into()), ..FaultMatch::default() }, "/nodes/pve1/status", false),
        (
            FaultMatch { storage: Some("local".into()), ..FaultMatch::default() },
            "/nodes/pve1/storage/local/status",
            true,
        ),
        (
            FaultMatch { storage: Some("local".into()), ..FaultMatch::default() },
            "/nodes/pve1/storage/shared/status",
            false,
        ),
        // The disk of the VM is on it.
        (FaultMatch { storage: Some("shared".into()), ..FaultMatch::default() }, "/nodes/pve1/qemu/2001/config", true),
        (FaultMatch { vmid: Some(2001), ..FaultMatch::default() }, "/nodes/pve1/qemu/2001/config", true),
        (FaultMatch { vmid: Some(2001), ..FaultMatch::default() }, "/nodes/pve1/qemu/9000/config", false),
    ];
    for (when, path, strikes) in cases {
        let told = format!("{when:?} {path}");
        estate.add_fault(rule(when, boom()));
        assert_eq!(get(&estate, path).await.status == 500, strikes, "{told}");
        estate.remove_faults();
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_strikes_in_its_turn_and_in_its_window() {
    let estate = estate();
    estate.add_fault(rule(FaultMatch::call("GET", "/version").nth(2), boom()));
    assert_eq!(statuses(&estate, "/version", 4).await, [200, 500, 200, 200]);
    estate.remove_faults();
    let repeat = Repeat { every: Some(2), times: Some(2), ..Repeat::default() };
    estate.add_fault(rule(FaultMatch { repeat, ..FaultMatch::call("GET", "/version") }, boom()));
    assert_eq!(statuses(&estate, "/version", 6).await, [200, 500, 200, 500, 200, 200]);
    let (from, until) = (Some(Duration::from_secs(60)), Some(Duration::from_secs(120)));
    estate.add_fault(rule(FaultMatch { from, until, ..FaultMatch::default() }, boom()));
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(get(&estate, "/version").await.status);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    assert_eq!(seen, [200, 500, 200]);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_and_rules_give_the_same_run() {
    async fn story(seed: u64) -> Vec<u16> {
        let estate = Estate::new(EstateConfig { seed, ..EstateConfig::default() });
        estate.add_fault(rule(FaultMatch::call("GET", "/version").probability(0.5), boom()));
        // Calls the rule does not name do not change its luck.
        statuses(&estate, "/nodes", usize::try_from(seed).unwrap()).await;
        statuses(&estate, "/version", 40).await
    }
    assert_eq!(story(3).await, story(3).await);
    assert_ne!(story(3).await, story(4).await);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_after_its_effect_has_had_it() {
    let estate = estate_with_vm().await;
    let late = FaultEffect::FailAfter { status: 500, text: "got timeout".into() };
    estate.add_fault(rule(FaultMatch::call("PUT", "**/config"), late.clone()));
    put(&estate, 2001, &[("cores", "4")]).await.refuses(500, "got timeout");
    assert_eq!(config(&estate, 2001).await["cores"], 4);
    estate.add_fault(rule(FaultMatch::call("POST", CLONE), late));
    call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "2002")]).await.refuses(500, "got timeout");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(estate.vm(2002).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_never_answered_is_executed_or_not_as_the_rule_says() {
    let estate = estate_with_vm().await;
    for (effect, cores) in [(FaultEffect::TimeoutBefore, 1), (FaultEffect::TimeoutAfter, 3)] {
        estate.add_fault(rule(FaultMatch::call("PUT", "**/config").times(1), effect));
        let patience = Duration::from_secs(3600);
        assert!(tokio::time::timeout(patience, put(&estate, 2001, &[("cores", "3")])).await.is_err());
        assert_eq!(config(&estate, 2001).await["cores"], cores);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_answer_breaks_off_in_its_body() {
    let estate = estate();
    estate.add_fault(rule(FaultMatch::call("GET", "/version"), FaultEffect::CutBody));
    let response = estate.service().oneshot(request("GET", "/version", "")).await.unwrap();
    assert_eq!(response.status(), 200);
    let announced: usize = response.headers()["content-length"].to_str().unwrap().parse().unwrap();
    let mut body = response.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(first.len() < announced, "{} of {announced}", first.len());
    assert!(body.frame().await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_takes_its_three_seconds() {
    let estate = estate();
    estate.add_fault(rule(FaultMatch::default().times(1), FaultEffect::TokenRevoked));
    let began = estate.elapsed();
    let got = get(&estate, "/version").await;
    assert_eq!((got.status, got.reason.as_str(), got.body.as_str()), (401, "Authentication failed!", ""));
    assert_eq!(estate.elapsed() - began, Duration::from_secs(3));
    assert_eq!(get(&estate, "/version").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_file_lock_that_is_never_had_fails_the_call_or_its_task_after_ten_seconds() {
    let estate = estate_with_vm().await;
    let text = "can't lock file '/var/lock/qemu-server/lock-2001.conf' - got timeout";
    estate.add_fault(rule(FaultMatch::call("PUT", "**/config").times(1), FaultEffect::LockTimeout));
    let began = estate.elapsed();
    put(&estate, 2001, &[("cores", "2")]).await.refuses(500, text);
    assert_eq!((estate.elapsed() - began).as_secs(), 10);
    tokio::time::sleep(Duration::from_secs(5)).await;
    estate.add_fault(rule(FaultMatch::call("POST", "**/start").times(1), FaultEffect::LockTimeout));
    assert_eq!(run(&estate, "POST", START, &[]).await, text);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(run(&estate, "POST", START, &[]).await, "OK");
}

#[tokio::test(start_paused = true)]
async fn a_task_fails_before_or_after_its_effect_or_warns() {
    let estate = estate_with_vm().await;
    let fails =
        |after_effect| FaultEffect::TaskFails { text: "start failed: QEMU exited with code 1".into(), after_effect };
    for (after_effect, status) in [(false, "stopped"), (true, "running")] {
        estate.add_fault(rule(FaultMatch::call("POST", "**/start").times(1), fails(after_effect)));
        assert_eq!(run(&estate, "POST", START, &[]).await, "start failed: QEMU exited with code 1");
        assert_eq!(estate.vm(2001).unwrap().status, status);
    }
    estate.add_fault(rule(FaultMatch::call("POST", CLONE), FaultEffect::TaskWarns { text: "old QEMU".into() }));
    let upid = call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "2002")]).await.upid();
    assert_eq!(exit(&estate, &upid).await, "WARNINGS: 1");
    let log = get(&estate, &format!("/nodes/pve1/tasks/{upid}/log")).await.data();
    assert!(log.as_array().unwrap().iter().any(|line| line["t"] == "WARN: old QEMU"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_create_that_fails_before_its_effect_leaves_its_id_free() {
    let estate = estate();
    let fails = FaultEffect::TaskFails { text: "unable to create VM 2001 - no".into(), after_effect: false };
    estate.add_fault(rule(FaultMatch::call("POST", "/nodes/*/qemu").times(1), fails));
    assert_eq!(run(&estate, "POST", "/nodes/pve1/qemu", &[("vmid", "2001")]).await, "unable to create VM 2001 - no");
    assert!(estate.vm(2001).is_none());
    assert_eq!(run(&estate, "POST", "/nodes/pve1/qemu", &[("vmid", "2001")]).await, "OK");
}

#[tokio::test(start_paused = true)]
async fn a_task_stalls_until_it_is_stopped_or_released() {
    let estate = estate_with_vm().await;
    estate.add_fault(rule(FaultMatch::call("POST", CLONE), FaultEffect::TaskStalls));
    let start =
        async |newid: &str| call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", newid)]).await.upid();
    let (stopped, released) = (start("2002").await, start("2003").await);
    // A task that would be done at once stalls as well.
    estate.add_fault(rule(FaultMatch::call("POST", "**/status/stop"), FaultEffect::TaskStalls));
    let short = call(&estate, "POST", "/nodes/pve1/qemu/2001/status/stop", &[]).await.upid();
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    for upid in [&stopped, &released, &short] {
        assert_eq!(get(&estate, &format!("/nodes/pve1/tasks/{upid}/status")).await.data()["status"], "running");
    }
    assert_eq!(estate.vm(2002).unwrap().lock.as_deref(), Some("clone"));
    call(&estate, "DELETE", &format!("/nodes/pve1/tasks/{stopped}"), &[]).await.data();
    assert!(exit(&estate, &stopped).await.ends_with("interrupted by signal"));
    assert!(estate.vm(2002).is_none());
    estate.release_tasks();
    assert_eq!((exit(&estate, &released).await, exit(&estate, &short).await), ("OK".into(), "OK".into()));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_leaves_its_clone_half_made() {
    let estate = estate();
    estate.add_fault(rule(FaultMatch::call("POST", CLONE), FaultEffect::TaskDies));
    assert_eq!(clone(&estate, "2002", &[]).await, "unexpected status");
    assert_eq!(estate.vm(2002).unwrap().lock.as_deref(), Some("clone"));
}

#[tokio::test(start_paused = true)]
async fn a_slow_storage_makes_tasks_slow() {
    let estate = estate();
    let took = async |newid: &str| {
        let began = estate.elapsed();
        assert_eq!(clone(&estate, newid, &[("full", "1")]).await, "OK");
        (estate.elapsed() - began).as_secs()
    };
    let usual = took("2001").await;
    let slow = FaultMatch { storage: Some("shared".into()), ..FaultMatch::default() };
    estate.add_fault(rule(slow, FaultEffect::SlowStorage { factor: 10.0 }));
    let slow = took("2002").await;
    assert!((9..=11).contains(&(slow / usual)), "{slow} s after {usual} s");
}

#[tokio::test(start_paused = true)]
async fn a_full_storage_fails_uploads_and_full_clones() {
    let estate = estate();
    estate.add_fault(rule(FaultMatch::default(), FaultEffect::FullStorage));
    assert!(upload(&estate, "a.iso", b"seed").await.ends_with("No space left on device"));
    assert!(clone(&estate, "2001", &[("full", "1")]).await.starts_with("clone failed: "));
    assert!(estate.vm(2001).is_none());
    assert_eq!(get(&estate, "/nodes/pve1/storage/shared/status").await.data()["avail"], 0);
    estate.remove_faults();
    assert_eq!(upload(&estate, "a.iso", b"seed").await, "OK");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_digest_strikes_only_calls_that_give_one() {
    let estate = estate_with_vm().await;
    estate.add_fault(rule(FaultMatch::default().times(1), FaultEffect::WrongDigest));
    assert_eq!(put(&estate, 2001, &[("cores", "2")]).await.status, 200);
    let digest = config(&estate, 2001).await["digest"].as_str().unwrap().to_string();
    let form = [("cores", "3"), ("digest", digest.as_str())];
    put(&estate, 2001, &form).await.refuses(500, "checksum mismatch (file change by other user?)");
    assert_eq!(put(&estate, 2001, &form).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_stale_listing_shows_what_was_and_nothing_else_is_stale() {
    let estate = estate();
    let age = Duration::from_secs(30);
    estate.add_fault(rule(FaultMatch::call("GET", "/cluster/resources"), FaultEffect::StaleListing { age }));
    let ids = async || {
        let rows = get(&estate, "/cluster/resources?type=vm").await.data();
        let mut ids: Vec<u64> = rows.as_array().unwrap().iter().map(|row| row["vmid"].as_u64().unwrap()).collect();
        ids.sort_unstable();
        ids
    };
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(clone(&estate, "2001", &[]).await, "OK");
    assert_eq!(ids().await, [9000]);
    assert_eq!(get(&estate, "/nodes/pve1/qemu/2001/config").await.status, 200);
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(ids().await, [2001, 9000]);
    assert_eq!(run(&estate, "DELETE", "/nodes/pve1/qemu/2001", &[]).await, "OK");
    assert_eq!(ids().await, [2001, 9000]);
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(ids().await, [9000]);
}

#[tokio::test(start_paused = true)]
async fn one_outcome_a_call_and_the_rest_on_top() {
    let estate = Estate::new(EstateConfig {
        storages: vec![StorageSpec::new("shared", &["images", "iso"], 1 << 40).shared()],
        ..EstateConfig::default()
    });
    estate.add_template(&TemplateSpec::default()).unwrap();
    estate.add_fault(rule(FaultMatch::call("POST", CLONE).times(1), boom()));
    let fails = FaultEffect::TaskFails { text: "second".into(), after_effect: false };
    estate.add_fault(rule(FaultMatch::call("POST", CLONE).times(1), fails));
    estate.add_fault(rule(FaultMatch::default(), FaultEffect::SlowStorage { factor: 3.0 }));
    call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "2001")]).await.refuses(500, "boom");
    assert_eq!(clone(&estate, "2001", &[]).await, "second");
    let began = estate.elapsed();
    assert_eq!(clone(&estate, "2001", &[]).await, "OK");
    assert!(estate.elapsed() - began > Duration::from_millis(900), "two drives at 150 ms, three times as slow");
    assert_eq!(json!(estate.vm(2001).unwrap().status), "stopped");
}
