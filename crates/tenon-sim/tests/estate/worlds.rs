//! The cluster, its lag, dead hosts, faults, and what stays the same for a seed.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_sim::{Estate, EstateConfig, FaultKind, FaultSpec, TemplateSpec, VmSpec};

use crate::estate::bench::{call, clone, config, estate, estate_with_vm, exit, get, put, run};

async fn row(estate: &Estate, vmid: u32) -> Value {
    let rows = get(estate, "/cluster/resources?type=vm").await.data();
    rows.as_array().unwrap().iter().find(|r| r["vmid"] == vmid).cloned().unwrap_or(Value::Null)
}

#[tokio::test(start_paused = true)]
async fn a_new_vm_is_unknown_until_the_next_tick_and_gone_at_once() {
    let estate = estate();
    assert_eq!(clone(&estate, "2001", &[("name", "n"), ("pool", "tenon")]).await, "OK");
    let fresh = json!({
        "id": "qemu/2001", "type": "qemu", "vmid": 2001, "node": "pve1", "status": "unknown", "tags": "k8s;tmpl",
        "pool": "tenon",
    });
    assert_eq!(row(&estate, 2001).await, fresh);
    assert_eq!(row(&estate, 9000).await["template"], 1);
    tokio::time::sleep(Duration::from_secs(12)).await;
    let known = row(&estate, 2001).await;
    assert_eq!((&known["name"], &known["status"], &known["template"]), (&json!("n"), &json!("stopped"), &json!(0)));
    assert_eq!(
        (&known["maxcpu"], &known["maxmem"], &known["maxdisk"]),
        (&json!(1), &json!(1u64 << 30), &json!(8u64 << 30))
    );
    assert_eq!(run(&estate, "DELETE", "/nodes/pve1/qemu/2001", &[]).await, "OK");
    assert_eq!(row(&estate, 2001).await, Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_start_is_seen_late_in_the_listing_and_at_once_in_the_status() {
    let estate = estate_with_vm().await;
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(run(&estate, "POST", "/nodes/pve1/qemu/2001/status/start", &[]).await, "OK");
    assert_eq!(row(&estate, 2001).await["status"], "stopped");
    assert_eq!(get(&estate, "/nodes/pve1/qemu/2001/status/current").await.data()["status"], "running");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(row(&estate, 2001).await["status"], "running");
}

#[tokio::test(start_paused = true)]
async fn nextid_is_a_string_and_reserves_nothing() {
    let estate = estate();
    assert_eq!(get(&estate, "/cluster/nextid").await.data(), "100");
    assert_eq!(get(&estate, "/cluster/nextid").await.data(), "100");
    assert_eq!(get(&estate, "/cluster/nextid?vmid=5000").await.data(), "5000");
    get(&estate, "/cluster/nextid?vmid=9000").await.refuses_fields(&[("vmid", "VM 9000 already exists")]);
}

#[tokio::test(start_paused = true)]
async fn hosts_show_their_size_and_load() {
    let estate = estate_with_vm().await;
    let idle = get(&estate, "/nodes/pve1/status").await.data();
    assert_eq!((&idle["cpuinfo"]["cpus"], &idle["memory"]["total"]), (&json!(16), &json!(64u64 << 30)));
    assert!(idle["loadavg"][0].is_string());
    assert_eq!(run(&estate, "POST", "/nodes/pve1/qemu/2001/status/start", &[]).await, "OK");
    let busy = get(&estate, "/nodes/pve1/status").await.data();
    assert_eq!(busy["memory"]["used"].as_u64().unwrap() - idle["memory"]["used"].as_u64().unwrap(), 1 << 30);
    let rows = get(&estate, "/nodes").await.data();
    assert_eq!(rows.as_array().unwrap().len(), 3);
    assert!(rows.as_array().unwrap().iter().all(|r| r["status"] == "online" && r["maxcpu"] == 16));
}

#[tokio::test(start_paused = true)]
async fn a_dead_host_has_no_route_and_its_vms_freeze_then_turn_unknown() {
    let estate = estate();
    let base = TemplateSpec { host: "pve2".into(), vmid: 3000, ..TemplateSpec::default() };
    estate.add_vm(&VmSpec { base, running: true }).unwrap();
    estate.set_host_online("pve2", false).unwrap();
    let got = get(&estate, "/nodes/pve2/status").await;
    assert_eq!((got.status, got.reason.as_str(), got.body.as_str()), (595, "No route to host", ""));
    tokio::time::sleep(Duration::from_secs(20)).await;
    let nodes = get(&estate, "/nodes").await.data();
    let dead = nodes.as_array().unwrap().iter().find(|r| r["node"] == "pve2").unwrap().clone();
    assert_eq!((&dead["status"], dead.get("mem"), &dead["maxcpu"]), (&json!("offline"), None, &json!(16)));
    assert_eq!(row(&estate, 3000).await["status"], "running");
    let status = get(&estate, "/cluster/status").await.data();
    let rows = status.as_array().unwrap();
    assert_eq!(rows.iter().find(|r| r["type"] == "cluster").unwrap()["quorate"], 1);
    assert_eq!(rows.iter().find(|r| r["name"] == "pve2").unwrap()["online"], 0);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(row(&estate, 3000).await["status"], "unknown");
    get(&estate, "/cluster/nextid?vmid=3000").await.refuses_fields(&[("vmid", "VM 3000 already exists")]);
}

#[tokio::test(start_paused = true)]
async fn without_quorum_nothing_is_written() {
    let estate = estate_with_vm().await;
    for host in ["pve2", "pve3"] {
        estate.set_host_online(host, false).unwrap();
    }
    let text = "cluster not ready - no quorum?";
    call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "2002")]).await.refuses(500, text);
    call(&estate, "POST", "/nodes/pve1/qemu/2001/status/start", &[]).await.refuses(500, text);
    let got = put(&estate, 2001, &[("tags", "a")]).await;
    assert!(got.status == 500 && got.reason.ends_with("- Permission denied"), "{}", got.reason);
    let began = estate.elapsed();
    let told = "create pool failed: cfs-lock 'file-user_cfg' error: no quorum!";
    call(&estate, "POST", "/pools", &[("poolid", "more")]).await.refuses(500, told);
    let options = "/nodes/pve1/qemu/2001/firewall/options";
    let told = "cfs-lock 'firewall-vm-2001' error: no quorum!";
    call(&estate, "PUT", options, &[("enable", "1")]).await.refuses(500, told);
    assert_eq!(estate.elapsed() - began, Duration::from_secs(20), "each lock is waited for");
    assert_eq!(get(&estate, options).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_migrated_vm_keeps_its_identity_and_leaves_its_old_path() {
    let estate = estate_with_vm().await;
    let before = config(&estate, 2001).await;
    estate.migrate(2001, "pve2").unwrap();
    let missing = "Configuration file 'nodes/pve1/qemu-server/2001.conf' does not exist";
    get(&estate, "/nodes/pve1/qemu/2001/config").await.refuses(500, missing);
    assert_eq!(get(&estate, "/nodes/pve2/qemu/2001/config").await.data(), before);
    assert_eq!(row(&estate, 2001).await["node"], "pve2");
}

#[tokio::test(start_paused = true)]
async fn faults_hit_the_next_matching_call_only() {
    let estate = estate();
    let refuse = FaultKind::Refuse { status: 500, text: "got timeout".into() };
    estate.fail_next(FaultSpec::new("GET", "/version", refuse));
    get(&estate, "/version").await.refuses(500, "got timeout");
    assert_eq!(get(&estate, "/version").await.status, 200);
    estate.fail_next(FaultSpec::new("POST", "/clone", FaultKind::TaskError("clone failed: boom".into())));
    assert_eq!(clone(&estate, "2001", &[]).await, "clone failed: boom");
    assert!(estate.vm(2001).is_none());
    estate.fail_next(FaultSpec::new("POST", "/clone", FaultKind::DropReply));
    let got = call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "2001")]).await;
    assert!(got.lost && got.status == 596 && got.body.is_empty());
    let upid = estate.ledger().last().unwrap().upid.clone().unwrap();
    assert_eq!(exit(&estate, &upid).await, "OK");
    assert!(estate.vm(2001).is_some());
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_estate() {
    async fn story(seed: u64) -> (Vec<tenon_sim::LedgerEntry>, Vec<tenon_sim::VmView>) {
        let estate = Estate::new(EstateConfig { seed, ..EstateConfig::default() });
        estate.add_template(&TemplateSpec::default()).unwrap();
        assert_eq!(clone(&estate, "2001", &[]).await, "OK");
        assert_eq!(put(&estate, 2001, &[("net1", "virtio,bridge=vmbr0")]).await.status, 200);
        (estate.ledger(), estate.vms())
    }
    let (first, second, other) = (story(7).await, story(7).await, story(8).await);
    assert_eq!(first, second);
    assert_ne!(first.1, other.1);
}

#[tokio::test(start_paused = true)]
async fn the_ledger_tells_calls_in_order() {
    let estate = estate_with_vm().await;
    assert_eq!(put(&estate, 2001, &[("tags", "a")]).await.status, 200);
    let entry = estate.ledger().pop().unwrap();
    assert_eq!((entry.method.as_str(), entry.path.as_str()), ("PUT", "/nodes/pve1/qemu/2001/config"));
    assert_eq!((entry.params["tags"].as_str(), entry.status, entry.reason.as_str()), ("a", 200, "OK"));
}

#[tokio::test(start_paused = true)]
async fn refused_callers_are_in_the_ledger_too() {
    let estate = estate();
    estate.revoke_token("tenon@pve!sim");
    assert_eq!(get(&estate, "/version").await.status, 401);
    let entry = estate.ledger().pop().unwrap();
    assert_eq!((entry.path.as_str(), entry.status, entry.reason.as_str()), ("/version", 401, "Authentication failed!"));
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_looks_like_a_wrong_one() {
    let mut config = EstateConfig::default();
    config.tokens[0].expires = Some(config.epoch + 60);
    let estate = Estate::new(config);
    assert_eq!(get(&estate, "/version").await.status, 200);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let got = get(&estate, "/version").await;
    assert_eq!((got.status, got.reason.as_str(), got.body.as_str()), (401, "Authentication failed!", ""));
}

#[tokio::test(start_paused = true)]
async fn answers_alternate_between_old_and_new_just_after_a_tick() {
    let estate = estate_with_vm().await;
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(run(&estate, "POST", "/nodes/pve1/qemu/2001/status/start", &[]).await, "OK");
    tokio::time::sleep_until(tokio::time::Instant::now() + Duration::from_secs(20) - estate.elapsed()).await;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..40 {
        seen.insert(row(&estate, 2001).await["status"].as_str().unwrap().to_string());
    }
    assert_eq!(Vec::from_iter(seen), ["running", "stopped"]);
}

#[tokio::test(start_paused = true)]
async fn rows_come_in_no_particular_order() {
    let estate = estate();
    let mut orders = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let rows = get(&estate, "/nodes").await.data();
        orders.insert(rows.as_array().unwrap().iter().map(|r| r["node"].to_string()).collect::<String>());
    }
    assert!(orders.len() > 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_estate_leaves_no_task_behind() {
    let estate = estate_with_vm().await;
    call(&estate, "POST", "/nodes/pve1/qemu/2001/status/start", &[]).await.upid();
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!(alive(), 1);
    drop(estate);
    tokio::task::yield_now().await;
    assert_eq!(alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_dies_under_a_clone_leaves_a_husk() {
    let estate = estate();
    let form = [("newid", "2001"), ("full", "1")];
    let upid = call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &form).await.upid();
    estate.set_host_online("pve1", false).unwrap();
    estate.set_host_online("pve1", true).unwrap();
    assert_eq!(exit(&estate, &upid).await, "unexpected status");
    assert_eq!(estate.vm(2001).unwrap().lock.as_deref(), Some("clone"));
    estate.remove_vm(2001).unwrap();
    assert_eq!(clone(&estate, "2001", &[]).await, "OK");
}
