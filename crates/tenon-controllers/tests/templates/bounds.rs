//! How much is loaded at the same time, and what a host that hangs holds up.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use tenon_model::{TemplateBuild, TemplateStep};
use tenon_sim::{Estate, FaultEffect, FaultMatch, FaultRule, WebFile};

use crate::claim::site::Death;
use crate::templates::site::{Life, Site, URL, config, ready, template};

const HOSTS: [&str; 6] = ["pve1", "pve2", "pve3", "pve4", "pve5", "pve6"];

fn named(name: &str) -> serde_json::Value {
    let mut object = template("local");
    object["metadata"]["name"] = json!(name);
    object
}

#[tokio::test(start_paused = true)]
async fn four_hosts_of_a_region_load_at_the_same_time_and_each_only_one_image() {
    let site = Site::with(&HOSTS).await;
    site.estate.publish(URL, WebFile::image("13", 3 << 30, 320 << 20).over(4 << 20));
    site.create(named("debian")).await;
    site.create(named("again")).await;
    let life = Life::until(Death::Never);
    let context = site.controller(&life);
    let (mut most, mut waited) = (0, false);
    for _ in 0..1_000 {
        site.pass(&context, &life).await.unwrap();
        let builds: Vec<TemplateBuild> =
            [site.builds_of("debian").await, site.builds_of("again").await].into_iter().flatten().collect();
        let is_loading = |build: &&TemplateBuild| build.step <= TemplateStep::Create && build.upid.is_some();
        let loading: Vec<&TemplateBuild> = builds.iter().filter(is_loading).collect();
        let hosts: BTreeSet<&str> = loading.iter().map(|build| build.place.host.as_str()).collect();
        assert_eq!(hosts.len(), loading.len(), "one at a time on a host");
        most = most.max(loading.len());
        waited |= builds.iter().any(|build| build.error.as_ref().is_some_and(|why| why.contains("waits for its turn")));
        if builds.len() == 12 && builds.iter().all(|build| build.step == TemplateStep::Ready) {
            assert_eq!((most, waited, site.vm_templates().len()), (4, true, 12));
            return;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    panic!("it must end: {:?}", site.condition().await);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_hangs_delays_neither_other_hosts_nor_other_objects() {
    let site = Site::with(&["pve1", "pve2", "pve3"]).await;
    let when = FaultMatch { path: Some("/nodes/pve2/**".to_owned()), ..FaultMatch::default() };
    site.estate.add_fault(FaultRule::new(when, FaultEffect::TimeoutBefore));
    site.create(named("debian")).await;
    site.create(named("again")).await;
    let begun = site.estate.elapsed();
    let served = |builds: &Option<Vec<TemplateBuild>>| {
        let is_ready = |build: &&TemplateBuild| build.step == TemplateStep::Ready;
        builds.as_ref().is_some_and(|builds| builds.iter().filter(is_ready).count() == 2)
    };
    site.run(served).await;
    while site.builds_of("again").await.iter().filter(|build| build.step == TemplateStep::Ready).count() < 2 {
        site.passes(1).await;
    }
    let took = site.estate.elapsed() - begun;
    assert!(took < Duration::from_secs(120), "{took:?}");
    // A pass takes no longer than a look, and that only once a minute.
    let life = Life::until(Death::Never);
    let context = site.controller(&life);
    let begun = site.estate.elapsed();
    for _ in 0..6 {
        site.pass(&context, &life).await.unwrap();
    }
    let took = site.estate.elapsed() - begun;
    assert!(took < Duration::from_secs(30), "{took:?}");
    let (status, _, message) = site.condition().await;
    assert!(status == "True" && message.contains("host pve2 does not answer"), "{message}");
    site.estate.remove_faults();
    site.run(ready(3)).await;
}

#[tokio::test(start_paused = true)]
async fn a_region_that_is_frozen_delays_no_other() {
    let attic = Estate::new(config(&["att1"]));
    attic.add_fault(FaultRule::new(FaultMatch::default(), FaultEffect::TimeoutBefore));
    let site = Site { attic: Some(attic), ..Site::with(&["pve1"]).await };
    site.create(named("debian")).await;
    let begun = site.estate.elapsed();
    site.run(ready(1)).await;
    let took = site.estate.elapsed() - begun;
    assert!(took < Duration::from_secs(60), "{took:?}");
    let (status, _, message) = site.condition().await;
    assert!(status == "True" && message.contains("region attic: "), "{message}");
}
