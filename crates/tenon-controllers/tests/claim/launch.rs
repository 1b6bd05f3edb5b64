//! The launch and release of one VM, with everything as it should be or one thing wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use tenon_api::{CloneMode, SecurityGroup};
use tenon_controllers::claim::{CloneSource, DesiredVm, FirstBoot, PowerOff, ReleasePass, release};
use tenon_model::{LaunchRecord, Place};
use tenon_sim::{FaultKind, FaultSpec, TemplateSpec, VmSpec};

use crate::claim::site::{Death, End, FIRST_ID, Site, intent, let_go, live, live_with, order};

#[tokio::test(start_paused = true)]
async fn an_intent_becomes_a_running_vm_and_goes_away_without_a_trace() {
    let site = Site::new();
    let before = site.estate.volumes().len();
    let client = site.client(Death::Never);
    let mut record = intent(FIRST_ID, site.now());
    assert_eq!(live(&site, &client, &mut record).await, End::Launched);
    let launch_requests = site.estate.ledger().len();
    let vm = site.vms().pop().unwrap();
    assert_eq!((vm.vmid, vm.name.as_str(), vm.config["cores"].as_str()), (FIRST_ID, "default-abc", "2"));
    assert!(
        vm.config["description"].starts_with("Karpenter managed instance, class=default, capacity-type=on-demand\n")
    );
    assert!(vm.config["scsi0"].contains("size=30G"), "{}", vm.config["scsi0"]);
    assert!(vm.config["ide2"].contains("user-data-claim-1.iso"), "{}", vm.config["ide2"]);
    let uuid = record.uuid.clone().unwrap();
    assert!(vm.config["smbios1"].contains(&uuid), "the proof survives the write: {}", vm.config["smbios1"]);

    assert_eq!(let_go(&client, &record).await, Some(ReleasePass::Released));
    assert!(site.vms().is_empty());
    assert_eq!(site.estate.volumes().len(), before);
    println!("{launch_requests} requests to launch, {} in all", site.estate.ledger().len());
}

/// The configuration of the one VM that is made from a template with these keys.
async fn made_from(keys: &[(&str, &str)]) -> BTreeMap<String, String> {
    let site = Site::new();
    site.estate.remove_vm(9000).unwrap();
    let config = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    site.estate.add_template(&TemplateSpec { config, ..TemplateSpec::default() }).unwrap();
    let mut record = intent(FIRST_ID, site.now());
    assert_eq!(live(&site, &site.client(Death::Never), &mut record).await, End::Launched);
    site.vms()[0].config.clone()
}

#[tokio::test(start_paused = true)]
async fn smbios_fields_of_the_template_are_not_encoded_twice() {
    for flag in ["1", "on", "yes", "true"] {
        let smbios = format!("base64={flag},family=VGVub24=,uuid=9e01f0b4-0000-4000-8000-000000000001");
        let config = made_from(&[("smbios1", &smbios)]).await;
        assert!(config["smbios1"].contains("family=VGVub24="), "base64={flag}: {}", config["smbios1"]);
        assert!(config["smbios1"].contains("base64=1"), "base64={flag}: {}", config["smbios1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_disk_that_grows_is_the_one_the_template_boots_from() {
    let data_disk = ("virtio0", "shared:9000/base-9000-disk-0.qcow2,size=8G");
    let config = made_from(&[data_disk, ("boot", "order=ide2;scsi0")]).await;
    assert!(config["scsi0"].contains("size=30G"), "{}", config["scsi0"]);
    assert!(config["virtio0"].contains("size=8G"), "{}", config["virtio0"]);
}

/// The storage the disk of the one VM lies on, and whether its copy was linked.
async fn made_with(order: &DesiredVm<'_>) -> (String, bool) {
    let site = Site::new();
    let client = site.client(Death::Never);
    let mut record = intent(FIRST_ID, site.now());
    assert_eq!(live_with(&site, (&client, order), &mut record).await, End::Launched);
    let clone = site.estate.ledger().into_iter().find(|entry| entry.path.ends_with("/clone")).unwrap();
    let disk = site.vms()[0].config["scsi0"].clone();
    (disk.split(':').next().unwrap().to_owned(), !clone.params.contains_key("full") || clone.params["full"] == "0")
}

#[tokio::test(start_paused = true)]
async fn a_disk_is_linked_to_its_template_unless_it_is_to_lie_elsewhere() {
    let (home, linked) = made_with(&order()).await;
    assert!(linked);
    let same = DesiredVm { storage: Some(home.clone()), ..order() };
    assert_eq!(made_with(&same).await, (home.clone(), true), "asked for where it is anyway");
    let elsewhere = if home == "shared" { "local" } else { "shared" };
    let other = DesiredVm { storage: Some(elsewhere.to_owned()), ..order() };
    assert_eq!(made_with(&other).await, (elsewhere.to_owned(), false));
}

#[tokio::test(start_paused = true)]
async fn an_image_that_joins_by_itself_gets_addresses_and_no_seed() {
    let site = Site::new();
    let client = site.client(Death::Never);
    let mut record = LaunchRecord { seed_storage: None, ..intent(FIRST_ID, site.now()) };
    let order = DesiredVm { first_boot: FirstBoot::Image, ..order() };
    assert_eq!(live_with(&site, (&client, &order), &mut record).await, End::Launched);
    let config = &site.vms()[0].config;
    assert_eq!(config.get("ipconfig0").map(String::as_str), Some("ip=dhcp"), "{config:?}");
    assert!(!config.values().any(|value| value.contains("user-data-")), "{config:?}");
    assert_eq!(config.get("sockets").map(String::as_str), Some("1"));
    assert_eq!(let_go(&client, &record).await, Some(ReleasePass::Released));
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_was_moved_is_found_and_removed_where_it_is() {
    let site = Site::new();
    let client = site.client(Death::Never);
    let mut record = intent(FIRST_ID, site.now());
    assert_eq!(live(&site, &client, &mut record).await, End::Launched);
    site.estate.migrate(FIRST_ID, "pve3").unwrap();
    assert_eq!(let_go(&client, &record).await, Some(ReleasePass::Released));
    assert!(site.vms().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_foreign_vm_put_on_our_id_survives_and_the_reason_is_told() {
    let site = Site::new();
    let client = site.client(Death::Never);
    let mut record = intent(FIRST_ID, site.now());
    assert_eq!(live(&site, &client, &mut record).await, End::Launched);
    site.estate.remove_vm(FIRST_ID).unwrap();
    let base =
        TemplateSpec { host: "pve2".to_owned(), vmid: FIRST_ID, name: "mail".to_owned(), ..TemplateSpec::default() };
    site.estate.add_vm(&VmSpec { base, running: true }).unwrap();
    let Some(ReleasePass::Refuse(why)) = let_go(&client, &record).await else { panic!("it should be refused") };
    assert!(why.contains("VM 20000 does not belong") && why.contains("another VM has this ID now"), "{why}");
    assert_eq!(site.vms()[0].name, "mail");
    assert_eq!(site.vms()[0].status, "running");
}

#[tokio::test(start_paused = true)]
async fn a_vm_we_may_not_read_is_gone_only_if_its_id_is_free() {
    let site = Site::new();
    let client = site.client(Death::Never);
    let mut record = intent(FIRST_ID, site.now());
    assert_eq!(live(&site, &client, &mut record).await, End::Launched);
    let denied =
        || FaultKind::Refuse { status: 403, text: format!("Permission check failed (/vms/{FIRST_ID}, VM.Audit)") };
    // Somebody else's VM has the id: a refusal to show it is not taken for its absence.
    site.estate.remove_vm(FIRST_ID).unwrap();
    let base =
        TemplateSpec { host: "pve1".to_owned(), vmid: FIRST_ID, name: "mail".to_owned(), ..TemplateSpec::default() };
    site.estate.add_vm(&VmSpec { base, running: true }).unwrap();
    site.estate.fail_next(FaultSpec::new("GET", "/config", denied()));
    assert_eq!(let_go(&client, &record).await, Some(ReleasePass::Unreadable));
    // Gone: the same refusal, but the id is free.
    site.estate.remove_vm(FIRST_ID).unwrap();
    site.estate.fail_next(FaultSpec::new("GET", "/config", denied()));
    assert_eq!(let_go(&client, &record).await, Some(ReleasePass::Released));
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_taken_is_left_alone_and_the_next_one_is_used() {
    let site = Site::new();
    let base =
        TemplateSpec { host: "pve1".to_owned(), vmid: FIRST_ID, name: "mail".to_owned(), ..TemplateSpec::default() };
    site.estate.add_vm(&VmSpec { base, running: false }).unwrap();
    let mut record = intent(FIRST_ID, site.now());
    assert_eq!(live(&site, &site.client(Death::Never), &mut record).await, End::Launched);
    assert_eq!(record.vmid.get(), FIRST_ID + 1);
    assert!(record.incomplete.is_empty(), "what is somebody else's is not ours to report");
    assert_eq!(site.estate.vm(FIRST_ID).unwrap().name, "mail");
}

#[tokio::test(start_paused = true)]
async fn a_copy_whose_worker_died_is_written_down_and_another_id_is_used() {
    let site = Site::new();
    site.estate.hold_tasks("qmclone");
    let client = site.client(Death::Never);
    let mut record = intent(FIRST_ID, site.now());
    let estate = site.estate.clone();
    let killer = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let upid = estate.ledger().into_iter().find_map(|entry| entry.upid).unwrap();
        assert!(estate.kill_worker(&upid));
        estate.release_tasks();
    });
    assert_eq!(live(&site, &client, &mut record).await, End::Launched);
    killer.await.unwrap();
    assert_eq!(record.vmid.get(), FIRST_ID + 1);
    assert_eq!(record.incomplete.iter().map(|id| id.get()).collect::<Vec<_>>(), [FIRST_ID]);
    assert_eq!(site.estate.vm(FIRST_ID).unwrap().lock.as_deref(), Some("clone"));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_work_goes_back_to_planning_with_proxmoxs_words() {
    let site = Site::new();
    site.estate.set_storage_free("shared", 0).unwrap();
    let mut record = intent(FIRST_ID, site.now());
    let End::GaveUp(why) = live(&site, &site.client(Death::Never), &mut record).await else {
        panic!("it should give up")
    };
    assert!(why.contains("No space left on device"), "{why}");

    let site = Site::new();
    let fault = FaultKind::Refuse { status: 403, text: "Permission check failed (/vms/9000, VM.Clone)".to_owned() };
    site.estate.fail_next(FaultSpec::new("POST", "/clone", fault));
    let mut record = intent(FIRST_ID, site.now());
    let End::GaveUp(why) = live(&site, &site.client(Death::Never), &mut record).await else {
        panic!("it should give up")
    };
    assert!(why.contains("cannot clone template 9000 on host pve1 to VM 20000") && why.contains("VM.Clone"), "{why}");
    assert!(site.vms().is_empty());
}

/// The requests of a launch, in their order, without looks at tasks.
fn requests(site: &Site) -> Vec<String> {
    let ledger = site.estate.ledger();
    let asked = ledger.iter().filter(|entry| !entry.path.contains("/tasks/"));
    asked.map(|entry| format!("{} {}", entry.method, entry.path.rsplit('/').next().unwrap_or_default())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_launch_takes_ten_requests_at_the_most() {
    let site = Site::new();
    let client = site.client(Death::Never);
    let mut record = intent(FIRST_ID, site.now());
    assert_eq!(live(&site, &client, &mut record).await, End::Launched);
    let plain = [
        "GET nextid",  // is the ID free? A clone whose reply was lost is not sent again
        "POST clone",  // the VM
        "GET config",  // the proof that it is ours, its UUID and its digest
        "PUT config",  // identity, size, addresses, cards; refused if the digest changed
        "PUT resize",  // the disk
        "GET config",  // what was configured, for the first-boot data; and the next digest
        "GET status",  // the storage: Proxmox makes its folder for images again. Once a minute for all launches
        "POST upload", // first-boot data
        "PUT config",  // put into the drive; refused if the digest changed
        "POST start",  // the guest boots
    ];
    assert_eq!(requests(&site), plain);

    let site = Site::new();
    let group = |name: &str| SecurityGroup { interface: "net0".to_owned(), name: name.to_owned() };
    let order = DesiredVm {
        security_groups: vec![group("web"), group("ssh")],
        source: CloneSource { has_no_rules: true, ..order().source },
        ..order()
    };
    let mut record = intent(FIRST_ID, site.now());
    assert_eq!(live_with(&site, (&site.client(Death::Never), &order), &mut record).await, End::Launched);
    // Proxmox has no call for several of these: so many more than ten, and not one besides.
    let (firewall, others): (Vec<String>, Vec<String>) =
        requests(&site).into_iter().partition(|one| one.contains("rules") || one.contains("options"));
    assert_eq!(firewall, ["PUT options", "POST rules", "POST rules"]);
    assert_eq!(others, plain);
    let rules = site.admin("GET", &format!("/nodes/pve1/qemu/{FIRST_ID}/firewall/rules"), &[]).await;
    let order: Vec<(&str, u64)> = rules["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| (rule["action"].as_str().unwrap(), rule["enable"].as_u64().unwrap()))
        .collect();
    assert_eq!(order, [("web", 1), ("ssh", 1)]);
    assert!(site.vms()[0].config["net0"].contains("firewall=1"), "{}", site.vms()[0].config["net0"]);
}

#[tokio::test(start_paused = true)]
async fn linked_and_full_clones_are_made_as_the_class_says() {
    let with = |clone_mode| DesiredVm { clone_mode, ..order() };
    assert_eq!(made_with(&with(CloneMode::Linked)).await, ("shared".to_owned(), true));
    assert_eq!(made_with(&with(CloneMode::Full)).await, ("shared".to_owned(), false));
    let site = Site::new();
    let elsewhere = DesiredVm { storage: Some("local-lvm".to_owned()), ..with(CloneMode::Linked) };
    let mut record = intent(FIRST_ID, site.now());
    let End::GaveUp(why) = live_with(&site, (&site.client(Death::Never), &elsewhere), &mut record).await else {
        panic!("it should give up")
    };
    assert!(why.contains("cloneMode Linked cannot put the disk on storage local-lvm"), "{why}");
    assert!(site.vms().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_template_on_a_shared_storage_is_cloned_to_another_host() {
    let site = Site::new();
    let order = DesiredVm { source: CloneSource { host: Some("pve1".parse().unwrap()), ..order().source }, ..order() };
    let place = Place { region: "lab".to_owned(), host: "pve2".parse().unwrap() };
    let mut record = LaunchRecord { place, ..intent(FIRST_ID, site.now()) };
    assert_eq!(live_with(&site, (&site.client(Death::Never), &order), &mut record).await, End::Launched);
    let vm = site.vms().pop().unwrap();
    assert_eq!((vm.host.as_str(), vm.status), ("pve2", "running"));
    assert_eq!(let_go(&site.client(Death::Never), &record).await, Some(ReleasePass::Released));
    assert!(site.vms().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_guest_is_asked_to_shut_down_before_its_vm_is_stopped_and_a_deaf_one_is_stopped_in_time() {
    for is_deaf in [false, true] {
        let (site, how) = (Site::new(), PowerOff::ShutDown(Duration::from_secs(30)));
        let client = site.client(Death::Never);
        let mut record = intent(FIRST_ID, site.now());
        assert_eq!(live(&site, &client, &mut record).await, End::Launched);
        if is_deaf {
            site.estate.ignore_shutdown(FIRST_ID).unwrap();
        }
        let begun = site.estate.elapsed();
        while release(&client, &order().owner, &record, how).await.unwrap() != ReleasePass::Released {}
        assert!(site.vms().is_empty());
        assert!(site.estate.elapsed() - begun < Duration::from_secs(45), "{:?}", site.estate.elapsed() - begun);
        let ledger = site.estate.ledger();
        let asked = ledger.iter().find(|entry| entry.path.ends_with("/status/shutdown")).unwrap();
        assert_eq!((asked.params["timeout"].as_str(), asked.params["forceStop"].as_str()), ("30", "1"));
        assert!(!ledger.iter().any(|entry| entry.path.ends_with("/status/stop")), "one task does both");
    }
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_ha_backup_and_replication_jobs_name_leaves_nothing_behind_in_them() {
    for how in [PowerOff::ShutDown(Duration::from_secs(30)), PowerOff::Stop] {
        let site = Site::new();
        let client = site.client(Death::Never);
        let mut record = intent(FIRST_ID, site.now());
        assert_eq!(live(&site, &client, &mut record).await, End::Launched);
        for vmid in [FIRST_ID, 9000] {
            site.estate.add_ha_resource(vmid);
            site.estate.add_to_backup_job("nightly", vmid);
            site.estate.add_replication(vmid);
        }
        let mut waits = Vec::new();
        loop {
            match release(&client, &order().owner, &record, how).await.unwrap() {
                ReleasePass::Released => break,
                ReleasePass::Wait(why) => {
                    waits.push(why);
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                pass => assert_eq!(pass, ReleasePass::Again),
            }
        }
        // The task that asks the HA manager ends at once, and the VM only some seconds later.
        assert!((2..30).contains(&waits.len()), "{waits:?}");
        assert_eq!(waits[0], "the HA manager is stopping VM 20000");
        assert!(site.vms().is_empty());
        assert_eq!(site.estate.related(FIRST_ID), Vec::<String>::new());
        assert_eq!(
            site.estate.related(9000),
            ["ha vm:9000", "backup nightly", "replication 9000-0"],
            "of others nothing"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_vm_starts_with_its_host_if_its_template_does() {
    assert_eq!(made_from(&[("onboot", "1")]).await["onboot"], "1");
    assert_eq!(made_from(&[("onboot", "0")]).await["onboot"], "0");
}
