//! Is the role of SECURITY.md enough to create and delete VM templates, and is nothing in it too much?

use std::time::Duration;

use serde_json::json;
use tenon_model::TemplateStep;
use tenon_pve::pve_rights::{AclPlace, Flow, Privileges, privileges};
use tenon_sim::StorageSpec;

use crate::claim::site::Death;
use crate::role::{follows_the_table, is_hidden, refusal_of, without_each};
use crate::templates::site::{Life, Site, config, template};

const FLOWS: [Flow; 2] = [Flow::Status, Flow::Templates];
/// More than a template takes.
const PASSES: usize = 60;

async fn site(role: &Privileges) -> Site {
    let gib = 1 << 30;
    let mut estate = config(&["pve1"]);
    estate.pools = vec!["templates".to_owned()];
    estate.storages = vec![
        StorageSpec::new("images", &["import"], 1024 * gib).shared(),
        StorageSpec::new("disks", &["images"], 256 * gib).shared(),
    ];
    let mut site = Site::of(estate).await;
    site.use_role(role, path).await;
    let mut object = template("disks");
    object["spec"]["storageIDs"] = json!(["disks", "images"]);
    object["spec"]["resourcePool"] = json!("templates");
    site.create(object).await;
    site
}

fn path(place: AclPlace) -> &'static str {
    match place {
        AclPlace::TemplatePool => "/pool/templates",
        AclPlace::Images => "/storage/images",
        AclPlace::Disks => "/storage/disks",
        AclPlace::Bridges => "/sdn/zones/localnetwork",
        AclPlace::Hosts => "/nodes",
        AclPlace::NodePool => "/pool/k8s",
        AclPlace::NodeTemplates => "/pool/others",
        AclPlace::Seeds => "/storage/seeds",
        other => panic!("no VM template needs {other:?}"),
    }
}

/// A template from its image to its end. Whether nothing went wrong.
async fn lives(site: &Site) -> bool {
    let (life, mut was_ready) = (Life::until(Death::Never), false);
    let controller = site.controller(&life);
    for _ in 0..PASSES {
        let report = site.pass(&controller, &life).await.unwrap();
        if site.get().await.is_none() {
            return was_ready && site.images().is_empty() && site.vm_templates().is_empty();
        }
        let builds = site.builds().await;
        if !was_ready && builds.len() == 1 && builds[0].step == TemplateStep::Ready {
            was_ready = true;
            site.delete().await;
        }
        tokio::time::sleep(Duration::from_secs(if report.is_busy { 2 } else { 10 })).await;
    }
    false
}

#[tokio::test(start_paused = true)]
async fn a_template_is_created_and_deleted_with_exactly_the_role_of_the_documentation() {
    let site = site(&privileges(&FLOWS)).await;
    assert!(lives(&site).await, "{:?}", site.condition().await);
    follows_the_table(&site.estate, &FLOWS);
}

#[tokio::test(start_paused = true)]
async fn a_template_is_not_created_and_deleted_without_any_one_privilege() {
    for (fewer, missing) in without_each(&privileges(&FLOWS), &privileges(&[Flow::Templates])) {
        let site = site(&fewer).await;
        assert!(!lives(&site).await, "without {missing:?} nothing fails");
        // A storage that is not shown is never asked about.
        let is_named = is_hidden(missing) || refusal_of(&site.estate, missing).is_some();
        assert!(is_named, "no row says what fails without {missing:?}");
    }
}
