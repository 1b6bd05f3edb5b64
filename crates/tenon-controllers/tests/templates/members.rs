//! A host that the Proxmox cluster does not list: missing for a look, or not a member any more.

use std::time::Duration;

use crate::claim::site::Death;
use crate::templates::site::{Life, Site, ready, template};

const LISTING: &str = "/api2/json/cluster/resources";
const STATUS: &str = "/api2/json/cluster/status";

/// Two hosts with a template each.
async fn with_templates() -> Site {
    let site = Site::with(&["pve1", "pve2"]).await;
    site.create(template("local")).await;
    site.run(ready(2)).await;
    assert_eq!(site.zones().await, ["lab/pve1/1000", "lab/pve2/1001"]);
    site
}

/// Passes of one controller for so many minutes.
async fn minutes(site: &Site, count: u64) {
    let life = Life::until(Death::Never);
    let context = site.controller(&life);
    for _ in 0..count * 6 {
        site.pass(&context, &life).await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_a_listing_lacks_keeps_its_template_as_long_as_it_is_a_member() {
    let site = with_templates().await;
    site.veil.hide("pve2", &[LISTING]);
    minutes(&site, 30).await;
    assert!(ready(2)(&Some(site.builds().await)), "{:?}", site.builds().await);
    assert_eq!(site.zones().await, ["lab/pve1/1000", "lab/pve2/1001"]);
}

#[tokio::test(start_paused = true)]
async fn a_template_whose_host_left_the_cluster_serves_again_when_the_host_is_back() {
    let site = with_templates().await;
    site.veil.hide("pve2", &[LISTING, STATUS]);
    minutes(&site, 5).await;
    assert_eq!(site.zones().await, ["lab/pve1/1000", "lab/pve2/1001"], "five minutes prove nothing");
    minutes(&site, 7).await;
    assert_eq!(site.zones().await, ["lab/pve1/1000"]);
    let (_, _, message) = site.condition().await;
    let told = "host pve2 of VM template 1001 is not a member of the Proxmox cluster of region lab";
    assert!(message.contains(told), "{message}");
    site.veil.lift();
    site.run(ready(2)).await;
    minutes(&site, 1).await;
    assert_eq!(site.zones().await, ["lab/pve1/1000", "lab/pve2/1001"]);
    let downloads = site.estate.ledger().into_iter().filter(|call| call.path.ends_with("/download-url")).count();
    assert_eq!((downloads, site.vm_templates().len()), (2, 2), "nothing was made anew");
}

#[tokio::test(start_paused = true)]
async fn an_object_is_deleted_without_what_is_on_a_host_that_left_the_cluster() {
    let site = with_templates().await;
    site.veil.hide("pve2", &[LISTING, STATUS]);
    minutes(&site, 12).await;
    site.delete().await;
    site.run(Option::is_none).await;
    let left: Vec<u32> = site.estate.vms().iter().map(|vm| vm.vmid).collect();
    assert_eq!(left, [1001], "what cannot be reached is not touched");
}
