//! From an image on a server to a VM template on every host, and what is told where that fails.

use serde_json::json;
use tenon_model::{TemplateBuild, TemplateStep};
use tenon_sim::{FaultEffect, FaultMatch, FaultRule, StorageSpec, TemplateSpec, VmSpec, WebCertificate, WebFile};

use crate::claim::site::Death;
use crate::templates::site::{Life, OTHER_URL, Site, URL, config, image, ready, template};

#[tokio::test(start_paused = true)]
async fn every_host_gets_a_template_with_the_configuration_of_its_object() {
    let site = Site::with(&["pve1", "pve2", "pve3"]).await;
    site.create(template("local")).await;
    site.run(ready(3)).await;
    let vms = site.vm_templates();
    assert_eq!(
        vms.iter().map(|vm| (vm.vmid, vm.host.as_str())).collect::<Vec<_>>(),
        [(1000, "pve1"), (1001, "pve2"), (1002, "pve3")]
    );
    let config = &vms[0].config;
    let says = |key: &str| config[key].as_str();
    assert_eq!(says("cpu"), "cputype=host,flags=+aes;-pcid");
    assert_eq!((says("vga"), says("serial0")), ("type=serial0,memory=32", "socket"));
    assert_eq!(
        (says("agent"), says("boot"), says("scsihw")),
        ("enabled=1,type=virtio", "order=scsi0", "virtio-scsi-single")
    );
    assert_eq!((says("ipconfig0"), says("nameserver"), says("tags")), ("ip=dhcp,ip6=auto", "192.0.2.53", "debian;k8s"));
    assert_eq!((says("name"), says("numa"), says("balloon"), says("machine")), ("debian", "1", "0", "q35"));
    let builds = site.builds().await;
    let lines: Vec<&str> = says("description").lines().collect();
    assert_eq!(
        lines[0],
        format!("The virtual machine managed by Karpenter, do not delete it. Hash: {}", builds[0].number)
    );
    assert!(lines[1].starts_with("tenon.dev/owner cluster=cluster-1 template="), "{lines:?}");
    assert!(says("smbios1").contains(&builds[0].uuid));
    assert_eq!(site.zones().await, ["lab/pve1/1000", "lab/pve2/1001", "lab/pve3/1002"]);
    assert_eq!(site.images().len(), 3);
    let template = site.get().await.unwrap();
    let status = template.status.unwrap();
    assert!(status.image_id.unwrap().starts_with("debian-13-"));
    assert_eq!(template.metadata.finalizers.unwrap(), ["karpenter.proxmox.sinextra.dev/termination"]);
    assert_eq!(site.condition().await.0, "True");
    let calls = site.estate.ledger().len();
    site.passes(2).await;
    let after = site.estate.ledger();
    assert!(after[calls..].iter().all(|call| call.method == "GET"), "a second pass changes nothing");
}

#[tokio::test(start_paused = true)]
async fn hosts_that_share_a_storage_share_one_template_and_one_download() {
    let site = Site::with(&["pve1", "pve2", "pve3"]).await;
    site.create(template("shared")).await;
    site.run(ready(1)).await;
    assert_eq!(site.zones().await, ["lab/pve1/1000"]);
    assert_eq!(site.images().len(), 1);
    // The host that made it is not there for a while: it stays the one.
    site.estate.set_host_online("pve1", false).unwrap();
    site.passes(20).await;
    assert_eq!(site.builds().await.len(), 1);
    site.estate.set_host_online("pve1", true).unwrap();
    site.run(ready(1)).await;
    assert_eq!(site.vm_templates().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_shared_image_storage_is_downloaded_to_once_for_templates_on_several_hosts() {
    let mut estate = config(&["pve1", "pve2"]);
    let gib = 1 << 30;
    estate.storages = vec![
        StorageSpec::new("images", &["import"], 1024 * gib).shared(),
        StorageSpec::new("disks", &["images"], 256 * gib).at("/var/lib/disks"),
    ];
    let site = Site::of(estate).await;
    let mut object = template("disks");
    object["spec"]["storageIDs"] = json!(["disks", "images"]);
    site.create(object).await;
    site.run(ready(2)).await;
    let downloads = site.estate.ledger().into_iter().filter(|call| call.path.ends_with("/download-url")).count();
    assert_eq!((downloads, site.images().len()), (2, 1), "one that loads the image, and one that compares it");
    let loaded =
        site.estate.ledger().into_iter().filter_map(|call| call.upid).filter(|upid| upid.contains(":download:"));
    let pve = site.proxmox(&Life::until(Death::Never));
    let mut transfers = 0;
    for upid in loaded {
        let log = pve.task_log(&upid.parse().unwrap()).await.unwrap();
        transfers += usize::from(log.iter().any(|line| line.starts_with("Saving to")));
    }
    assert_eq!(transfers, 1);
    site.delete().await;
    site.run(Option::is_none).await;
    assert!(site.images().is_empty() && site.vm_templates().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_wrong_checksum_is_told_with_host_and_storage_and_mended_by_a_new_spec() {
    let site = Site::with(&["pve1"]).await;
    let mut object = template("local");
    object["spec"]["sourceImage"]["checksum"] = json!("0".repeat(64));
    site.create(object).await;
    site.run(|builds| builds.as_ref().is_some_and(|builds| builds.iter().any(|build| build.attempt == 2))).await;
    let (status, reason, message) = site.condition().await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "TemplateBuildFailed"), "{message}");
    for part in [URL, "storage local on host pve1", "checksum mismatch", "correct spec.sourceImage.checksum"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(site.images().is_empty());
    site.change(json!({ "spec": { "sourceImage": { "checksum": image("13").sha256() } } })).await;
    site.run(ready(1)).await;
}

#[tokio::test(start_paused = true)]
async fn every_way_a_download_fails_names_host_storage_cause_and_next_step() {
    let missing = "https://images.example.com/nothing.qcow2";
    let nowhere = "https://nowhere.example.org/x.qcow2";
    let text = "https://images.example.com/page.qcow2";
    let untrusted = "https://bad.example.com/x.qcow2";
    for (url, cause, next) in [
        (missing, "exit code 8", "check spec.sourceImage.url"),
        (nowhere, "", "spec.sourceImage.url"),
        (text, "failed to verify file", "correct spec.sourceImage.url"),
        (untrusted, "", "insecureSkipTLSVerify"),
    ] {
        let site = Site::with(&["pve1"]).await;
        site.estate.publish(text, WebFile::new("<html>"));
        site.estate.publish(untrusted, image("13").certificate(WebCertificate::UnknownIssuer));
        let mut object = template("local");
        object["spec"]["sourceImage"] = json!({ "url": url });
        site.create(object).await;
        site.run(|builds| builds.as_ref().is_some_and(|builds| builds.iter().any(|build| build.attempt == 1))).await;
        let (_, reason, message) = site.condition().await;
        assert_eq!(reason, "TemplateBuildFailed", "{url}: {message}");
        for part in [url, "storage local on host pve1", cause, next] {
            assert!(message.contains(part), "{url}: {message}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_checked_unless_the_object_says_otherwise() {
    let site = Site::with(&["pve1"]).await;
    site.estate.publish(URL, image("13").certificate(WebCertificate::UnknownIssuer));
    let mut object = template("local");
    object["spec"]["sourceImage"]["insecureSkipTLSVerify"] = json!(true);
    site.create(object).await;
    site.run(ready(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_full_storage_is_named_whether_it_is_found_by_the_download_or_by_the_import() {
    let site = Site::with(&["pve1", "pve2"]).await;
    let when = FaultMatch::call("POST", "/nodes/pve2/qemu").times(1);
    site.estate.add_fault(FaultRule::new(when, FaultEffect::FullStorage));
    site.estate.set_storage_free("local", 20 << 20).unwrap();
    site.create(template("local")).await;
    let failed = |step| {
        move |builds: &Option<Vec<TemplateBuild>>| {
            let is_failed = |build: &TemplateBuild| build.step == step && build.attempt > 0;
            builds.as_ref().is_some_and(|builds| builds.iter().any(is_failed))
        }
    };
    site.run(failed(TemplateStep::Download)).await;
    let told = site.builds().await.into_iter().find_map(|build| build.error).unwrap();
    assert!(told.contains("to storage local on host pve") && told.contains("make room on storage local"), "{told}");
    site.estate.set_storage_free("local", 100 << 30).unwrap();
    site.run(failed(TemplateStep::Create)).await;
    let told = site.builds().await.into_iter().find_map(|build| build.error).unwrap();
    assert!(told.contains("on host pve2 with its disk on storage local") && told.contains("make room"), "{told}");
    site.run(ready(2)).await;
}

#[tokio::test(start_paused = true)]
async fn the_progress_of_a_download_is_told_in_steps_of_ten_percent() {
    let site = Site::with(&["pve1"]).await;
    site.estate.publish(URL, WebFile::image("13", 3 << 30, 320 << 20).over(4 << 20));
    site.create(template("local")).await;
    site.run(|builds| builds.as_ref().is_some_and(|builds| builds.iter().any(|build| build.progress >= Some(40))))
        .await;
    let build = site.builds().await.remove(0);
    assert_eq!((build.step, build.progress.map(|percent| percent % 10)), (TemplateStep::Download, Some(0)));
    let (status, reason, message) = site.condition().await;
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "NodeTemplateClassResolutionError"));
    assert!(
        message.contains("host pve1 downloads the image to storage local (") && message.contains(" %)"),
        "{message}"
    );
    site.run(ready(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_down_gets_its_template_when_it_is_back() {
    let site = Site::with(&["pve1", "pve2", "pve3"]).await;
    site.estate.set_host_online("pve2", false).unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(15)).await;
    site.create(template("local")).await;
    site.run(ready(2)).await;
    site.passes(1).await;
    let (status, _, message) = site.condition().await;
    assert_eq!(status, "True");
    assert!(message.contains("host pve2 is offline"), "{message}");
    site.estate.set_host_online("pve2", true).unwrap();
    site.run(ready(3)).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_without_the_storages_is_named_with_what_it_lacks() {
    let mut estate = config(&["pve1"]);
    estate.storages = vec![StorageSpec::new("local", &["images"], 1 << 40)];
    let site = Site::of(estate).await;
    site.create(template("local")).await;
    site.passes(2).await;
    let (status, reason, message) = site.condition().await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "TemplatesNotFound"));
    assert!(
        message.contains("host pve1 has no storage of spec.storageIDs (local) with content type import"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_name_without_a_usable_extension_is_a_condition_and_no_panic() {
    let site = Site::with(&["pve1"]).await;
    let mut object = template("local");
    object["spec"]["sourceImage"] = json!({ "url": "https://images.example.com/noble.img" });
    site.create(object).await;
    site.passes(1).await;
    let (status, reason, message) = site.condition().await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "TemplateValidation"));
    assert!(message.contains("set spec.sourceImage.imageName"), "{message}");
    site.change(json!({ "spec": { "sourceImage": { "url": OTHER_URL, "imageName": "noble.qcow2" } } })).await;
    site.run(ready(1)).await;
    assert!(site.images()[0].contains("/local:import/noble-"), "{:?}", site.images());
}

#[tokio::test(start_paused = true)]
async fn a_foreign_vm_with_the_same_name_or_the_chosen_id_is_left_alone() {
    let site = Site::with(&["pve1"]).await;
    let foreign = |vmid| {
        let base = TemplateSpec { host: "pve1".to_owned(), vmid, name: "debian".to_owned(), ..TemplateSpec::default() };
        VmSpec { base, running: false }
    };
    site.estate.add_vm(&foreign(1001)).unwrap();
    let before = site.estate.vm(1001).unwrap();
    site.create(template("local")).await;
    // The id is chosen, and somebody else takes it before the VM is created.
    site.run(|builds| builds.as_ref().is_some_and(|builds| builds.iter().any(|build| build.upid.is_some()))).await;
    assert_eq!(site.builds().await[0].vmid.get(), 1000);
    site.estate.add_vm(&foreign(1000)).unwrap();
    let taken = site.estate.vm(1000).unwrap();
    site.run(ready(1)).await;
    assert_eq!(site.builds().await[0].vmid.get(), 1002);
    assert_eq!(
        (site.estate.vm(1001).unwrap().config, site.estate.vm(1000).unwrap().config),
        (before.config, taken.config)
    );
    site.delete().await;
    site.run(Option::is_none).await;
    assert_eq!(site.estate.vms().len(), 2, "only ours is deleted");
}
