//! What a running PVE was seen to do that no manual tells: forms, refused uploads, full storages, vanishing folders.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use tenon_sim::{Estate, EstateConfig, StorageSpec, TemplateSpec, Tls, VmSpec};

use crate::estate::bench::{
    TOKEN, call, clone, config, estate, estate_with_vm, exit, get, request, run, send, upload, upload_request,
};
use crate::estate::https::{connect, serve};

const CONFIG: &str = "/nodes/pve1/qemu/2001/config";
const UNKNOWN: &str = "property is not defined in schema and the schema does not allow additional properties";

async fn put_raw(estate: &Estate, body: &str) -> crate::estate::bench::Got {
    send(estate, request("PUT", CONFIG, body)).await
}

#[tokio::test(start_paused = true)]
async fn forms_are_split_at_semicolons_and_values_end_at_a_second_equals_sign() {
    let estate = estate_with_vm().await;
    assert_eq!(put_raw(&estate, "description=x=y").await.status, 200);
    assert_eq!(config(&estate, 2001).await["description"], "x");
    assert_eq!(put_raw(&estate, "description=x%3Dy%3Bz").await.status, 200);
    assert_eq!(config(&estate, 2001).await["description"], "x=y;z");
    put_raw(&estate, "tags=a;b").await.refuses_fields(&[("b", UNKNOWN)]);
    put_raw(&estate, "&&cores=1&").await.refuses_fields(&[("_root", UNKNOWN)]);
    assert_eq!(put_raw(&estate, "cores=1&&").await.status, 200);
    let told = "invalid format - duplicate key in comma-separated list property: model\n";
    put_raw(&estate, "net1=virtio,bridge=vmbr0").await.refuses_fields(&[("net1", told)]);
}

#[tokio::test(start_paused = true)]
async fn json_null_is_an_error_but_for_tags() {
    let estate = estate_with_vm().await;
    let send_json = async |body: Value| {
        let request = Request::put(format!("/api2/json{CONFIG}"))
            .header("authorization", TOKEN)
            .header("content-type", "application/json");
        send(&estate, request.body(Body::from(body.to_string())).unwrap()).await.status
    };
    assert_eq!(send_json(json!({ "cores": null })).await, 500);
    assert_eq!(send_json(json!({ "tags": null, "description": "x" })).await, 200);
    assert_eq!(config(&estate, 2001).await["tags"], " ");
}

/// Nothing but the right to look around.
async fn weaken(estate: &Estate) {
    estate.add_pool("k8s");
    let root = Request::post("/api2/json/access/ticket").header("content-type", "application/x-www-form-urlencoded");
    let form = Body::from("username=root%40pam&password=simulated");
    let ticket = send(estate, root.body(form).unwrap()).await.data();
    let as_root = async |method: &str, path: &str, form: &[(&str, &str)]| {
        let body: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let cookie = percent_encoding::utf8_percent_encode(
            ticket["ticket"].as_str().unwrap(),
            percent_encoding::NON_ALPHANUMERIC,
        );
        let request = Request::builder()
            .method(method)
            .uri(format!("/api2/json{path}"))
            .header("cookie", format!("PVEAuthCookie={cookie}"))
            .header("csrfpreventiontoken", ticket["CSRFPreventionToken"].as_str().unwrap())
            .header("content-type", "application/x-www-form-urlencoded");
        let got = send(estate, request.body(Body::from(body)).unwrap()).await;
        assert_eq!(got.status, 200, "{path} {}", got.reason);
    };
    let roles = [
        ("Node", "VM.Allocate,VM.Audit,VM.PowerMgmt,VM.Config.CPU,VM.Config.Memory,VM.Config.Options"),
        ("Template", "VM.Clone,VM.Audit"),
        ("Disk", "Datastore.AllocateSpace,Datastore.Audit"),
        ("Net", "SDN.Use"),
    ];
    for (role, privs) in roles {
        as_root("POST", "/access/roles", &[("roleid", role), ("privs", privs)]).await;
    }
    as_root(
        "PUT",
        "/access/acl",
        &[("path", "/"), ("users", "tenon@pve"), ("roles", "Administrator"), ("delete", "1")],
    )
    .await;
    let places = [("/pool/k8s", "Node"), ("/vms/9000", "Template"), ("/storage", "Disk"), ("/sdn/zones", "Net")];
    for (path, role) in places {
        as_root("PUT", "/access/acl", &[("path", path), ("users", "tenon@pve"), ("roles", role)]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_clone_into_no_pool_by_a_pool_scoped_token_is_refused_without_words() {
    let estate = estate();
    weaken(&estate).await;
    let path = "/nodes/pve1/qemu/9000/clone";
    call(&estate, "POST", path, &[("newid", "2001")]).await.refuses(403, "Permission check failed");
    assert_eq!(clone(&estate, "2001", &[("pool", "k8s")]).await, "OK");
}

#[tokio::test(start_paused = true)]
async fn a_refused_upload_has_no_body_on_a_fresh_connection() {
    let estate = estate();
    weaken(&estate).await;
    let got = send(&estate, upload_request(&[("content", "iso")], "a.iso", b"seed")).await;
    let told = "Permission check failed (/storage/shared, Datastore.AllocateTemplate)";
    assert_eq!((got.status, got.reason.as_str(), got.body.as_str()), (403, told, ""));
}

#[tokio::test]
async fn a_refused_upload_is_a_bad_request_on_a_connection_that_was_used_before() {
    let (estate, tls) = (estate(), Tls::self_signed().unwrap());
    weaken(&estate).await;
    let server = serve(&estate, &tls).await;
    let mut client = connect(&server, &tls).await.unwrap();
    let first = request("GET", "/version", "");
    assert_eq!(client.send_request(first).await.unwrap().status(), 200);
    client.ready().await.unwrap();
    let upload = upload_request(&[("content", "iso")], "a.iso", b"seed");
    let response = client.send_request(upload).await.unwrap();
    let phrase = response.extensions().get::<hyper::ext::ReasonPhrase>().unwrap().as_bytes().to_vec();
    assert_eq!((response.status().as_u16(), phrase), (400, b"bad request".to_vec()));
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn odd_parts_of_an_upload_are_refused() {
    let estate = estate();
    let got = send(&estate, upload_request(&[("content", "iso"), ("extra", "1")], "a.iso", b"seed")).await;
    assert_eq!((got.status, got.body.as_str()), (400, ""));
    let body = "--b0\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.iso\"\r\n\r\nseed\r\n--b0--\r\n";
    let sent = Request::post("/api2/json/nodes/pve1/storage/shared/upload")
        .header("authorization", TOKEN)
        .header("content-type", "multipart/form-data; boundary=b0");
    let got = send(&estate, sent.body(Body::from(body)).unwrap()).await;
    assert_eq!((got.status, got.reason.as_str()), (500, "wrong field name"));
}

#[tokio::test(start_paused = true)]
async fn a_full_clone_that_runs_out_of_room_tells_why_only_in_its_log() {
    let estate = estate();
    estate.set_storage_free("shared", 1 << 30).unwrap();
    let form = [("newid", "2001"), ("full", "1")];
    let upid = call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &form).await.upid();
    let told = exit(&estate, &upid).await;
    assert!(told.starts_with("clone failed: copy failed: command '/usr/bin/qemu-img convert -p -n -f qcow2 -O qcow2 "));
    assert!(told.ends_with(" failed: exit code 1") && !told.contains("No space"), "{told}");
    let log = get(&estate, &format!("/nodes/pve1/tasks/{upid}/log?limit=0")).await.data().to_string();
    assert!(log.contains("No space left on device"), "{log}");
    assert!(estate.vm(2001).is_none());
    assert_eq!(estate.volumes().iter().filter(|volume| volume.owner == Some(2001)).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_folder_of_iso_images_goes_with_the_last_of_them_until_the_storage_is_looked_at() {
    let estate = estate();
    let delete =
        async |file: &str| run(&estate, "DELETE", &format!("/nodes/pve1/storage/shared/content/iso/{file}"), &[]).await;
    assert_eq!(
        (upload(&estate, "a.iso", b"a").await, upload(&estate, "b.iso", b"b").await),
        ("OK".into(), "OK".into())
    );
    assert_eq!((delete("a.iso").await, upload(&estate, "a.iso", b"a").await), ("OK".into(), "OK".into()));
    assert_eq!((delete("a.iso").await, delete("b.iso").await), ("OK".into(), "OK".into()));
    let told =
        "import failed: cp: cannot create regular file '/mnt/shared/template/iso/c.iso': No such file or directory";
    assert_eq!(upload(&estate, "c.iso", b"c").await, told);
    get(&estate, "/nodes/pve1/storage/shared/status").await.data();
    assert_eq!((upload(&estate, "c.iso", b"c").await, delete("c.iso").await), ("OK".into(), "OK".into()));
    // The status daemon looks at it every few seconds as well.
    tokio::time::sleep(std::time::Duration::from_secs(11)).await;
    assert_eq!(upload(&estate, "c.iso", b"c").await, "OK");
}

#[tokio::test(start_paused = true)]
async fn a_volume_outside_of_its_storage_has_no_name() {
    let estate = estate();
    for volume in ["..%2F..%2Fetc%2Fpasswd", "iso%2F..%2F..%2Fx.iso", "odd%2Fx.iso"] {
        let got = call(&estate, "DELETE", &format!("/nodes/pve1/storage/shared/content/{volume}"), &[]).await;
        let shown = volume.replace("%2F", "/");
        got.refuses(500, &format!("unable to parse directory volume name '{shown}'"));
    }
}

#[tokio::test(start_paused = true)]
async fn keys_of_root_are_not_deleted_by_tokens() {
    let estate = estate_with_vm().await;
    for key in ["hookscript", "meta", "affinity"] {
        let told = format!("only root can set '{key}' config");
        call(&estate, "PUT", CONFIG, &[("delete", key)]).await.refuses(500, &told);
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_cpu_flags_and_files_of_the_host_are_refused() {
    let estate = estate_with_vm().await;
    let told = "invalid format - format error\ncpu.flags: value does not match the regex pattern\n";
    call(&estate, "PUT", CONFIG, &[("cpu", "host,flags=+nope")]).await.refuses_fields(&[("cpu", told)]);
    assert_eq!(call(&estate, "PUT", CONFIG, &[("cpu", "host,flags=+aes;-pcid")]).await.status, 200);
    let told = "unable to associate path '/etc/passwd' to any storage";
    call(&estate, "PUT", CONFIG, &[("scsi4", "/etc/passwd")]).await.refuses_fields(&[("scsi4", told)]);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_vm_without_the_agent_option_says_so_first() {
    let estate = estate_with_vm().await;
    let path = "/nodes/pve1/qemu/2001/agent/ping";
    call(&estate, "POST", path, &[]).await.refuses(500, "No QEMU guest agent configured");
    assert_eq!(call(&estate, "PUT", CONFIG, &[("agent", "1")]).await.status, 200);
    call(&estate, "POST", path, &[]).await.refuses(500, "VM 2001 is not running");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_init_drive_is_not_made_from_snippets_that_are_not_there() {
    let estate = estate_with_vm().await;
    assert_eq!(call(&estate, "PUT", CONFIG, &[("cicustom", "user=local:snippets/none.yaml")]).await.status, 200);
    let got = call(&estate, "PUT", "/nodes/pve1/qemu/2001/cloudinit", &[]).await;
    got.refuses(500, "volume 'local:snippets/none.yaml' does not exist");
}

#[tokio::test(start_paused = true)]
async fn tokens_get_no_tickets() {
    let estate = estate();
    let form = [("username", "root@pam"), ("password", "simulated")];
    assert_eq!(call(&estate, "POST", "/access/ticket", &form).await.status, 403);
}

#[tokio::test(start_paused = true)]
async fn the_tasks_of_the_cluster_are_told_with_less() {
    let estate = estate_with_vm().await;
    let row = get(&estate, "/cluster/tasks").await.data()[0].clone();
    assert_eq!((row.get("pid"), row.get("pstart"), &row["saved"]), (None, None, &json!("1")));
    assert!(get(&estate, "/nodes/pve1/tasks").await.data()[0]["pid"].is_number());
}

#[tokio::test(start_paused = true)]
async fn a_second_start_finds_the_vm_running() {
    let estate = estate_with_vm().await;
    let path = "/nodes/pve1/qemu/2001/status/start";
    let (first, second) =
        (call(&estate, "POST", path, &[]).await.upid(), call(&estate, "POST", path, &[]).await.upid());
    assert_eq!(
        (exit(&estate, &first).await, exit(&estate, &second).await),
        ("OK".into(), "VM 2001 already running".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_template_on_a_volume_group_has_no_linked_clones() {
    let storages = vec![StorageSpec::thick("vg", 64 << 30), StorageSpec::new("local", &["images", "iso"], 64 << 30)];
    let estate = Estate::new(EstateConfig { storages, ..EstateConfig::default() });
    estate.add_template(&TemplateSpec { storage: "vg".into(), ..TemplateSpec::default() }).unwrap();
    let told = "Linked clone feature is not supported for 'vg:base-9000-disk-0' (scsi0)";
    call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "2001")]).await.refuses(500, told);
    let feature = get(&estate, "/nodes/pve1/qemu/9000/feature?feature=clone").await.data();
    assert_eq!(feature["hasFeature"], 0);
    assert_eq!(clone(&estate, "2001", &[("full", "1")]).await, "OK");
    assert_eq!(config(&estate, 2001).await["scsi0"].as_str().unwrap().split(',').next(), Some("vg:vm-2001-disk-0"));
    estate.set_storage_free("vg", 1 << 30).unwrap();
    let told = "clone failed: lvcreate 'pve/vm-2002-disk-0' error: Volume group \"pve\" has insufficient free space (255 extents): 2048 required.";
    assert_eq!(clone(&estate, "2002", &[("full", "1")]).await, told);
}

#[tokio::test(start_paused = true)]
async fn a_clone_inherits_protection_and_a_suspended_vm_can_be_destroyed() {
    let estate = Estate::new(EstateConfig::default());
    let protected = [("protection".to_string(), "1".to_string())].into();
    estate.add_template(&TemplateSpec { config: protected, ..TemplateSpec::default() }).unwrap();
    assert_eq!(clone(&estate, "2001", &[]).await, "OK");
    let told = "can't remove VM 2001 - protection mode enabled";
    call(&estate, "DELETE", "/nodes/pve1/qemu/2001", &[]).await.refuses(500, told);
    assert_eq!(call(&estate, "PUT", CONFIG, &[("protection", "0")]).await.status, 200);
    assert_eq!(run(&estate, "DELETE", "/nodes/pve1/qemu/2001", &[]).await, "OK");
    let base = TemplateSpec { vmid: 3000, ..TemplateSpec::default() };
    estate.add_vm(&VmSpec { base, running: false }).unwrap();
    estate.lock(3000, "suspended").unwrap();
    assert_eq!(run(&estate, "DELETE", "/nodes/pve1/qemu/3000", &[]).await, "OK");
}
