//! Tasks: identity, status, log, listing.

use serde_json::json;

use crate::estate::bench::{call, clone, estate, estate_with_vm, exit, get};

#[tokio::test(start_paused = true)]
async fn a_task_shows_its_parts_and_its_end() {
    let estate = estate();
    let upid = call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "2001")]).await.upid();
    let path = format!("/nodes/pve1/tasks/{upid}/status");
    let running = get(&estate, &path).await.data();
    let parts: Vec<&str> = upid.split(':').collect();
    let hex = |n: usize| u64::from_str_radix(parts[n], 16).unwrap();
    let mut expected = json!({
        "upid": upid, "node": "pve1", "type": "qmclone", "id": "9000", "user": "tenon@pve", "tokenid": "sim",
        "pid": hex(2), "pstart": hex(3), "starttime": hex(4), "status": "running",
    });
    assert_eq!(running, expected);
    assert_eq!(exit(&estate, &upid).await, "OK");
    expected["status"] = "stopped".into();
    expected["exitstatus"] = "OK".into();
    assert_eq!(get(&estate, &path.replace(':', "%3A")).await.data(), expected);
    assert_eq!(call(&estate, "DELETE", &format!("/nodes/pve1/tasks/{upid}"), &[]).await.data(), json!(null));
}

#[tokio::test(start_paused = true)]
async fn a_task_is_known_on_its_own_host_only() {
    let estate = estate();
    let upid = call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "2001")]).await.upid();
    get(&estate, &format!("/nodes/pve2/tasks/{upid}/status")).await.refuses_fields(&[("upid", "no such task")]);
    let malformed = get(&estate, "/nodes/pve1/tasks/UPID:foo/status").await;
    malformed.refuses_fields(&[("upid", "unable to parse worker upid")]);
    let log = get(&estate, &format!("/nodes/pve2/tasks/{upid}/log")).await.json();
    assert_eq!(
        log,
        json!({ "data": [{ "n": 1, "t": "unable to open file - No such file or directory" }], "total": 1 })
    );
}

#[tokio::test(start_paused = true)]
async fn a_log_is_numbered_and_paged() {
    let estate = estate();
    let upid = call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "2001")]).await.upid();
    assert_eq!(exit(&estate, &upid).await, "OK");
    let path = format!("/nodes/pve1/tasks/{upid}/log");
    let log = get(&estate, &path).await.json();
    assert_eq!(log["data"][0], json!({ "n": 1, "t": "creating a clone of VM 9000 with ID 2001" }));
    let total = log["total"].as_u64().unwrap();
    assert_eq!(log["data"][usize::try_from(total).unwrap() - 1]["t"], "TASK OK");
    assert_eq!(get(&estate, &format!("{path}?start=100")).await.json(), json!({ "data": [], "total": total }));
    assert_eq!(get(&estate, &format!("{path}?limit=1")).await.data().as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn lists_are_newest_first_and_filtered() {
    let estate = estate_with_vm().await;
    assert_eq!(clone(&estate, "2002", &[]).await, "OK");
    estate.hold_tasks("qmclone");
    let active = call(&estate, "POST", "/nodes/pve1/qemu/9000/clone", &[("newid", "2003")]).await.upid();
    let archive = get(&estate, "/nodes/pve1/tasks?vmid=9000&typefilter=qmclone").await.json();
    assert_eq!(archive["total"], 2);
    assert_eq!((&archive["data"][0]["status"], &archive["data"][1]["status"]), (&json!("OK"), &json!("OK")));
    assert!(archive["data"][0]["pid"].as_u64() > archive["data"][1]["pid"].as_u64());
    assert!(archive["data"][0]["endtime"].is_u64());
    let rows = get(&estate, "/nodes/pve1/tasks?source=active").await.data();
    assert_eq!((rows.as_array().unwrap().len(), &rows[0]["upid"]), (1, &json!(active)));
    assert_eq!(get(&estate, "/nodes/pve1/tasks?source=all").await.json()["total"], 3);
    assert_eq!(get(&estate, "/nodes/pve2/tasks?source=all").await.json(), json!({ "data": [] }));
    let bad = get(&estate, "/nodes/pve1/tasks?limit=abc").await;
    bad.refuses_fields(&[("limit", "type check ('integer') failed - got 'abc'")]);
}
