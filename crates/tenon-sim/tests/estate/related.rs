//! What else names a VM: who stops a VM that the HA manager looks after, and what a destroy takes off the lists.

use std::time::Duration;

use tenon_sim::Estate;

use crate::estate::bench::{call, estate_with_vm, run};

const VM: &str = "/nodes/pve1/qemu/2001";

async fn running() -> Estate {
    let estate = estate_with_vm().await;
    assert_eq!(run(&estate, "POST", &format!("{VM}/status/start"), &[]).await, "OK");
    estate
}

#[tokio::test(start_paused = true)]
async fn only_the_ha_manager_stops_its_vms_and_the_task_ends_before_they_do() {
    for verb in ["stop", "shutdown"] {
        let estate = running().await;
        estate.add_ha_resource(2001);
        let upid = call(&estate, "POST", &format!("{VM}/status/{verb}"), &[]).await.upid();
        assert!(upid.contains(":hastop:2001:"), "{upid}");
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(estate.task_spans("hastop")[0].ended.map(|_| estate.vm(2001).unwrap().status), Some("running"));
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(estate.vm(2001).unwrap().status, "stopped");
    }
}

#[tokio::test(start_paused = true)]
async fn a_destroy_without_purge_is_refused_or_leaves_the_vm_in_backup_jobs() {
    let estate = estate_with_vm().await;
    estate.add_replication(2001);
    let text = "There is a replication job '2001-0' for guest '2001' - Please remove that first.";
    call(&estate, "DELETE", VM, &[]).await.refuses(500, text);
    estate.add_ha_resource(2001);
    let text = "unable to remove VM 2001 - used in HA resources and purge parameter not set.";
    call(&estate, "DELETE", VM, &[]).await.refuses(500, text);
    estate.add_to_backup_job("nightly", 2001);
    assert_eq!(estate.related(2001), ["ha vm:2001", "backup nightly", "replication 2001-0"]);
    assert_eq!(run(&estate, "DELETE", VM, &[("purge", "1")]).await, "OK");
    assert_eq!(estate.related(2001), Vec::<String>::new());

    let estate = estate_with_vm().await;
    estate.add_to_backup_job("nightly", 2001);
    assert_eq!(run(&estate, "DELETE", VM, &[]).await, "OK");
    assert_eq!(estate.related(2001), ["backup nightly"]);
}
