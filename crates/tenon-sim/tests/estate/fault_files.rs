//! A fault file says the same as the rules it stands for, and what is wrong with it is named.

use std::time::Duration;

use tenon_sim::{Estate, EstateConfig, FaultEffect, FaultPlan, GuestFault, TemplateSpec, VmSpec, WorldChange};

use crate::estate::bench::{call, clone, estate, get};

/// Every effect, event and fault there is.
const EVERYTHING: &str = r"
rules:
  - { name: first clones, method: POST, path: /nodes/*/qemu/*/clone, host: pve1, nth: 2, effect: refuse, status: 500, text: boom }
  - { path: /version, every: 2, times: 3, effect: fail-after, status: 596, text: Broken pipe }
  - { method: PUT, from: 1m, until: 2m, effect: timeout-before }
  - { method: PUT, vmid: 20001, effect: timeout-after }
  - { method: PUT, probability: 0.25, effect: drop-reply }
  - { storage: shared, effect: cut-body }
  - { effect: token-revoked, from: 1h, until: 1h1m }
  - { effect: lock-timeout, nth: 1000 }
  - { effect: task-fails, text: 'no', when: after, nth: 1000 }
  - { effect: task-dies, nth: 1000 }
  - { effect: task-stalls, nth: 1000 }
  - { effect: task-warns, text: old, nth: 1000 }
  - { effect: slow-storage, factor: 2.5 }
  - { effect: full-storage, nth: 1000 }
  - { effect: wrong-digest }
  - { effect: stale-listing, age: 30s }
events:
  - { at: 60s, event: host-down, host: pve2, delay: 14s, lasts: 5m }
  - { at: 2m, event: host-up, host: pve2 }
  - { at: 3m, event: quorum-lost, lasts: 30s }
  - { at: 4m, event: quorum-back }
  - { at: 5m, event: ha-recovery, host: pve2, to: pve3 }
  - { at: 6m, event: vm-moved, vmid: 3000, to: pve3 }
  - { at: 7m, event: storage-free, storage: shared, bytes: 0, lasts: 1m }
  - { at: 8m, event: token-revoked, token: tenon@pve!sim }
  - { at: 9m, event: clock-skew, seconds: -300, lasts: 1m }
guests:
  - { vm: web-*, fault: boots-slowly, by: 3m }
  - { vmid: 20001, fault: hangs, after: 1m }
  - { host: pve1, nth: 2, fault: never-joins }
  - { every: 5, fault: joins-twice, name: debian }
  - { probability: 0.1, times: 2, fault: crashes, after: 90s }
  - { fault: wrong-name }
  - { fault: loses-network, after: 2m, lasts: 1m }
";

#[test]
fn every_effect_event_and_fault_can_be_written_down() {
    let plan = FaultPlan::from_yaml(EVERYTHING).unwrap();
    assert_eq!((plan.rules.len(), plan.events.len(), plan.guests.len()), (16, 9, 7));
    assert_eq!(plan.rules[0].when.repeat.nth, Some(2));
    assert_eq!(plan.rules[15].effect, FaultEffect::StaleListing { age: Duration::from_secs(30) });
    assert_eq!(plan.events[5].change, WorldChange::VmMoved { vmid: 3000, to: "pve3".into() });
    assert_eq!(plan.guests[0].fault, GuestFault::BootsSlowly { by: Duration::from_secs(180) });
    assert_eq!(FaultPlan::from_yaml("").unwrap(), FaultPlan::default());
}

#[test]
fn what_is_wrong_with_a_file_is_named_with_what_is_allowed() {
    let cases = [
        ("rules: 1", "the file: field `rules` must be a list"),
        ("rule: []", "the file: field `rule` is not known; allowed: rules, events, guests"),
        ("rules: [{ name: a }]", "rules[0] (a): field `effect` is required here"),
        ("rules: [{ effect: cut-body }, { effect: refuse, text: x }]", "rules[1]: field `status` is required here"),
        (
            "rules: [{ effect: refuse, text: x, status: 200 }]",
            "rules[0]: field `status` cannot be `200`; allowed: 400 to 599",
        ),
        (
            "rules: [{ effect: cut-body, method: get }]",
            "rules[0]: field `method` cannot be `get`; allowed: GET, POST, PUT, DELETE",
        ),
        (
            "rules: [{ effect: cut-body, path: nodes }]",
            "rules[0]: field `path` must begin with a slash: it is the path below /api2/json",
        ),
        (
            "rules: [{ effect: cut-body, probability: 2 }]",
            "rules[0]: field `probability` cannot be `2`; allowed: 0 to 1",
        ),
        (
            "rules: [{ effect: cut-body, from: soon }]",
            "rules[0]: field `from` cannot be `soon`; allowed: durations such as 500ms, 30s, 5m or 1h30m",
        ),
        (
            "rules: [{ effect: cut-body, text: x }]",
            "rules[0]: field `text` is not used here; allowed: name, method, path, host, storage, vmid, nth, every, times, \
             probability, from, until, effect",
        ),
        (
            "events: [{ at: 1s, event: fire }]",
            "events[0]: field `event` cannot be `fire`; allowed: host-down, host-up, quorum-lost, quorum-back, ha-recovery, vm-moved, storage-free, token-revoked, clock-skew",
        ),
        ("events: [{ event: quorum-lost }]", "events[0]: field `at` is required here"),
        ("guests: [{ fault: boots-slowly }]", "guests[0]: field `by` is required here"),
        ("rules: [{ effect: task-warns, text: no }]", "rules[0]: field `text` must be a text; put it in quotes"),
        ("guests: [7]", "guests[0] must be a mapping of fields"),
    ];
    for (text, told) in cases {
        assert_eq!(FaultPlan::from_yaml(text).unwrap_err().to_string(), told, "{text}");
    }
    assert!(FaultPlan::from_yaml("a: [").unwrap_err().to_string().starts_with("cannot read the YAML: "));
}

#[test]
fn the_example_of_the_manual_is_a_fault_file() {
    let manual = include_str!("../../../../docs/dev/pve-simulator.md");
    let (_, rest) = manual.split_once("```yaml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let plan = FaultPlan::from_yaml(example).unwrap();
    assert!(plan.rules.len() > 5 && plan.events.len() > 3 && plan.guests.len() > 3);
    // Whatever can be written down is named in the manual.
    for word in EVERYTHING.split([' ', ',', '{', '}', '\n']).filter(|word| word.contains('-') && word.len() > 4) {
        assert!(
            manual.contains(&format!("`{word}`")) || !word.chars().all(|c| c.is_ascii_lowercase() || c == '-'),
            "{word}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_names_what_is_not_there_is_refused() {
    let estate = estate();
    let refused = |text: &str| estate.add_faults(&FaultPlan::from_yaml(text).unwrap()).unwrap_err().to_string();
    assert_eq!(
        refused("rules: [{ name: a, host: pve9, effect: cut-body }]"),
        "rules[0] (a): host `pve9` does not exist; known: pve1, pve2, pve3"
    );
    assert_eq!(
        refused("events: [{ at: 1s, event: storage-free, storage: tape, bytes: 1 }]"),
        "events[0]: storage `tape` does not exist; known: shared, local"
    );
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_and_file_give_the_same_run() {
    async fn story(seed: u64) -> Vec<tenon_sim::LedgerEntry> {
        let estate = Estate::new(EstateConfig { seed, ..EstateConfig::default() });
        estate.add_template(&TemplateSpec::default()).unwrap();
        let file = "rules: [{ probability: 0.3, method: POST, effect: refuse, status: 500, text: boom },\n\
                    { probability: 0.3, method: POST, effect: task-fails, text: gone }]\n\
                    events: [{ at: 2s, event: host-down, host: pve1, lasts: 5s }]";
        estate.add_faults(&FaultPlan::from_yaml(file).unwrap()).unwrap();
        for newid in 2001..2040 {
            call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", &newid.to_string())]).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        estate.ledger()
    }
    assert_eq!(story(3).await, story(3).await);
    assert_ne!(story(3).await, story(4).await);
}

#[tokio::test(start_paused = true)]
async fn events_happen_at_their_time_and_end_with_it() {
    let estate = estate();
    let base = TemplateSpec { host: "pve2".into(), vmid: 3000, ..TemplateSpec::default() };
    estate.add_vm(&VmSpec { base, running: true }).unwrap();
    let file = "events: [{ at: 60s, event: host-down, host: pve2, delay: 14s, lasts: 5m },\n\
                { at: 180s, event: ha-recovery, host: pve2, to: pve3 },\n\
                { at: 600s, event: quorum-lost, lasts: 60s },\n\
                { at: 700s, event: storage-free, storage: shared, bytes: 0, lasts: 60s },\n\
                { at: 800s, event: clock-skew, seconds: -300 },\n\
                { at: 900s, event: vm-moved, vmid: 3000, to: pve1 },\n\
                { at: 1000s, event: token-revoked, token: tenon@pve!sim }]";
    estate.add_faults(&FaultPlan::from_yaml(file).unwrap()).unwrap();
    let until = async |second| tokio::time::sleep(Duration::from_secs(second) - estate.elapsed()).await;
    assert_eq!(get(&estate, "/nodes/pve2/status").await.status, 200);
    until(61).await;
    let began = estate.elapsed();
    let got = get(&estate, "/nodes/pve2/status").await;
    assert_eq!((got.status, (estate.elapsed() - began).as_secs()), (595, 14));
    until(181).await;
    let vm = estate.vm(3000).unwrap();
    assert_eq!((vm.host.as_str(), vm.status), ("pve3", "running"));
    until(361).await;
    assert_eq!(get(&estate, "/nodes/pve2/status").await.status, 200);
    until(601).await;
    call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "2001")])
        .await
        .refuses(500, "cluster not ready - no quorum?");
    until(661).await;
    assert_eq!(clone(&estate, "2001", &[]).await, "OK");
    until(701).await;
    let free = async || get(&estate, "/nodes/pve1/storage/shared/status").await.data()["avail"].as_u64().unwrap();
    assert_eq!(free().await, 0);
    until(761).await;
    assert!(free().await > 1 << 30);
    until(801).await;
    let upid = call(&estate, "POST", "/nodes/pve1/qemu/2001/status/start", &[]).await.upid();
    let started = u64::from_str_radix(upid.split(':').nth(4).unwrap(), 16).unwrap();
    assert_eq!(started, EstateConfig::default().epoch + 801 - 300);
    until(901).await;
    assert_eq!(estate.vm(3000).unwrap().host, "pve1");
    until(1001).await;
    assert_eq!(get(&estate, "/version").await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn ha_does_not_start_what_has_disks_on_the_dead_host() {
    let estate = estate();
    let base = TemplateSpec { host: "pve2".into(), vmid: 3000, storage: "local".into(), ..TemplateSpec::default() };
    estate.add_vm(&VmSpec { base, running: true }).unwrap();
    let file = "events: [{ at: 1s, event: host-down, host: pve2 }, { at: 2s, event: ha-recovery, host: pve2 }]";
    estate.add_faults(&FaultPlan::from_yaml(file).unwrap()).unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let vm = estate.vm(3000).unwrap();
    assert_eq!((vm.host.as_str(), vm.status), ("pve1", "stopped"));
}
