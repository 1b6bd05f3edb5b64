//! Clones: refusals, phases, inheritance, races.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_sim::{Estate, EstateConfig, TemplateSpec, VmSpec};

use crate::estate::bench::{Form, call, clone, config, estate, estate_with_vm, exit, get};

const CLONE: &str = "/nodes/pve1/qemu/9000/clone";

#[tokio::test(start_paused = true)]
async fn a_linked_clone_inherits_everything_but_identity() {
    let estate = estate();
    let form = [("name", "node-a"), ("description", "owner=x\nclaim=y\n"), ("pool", "tenon")];
    assert_eq!(clone(&estate, "2001", &form).await, "OK");
    let (template, vm) = (config(&estate, 9000).await, config(&estate, 2001).await);
    for key in ["tags", "memory", "meta", "onboot", "numa", "boot", "scsihw"] {
        assert_eq!(vm[key], template[key], "{key}");
    }
    for key in ["smbios1", "vmgenid", "net0"] {
        assert_ne!(vm[key], template[key], "{key}");
    }
    assert_eq!((&vm["name"], &vm["description"]), (&json!("node-a"), &json!("owner=x\nclaim=y")));
    assert_eq!(vm["tags"], "k8s;tmpl");
    let disk = "shared:9000/base-9000-disk-0.qcow2/2001/vm-2001-disk-0.qcow2,discard=on,iothread=1,size=8G,ssd=1";
    assert_eq!(vm["scsi0"], disk);
    assert_eq!(vm["ide2"], "shared:2001/vm-2001-cloudinit.qcow2,media=cdrom,size=4M");
    assert!(vm.get("template").is_none() && vm.get("lock").is_none());
    assert_eq!(estate.vm(2001).unwrap().pool.as_deref(), Some("tenon"));
}

#[tokio::test(start_paused = true)]
async fn a_clone_without_name_and_description_takes_the_templates() {
    let estate = estate();
    assert_eq!(clone(&estate, "2001", &[("description", "")]).await, "OK");
    let vm = config(&estate, 2001).await;
    assert_eq!((&vm["name"], &vm["description"]), (&json!("Copy-of-VM-template"), &json!("golden")));
    assert_eq!(estate.vm(2001).unwrap().pool, None);
}

#[tokio::test(start_paused = true)]
async fn a_full_clone_passes_through_its_phases() {
    let estate = estate();
    let form = [("newid", "2001"), ("full", "1"), ("name", "n"), ("description", "owner"), ("pool", "tenon")];
    let upid = call(&estate, "POST", CLONE, &form).await.upid();
    assert_eq!(upid.split(':').nth(6), Some("9000"), "the task carries the source id");
    let mut placeholder = config(&estate, 2001).await;
    placeholder.as_object_mut().unwrap().remove("digest");
    assert_eq!(placeholder, json!({ "lock": "clone", "description": " qmclone temporary file" }));
    tokio::time::sleep(Duration::from_millis(300)).await;
    let named = config(&estate, 2001).await;
    assert_eq!(
        (&named["lock"], &named["description"], &named["name"]),
        (&json!("clone"), &json!("owner"), &json!("n"))
    );
    assert!(named.get("scsi0").is_none() && named.get("ide2").is_some());
    let row = &get(&estate, "/cluster/resources?type=vm").await.data();
    let row = row.as_array().unwrap().iter().find(|r| r["vmid"] == 2001).unwrap().clone();
    let fresh = json!({
        "id": "qemu/2001", "type": "qemu", "vmid": 2001, "node": "pve1", "status": "unknown", "lock": "clone",
        "tags": "k8s;tmpl",
    });
    assert_eq!(row, fresh);
    assert_eq!(exit(&estate, &upid).await, "OK");
    let done = config(&estate, 2001).await;
    assert_eq!(done["scsi0"], "shared:2001/vm-2001-disk-0.qcow2,discard=on,iothread=1,size=8G,ssd=1");
    assert!(done.get("lock").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_held_clone_with_one_disk_shows_only_the_placeholder() {
    let estate = Estate::new(EstateConfig::default());
    estate.add_template(&TemplateSpec { cloudinit_drive: false, ..TemplateSpec::default() }).unwrap();
    estate.hold_tasks("qmclone");
    let upid = call(&estate, "POST", CLONE, &[("newid", "2001"), ("full", "1")]).await.upid();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(config(&estate, 2001).await["description"], " qmclone temporary file");
    estate.release_tasks();
    assert_eq!(exit(&estate, &upid).await, "OK");
}

#[tokio::test(start_paused = true)]
async fn refused_clones_say_why() {
    let estate = estate_with_vm().await;
    let cases: &[(Form<'_>, u16, &str)] = &[
        (&[("newid", "2001")], 500, "unable to create VM 2001: config file already exists"),
        (&[("newid", "2002"), ("storage", "shared")], 500, "parameter 'storage' not allowed for linked clones"),
        (&[("newid", "2002"), ("format", "raw")], 500, "parameter 'format' not allowed for linked clones"),
        (&[("newid", "2002"), ("storage", "nope"), ("full", "1")], 500, "storage 'nope' does not exist"),
        (&[("newid", "2002"), ("pool", "nope")], 403, "Permission check failed (pool 'nope' does not exist)"),
        (&[("newid", "2002"), ("target", "pve9")], 500, "no such cluster node 'pve9'"),
        (
            &[("newid", "2002"), ("target", "pve2"), ("full", "1"), ("storage", "local")],
            500,
            "can't clone to non-shared storage 'local'",
        ),
    ];
    for (form, status, text) in cases {
        call(&estate, "POST", CLONE, form).await.refuses(*status, text);
    }
    let form = [("newid", "2002"), ("full", "0")];
    let disk = "shared:9000/base-9000-disk-0.qcow2/2001/vm-2001-disk-0.qcow2";
    let text = format!("Linked clone feature is not supported for '{disk}' (scsi0)");
    call(&estate, "POST", "/nodes/pve1/qemu/2001/clone", &form).await.refuses(500, &text);
    let text = "unable to find configuration file for VM 9000 on node 'pve2'";
    call(&estate, "POST", "/nodes/pve2/qemu/9000/clone", &form).await.refuses(500, text);
    estate.lock(9000, "backup").unwrap();
    call(&estate, "POST", CLONE, &[("newid", "2002")]).await.refuses(500, "VM is locked (backup)");
}

#[tokio::test(start_paused = true)]
async fn a_template_on_local_disks_cannot_be_cloned_to_another_host() {
    let estate = Estate::new(EstateConfig::default());
    estate.add_template(&TemplateSpec { storage: "local".into(), ..TemplateSpec::default() }).unwrap();
    let text = "can't clone VM to node 'pve2' (VM uses local storage)";
    call(&estate, "POST", CLONE, &[("newid", "2001"), ("target", "pve2")]).await.refuses(500, text);
}

#[tokio::test(start_paused = true)]
async fn a_clone_with_a_target_lives_on_the_templates_host_until_it_is_done() {
    let estate = estate();
    let form = [("newid", "2001"), ("full", "1"), ("target", "pve2")];
    let upid = call(&estate, "POST", CLONE, &form).await.upid();
    let missing = "Configuration file 'nodes/pve2/qemu-server/2001.conf' does not exist";
    get(&estate, "/nodes/pve2/qemu/2001/config").await.refuses(500, missing);
    assert_eq!(estate.vm(2001).unwrap().host, "pve1");
    assert_eq!(exit(&estate, &upid).await, "OK");
    assert_eq!(estate.vm(2001).unwrap().host, "pve2");
}

#[tokio::test(start_paused = true)]
async fn racing_clones_all_get_a_task_and_one_wins() {
    let estate = estate();
    let form = [("newid", "2001")];
    let (a, b) = tokio::join!(call(&estate, "POST", CLONE, &form), call(&estate, "POST", CLONE, &form));
    let mut exits = [exit(&estate, &a.upid()).await, exit(&estate, &b.upid()).await];
    exits.sort();
    assert_eq!(exits, ["OK", "unable to create VM 2001: config file already exists"]);
}

#[tokio::test(start_paused = true)]
async fn an_id_taken_on_another_host_fails_in_the_task() {
    let estate = estate();
    let base = TemplateSpec { host: "pve2".into(), vmid: 2001, ..TemplateSpec::default() };
    estate.add_vm(&VmSpec { base, running: false }).unwrap();
    let text = "close (rename) atomic file '/etc/pve/nodes/pve1/qemu-server/2001.conf' failed: File exists";
    assert_eq!(clone(&estate, "2001", &[]).await, text);
    assert_eq!(estate.vm(2001).unwrap().host, "pve2");
}

#[tokio::test(start_paused = true)]
async fn a_killed_worker_leaves_a_husk_a_token_cannot_remove() {
    let estate = estate();
    estate.hold_tasks("qmclone");
    let upid = call(&estate, "POST", CLONE, &[("newid", "2001"), ("full", "1")]).await.upid();
    assert!(estate.kill_worker(&upid));
    assert_eq!(exit(&estate, &upid).await, "unexpected status");
    assert_eq!(config(&estate, 2001).await["lock"], "clone");
    let path = "/nodes/pve1/qemu/2001";
    assert_eq!(crate::estate::bench::run(&estate, "DELETE", path, &[]).await, "VM is locked (clone)");
    assert_eq!(
        crate::estate::bench::run(&estate, "POST", &format!("{path}/status/start"), &[]).await,
        "VM is locked (clone)"
    );
    assert_eq!(crate::estate::bench::run(&estate, "POST", &format!("{path}/status/stop"), &[]).await, "OK");
    let skip = call(&estate, "DELETE", path, &[("skiplock", "1")]).await;
    skip.refuses_fields(&[("skiplock", "Only root may use this option.")]);
    estate.unlock(2001).unwrap();
    estate.release_tasks();
    assert_eq!(crate::estate::bench::run(&estate, "DELETE", path, &[]).await, "OK");
    assert!(estate.vm(2001).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stopped_clone_task_cleans_up() {
    let estate = estate();
    let upid = call(&estate, "POST", CLONE, &[("newid", "2001"), ("full", "1")]).await.upid();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(call(&estate, "DELETE", &format!("/nodes/pve1/tasks/{upid}"), &[]).await.data(), Value::Null);
    let text = exit(&estate, &upid).await;
    assert!(text.starts_with("clone failed: ") && text.ends_with("interrupted by signal"), "{text}");
    assert!(estate.vm(2001).is_none());
    assert!(estate.volumes().iter().all(|v| v.owner == Some(9000)));
}

#[tokio::test(start_paused = true)]
async fn a_full_storage_fails_the_clone_and_leaves_nothing() {
    let estate = estate();
    estate.set_storage_free("shared", 5 << 30).unwrap();
    let text = clone(&estate, "2001", &[("full", "1")]).await;
    assert!(text.starts_with("clone failed: ") && text.ends_with("failed: exit code 1"), "{text}");
    assert!(estate.vm(2001).is_none());
    assert!(estate.volumes().iter().all(|v| v.owner == Some(9000)));
    assert_eq!(clone(&estate, "2001", &[]).await, "OK");
}

#[tokio::test(start_paused = true)]
async fn linked_clones_are_a_feature_of_templates() {
    let estate = estate_with_vm().await;
    let got = get(&estate, "/nodes/pve1/qemu/9000/feature?feature=clone").await.data();
    assert_eq!(got, json!({ "hasFeature": 1, "nodes": ["pve1", "pve2", "pve3"] }));
    assert_eq!(get(&estate, "/nodes/pve1/qemu/2001/feature?feature=clone").await.data()["hasFeature"], 0);
}
