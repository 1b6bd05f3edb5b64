//! kill -9 at every change of a template's life, in Proxmox and in Kubernetes, before it leaves and after it was carried out:
//! the next controller goes on from what was written down, and nothing is left over, made twice or broken.

use std::time::Duration;

use serde_json::json;
use tenon_model::TemplateBuild;

use crate::claim::site::Death;
use crate::templates::adoption::left_behind;
use crate::templates::site::{Life, OTHER_URL, Site, URL, image, ready, template};

type Builds = Option<Vec<TemplateBuild>>;

/// The next controller is there a little later.
const LATER: Duration = Duration::from_secs(5);

/// Two hosts; each does what the other does, so that one is enough where a life is long.
const HOSTS: [&str; 2] = ["pve1", "pve2"];

async fn fresh_on(hosts: &[&str]) -> Site {
    let site = Site::with(hosts).await;
    site.create(template("local")).await;
    site
}

/// Lives until a death, and then another life to the end.
async fn die_and_recover(site: &Site, death: Death, is_done: impl Fn(&Builds) -> bool) -> bool {
    let life = Life::until(death);
    if site.live(&life, &is_done).await {
        return false;
    }
    tokio::time::sleep(LATER).await;
    site.run(is_done).await;
    true
}

/// How an undisturbed life can end.
async fn deaths(site: &Site, is_done: impl Fn(&Builds) -> bool) -> Vec<Death> {
    let life = Life::until(Death::Never);
    assert!(site.live(&life, is_done).await);
    life.deaths()
}

fn assert_whole(site: &Site, wanted: &[&str], death: Death) {
    let templates = site.vm_templates();
    let hosts: Vec<&str> = templates.iter().map(|vm| vm.host.as_str()).collect();
    assert_eq!(hosts, wanted, "{death:?}: {templates:#?}");
    let vms: Vec<u32> = site.estate.vms().iter().map(|vm| vm.vmid).filter(|id| *id < 20_000).collect();
    assert_eq!(vms.len(), wanted.len(), "{death:?}: {vms:?}");
    assert_eq!(site.images().len(), wanted.len(), "{death:?}: {:?}", site.images());
    let owned =
        |volume: &tenon_sim::VolumeView| volume.owner.is_some_and(|owner| owner < 20_000 && !vms.contains(&owner));
    assert!(!site.estate.volumes().iter().any(owned), "{death:?}: {:?}", site.estate.volumes());
}

#[tokio::test(start_paused = true)]
async fn a_controller_killed_at_any_request_of_a_creation_leaves_one_template_on_each_host() {
    let deaths = deaths(&fresh_on(&HOSTS).await, ready(2)).await;
    let mut died = 0;
    for death in deaths.iter().copied() {
        let site = fresh_on(&HOSTS).await;
        died += usize::from(die_and_recover(&site, death, ready(2)).await);
        assert_whole(&site, &HOSTS, death);
        let creations =
            site.estate.ledger().into_iter().filter(|call| call.method == "POST" && call.path.ends_with("/qemu"));
        assert_eq!(creations.count(), 2, "{death:?}: a creation was sent twice");
    }
    println!("{died} deaths survived");
    assert!(died + 2 > deaths.len() && died > 40, "{died} of {}", deaths.len());
}

fn changed(builds: &Builds) -> bool {
    ready(1)(builds)
        && builds.as_ref().is_some_and(|builds| builds.iter().all(|build| build.image_name.contains("debian-14")))
}

fn is_kept_for_its_clone(builds: &Builds) -> bool {
    builds
        .as_ref()
        .is_some_and(|builds| builds.len() == 2 && builds.iter().any(|build| build.retired && build.clones == Some(1)))
}

/// A template with a linked clone, and then another image.
async fn replaced() -> Site {
    let site = fresh_on(&HOSTS[..1]).await;
    site.run(ready(1)).await;
    let old = site.builds().await;
    site.clone_of(&old[0], 20_001).await;
    let source = json!({ "url": OTHER_URL, "checksum": image("14").sha256() });
    site.change(json!({ "spec": { "sourceImage": source } })).await;
    site
}

#[tokio::test(start_paused = true)]
async fn a_controller_killed_at_any_request_of_a_replacement_breaks_no_clone_and_leaves_nothing_of_the_old() {
    let deaths = deaths(&replaced().await, is_kept_for_its_clone).await;
    for death in deaths.iter().copied() {
        let site = replaced().await;
        die_and_recover(&site, death, is_kept_for_its_clone).await;
        assert!(
            site.estate.vm(20_001).is_some() && site.estate.vm(1000).is_some(),
            "{death:?}: the clone stands on it"
        );
        site.estate.remove_vm(20_001).unwrap();
        site.run(changed).await;
        assert_whole(&site, &HOSTS[..1], death);
    }
    println!("{} deaths survived", deaths.len());
}

/// A template of an object that is deleted.
async fn deleted() -> Site {
    let site = fresh_on(&HOSTS[..1]).await;
    site.run(ready(1)).await;
    site.delete().await;
    site
}

#[tokio::test(start_paused = true)]
async fn a_controller_killed_at_any_request_of_a_deletion_leaves_nothing() {
    let deaths = deaths(&deleted().await, Option::is_none).await;
    for death in deaths.iter().copied() {
        let site = deleted().await;
        die_and_recover(&site, death, Option::is_none).await;
        assert!(
            site.estate.vms().is_empty() && site.estate.volumes().is_empty(),
            "{death:?}: {:?}",
            site.estate.volumes()
        );
    }
    println!("{} deaths survived", deaths.len());
}

/// A template that is changed in place, into another resource pool, too.
async fn updated() -> Site {
    let site = Site::with(&HOSTS[..1]).await;
    site.estate.add_pool("old");
    site.estate.add_pool("new");
    let mut object = template("local");
    object["spec"]["resourcePool"] = json!("old");
    site.create(object).await;
    site.run(ready(1)).await;
    site.change(json!({ "spec": { "tags": ["other"], "onBoot": true, "resourcePool": "new" } })).await;
    site
}

fn is_moved(builds: &Builds) -> bool {
    ready(1)(builds) && builds.as_ref().is_some_and(|builds| builds[0].pool.as_deref() == Some("new"))
}

#[tokio::test(start_paused = true)]
async fn a_controller_killed_at_any_request_of_an_update_in_place_finishes_it() {
    let deaths = deaths(&updated().await, is_moved).await;
    assert!(deaths.len() > 6, "{deaths:?}");
    for death in deaths.iter().copied() {
        let site = updated().await;
        die_and_recover(&site, death, is_moved).await;
        site.passes(2).await;
        let vm = site.estate.vm(1000).unwrap();
        let says = |key: &str| vm.config.get(key).map(String::as_str);
        assert_eq!((says("tags"), says("onboot")), (Some("other"), Some("1")), "{death:?}");
        assert_eq!(vm.pool.as_deref(), Some("new"), "{death:?}");
        assert_whole(&site, &HOSTS[..1], death);
        // It still knows where it had put the template.
        site.change(json!({ "spec": { "resourcePool": null } })).await;
        site.passes(3).await;
        assert_eq!(site.estate.vm(1000).unwrap().pool, None, "{death:?}");
    }
    println!("{} deaths survived", deaths.len());
}

fn is_adopted(builds: &Builds) -> bool {
    ready(1)(builds) && builds.as_ref().is_some_and(|builds| builds[0].adopted && builds[0].in_place.is_some())
}

#[tokio::test(start_paused = true)]
async fn a_controller_killed_at_any_request_of_an_adoption_adopts_the_same_template_once() {
    let whole = || left_behind(|_| (), |_| ());
    let deaths = deaths(&whole().await, is_adopted).await;
    assert!(deaths.len() > 6, "{deaths:?}");
    for death in deaths.iter().copied() {
        let site = whole().await;
        let uuid = site.estate.vm(1000).unwrap().config["smbios1"].clone();
        die_and_recover(&site, death, is_adopted).await;
        site.passes(2).await;
        let vms = site.estate.vms();
        assert_eq!((vms.len(), &vms[0].config["smbios1"], vms[0].vmid), (1, &uuid, 1000), "{death:?}");
        assert_eq!(vms[0].config["description"].matches("tenon.dev/owner").count(), 1, "{death:?}");
        assert_eq!(site.zones().await, ["lab/pve1/1000"], "{death:?}");
        assert!(site.images().is_empty(), "{death:?}");
    }
    println!("{} deaths survived", deaths.len());
}

/// A template whose image is another one at the same URL.
async fn rewritten() -> Site {
    let site = fresh_on(&HOSTS[..1]).await;
    site.run(ready(1)).await;
    site.estate.publish(URL, image("14"));
    site.change(json!({ "spec": { "sourceImage": { "checksum": image("14").sha256() } } })).await;
    site
}

fn is_rewritten(builds: &Builds) -> bool {
    ready(1)(builds) && builds.as_ref().is_some_and(|builds| builds[0].vmid.get() != 1000)
}

#[tokio::test(start_paused = true)]
async fn a_controller_killed_at_any_request_while_an_image_is_replaced_leaves_one_template_and_one_image() {
    let deaths = deaths(&rewritten().await, is_rewritten).await;
    for death in deaths.iter().copied() {
        let site = rewritten().await;
        die_and_recover(&site, death, is_rewritten).await;
        assert_whole(&site, &HOSTS[..1], death);
    }
    println!("{} deaths survived", deaths.len());
}
