//! Storages: upload, listing, removal, room.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use tenon_sim::{Estate, EstateConfig, StorageSpec};

use crate::estate::bench::{TOKEN, call, estate, estate_with_vm, exit, get, run, send, upload, upload_request};

const CONTENT: &str = "/nodes/pve1/storage/shared/content";

#[tokio::test(start_paused = true)]
async fn an_uploaded_iso_can_be_listed_shown_and_read() {
    let estate = estate();
    let got = send(&estate, upload_request(&[("content", "iso")], "seed.iso", b"hello")).await;
    assert_eq!(got.headers["connection"], "close");
    let upid = got.upid();
    assert!(upid.contains(":imgcopy::tenon@pve!sim:"), "{upid}");
    assert_eq!(exit(&estate, &upid).await, "OK");
    assert_eq!(upload(&estate, "seed.iso", b"hello again").await, "OK", "it overwrites");
    assert_eq!(estate.read_volume("shared:iso/seed.iso").unwrap(), "hello again");
    let mut rows = get(&estate, &format!("{CONTENT}?content=iso")).await.data();
    rows[0].as_object_mut().unwrap().remove("ctime");
    assert_eq!(rows, json!([{ "volid": "shared:iso/seed.iso", "content": "iso", "format": "iso", "size": 11 }]));
    for name in ["shared:iso/seed.iso", "shared%3Aiso%2Fseed.iso", "iso/seed.iso"] {
        let shown = get(&estate, &format!("{CONTENT}/{name}")).await.data();
        let path = "/mnt/shared/template/iso/seed.iso";
        assert_eq!(shown, json!({ "path": path, "format": "iso", "size": 11, "used": 11 }));
    }
    let missing = "volume_size_info on 'shared:iso/none.iso' failed - no format";
    get(&estate, &format!("{CONTENT}/shared:iso/none.iso")).await.refuses(500, missing);
}

#[tokio::test(start_paused = true)]
async fn file_names_are_cleaned_and_wrong_ones_refused() {
    let estate = estate();
    assert_eq!(upload(&estate, "/tmp/a b&c.iso", b"").await, "OK");
    assert!(estate.read_volume("shared:iso/a_b_c.iso").is_some());
    let wrong = send(&estate, upload_request(&[("content", "iso")], "x.txt", b"")).await;
    wrong.refuses_fields(&[("filename", "wrong file extension")]);
    let missing = send(&estate, upload_request(&[], "x.iso", b"")).await;
    missing.refuses_fields(&[("content", "property is missing and it is not optional")]);
    let import = send(&estate, upload_request(&[("content", "import")], "x.qcow2", b"")).await;
    import.refuses(500, "storage 'shared' does not support 'import' content");
    let sum = [("content", "iso"), ("checksum", "00"), ("checksum-algorithm", "sha256")];
    let upid = send(&estate, upload_request(&sum, "x.iso", b"")).await.upid();
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(exit(&estate, &upid).await, format!("checksum mismatch: got '{empty}' != expect '00'"));
}

#[tokio::test(start_paused = true)]
async fn a_broken_upload_is_an_error_of_the_server() {
    let estate = estate();
    let request = |kind: &str| {
        let uri = "/api2/json/nodes/pve1/storage/shared/upload";
        let builder = Request::builder().method("POST").uri(uri).header("authorization", TOKEN);
        builder.header("content-type", kind).body(Body::from("--b0\r\n")).unwrap()
    };
    let got = send(&estate, request("multipart/form-data; boundary=b0")).await;
    let text = "upload failed at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 1370.";
    assert_eq!((got.status, got.reason.as_str(), got.body), (500, text, format!("{text}\n")));
    assert!(send(&estate, request("application/x-www-form-urlencoded")).await.lost);
}

#[tokio::test(start_paused = true)]
async fn a_full_storage_fails_the_upload() {
    let estate = estate();
    estate.set_storage_free("shared", 3).unwrap();
    assert!(upload(&estate, "seed.iso", b"hello").await.ends_with("No space left on device"));
    assert!(estate.read_volume("shared:iso/seed.iso").is_none());
    let status = get(&estate, "/nodes/pve2/storage/shared/status").await.data();
    assert_eq!((status["avail"].as_u64(), status["shared"].as_u64()), (Some(3), Some(1)));
}

#[tokio::test(start_paused = true)]
async fn removing_a_volume_is_idempotent() {
    let estate = estate();
    assert_eq!(upload(&estate, "seed.iso", b"x").await, "OK");
    let path = format!("{CONTENT}/shared%3Aiso%2Fseed.iso");
    let upid = call(&estate, "DELETE", &path, &[]).await.upid();
    assert!(upid.contains(":imgdel:shared:"), "{upid}");
    assert_eq!(exit(&estate, &upid).await, "OK");
    assert_eq!(run(&estate, "DELETE", &path, &[]).await, "OK");
    assert_eq!(call(&estate, "DELETE", &path, &[("delay", "5")]).await.data(), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn an_attached_iso_is_removed_and_then_the_vm_does_not_start() {
    let estate = estate_with_vm().await;
    assert_eq!(upload(&estate, "seed.iso", b"x").await, "OK");
    assert_eq!(
        crate::estate::bench::put(&estate, 2001, &[("ide3", "shared:iso/seed.iso,media=cdrom")]).await.status,
        200
    );
    assert_eq!(run(&estate, "DELETE", &format!("{CONTENT}/shared:iso/seed.iso"), &[]).await, "OK");
    let start = run(&estate, "POST", "/nodes/pve1/qemu/2001/status/start", &[]).await;
    assert_eq!(start, "volume 'shared:iso/seed.iso' does not exist");
    let base = run(&estate, "DELETE", &format!("{CONTENT}/shared:9000/base-9000-disk-0.qcow2"), &[]).await;
    assert_eq!(base, "base volume '9000/base-9000-disk-0.qcow2' is still in use by linked clones");
}

#[tokio::test(start_paused = true)]
async fn volumes_of_a_vm_are_listed_with_their_parent() {
    let estate = estate_with_vm().await;
    let rows = get(&estate, &format!("{CONTENT}?content=images&vmid=2001")).await.data();
    let rows = rows.as_array().unwrap().clone();
    assert_eq!(rows.len(), 2);
    let disk = rows.iter().find(|r| !r["parent"].is_null()).unwrap();
    assert_eq!(disk["volid"], "shared:9000/base-9000-disk-0.qcow2/2001/vm-2001-disk-0.qcow2");
    assert_eq!((&disk["parent"], &disk["size"]), (&json!("../9000/base-9000-disk-0.qcow2"), &json!(8u64 << 30)));
}

#[tokio::test(start_paused = true)]
async fn a_storage_of_another_host_is_inactive_here() {
    let mut config = EstateConfig::default();
    config.storages.push(StorageSpec::new("only2", &["images", "iso"], 1 << 30).only_on(&["pve2"]));
    let estate = Estate::new(config);
    let rows = get(&estate, "/nodes/pve1/storage").await.data();
    let row = rows.as_array().unwrap().iter().find(|r| r["storage"] == "only2").unwrap().clone();
    assert_eq!((&row["enabled"], &row["active"], &row["total"]), (&json!(0), &json!(0), &json!(0)));
    let text = "storage 'only2' is not available on node 'pve1'";
    get(&estate, "/nodes/pve1/storage/only2/content").await.refuses(500, text);
    get(&estate, "/nodes/pve1/storage/nope/content").await.refuses(500, "storage 'nope' does not exist");
}
