//! Templates of a region that is not configured, or not the one that is asked for any more.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use tenon_controllers::{RegionChange, RegionSetup};
use tenon_model::{RegionCapacity, TemplateBuild};
use tenon_sim::Estate;

use crate::claim::site::Death;
use crate::templates::site::{Life, OTHER_URL, Site, URL, config, image, ready, template};

/// A site with a second region, which has the images, too.
async fn with_attic() -> Site {
    let attic = Estate::new(config(&["att1"]));
    attic.publish(URL, image("13"));
    attic.publish(OTHER_URL, image("14"));
    Site { attic: Some(attic), ..Site::with(&["pve1"]).await }
}

fn downloads(site: &Site) -> usize {
    site.estate.ledger().into_iter().filter(|call| call.path.ends_with("/download-url")).count()
}

#[tokio::test(start_paused = true)]
async fn a_region_that_is_removed_and_added_again_has_the_same_templates() {
    let site = with_attic().await;
    site.create(template("local")).await;
    site.run(ready(2)).await;
    let (builds, loaded, zones) = (site.builds().await, downloads(&site), site.zones().await);
    // The cloud config is read again while the controller runs.
    let life = Life::until(Death::Never);
    let context = site.controller(&life);
    site.pass(&context, &life).await.unwrap();
    let lab = context.regions.get("lab").unwrap();
    context.regions.replace(BTreeMap::from([("attic".to_owned(), RegionChange::Keep)]));
    let mut told = String::new();
    for _ in 0..100 {
        told = format!("{:?}", site.pass(&context, &life).await.unwrap());
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    assert!(told.contains("RegionNotConfigured"), "{told}");
    assert!(told.contains("kept and not touched: region lab is not in the cloud config, which has attic"), "{told}");
    let (status, _, message) = site.condition().await;
    assert!(status == "True" && message.contains("region lab is not in the cloud config"), "{message}");
    assert_eq!(site.zones().await, zones);
    let lab = RegionSetup { client: lab, rules: RegionCapacity::default() };
    let both = [("attic", RegionChange::Keep), ("lab", RegionChange::Use(Box::new(lab)))];
    context.regions.replace(both.map(|(name, change)| (name.to_owned(), change)).into());
    for _ in 0..40 {
        site.pass(&context, &life).await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    let ids = |builds: &[TemplateBuild]| builds.iter().map(TemplateBuild::zone).collect::<Vec<_>>();
    assert_eq!((ids(&site.builds().await), downloads(&site)), (ids(&builds), loaded));
}

#[tokio::test(start_paused = true)]
async fn a_spec_that_names_a_region_which_is_not_configured_retires_nothing() {
    let mut site = with_attic().await;
    let mut object = template("local");
    object["spec"]["region"] = json!("lab");
    site.create(object).await;
    site.run(ready(1)).await;
    site.is_lab_removed = true;
    site.passes(400).await;
    assert!(ready(1)(&Some(site.builds().await)), "{:?}", site.builds().await);
    let (_, _, message) = site.condition().await;
    assert!(message.contains("region lab is not in the cloud config, which has attic"), "{message}");
    // An object that is deleted waits for the region.
    site.delete().await;
    site.passes(10).await;
    assert!(site.get().await.is_some());
    let (_, _, message) = site.condition().await;
    assert!(message.contains("region lab is not in the cloud config, which has attic; add the region"), "{message}");
    site.is_lab_removed = false;
    site.run(Option::is_none).await;
    assert!(site.vm_templates().is_empty() && site.images().is_empty());
}

#[tokio::test(start_paused = true)]
async fn another_region_that_is_configured_retires_the_templates_of_the_first() {
    let site = with_attic().await;
    let mut object = template("local");
    object["spec"]["region"] = json!("lab");
    site.create(object).await;
    site.run(ready(1)).await;
    site.change(json!({ "spec": { "region": "elsewhere" } })).await;
    site.passes(10).await;
    assert!(ready(1)(&Some(site.builds().await)));
    site.change(json!({ "spec": { "region": "attic" } })).await;
    site.run(|builds| ready(1)(builds) && builds.as_ref().is_some_and(|builds| builds[0].place.region == "attic"))
        .await;
    assert!(site.vm_templates().is_empty() && site.images().is_empty());
    assert_eq!(site.zones().await, ["attic/att1/1000"]);
}
