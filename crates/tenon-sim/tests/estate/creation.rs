//! VMs made from nothing, templates, tickets, agents, storages of both kinds, and the schema that is told.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use tenon_sim::{Estate, EstateConfig, FaultEffect, FaultMatch, FaultRule, ImageSpec, StorageSpec, TemplateSpec};

use crate::estate::bench::{Form, call, clone, config, estate, exit, get, run, send};

const QEMU: &str = "/nodes/pve1/qemu";

fn with_image() -> Estate {
    let estate = estate();
    let image = ImageSpec { disk_bytes: 3 << 30, file_bytes: 300 << 20, bootable: true };
    estate.put_image("pve1", "local:import/debian.qcow2", &image).unwrap();
    estate
}

const IMPORTED: Form<'_> = &[
    ("vmid", "500"),
    ("name", "made"),
    ("memory", "1024"),
    ("agent", "enabled=1"),
    ("scsi0", "local:0,import-from=local:import/debian.qcow2"),
    ("net0", "virtio,bridge=vmbr0"),
];

#[tokio::test(start_paused = true)]
async fn a_vm_in_the_making_shows_only_its_lock() {
    let estate = with_image();
    let upid = call(&estate, "POST", QEMU, IMPORTED).await.upid();
    let seen = config(&estate, 500).await;
    assert_eq!(seen.as_object().unwrap().keys().collect::<Vec<_>>(), ["digest", "lock"]);
    assert_eq!(seen["lock"], "create");
    let row = get(&estate, "/cluster/resources?type=vm").await.data();
    let row = row.as_array().unwrap().iter().find(|row| row["vmid"] == 500).unwrap().clone();
    assert_eq!(
        row,
        json!({ "id": "qemu/500", "node": "pve1", "type": "qemu", "vmid": 500, "status": "unknown", "lock": "create" })
    );
    assert_eq!(exit(&estate, &upid).await, "OK");
    let made = config(&estate, 500).await;
    assert_eq!(
        (&made["scsi0"], &made["boot"]),
        (&json!("local:500/vm-500-disk-0.qcow2,size=3G"), &json!("order=scsi0;net0"))
    );
    assert!(made["lock"].is_null() && made["smbios1"].is_string() && made["vmgenid"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_failed_creation_leaves_nothing() {
    let estate = with_image();
    let form = [("vmid", "501"), ("scsi0", "local:1"), ("scsi1", "local:0,import-from=local:import/none.qcow2")];
    let text = "unable to create VM 501 - failed to stat '/var/lib/vz/import/none.qcow2'";
    assert_eq!(run(&estate, "POST", QEMU, &form).await, text);
    assert!(estate.vm(501).is_none() && estate.volumes().iter().all(|volume| volume.owner != Some(501)));
}

/// What stands in a task's log.
async fn log(estate: &Estate, upid: &str) -> String {
    get(estate, &format!("/nodes/pve1/tasks/{upid}/log?limit=0")).await.body
}

#[tokio::test(start_paused = true)]
async fn an_import_that_fills_the_storage_says_so_only_in_its_log() {
    let estate = with_image();
    estate.set_storage_free("shared", 100 << 20).unwrap();
    let form = [("vmid", "500"), ("scsi0", "shared:0,format=raw,import-from=local:import/debian.qcow2")];
    let upid = call(&estate, "POST", QEMU, &form).await.upid();
    let text = "unable to create VM 500 - copy failed: command '/usr/bin/qemu-img convert -p -n -f qcow2 -O raw \
                /var/lib/vz/import/debian.qcow2 zeroinit:/mnt/shared/images/500/vm-500-disk-0.raw' failed: exit code 1";
    assert_eq!(exit(&estate, &upid).await, text);
    let told = "qemu-img: error while writing at byte 104857600: No space left on device";
    assert!(log(&estate, &upid).await.contains(told));
    assert!(estate.vm(500).is_none() && estate.volumes().iter().all(|volume| volume.owner != Some(500)));
    let when = FaultMatch::call("POST", "/nodes/*/qemu").times(1);
    estate.add_fault(FaultRule::new(when, FaultEffect::FullStorage));
    assert!(run(&estate, "POST", QEMU, IMPORTED).await.ends_with("failed: exit code 1"));
    assert_eq!(run(&estate, "POST", QEMU, IMPORTED).await, "OK");
}

#[tokio::test(start_paused = true)]
async fn a_killed_creation_leaves_a_locked_husk_and_its_disk() {
    let estate = with_image();
    let upid = call(&estate, "POST", QEMU, IMPORTED).await.upid();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(estate.kill_worker(&upid));
    assert_eq!(exit(&estate, &upid).await, "unexpected status");
    let left = estate.vm(500).unwrap();
    assert_eq!((left.config.len(), left.lock.as_deref()), (1, Some("create")));
    let disks: Vec<_> = estate.volumes().into_iter().filter(|volume| volume.owner == Some(500)).collect();
    assert_eq!(disks.len(), 1, "the import had begun");
    assert_eq!(run(&estate, "DELETE", &format!("{QEMU}/500"), &[]).await, "VM is locked (create)");
    let text = "unable to create VM 500 - VM 500 already exists on node 'pve1'";
    call(&estate, "POST", QEMU, IMPORTED).await.refuses(500, text);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_creation_cleans_up() {
    let estate = with_image();
    let upid = call(&estate, "POST", QEMU, IMPORTED).await.upid();
    tokio::time::sleep(Duration::from_secs(2)).await;
    call(&estate, "DELETE", &format!("/nodes/pve1/tasks/{upid}"), &[]).await.data();
    assert!(exit(&estate, &upid).await.ends_with("failed: interrupted by signal"));
    assert!(estate.vm(500).is_none() && estate.volumes().iter().all(|volume| volume.owner != Some(500)));
}

#[tokio::test(start_paused = true)]
async fn only_images_are_imported() {
    let estate = with_image();
    let importing = async |source: &str| {
        let drive = format!("local:0,import-from={source}");
        call(&estate, "POST", QEMU, &[("vmid", "500"), ("scsi0", &drive)]).await
    };
    let text = "local:iso/x.iso has wrong type 'iso' - not an image";
    importing("local:iso/x.iso").await.refuses_fields(&[("scsi0", text)]);
    importing("nope:import/x.qcow2").await.refuses(500, "storage 'nope' does not exist");
    let elsewhere = [("vmid", "500"), ("scsi0", "local:0,import-from=local:import/debian.qcow2")];
    let text = "unable to create VM 500 - failed to stat '/var/lib/vz/import/debian.qcow2'";
    assert_eq!(run(&estate, "POST", "/nodes/pve2/qemu", &elsewhere).await, text, "the image is on another host");
}

#[tokio::test(start_paused = true)]
async fn a_vm_becomes_a_template_and_is_cloned() {
    let estate = with_image();
    assert_eq!(run(&estate, "POST", QEMU, IMPORTED).await, "OK");
    assert_eq!(run(&estate, "POST", &format!("{QEMU}/500/template"), &[]).await, "OK");
    assert_eq!(config(&estate, 500).await["scsi0"], "local:500/base-500-disk-0.qcow2,size=3G");
    call(&estate, "POST", &format!("{QEMU}/500/template"), &[])
        .await
        .refuses(500, "you can't convert a template to a template");
    assert_eq!(run(&estate, "POST", &format!("{QEMU}/500/clone"), &[("newid", "510")]).await, "OK");
    let disk = "local:500/base-500-disk-0.qcow2/510/vm-510-disk-0.qcow2,size=3G";
    assert_eq!(config(&estate, 510).await["scsi0"], disk);
}

#[tokio::test(start_paused = true)]
async fn an_agent_answers_once_the_guest_is_up() {
    let estate = with_image();
    assert_eq!(run(&estate, "POST", QEMU, IMPORTED).await, "OK");
    let ping = format!("{QEMU}/500/agent/ping");
    call(&estate, "POST", &ping, &[]).await.refuses(500, "VM 500 is not running");
    assert_eq!(run(&estate, "POST", &format!("{QEMU}/500/status/start"), &[]).await, "OK");
    call(&estate, "POST", &ping, &[]).await.refuses(500, "QEMU guest agent is not running");
    // The refusal itself took three seconds; by now the guest has booted.
    assert_eq!(call(&estate, "POST", &ping, &[]).await.data(), json!({ "result": {} }));
    let exec = call(&estate, "POST", &format!("{QEMU}/500/agent/exec"), &[("command", "echo"), ("command", "hi")])
        .await
        .data();
    let status = format!("{QEMU}/500/agent/exec-status?pid={}", exec["pid"]);
    assert_eq!(get(&estate, &status).await.data(), json!({ "exited": 0 }));
    assert_eq!(get(&estate, &status).await.data(), json!({ "exited": 1, "exitcode": 0, "out-data": "hi\n" }));
    get(&estate, &status).await.refuses(500, "Agent error: PID ld does not exist");
}

#[tokio::test(start_paused = true)]
async fn a_ticket_opens_the_api_and_writes_need_the_token_that_came_with_it() {
    let estate = estate();
    let login = |password: &str| {
        Request::post("/api2/json/access/ticket")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Body::from(format!("username=root%40pam&password={password}")))
            .unwrap()
    };
    send(&estate, login("wrong")).await.refuses(401, "authentication failure");
    let data = send(&estate, login("simulated")).await.data();
    let cookie = format!("PVEAuthCookie={}", data["ticket"].as_str().unwrap());
    let pool = |csrf: &str| {
        Request::post("/api2/json/pools?poolid=x")
            .header("cookie", &cookie)
            .header("CSRFPreventionToken", csrf)
            .body(Body::empty())
    };
    let refused = send(&estate, pool("nonsense").unwrap()).await;
    assert_eq!((refused.status, refused.reason.as_str()), (401, "Permission denied - invalid csrf token"));
    let csrf = data["CSRFPreventionToken"].as_str().unwrap();
    assert_eq!(send(&estate, pool(csrf).unwrap()).await.data(), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_token_with_few_rights_sees_and_does_little() {
    let estate = estate();
    let make: [(&str, &str, Form<'_>); 4] = [
        ("POST", "/access/users", &[("userid", "few@pve")]),
        ("POST", "/access/roles", &[("roleid", "Looker"), ("privs", "VM.Audit")]),
        ("PUT", "/access/acl", &[("path", "/vms/9000"), ("roles", "Looker"), ("users", "few@pve")]),
        ("POST", "/access/users/few@pve/token/tt", &[("privsep", "0")]),
    ];
    let mut secret = Value::Null;
    for (method, path, form) in make {
        secret = call(&estate, method, path, form).await.data()["value"].clone();
    }
    let token = format!("PVEAPIToken=few@pve!tt={}", secret.as_str().unwrap());
    let ask = |method: &str, path: &str| {
        Request::builder()
            .method(method)
            .uri(format!("/api2/json{path}"))
            .header("authorization", &token)
            .body(Body::empty())
            .unwrap()
    };
    let seen = send(&estate, ask("GET", "/cluster/resources?type=vm")).await.data();
    assert_eq!(seen.as_array().unwrap().len(), 1);
    assert_eq!(send(&estate, ask("GET", "/nodes/pve1/storage")).await.data(), json!([]));
    let text = "Permission check failed (/vms/9000, VM.PowerMgmt)";
    send(&estate, ask("POST", "/nodes/pve1/qemu/9000/status/start")).await.refuses(403, text);
    let cores = |body: &'static str| {
        let builder = Request::put("/api2/json/nodes/pve1/qemu/9000/config").header("authorization", &token);
        builder.header("content-type", "application/x-www-form-urlencoded").body(Body::from(body)).unwrap()
    };
    let more = [("roleid", "Namer"), ("privs", "VM.Audit,VM.Config.Options")];
    assert_eq!(call(&estate, "POST", "/access/roles", &more).await.status, 200);
    let grant = [("path", "/vms/9000"), ("roles", "Namer"), ("users", "few@pve")];
    assert_eq!(call(&estate, "PUT", "/access/acl", &grant).await.status, 200);
    assert_eq!(send(&estate, cores("name=renamed")).await.data(), Value::Null);
    let text = "Permission check failed (/vms/9000, VM.Config.CPU)";
    send(&estate, cores("name=renamed&cores=2")).await.refuses(403, text);
    let text = "Permission check failed (/vms/9000, VM.Config.Network)";
    send(&estate, cores("net0=virtio,bridge%3Dvmbr0")).await.refuses(403, text);
    // Rights come before existence.
    let text = "Permission check failed (/vms/777, VM.Audit)";
    send(&estate, ask("GET", "/nodes/pve1/qemu/777/config")).await.refuses(403, text);
}

#[tokio::test(start_paused = true)]
async fn a_thin_pool_has_devices_and_no_files() {
    let storages = vec![StorageSpec::thin("thin", 100 << 30), StorageSpec::new("local", &["iso"], 10 << 30)];
    let estate = Estate::new(EstateConfig { storages, ..EstateConfig::default() });
    estate.add_template(&TemplateSpec { storage: "thin".into(), ..TemplateSpec::default() }).unwrap();
    assert_eq!(clone(&estate, "2001", &[]).await, "OK");
    let made = config(&estate, 2001).await;
    assert_eq!(made["scsi0"], "thin:vm-2001-disk-0,discard=on,iothread=1,size=8G,ssd=1");
    assert_eq!(made["ide2"], "thin:vm-2001-cloudinit,media=cdrom,size=4M");
    let rows = get(&estate, "/nodes/pve1/storage/thin/content?vmid=2001").await.data();
    assert!(rows.as_array().unwrap().iter().all(|row| row["format"] == "raw" && row["parent"].is_null()));
    call(&estate, "GET", "/nodes/pve1/storage?storage=thin", &[]).await.data()[0]["type"]
        .as_str()
        .map(|kind| assert_eq!(kind, "lvmthin"))
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_storage_that_makes_one_drive_at_a_time_serves_a_hundred_clones() {
    let storages = vec![StorageSpec::new("shared", &["images", "iso"], 4096 << 30).shared().serial()];
    let estate = Estate::new(EstateConfig { storages, ..EstateConfig::default() });
    estate.add_template(&TemplateSpec::default()).unwrap();
    let began = estate.elapsed();
    let ids: Vec<String> = (3000..3100).map(|id| id.to_string()).collect();
    let ask = async |id: &String| call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", id)]).await.upid();
    let tasks = futures::future::join_all(ids.iter().map(ask)).await;
    assert!(estate.elapsed() - began < Duration::from_millis(100), "all of them wait for the storage together");
    // Asked for one after the other: a hundred tasks asked for every 10 ms are minutes of work in a debug build.
    for task in &tasks {
        assert_eq!(exit(&estate, task).await, "OK");
    }
    // Two drives each, 150 ms a drive, one after the other.
    assert!(estate.elapsed() - began >= Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_the_storage_has_an_end() {
    let storages = vec![StorageSpec::new("shared", &["images"], 4096 << 30).shared().serial()];
    let estate = Estate::new(EstateConfig { storages, ..EstateConfig::default() });
    estate.add_template(&TemplateSpec::default()).unwrap();
    let first = call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "3000")]).await.upid();
    estate.hold_tasks("qmclone");
    let second = call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "3001")]).await.upid();
    let text = "clone failed: cfs-lock 'storage-shared' error: got lock request timeout";
    assert_eq!(exit(&estate, &second).await, text);
    assert!(estate.vm(3001).is_none());
    estate.release_tasks();
    assert_eq!(exit(&estate, &first).await, "OK");
}

#[test]
fn the_schema_tells_every_call_with_its_parameters() {
    let lines: Vec<Value> = tenon_sim::schema_lines(tenon_sim::PveVersion::V9_2)
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let find = |method: &str, path: &str| lines.iter().find(|line| line["method"] == method && line["path"] == path);
    let clone = find("POST", "/nodes/{node}/qemu/{vmid}/clone").unwrap();
    assert_eq!(clone["params"]["format"]["enum"], json!(["raw", "qcow2", "vmdk"]));
    assert_eq!(clone["params"]["newid"]["minimum"], 100);
    assert!(clone["params"]["newid"]["optional"].is_null() && clone["params"]["full"]["optional"] == 1);
    let update = find("PUT", "/nodes/{node}/qemu/{vmid}/config").unwrap();
    assert_eq!(update["params"]["net[n]"]["format"]["mtu"]["maximum"], 65520);
    assert_eq!(lines.len(), 112);
}
