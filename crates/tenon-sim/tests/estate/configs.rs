//! Config rules: types, checks, digest, locks, pending values.

use serde_json::{Value, json};

use crate::estate::bench::{Form, call, config, estate_with_vm, get, put, run};

#[tokio::test(start_paused = true)]
async fn values_come_back_with_their_types() {
    let estate = estate_with_vm().await;
    let form = [("cores", "4"), ("memory", "2048"), ("balloon", "0"), ("onboot", "1"), ("cpu", "host"), ("agent", "1")];
    assert_eq!(put(&estate, 2001, &form).await.data(), Value::Null);
    let vm = config(&estate, 2001).await;
    assert_eq!((&vm["cores"], &vm["memory"], &vm["balloon"]), (&json!(4), &json!("2048"), &json!(0)));
    assert_eq!((&vm["onboot"], &vm["cpu"], &vm["agent"]), (&json!(1), &json!("host"), &json!("1")));
    assert_eq!(vm["digest"].as_str().unwrap().len(), 40);
}

#[tokio::test(start_paused = true)]
async fn tags_are_normalised_and_net_is_rewritten() {
    let estate = estate_with_vm().await;
    assert_eq!(put(&estate, 2001, &[("tags", "zeta,Alpha;beta beta"), ("ipconfig0", "")]).await.status, 200);
    let vm = config(&estate, 2001).await;
    assert_eq!((&vm["tags"], &vm["ipconfig0"]), (&json!("alpha;beta;zeta"), &json!(" ")));
    let net = "model=virtio,tag=100,bridge=vmbr0,macaddr=bc:24:11:5c:2f:10";
    assert_eq!(put(&estate, 2001, &[("net0", net), ("net1", "virtio,bridge=vmbr0")]).await.status, 200);
    let vm = config(&estate, 2001).await;
    assert_eq!(vm["net0"], "virtio=bc:24:11:5c:2f:10,bridge=vmbr0,tag=100");
    let made = vm["net1"].as_str().unwrap();
    assert!(made.starts_with("virtio=BC:24:11:") && made.ends_with(",bridge=vmbr0"), "{made}");
}

#[tokio::test(start_paused = true)]
async fn smbios_without_uuid_loses_it_and_odd_values_are_refused() {
    let estate = estate_with_vm().await;
    assert_eq!(put(&estate, 2001, &[("smbios1", "base64=1,sku=eA==")]).await.status, 200);
    assert_eq!(config(&estate, 2001).await["smbios1"], "base64=1,sku=eA==");
    let text = "invalid format - format error\nsmbios1.sku: value does not match the regex pattern\n";
    put(&estate, 2001, &[("smbios1", "sku=a b")]).await.refuses_fields(&[("smbios1", text)]);
}

#[tokio::test(start_paused = true)]
async fn schema_errors_name_the_field() {
    let estate = estate_with_vm().await;
    let unknown = "property is not defined in schema and the schema does not allow additional properties";
    let long = "x".repeat(8193);
    let cases: &[(&str, &str, &str)] = &[
        ("name", "a_b", "invalid format - value does not look like a valid DNS name\n"),
        ("tags", "!", "invalid format - invalid characters in tag\n"),
        ("cores", "0", "value must have a minimum value of 1"),
        ("onboot", "true", "type check ('boolean') failed - got 'true'"),
        ("memory", "8", "invalid format - format error\nmemory.current: value must have a minimum value of 16\n"),
        ("description", &long, "value may only be 8192 characters long"),
        ("meta", "x", unknown),
        ("net32", "virtio", unknown),
        (
            "net0",
            "virtio,queues=65",
            "invalid format - format error\nnet0.queues: value must have a maximum value of 64\n",
        ),
        (
            "ipconfig0",
            "gw=10.0.0.1",
            "invalid format - format error\nipconfig0.ip: missing property required by 'ipconfig0.gw'\n",
        ),
        ("sshkeys", "ssh-rsa A", "invalid format - invalid urlencoded string: ssh-rsa A\n"),
        (
            "boot",
            "order=foo0",
            "invalid format - format error\nboot.order: invalid format - invalid boot device 'foo0'\n\n",
        ),
        ("ide3", "shared:iso/x.iso", "explicit 'media=cdrom' is required for iso images"),
        ("delete", "nonsense", "unknown option 'nonsense'"),
        ("revert", "nonsense", "unknown option 'nonsense'"),
        ("cpu", "nosuch", "invalid format - Built-in cputype 'nosuch' is not defined (missing 'custom-' prefix?)\n"),
    ];
    let before = config(&estate, 2001).await;
    for (key, value, text) in cases {
        put(&estate, 2001, &[(key, value), ("ciuser", "x")]).await.refuses_fields(&[(key, text)]);
    }
    let both = put(&estate, 2001, &[("tags", "a"), ("delete", "tags")]).await;
    both.refuses_fields(&[("delete", "you can't use '-tags' and -delete tags' at the same time")]);
    assert_eq!(config(&estate, 2001).await, before);
}

#[tokio::test(start_paused = true)]
async fn refusals_before_writing_leave_nothing_pending() {
    let estate = estate_with_vm().await;
    let before = config(&estate, 2001).await;
    let cases: &[(Form<'_>, &str)] = &[
        (&[], "no options specified"),
        (&[("affinity", "0"), ("cores", "2")], "only root can set 'affinity' config"),
        (&[("vmgenid", "1"), ("cores", "2")], "only root can set 'vmgenid' config"),
        (&[("balloon", "4096"), ("cores", "2")], "balloon value too large (must be smaller than assigned memory)"),
        (&[("sshkeys", "nonsense"), ("cores", "2")], "SSH public key validation error"),
        (&[("ide3", "shared:iso/none.iso,media=cdrom"), ("cores", "2")], "volume 'shared:iso/none.iso' does not exist"),
        (&[("ide0", "shared:cloudinit"), ("cores", "2")], "ide0 - cloud-init drive is already attached at 'ide2'"),
    ];
    for (form, text) in cases {
        put(&estate, 2001, form).await.refuses(500, text);
    }
    assert_eq!(config(&estate, 2001).await, before);
    let missing = "Configuration file 'nodes/pve1/qemu-server/4444.conf' does not exist";
    put(&estate, 4444, &[("cores", "2")]).await.refuses(500, missing);
}

#[tokio::test(start_paused = true)]
async fn one_digest_lets_one_writer_through() {
    let estate = estate_with_vm().await;
    let digest = config(&estate, 2001).await["digest"].as_str().unwrap().to_string();
    assert_eq!(put(&estate, 2001, &[("tags", "a"), ("digest", &digest)]).await.status, 200);
    let text = "checksum mismatch (file change by other user?)";
    put(&estate, 2001, &[("tags", "b"), ("digest", &digest)]).await.refuses(500, text);
    let path = "/nodes/pve1/qemu/2001/config";
    call(&estate, "POST", path, &[("tags", "b"), ("digest", &digest)]).await.refuses(500, text);
    assert_eq!(config(&estate, 2001).await["tags"], "a");
}

#[tokio::test(start_paused = true)]
async fn a_put_that_fails_midway_leaves_other_keys_pending() {
    let estate = estate_with_vm().await;
    estate.set_storage_free("shared", 1 << 30).unwrap();
    let mut left_pending = false;
    for cores in ["2", "3", "4", "5", "6"] {
        let got = put(&estate, 2001, &[("scsi1", "shared:500"), ("cores", cores), ("memory", "2048")]).await;
        assert_eq!(got.status, 500);
        assert!(got.reason.ends_with("No space left on device"), "{}", got.reason);
        let pending = get(&estate, "/nodes/pve1/qemu/2001/pending").await.data();
        left_pending |= pending.as_array().unwrap().iter().any(|row| row.get("pending").is_some());
    }
    assert!(left_pending);
    assert_eq!(put(&estate, 2001, &[("revert", "cores,memory")]).await.status, 200);
    let vm = config(&estate, 2001).await;
    assert_eq!((&vm["cores"], &vm["memory"]), (&json!(1), &json!("1024")));
}

#[tokio::test(start_paused = true)]
async fn a_running_vm_keeps_hardware_changes_pending() {
    let estate = estate_with_vm().await;
    assert_eq!(run(&estate, "POST", "/nodes/pve1/qemu/2001/status/start", &[]).await, "OK");
    assert_eq!(put(&estate, 2001, &[("cores", "2"), ("description", "live"), ("delete", "numa")]).await.status, 200);
    let pending = get(&estate, "/nodes/pve1/qemu/2001/pending").await.data();
    let row = |key: &str| pending.as_array().unwrap().iter().find(|r| r["key"] == key).unwrap().clone();
    assert_eq!(row("cores"), json!({ "key": "cores", "value": 1, "pending": 2 }));
    assert_eq!(row("numa"), json!({ "key": "numa", "value": 1, "delete": 1 }));
    assert_eq!(row("description"), json!({ "key": "description", "value": "live" }));
    assert_eq!(config(&estate, 2001).await["cores"], 2);
    assert_eq!(get(&estate, "/nodes/pve1/qemu/2001/config?current=1").await.data()["cores"], 1);
}

#[tokio::test(start_paused = true)]
async fn post_config_is_a_task_and_a_lock_refuses_both_ways() {
    let estate = estate_with_vm().await;
    let path = "/nodes/pve1/qemu/2001/config";
    assert_eq!(run(&estate, "POST", path, &[("tags", "z")]).await, "OK");
    assert_eq!(config(&estate, 2001).await["tags"], "z");
    estate.lock(2001, "backup").unwrap();
    for method in ["PUT", "POST"] {
        call(&estate, method, path, &[("tags", "y")]).await.refuses(500, "VM is locked (backup)");
    }
    call(&estate, "PUT", "/nodes/pve1/qemu/2001/cloudinit", &[]).await.refuses(500, "VM is locked (backup)");
}

#[tokio::test(start_paused = true)]
async fn a_put_waits_for_the_file_lock_and_then_gives_up() {
    let estate = estate_with_vm().await;
    let start = call(&estate, "POST", "/nodes/pve1/qemu/2001/status/start", &[]).await.upid();
    assert_eq!(put(&estate, 2001, &[("tags", "late")]).await.status, 200);
    assert_eq!(crate::estate::bench::exit(&estate, &start).await, "OK");
    estate.hold_tasks("qmstop");
    call(&estate, "POST", "/nodes/pve1/qemu/2001/status/stop", &[]).await.upid();
    let text = "can't lock file '/var/lock/qemu-server/lock-2001.conf' - got timeout";
    put(&estate, 2001, &[("tags", "never")]).await.refuses(500, text);
}

#[tokio::test(start_paused = true)]
async fn a_bad_boot_order_is_refused() {
    let estate = estate_with_vm().await;
    let text = "invalid bootorder: device 'net9' does not exist'";
    put(&estate, 2001, &[("boot", "order=scsi0;net9")]).await.refuses(500, text);
}

#[tokio::test(start_paused = true)]
async fn passwords_are_not_shown_again() {
    let estate = estate_with_vm().await;
    assert_eq!(put(&estate, 2001, &[("cipassword", "hunter2")]).await.status, 200);
    assert_eq!(config(&estate, 2001).await["cipassword"], "**********");
    let entry = estate.ledger().into_iter().find(|e| e.params.contains_key("cipassword")).unwrap();
    assert_eq!(entry.params["cipassword"], "***");
}
