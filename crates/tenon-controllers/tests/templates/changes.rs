//! What becomes of VM templates when their object changes, when people change them, and when they are to go.

use serde_json::json;
use tenon_controllers::templates::pass;
use tenon_model::{TemplateBuild, TemplateStep};

use crate::claim::site::Death;
use crate::templates::site::{Life, OTHER_URL, Site, image, ready, template};

fn other_image() -> serde_json::Value {
    json!({ "spec": { "sourceImage": { "url": OTHER_URL, "checksum": image("14").sha256() } } })
}

/// Whether a template waits for somebody to stop using it.
fn waits(builds: &Option<Vec<TemplateBuild>>) -> bool {
    builds.as_ref().is_some_and(|builds| {
        builds.iter().any(|build| build.retired && build.error.is_some() && build.clones.is_some_and(|count| count > 0))
    })
}

#[tokio::test(start_paused = true)]
async fn another_image_gives_new_templates_and_the_old_ones_go_with_their_last_linked_clone() {
    let site = Site::with(&["pve1", "pve2"]).await;
    site.create(template("local")).await;
    site.run(ready(2)).await;
    let old = site.builds().await;
    site.clone_of(&old[0], 20_001).await;
    site.change(other_image()).await;
    site.run(waits).await;
    let kept = site.builds().await.into_iter().find(|build| build.retired && build.clones == Some(1)).unwrap();
    assert_eq!((kept.vmid, kept.step), (old[0].vmid, TemplateStep::Destroy));
    assert!(kept.error.unwrap().contains("VM 20001"));
    // Both hosts serve from the new one, which has another number.
    site.run(|builds| builds.as_ref().is_some_and(|builds| builds.len() == 3)).await;
    assert_eq!(site.zones().await, ["lab/pve1/1002", "lab/pve2/1003"]);
    assert!(site.builds().await.iter().filter(|build| !build.retired).all(|build| build.number != old[0].number));
    site.estate.remove_vm(20_001).unwrap();
    site.run(ready(2)).await;
    assert_eq!(site.vm_templates().iter().map(|vm| vm.vmid).collect::<Vec<_>>(), [1002, 1003]);
    assert!(site.images().iter().all(|image| image.contains("debian-14-")), "{:?}", site.images());
    assert_eq!(site.images().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_template_that_is_launched_from_or_selected_by_a_class_is_kept() {
    let site = Site::with(&["pve1"]).await;
    site.create(template("local")).await;
    site.run(ready(1)).await;
    // Two classes share it; one of them has not switched yet.
    let old = site.zones().await;
    site.class_at("one", &old).await;
    site.class_at("two", &old).await;
    site.claim_of("default-x7", (1000, 20_001)).await;
    site.change(other_image()).await;
    site.run(waits).await;
    let told = site.builds().await.into_iter().find_map(|build| build.error).unwrap();
    for part in ["NodeClaim default-x7", "ProxmoxNodeClass one", "ProxmoxNodeClass two"] {
        assert!(told.contains(part), "{told}");
    }
    let new = site.zones().await;
    site.class_at("one", &new).await;
    site.class_at("two", &new).await;
    let claims: kube::Api<tenon_api::NodeClaim> = kube::Api::all(site.cluster.client());
    site.passes(3).await;
    assert_eq!(site.vm_templates().len(), 2, "it is still launched from");
    claims.delete("default-x7", &kube::api::DeleteParams::default()).await.unwrap();
    site.run(ready(1)).await;
    assert_eq!(site.vm_templates().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn fields_that_need_no_new_template_are_changed_in_place_even_after_downtime() {
    let site = Site::with(&["pve1"]).await;
    site.estate.add_pool("team");
    site.create(template("local")).await;
    site.run(ready(1)).await;
    // Nobody looks while the object is changed.
    site.change(json!({ "spec": {
        "tags": ["other"], "agent": null, "onBoot": true, "description": "Ours.", "resourcePool": "team",
        "cpu": { "type": "kvm64", "flags": null }, "network": [{ "bridge": "vmbr0", "vlan": 7 }],
    } }))
    .await;
    site.passes(3).await;
    let vm = site.estate.vm(1000).unwrap();
    let says = |key: &str| vm.config.get(key).map(String::as_str);
    assert_eq!(
        (says("tags"), says("agent"), says("onboot"), says("cpu")),
        (Some("other"), None, Some("1"), Some("cputype=kvm64"))
    );
    assert!(says("description").unwrap().starts_with("Ours. Hash: "));
    assert!(says("net0").unwrap().contains("tag=7") && says("nameserver").is_none());
    assert_eq!(vm.pool.as_deref(), Some("team"));
    assert!(ready(1)(&Some(site.builds().await)), "it is the same template");
    let stamp = site.get().await.unwrap().metadata.annotations.unwrap();
    assert!(stamp.contains_key("karpenter.proxmox.sinextra.dev/proxmoxtemplateinplaceupdate-hash"));
}

#[tokio::test(start_paused = true)]
async fn a_template_that_was_edited_by_hand_is_set_back() {
    let site = Site::with(&["pve1"]).await;
    site.create(template("local")).await;
    site.run(ready(1)).await;
    let pve = site.proxmox(&Life::until(Death::Never));
    let (host, vmid) = ("pve1".parse().unwrap(), "1000".parse().unwrap());
    let edit =
        [("cpu", "cputype=kvm64".to_owned()), ("net1", "virtio,bridge=vmbr0".to_owned()), ("tags", "x".to_owned())];
    pve.configure_vm(&host, vmid, &edit).await.unwrap();
    let life = Life::until(Death::Never);
    let context = site.controller(&life);
    for _ in 0..40 {
        pass(&context, &site.now()).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    }
    let config = site.estate.vm(1000).unwrap().config;
    assert_eq!(
        (config["cpu"].as_str(), config["tags"].as_str(), config.get("net1")),
        ("cputype=host,flags=+aes;-pcid", "debian;k8s", None)
    );
    let writes = site.estate.ledger().into_iter().filter(|call| call.method == "PUT" && call.path.ends_with("/config"));
    assert_eq!(writes.count(), 3, "one for the tags of the new VM, one by hand, one back");
}

#[tokio::test(start_paused = true)]
async fn a_template_that_was_deleted_by_hand_is_made_again_under_another_id() {
    let site = Site::with(&["pve1"]).await;
    site.create(template("local")).await;
    site.run(ready(1)).await;
    site.estate.remove_vm(1000).unwrap();
    site.run(|builds| ready(1)(builds) && builds.as_ref().is_some_and(|builds| builds[0].vmid.get() != 1000)).await;
    assert_eq!((site.vm_templates().len(), site.images().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_waits_for_its_clones_and_leaves_nothing() {
    let site = Site::with(&["pve1", "pve2"]).await;
    site.create(template("local")).await;
    site.run(ready(2)).await;
    let builds = site.builds().await;
    site.clone_of(&builds[1], 20_001).await;
    site.delete().await;
    site.run(|builds| builds.as_ref().is_some_and(|builds| builds.len() == 1) && waits(builds)).await;
    site.passes(1).await;
    let (status, _, message) = site.condition().await;
    assert_eq!(status, "False");
    assert!(message.contains("VM 20001"), "{message}");
    assert!(site.zones().await.is_empty());
    site.estate.remove_vm(20_001).unwrap();
    site.run(Option::is_none).await;
    assert!(site.estate.vms().is_empty() && site.images().is_empty());
    assert!(site.estate.volumes().is_empty(), "{:?}", site.estate.volumes());
}

#[tokio::test(start_paused = true)]
async fn a_template_whose_proof_does_not_hold_is_not_destroyed() {
    let site = Site::with(&["pve1"]).await;
    site.create(template("local")).await;
    site.run(ready(1)).await;
    let pve = site.proxmox(&Life::until(Death::Never));
    let other = [("smbios1", "uuid=00000000-1111-4222-8333-444444444444".to_owned())];
    pve.configure_vm(&"pve1".parse().unwrap(), "1000".parse().unwrap(), &other).await.unwrap();
    site.delete().await;
    site.run(|builds| builds.as_ref().is_some_and(|builds| builds.iter().any(|build| build.error.is_some()))).await;
    site.passes(60).await;
    assert_eq!(site.vm_templates().len(), 1);
    let (_, _, message) = site.condition().await;
    assert!(message.contains("VM 1000 is left alone") && message.contains("smbios1"), "{message}");
}
