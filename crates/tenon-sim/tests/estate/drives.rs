//! CD-ROM, cloud-init drive and resize.

use serde_json::{Value, json};

use crate::estate::bench::{call, config, estate_with_vm, exit, get, put, run, upload};

#[tokio::test(start_paused = true)]
async fn an_attached_iso_gets_its_size_and_joins_the_boot_order() {
    let estate = estate_with_vm().await;
    assert_eq!(upload(&estate, "seed.iso", &[7; 358_400]).await, "OK");
    assert_eq!(put(&estate, 2001, &[("ide3", "shared:iso/seed.iso,media=cdrom")]).await.data(), Value::Null);
    let vm = config(&estate, 2001).await;
    assert_eq!(vm["ide3"], "shared:iso/seed.iso,media=cdrom,size=350K");
    assert_eq!(vm["boot"], "order=scsi0;ide3");
    assert_eq!(put(&estate, 2001, &[("ide3", "none,media=cdrom")]).await.status, 200);
    assert_eq!(config(&estate, 2001).await["boot"], "order=scsi0;ide3");
    assert_eq!(put(&estate, 2001, &[("delete", "ide3")]).await.status, 200);
    assert_eq!(config(&estate, 2001).await["boot"], "order=scsi0");
}

#[tokio::test(start_paused = true)]
async fn replacing_the_cloudinit_drive_removes_its_volume_only_when_stopped() {
    let estate = estate_with_vm().await;
    assert_eq!(upload(&estate, "seed.iso", b"x").await, "OK");
    let seed = "shared:2001/vm-2001-cloudinit.qcow2";
    let has = |volid: &str| estate.volumes().iter().any(|v| v.volid == volid);
    assert!(has(seed));
    assert_eq!(put(&estate, 2001, &[("ide2", "shared:iso/seed.iso,media=cdrom")]).await.status, 200);
    assert!(!has(seed));
    assert_eq!(config(&estate, 2001).await["boot"], "order=scsi0;ide2");
    assert_eq!(put(&estate, 2001, &[("ide2", "shared:cloudinit"), ("boot", "order=scsi0")]).await.status, 200);
    assert_eq!(config(&estate, 2001).await["ide2"], format!("{seed},media=cdrom"));
    assert_eq!(run(&estate, "POST", "/nodes/pve1/qemu/2001/status/start", &[]).await, "OK");
    assert_eq!(put(&estate, 2001, &[("ide2", "shared:iso/seed.iso,media=cdrom")]).await.status, 200);
    assert_eq!(config(&estate, 2001).await["ide2"], "shared:iso/seed.iso,media=cdrom,size=1");
    assert!(has(seed), "the volume is orphaned");
    let pending = get(&estate, "/nodes/pve1/qemu/2001/pending").await.data();
    let boot = pending.as_array().unwrap().iter().find(|r| r["key"] == "boot").unwrap().clone();
    assert_eq!(boot, json!({ "key": "boot", "value": "order=scsi0", "pending": "order=scsi0;ide2" }));
    assert_eq!(run(&estate, "POST", "/nodes/pve1/qemu/2001/status/stop", &[]).await, "OK");
    assert_eq!(run(&estate, "DELETE", "/nodes/pve1/qemu/2001", &[]).await, "OK");
    let text = "clone failed: disk image '/mnt/shared/images/2001/vm-2001-cloudinit.qcow2' already exists";
    assert_eq!(crate::estate::bench::clone(&estate, "2001", &[]).await, text);
    assert!(estate.vm(2001).is_none());
}

#[tokio::test(start_paused = true)]
async fn resize_grows_and_tells_the_rest_in_the_task() {
    let estate = estate_with_vm().await;
    let path = "/nodes/pve1/qemu/2001/resize";
    let cases = [
        ("scsi0", "+512M", "OK"),
        ("scsi0", "8704M", "OK"),
        ("scsi0", "1G", "shrinking disks is not supported"),
        ("scsi9", "+1G", "disk 'scsi9' does not exist"),
        ("ide2", "+1G", "you can't resize a cdrom"),
    ];
    for (disk, size, ends) in cases {
        assert_eq!(run(&estate, "PUT", path, &[("disk", disk), ("size", size)]).await, ends);
    }
    assert!(config(&estate, 2001).await["scsi0"].as_str().unwrap().contains("size=8704M"));
    let bad = [("disk", "scsi0"), ("size", "+1G"), ("digest", "0")];
    assert_eq!(run(&estate, "PUT", path, &bad).await, "checksum mismatch (file change by other user?)");
    let pattern = "value does not match the regex pattern";
    for size in ["1Gi", "1g", " 1G"] {
        call(&estate, "PUT", path, &[("disk", "scsi0"), ("size", size)]).await.refuses_fields(&[("size", pattern)]);
    }
    assert_eq!(call(&estate, "POST", path, &[("disk", "scsi0")]).await.status, 501);
    let upid = call(&estate, "PUT", path, &[("disk", "scsi0"), ("size", "1T")]).await.upid();
    assert_eq!(exit(&estate, &upid).await, "OK", "a linked clone is thin");
    let template = run(&estate, "PUT", "/nodes/pve1/qemu/9000/resize", &[("disk", "scsi0"), ("size", "+1G")]).await;
    assert!(template.ends_with("failed: exit code 1"), "{template}");
}

#[tokio::test(start_paused = true)]
async fn protection_keeps_disks_and_vm() {
    let estate = estate_with_vm().await;
    assert_eq!(put(&estate, 2001, &[("protection", "1")]).await.status, 200);
    put(&estate, 2001, &[("delete", "scsi0")])
        .await
        .refuses(500, "can't remove drive 'scsi0' - protection mode enabled");
    let gone = call(&estate, "DELETE", "/nodes/pve1/qemu/2001", &[]).await;
    gone.refuses(500, "can't remove VM 2001 - protection mode enabled");
}

#[tokio::test(start_paused = true)]
async fn a_new_cd_drive_of_a_running_vm_waits_with_its_boot_order() {
    let estate = estate_with_vm().await;
    assert_eq!(upload(&estate, "seed.iso", b"x").await, "OK");
    assert_eq!(run(&estate, "POST", "/nodes/pve1/qemu/2001/status/start", &[]).await, "OK");
    assert_eq!(put(&estate, 2001, &[("ide0", "shared:iso/seed.iso,media=cdrom")]).await.status, 200);
    let pending = get(&estate, "/nodes/pve1/qemu/2001/pending").await.data();
    let row = |key: &str| pending.as_array().unwrap().iter().find(|r| r["key"] == key).unwrap().clone();
    assert_eq!(row("ide0"), json!({ "key": "ide0", "pending": "shared:iso/seed.iso,media=cdrom,size=1" }));
    assert_eq!(row("boot"), json!({ "key": "boot", "value": "order=scsi0", "pending": "order=scsi0;ide0" }));
    assert!(!estate.vm(2001).unwrap().config.contains_key("ide0"));
    assert_eq!(run(&estate, "POST", "/nodes/pve1/qemu/2001/status/stop", &[]).await, "OK");
    assert_eq!(run(&estate, "POST", "/nodes/pve1/qemu/2001/status/start", &[]).await, "OK");
    assert_eq!(estate.vm(2001).unwrap().config["boot"], "order=scsi0;ide0");
    assert_eq!(estate.vm(2001).unwrap().config["ide0"], "shared:iso/seed.iso,media=cdrom,size=1");
}

#[tokio::test(start_paused = true)]
async fn changing_the_medium_of_a_running_vm_is_immediate_even_when_the_file_is_gone() {
    let estate = estate_with_vm().await;
    assert_eq!(upload(&estate, "seed.iso", b"x").await, "OK");
    assert_eq!(put(&estate, 2001, &[("ide2", "shared:iso/seed.iso,media=cdrom")]).await.status, 200);
    assert_eq!(run(&estate, "POST", "/nodes/pve1/qemu/2001/status/start", &[]).await, "OK");
    let iso = "/nodes/pve1/storage/shared/content/shared:iso/seed.iso";
    assert_eq!(run(&estate, "DELETE", iso, &[]).await, "OK");
    assert_eq!(put(&estate, 2001, &[("ide2", "none,media=cdrom")]).await.status, 200);
    assert_eq!(estate.vm(2001).unwrap().config["ide2"], "none,media=cdrom");
    let none = call(&estate, "PUT", "/nodes/pve1/qemu/2001/cloudinit", &[]).await;
    none.refuses(500, "no cloud-init drive found");
}
