//! Templates that the Go provider made become ours, with everything it takes to be sure; anything less is left alone.

use std::collections::BTreeMap;

use serde_json::json;
use tenon_sim::TemplateSpec;

use crate::claim::site::Death;
use crate::templates::site::{Life, Site, ready, template};

const NUMBER: &str = "15108473915739476123";

/// An object as the Go provider leaves it behind, and a VM of its status.
pub(super) async fn left_behind(edit: impl Fn(&mut BTreeMap<&str, String>), make: impl Fn(&mut TemplateSpec)) -> Site {
    let site = Site::with(&["pve1"]).await;
    let mut object = template("local");
    object["metadata"]["annotations"] = json!({
        "karpenter.proxmox.sinextra.dev/proxmoxtemplate-hash": NUMBER,
        "karpenter.proxmox.sinextra.dev/proxmoxtemplate-hash-version": "v1",
    });
    object["metadata"]["finalizers"] = json!(["karpenter.proxmox.sinextra.dev/termination"]);
    site.create(object).await;
    let mut spec =
        TemplateSpec { host: "pve1".to_owned(), vmid: 1000, name: "debian".to_owned(), ..TemplateSpec::default() };
    make(&mut spec);
    site.estate.add_template(&spec).unwrap();
    let description = format!("The virtual machine managed by Karpenter, do not delete it. Hash: {NUMBER}");
    let mut config = BTreeMap::from([("description", description)]);
    edit(&mut config);
    let pve = site.proxmox(&Life::until(Death::Never));
    let config: Vec<(&str, String)> = config.into_iter().collect();
    pve.configure_vm(&"pve1".parse().unwrap(), spec.vmid.try_into().unwrap(), &config).await.unwrap();
    site.say(json!({ "zones": ["lab/pve1/1000"], "imageID": "debian-13-4711.qcow2" })).await;
    site
}

#[tokio::test(start_paused = true)]
async fn a_template_of_the_go_provider_is_adopted_with_its_number_and_kept() {
    let site = left_behind(|_| (), |_| ()).await;
    site.run(ready(1)).await;
    site.passes(2).await;
    let build = site.builds().await.remove(0);
    assert_eq!((build.vmid.get(), build.number.as_str(), build.adopted, build.downloaded), (1000, NUMBER, true, false));
    let vm = site.estate.vm(1000).unwrap();
    let lines: Vec<&str> = vm.config["description"].lines().collect();
    assert!(
        lines[0].ends_with(&format!("Hash: {NUMBER}")) && lines[1].starts_with("tenon.dev/owner cluster="),
        "{lines:?}"
    );
    assert_eq!(site.zones().await, ["lab/pve1/1000"]);
    assert!(site.images().is_empty(), "nothing is made anew");
    let annotations = site.get().await.unwrap().metadata.annotations.unwrap();
    assert_eq!(annotations["karpenter.proxmox.sinextra.dev/proxmoxtemplate-hash"], NUMBER);
    // It is replaced like any other.
    let url = crate::templates::site::OTHER_URL;
    site.change(json!({ "spec": { "sourceImage": { "url": url, "checksum": null, "checksumType": null } } })).await;
    site.run(|builds| ready(1)(builds) && builds.as_ref().is_some_and(|builds| builds[0].vmid.get() != 1000)).await;
    assert!(site.estate.vm(1000).is_none());
}

#[tokio::test(start_paused = true)]
async fn anything_less_than_every_sign_is_left_alone() {
    type Edit = fn(&mut BTreeMap<&str, String>);
    let cases: [(&str, Edit); 8] = [
        ("no number", |config| {
            config.insert("description", "The virtual machine managed by Karpenter, do not delete it.".to_owned());
        }),
        ("another name", |config| {
            config.insert("name", "ubuntu".to_owned());
        }),
        ("no uuid", |config| {
            config.insert("smbios1", "manufacturer=eA==,base64=1".to_owned());
        }),
        ("a claim's mark", |config| {
            config.insert("description", "Hash: 1\ntenon.dev/owner cluster=c claim=u vmid=1000".to_owned());
        }),
        ("a template of another cluster", |config| {
            config.insert("description", "Hash: 1\ntenon.dev/owner cluster=c template=u vmid=1000".to_owned());
        }),
        ("another template of this cluster", |config| {
            config.insert("description", "Hash: 1\ntenon.dev/owner cluster=cluster-1 template=u vmid=1000".to_owned());
        }),
        ("two marks", |config| {
            let mark = "tenon.dev/owner cluster=cluster-1 template=u vmid=1000";
            config.insert("description", format!("Hash: 1\n{mark}\n{mark}"));
        }),
        ("a mark that cannot be read", |config| {
            config.insert("description", "Hash: 1\ntenon.dev/owner cluster=cluster-1 vmid=1000".to_owned());
        }),
    ];
    for (case, edit) in cases {
        let site = left_behind(edit, |_| ()).await;
        let before = site.estate.vm(1000).unwrap();
        let life = Life::until(Death::Never);
        let context = site.controller(&life);
        let report = site.pass(&context, &life).await.unwrap();
        assert!(
            format!("{report:?}").contains("VM 1000 on host pve1, which status.zones names, is left alone"),
            "{case}: {report:?}"
        );
        site.run(ready(1)).await;
        assert_eq!(site.zones().await, ["lab/pve1/1001"], "{case}");
        assert_eq!(site.estate.vm(1000).unwrap(), before, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_is_no_template_is_left_alone() {
    let site = Site::with(&["pve1"]).await;
    site.create(template("local")).await;
    let base =
        TemplateSpec { host: "pve1".to_owned(), vmid: 1000, name: "debian".to_owned(), ..TemplateSpec::default() };
    site.estate.add_vm(&tenon_sim::VmSpec { base, running: true }).unwrap();
    site.say(json!({ "zones": ["lab/pve1/1000"] })).await;
    site.run(ready(1)).await;
    assert_eq!(site.estate.vm(1000).unwrap().status, "running");
    assert_eq!(site.zones().await, ["lab/pve1/1001"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_host_that_is_down_has_is_not_made_anew_before_it_is_known() {
    let site = left_behind(|_| (), |_| ()).await;
    site.estate.set_host_online("pve1", false).unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(15)).await;
    site.passes(10).await;
    assert_eq!(site.zones().await, ["lab/pve1/1000"]);
    assert!(site.builds().await.is_empty());
    site.estate.set_host_online("pve1", true).unwrap();
    site.run(ready(1)).await;
    assert!(site.builds().await[0].adopted);
}

#[tokio::test(start_paused = true)]
async fn a_template_that_is_locked_is_adopted_when_the_lock_is_gone() {
    let site = left_behind(|_| (), |_| ()).await;
    site.estate.lock(1000, "backup").unwrap();
    site.passes(10).await;
    assert_eq!(site.zones().await, ["lab/pve1/1000"], "it is not dropped");
    assert!(site.builds().await.is_empty() && site.images().is_empty(), "nothing is made beside it");
    let (_, _, message) = site.condition().await;
    assert!(message.contains("is not adopted yet: it is locked (lock: backup)"), "{message}");
    site.estate.unlock(1000).unwrap();
    site.run(ready(1)).await;
    assert_eq!((site.builds().await[0].adopted, site.zones().await), (true, vec!["lab/pve1/1000".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_template_of_a_region_that_is_not_configured_is_adopted_when_the_region_is_added() {
    let mut site = left_behind(|_| (), |_| ()).await;
    site.is_lab_removed = true;
    site.passes(10).await;
    assert_eq!(site.zones().await, ["lab/pve1/1000"], "it is not dropped");
    let (_, _, message) = site.condition().await;
    assert!(message.contains("VM 1000, which status.zones names, is kept and not touched: region lab"), "{message}");
    site.is_lab_removed = false;
    site.run(ready(1)).await;
    assert!(site.builds().await[0].adopted);
}
