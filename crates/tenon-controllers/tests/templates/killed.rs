//! Workers of Proxmox that are killed in the middle: what they leave is resumed, cleaned up, or named.

use std::time::Duration;

use serde_json::json;
use tenon_model::{TemplateBuild, TemplateStep};
use tenon_sim::WebFile;

use crate::claim::site::Death;
use crate::templates::site::{Life, OTHER_URL, Site, URL, image, ready, template};

fn any(is_so: impl Fn(&TemplateBuild) -> bool) -> impl Fn(&Option<Vec<TemplateBuild>>) -> bool {
    move |builds| builds.as_ref().is_some_and(|builds| builds.iter().any(&is_so))
}

fn works_at(step: TemplateStep) -> impl Fn(&Option<Vec<TemplateBuild>>) -> bool {
    any(move |build| build.step == step && build.upid.is_some())
}

/// Kills the worker of the first build.
async fn kill(site: &Site) {
    let builds = site.builds().await;
    let upid = builds.iter().find_map(|build| build.upid.clone()).unwrap();
    assert!(site.estate.kill_worker(&upid), "{upid}");
}

#[tokio::test(start_paused = true)]
async fn a_download_that_is_killed_half_way_is_done_again_and_what_it_left_is_named() {
    let site = Site::with(&["pve1"]).await;
    site.estate.publish(URL, WebFile::image("13", 3 << 30, 320 << 20).over(4 << 20));
    site.create(template("local")).await;
    site.run(any(|build| build.progress >= Some(50))).await;
    kill(&site).await;
    site.run(any(|build| build.attempt == 1)).await;
    let (status, reason, message) = site.condition().await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "TemplateBuildFailed"), "{message}");
    for part in ["was interrupted", "on host pve1 run: rm -f /var/lib/vz/import/debian-13-", ".tmp_dwnl."] {
        assert!(message.contains(part), "{message}");
    }
    site.run(ready(1)).await;
    assert_eq!((site.vm_templates().len(), site.images().len()), (1, 1));
    assert_eq!(site.condition().await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_conversion_that_is_killed_is_done_again() {
    let site = Site::with(&["pve1"]).await;
    site.estate.hold_tasks("qmtemplate");
    site.create(template("local")).await;
    site.run(works_at(TemplateStep::Convert)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    kill(&site).await;
    site.estate.release_tasks();
    site.run(ready(1)).await;
    assert_eq!(site.zones().await, ["lab/pve1/1000"], "it is the same VM");
}

#[tokio::test(start_paused = true)]
async fn a_conversion_that_is_killed_in_the_middle_is_replaced_by_a_whole_template() {
    let site = Site::with(&["pve1"]).await;
    site.estate.hold_tasks("qmtemplate");
    site.create(template("local")).await;
    site.run(works_at(TemplateStep::Convert)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    kill(&site).await;
    site.estate.release_tasks();
    // The flag is set first, and then the disks become base images.
    let pve = site.proxmox(&Life::until(Death::Never));
    let flag = [("template", "1".to_owned())];
    pve.configure_vm(&"pve1".parse().unwrap(), "1000".parse().unwrap(), &flag).await.unwrap();
    site.run(ready(1)).await;
    assert_eq!(site.zones().await, ["lab/pve1/1001"]);
    let disks = site.estate.volumes().into_iter().filter(|volume| volume.content == "images");
    let disks: Vec<String> = disks.map(|volume| volume.volid).collect();
    assert!(!disks.is_empty() && disks.iter().all(|disk| disk.contains("1001/base-1001-disk-")), "{disks:?}");
}

#[tokio::test(start_paused = true)]
async fn a_destruction_that_is_killed_is_done_again() {
    let site = Site::with(&["pve1"]).await;
    site.create(template("local")).await;
    site.run(ready(1)).await;
    site.estate.hold_tasks("qmdestroy");
    site.delete().await;
    site.run(works_at(TemplateStep::Destroy)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    kill(&site).await;
    site.estate.release_tasks();
    site.run(Option::is_none).await;
    assert!(site.estate.vms().is_empty() && site.estate.volumes().is_empty(), "{:?}", site.estate.volumes());
}

#[tokio::test(start_paused = true)]
async fn a_deletion_of_an_image_that_is_killed_is_done_again() {
    let site = Site::with(&["pve1"]).await;
    site.create(template("local")).await;
    site.run(ready(1)).await;
    site.estate.hold_tasks("imgdel");
    let source = json!({ "url": OTHER_URL, "checksum": image("14").sha256() });
    site.change(json!({ "spec": { "sourceImage": source } })).await;
    site.run(works_at(TemplateStep::DeleteImage)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let builds = site.builds().await;
    let last = builds.iter().find(|build| build.step == TemplateStep::DeleteImage).unwrap();
    assert!(site.estate.kill_worker(last.upid.as_ref().unwrap()));
    site.estate.release_tasks();
    site.run(ready(1)).await;
    assert!(site.images().iter().all(|image| image.contains("debian-14-")), "{:?}", site.images());
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_creation_is_reported_and_another_id_taken() {
    let site = Site::with(&["pve1"]).await;
    site.create(template("local")).await;
    let creates = |builds: &Option<Vec<TemplateBuild>>| {
        builds
            .as_ref()
            .is_some_and(|builds| builds.iter().any(|build| build.step == TemplateStep::Create && build.upid.is_some()))
    };
    site.run(creates).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(site.estate.kill_worker(site.builds().await[0].upid.as_ref().unwrap()));
    site.run(|builds| {
        builds.as_ref().is_some_and(|builds| builds.iter().any(|build| build.step == TemplateStep::Ready))
    })
    .await;
    let builds = site.builds().await;
    let left = builds.iter().find(|build| build.retired).unwrap();
    assert!(left.error.as_ref().unwrap().contains("qm unlock 1000 && qm destroy 1000 --purge"), "{left:?}");
    assert_eq!(site.zones().await, ["lab/pve1/1001"]);
    site.estate.remove_vm(1000).unwrap();
    site.run(ready(1)).await;
}
