//! A name of a file says nothing about what is in it: no template is made from an image that was not compared with what its own
//! object asks for.

use serde_json::{Value, json};
use tenon_model::{TemplateBuild, TemplateStep};
use tenon_sim::{WebCertificate, WebFile};

use crate::templates::site::{Site, URL, image, ready, template};

const GIB: u64 = 1 << 30;

/// What the server has later: another disk, so that a disk tells what it was made from.
fn newer() -> WebFile {
    WebFile::image("newer", 4 * GIB, 64 << 20)
}

fn with_checksum(sum: &str) -> Value {
    json!({ "spec": { "sourceImage": { "checksum": sum } } })
}

fn failed(builds: &Option<Vec<TemplateBuild>>) -> bool {
    builds.as_ref().is_some_and(|builds| builds.iter().any(|build| build.attempt >= 2))
}

/// The size of the disk of a template.
fn disk_of(site: &Site, vmid: u32) -> u64 {
    let volumes = site.estate.volumes();
    volumes.iter().find(|volume| volume.content == "images" && volume.owner == Some(vmid)).unwrap().bytes
}

#[tokio::test(start_paused = true)]
async fn another_checksum_at_the_same_url_gives_a_template_of_the_new_image() {
    let site = Site::with(&["pve1"]).await;
    site.create(template("local")).await;
    site.run(ready(1)).await;
    assert_eq!(disk_of(&site, 1000), 3 * GIB);
    site.estate.publish(URL, newer());
    site.change(with_checksum(&newer().sha256())).await;
    site.run(|builds| ready(1)(builds) && builds.as_ref().is_some_and(|builds| builds[0].vmid.get() != 1000)).await;
    assert_eq!((disk_of(&site, 1001), site.images().len()), (4 * GIB, 1));
    site.delete().await;
    site.run(Option::is_none).await;
    assert!(site.images().is_empty() && site.estate.vms().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_checksum_that_the_server_does_not_have_makes_no_template_and_the_old_one_serves() {
    let site = Site::with(&["pve1"]).await;
    site.create(template("local")).await;
    site.run(ready(1)).await;
    site.change(with_checksum(&"0".repeat(64))).await;
    site.run(failed).await;
    assert_eq!(site.zones().await, ["lab/pve1/1000"]);
    let (_, _, message) = site.condition().await;
    assert!(message.contains("checksum mismatch") && message.contains("storage local on host pve1"), "{message}");
    assert!(site.builds().await.iter().all(|build| build.step <= TemplateStep::Download || build.vmid.get() == 1000));
}

#[tokio::test(start_paused = true)]
async fn a_second_object_that_adds_a_checksum_is_not_made_from_the_file_of_the_first() {
    let site = Site::with(&["pve1"]).await;
    let mut first = template("local");
    first["spec"]["sourceImage"] = json!({ "url": URL });
    site.create(first).await;
    site.run(ready(1)).await;
    site.estate.publish(URL, newer());
    let mut second = template("local");
    second["metadata"]["name"] = json!("strict");
    second["spec"]["sourceImage"]["checksum"] = json!(newer().sha256());
    site.create(second).await;
    for _ in 0..200 {
        site.passes(1).await;
        if site.builds_of("strict").await.iter().any(|build| build.step == TemplateStep::Ready) {
            break;
        }
    }
    assert_eq!((disk_of(&site, 1000), disk_of(&site, 1001)), (3 * GIB, 4 * GIB));
    assert_eq!(site.zones().await, ["lab/pve1/1000"], "the disk of the first is a copy");
}

#[tokio::test(start_paused = true)]
async fn an_image_whose_certificate_nobody_checked_is_loaded_again_for_an_object_that_asks_for_the_check() {
    let site = Site::with(&["pve1"]).await;
    site.estate.publish(URL, image("13").certificate(WebCertificate::UnknownIssuer));
    let mut object = template("local");
    object["spec"]["sourceImage"] = json!({ "url": URL, "insecureSkipTLSVerify": true });
    site.create(object).await;
    site.run(ready(1)).await;
    site.change(json!({ "spec": { "sourceImage": { "insecureSkipTLSVerify": false } } })).await;
    site.run(failed).await;
    assert_eq!(site.zones().await, ["lab/pve1/1000"]);
    let (_, _, message) = site.condition().await;
    assert!(message.contains("insecureSkipTLSVerify"), "{message}");
    // The server gets a good certificate: no template of the unchecked file is left.
    site.estate.publish(URL, newer());
    site.run(|builds| ready(1)(builds) && builds.as_ref().is_some_and(|builds| builds[0].vmid.get() != 1000)).await;
    assert_eq!(disk_of(&site, 1001), 4 * GIB);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_somebody_put_there_is_compared_and_never_deleted() {
    let site = Site::with(&["pve1"]).await;
    site.create(template("local")).await;
    site.run(ready(1)).await;
    let file = site.images();
    // Nobody remembers the download any more.
    let record = json!({ "metadata": { "annotations": { "tenon.dev/template-builds": null } } });
    site.change(record).await;
    site.say(json!({ "zones": [] })).await;
    site.change(with_checksum(&"0".repeat(64))).await;
    site.run(failed).await;
    let (_, _, message) = site.condition().await;
    assert!(message.contains("exists already and has another checksum; delete the file"), "{message}");
    assert_eq!(site.images(), file);
    site.change(with_checksum(&image("13").sha256())).await;
    site.run(ready(1)).await;
    site.delete().await;
    site.run(Option::is_none).await;
    assert_eq!(site.images(), file);
}
