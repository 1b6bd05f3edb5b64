//! Power and destroy.

use std::time::Duration;

use tenon_sim::PowerChange;
use tokio::time::Instant;

use crate::estate::bench::{call, config, estate, estate_with_vm, exit, get, put, run};

const VM: &str = "/nodes/pve1/qemu/2001";

fn verb(name: &str) -> String {
    format!("{VM}/status/{name}")
}

#[tokio::test(start_paused = true)]
async fn start_and_stop_are_told_to_listeners_and_status_flips_before_the_task_ends() {
    let estate = estate_with_vm().await;
    let mut events = estate.power_events();
    let upid = call(&estate, "POST", &verb("start"), &[]).await.upid();
    let started = events.recv().await.unwrap();
    assert_eq!((started.vmid, started.host.as_str(), started.change), (2001, "pve1", PowerChange::Started));
    assert!(config(&estate, 2001).await["smbios1"].as_str().unwrap().contains(&started.uuid.unwrap()));
    let current = get(&estate, &verb("current")).await.data();
    assert_eq!((&current["status"], &current["qmpstatus"]), (&"running".into(), &"running".into()));
    let task = get(&estate, &format!("/nodes/pve1/tasks/{upid}/status")).await.data();
    assert_eq!(task["status"], "running");
    assert_eq!(exit(&estate, &upid).await, "OK");
    assert_eq!(run(&estate, "POST", &verb("start"), &[]).await, "VM 2001 already running");
    assert_eq!(run(&estate, "POST", &verb("stop"), &[]).await, "OK");
    assert_eq!(events.recv().await.unwrap().change, PowerChange::Stopped);
    assert_eq!(run(&estate, "POST", &verb("stop"), &[]).await, "OK", "stop is idempotent");
    assert_eq!(run(&estate, "POST", &verb("shutdown"), &[]).await, "OK");
}

#[tokio::test(start_paused = true)]
async fn a_start_fails_in_its_task() {
    let estate = estate_with_vm().await;
    let template = run(&estate, "POST", "/nodes/pve1/qemu/9000/status/start", &[]).await;
    assert_eq!(template, "you can't start a vm if it's a template");
    let missing = "Configuration file 'nodes/pve1/qemu-server/4444.conf' does not exist";
    assert_eq!(run(&estate, "POST", "/nodes/pve1/qemu/4444/status/start", &[]).await, missing);
    let unknown = "unable to find configuration file for VM 4444 on node 'pve1'";
    assert_eq!(run(&estate, "POST", "/nodes/pve1/qemu/4444/status/stop", &[]).await, unknown);
    assert_eq!(put(&estate, 2001, &[("cores", "17")]).await.status, 200);
    assert_eq!(run(&estate, "POST", &verb("start"), &[]).await, "MAX 16 vcpus allowed per VM on this node");
    assert_eq!(put(&estate, 2001, &[("cores", "1"), ("net0", "virtio,bridge=vmbr9")]).await.status, 200);
    assert_eq!(run(&estate, "POST", &verb("start"), &[]).await, "bridge 'vmbr9' does not exist");
}

#[tokio::test(start_paused = true)]
async fn an_iothread_on_the_wrong_controller_is_a_warning() {
    let estate = estate_with_vm().await;
    assert_eq!(put(&estate, 2001, &[("scsihw", "virtio-scsi-pci")]).await.status, 200);
    let upid = call(&estate, "POST", &verb("start"), &[]).await.upid();
    assert_eq!(exit(&estate, &upid).await, "WARNINGS: 1");
    let log = get(&estate, &format!("/nodes/pve1/tasks/{upid}/log")).await.data();
    assert_eq!(log.as_array().unwrap().last().unwrap()["t"], "TASK WARNINGS: 1");
}

#[tokio::test(start_paused = true)]
async fn a_deaf_guest_times_out_or_is_forced() {
    let estate = estate_with_vm().await;
    assert_eq!(run(&estate, "POST", &verb("start"), &[]).await, "OK");
    estate.ignore_shutdown(2001).unwrap();
    let text = "VM quit/powerdown failed - got timeout";
    assert_eq!(run(&estate, "POST", &verb("shutdown"), &[("timeout", "3")]).await, text);
    let began = Instant::now();
    assert_eq!(run(&estate, "POST", &verb("shutdown"), &[("timeout", "3"), ("forceStop", "1")]).await, "OK");
    assert!(began.elapsed() >= Duration::from_secs(4));
    assert_eq!(estate.vm(2001).unwrap().status, "stopped");
}

#[tokio::test(start_paused = true)]
async fn a_quick_restart_blocks_the_file_lock() {
    let estate = estate_with_vm().await;
    for name in ["start", "stop", "start"] {
        assert_eq!(run(&estate, "POST", &verb(name), &[]).await, "OK");
    }
    let text = "can't lock file '/var/lock/qemu-server/lock-2001.conf' - got timeout";
    put(&estate, 2001, &[("tags", "a")]).await.refuses(500, text);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(put(&estate, 2001, &[("tags", "a")]).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_start_during_the_clone_waits_for_its_lock() {
    let estate = estate();
    let form = [("newid", "2001"), ("full", "1")];
    call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &form).await.upid();
    let upid = call(&estate, "POST", &verb("start"), &[]).await.upid();
    assert_eq!(exit(&estate, &upid).await, "OK");
    let log = get(&estate, &format!("/nodes/pve1/tasks/{upid}/log")).await.data();
    assert_eq!((&log[0]["t"], &log[1]["t"]), (&"trying to acquire lock...".into(), &" OK".into()));
}

#[tokio::test(start_paused = true)]
async fn destroy_removes_config_and_disks_but_not_isos() {
    let estate = estate();
    assert_eq!(crate::estate::bench::clone(&estate, "2001", &[("pool", "tenon")]).await, "OK");
    assert_eq!(crate::estate::bench::upload(&estate, "seed.iso", b"x").await, "OK");
    assert_eq!(put(&estate, 2001, &[("ide3", "shared:iso/seed.iso,media=cdrom")]).await.status, 200);
    assert_eq!(run(&estate, "POST", &verb("start"), &[]).await, "OK");
    call(&estate, "DELETE", VM, &[]).await.refuses(500, "VM 2001 is running - destroy failed");
    assert_eq!(run(&estate, "POST", &verb("stop"), &[]).await, "OK");
    let form = [("purge", "1"), ("destroy-unreferenced-disks", "1")];
    assert_eq!(run(&estate, "DELETE", VM, &form).await, "OK");
    let missing = "Configuration file 'nodes/pve1/qemu-server/2001.conf' does not exist";
    call(&estate, "DELETE", VM, &form).await.refuses(500, missing);
    let left: Vec<String> = estate.volumes().into_iter().filter(|v| v.owner != Some(9000)).map(|v| v.volid).collect();
    assert_eq!(left, ["shared:iso/seed.iso"]);
    let digest = call(&estate, "DELETE", "/nodes/pve1/qemu/9000", &[("digest", "0")]).await;
    let unknown = "property is not defined in schema and the schema does not allow additional properties";
    digest.refuses_fields(&[("digest", unknown)]);
}

#[tokio::test(start_paused = true)]
async fn two_destroys_at_once_both_get_a_task() {
    let estate = estate_with_vm().await;
    let (a, b) = tokio::join!(call(&estate, "DELETE", VM, &[]), call(&estate, "DELETE", VM, &[]));
    let mut exits = [exit(&estate, &a.upid()).await, exit(&estate, &b.upid()).await];
    exits.sort();
    assert_eq!(exits, ["Configuration file 'nodes/pve1/qemu-server/2001.conf' does not exist", "OK"]);
}

#[tokio::test(start_paused = true)]
async fn a_template_with_linked_clones_stays() {
    let estate = estate_with_vm().await;
    let text = "base volume 'shared:9000/base-9000-disk-0.qcow2' is still in use by linked cloned";
    assert_eq!(run(&estate, "DELETE", "/nodes/pve1/qemu/9000", &[]).await, text);
    assert!(estate.vm(9000).is_some());
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_stopped_vm_has_exactly_these_fields() {
    let estate = estate_with_vm().await;
    assert_eq!(put(&estate, 2001, &[("vga", "type=serial0"), ("serial0", "socket")]).await.status, 200);
    let expected = serde_json::json!({
        "vmid": 2001, "name": "node-a", "status": "stopped", "qmpstatus": "stopped", "cpus": 1, "maxmem": 1u64 << 30,
        "maxdisk": 8u64 << 30, "mem": 0, "memhost": 0, "cpu": 0, "disk": 0, "netin": 0, "netout": 0, "uptime": 0,
        "ha": { "managed": 0 }, "tags": "k8s;tmpl", "serial": 1, "clipboard": null,
    });
    assert_eq!(get(&estate, &verb("current")).await.data(), expected);
    let rows = get(&estate, "/nodes/pve1/qemu").await.data();
    assert!(rows.as_array().unwrap().iter().all(|r| r.get("qmpstatus").is_none() && r.get("ha").is_none()));
}
