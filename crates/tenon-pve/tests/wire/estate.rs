//! The client's whole life with a VM, against the simulated estate in memory.

use std::time::Duration;

use bytes::Bytes;
use tenon_model::{HostName, VmId};
use tenon_pve::{
    Cause, Client, CloneKind, CloneRequest, Doubt, Endpoint, OwnerMark, PowerState, Proof, RefusalKind, TaskOutcome,
    TaskProgress, Token, Transport, Upid,
};
use tenon_sim::{Estate, EstateConfig, FaultKind, FaultSpec, TemplateSpec, VmSpec};

const SECRET: &str = "11111111-2222-3333-4444-555555555555";
const MINUTE: Duration = Duration::from_secs(60);

pub(crate) fn host() -> HostName {
    "pve1".parse().unwrap()
}

pub(crate) fn id(number: u32) -> VmId {
    number.try_into().unwrap()
}

fn template() -> TemplateSpec {
    TemplateSpec { host: "pve1".to_owned(), vmid: 9000, name: "debian".to_owned(), ..TemplateSpec::default() }
}

/// An estate with a template, and a client of it.
fn estate() -> (Estate, Client) {
    let estate = Estate::new(EstateConfig::default());
    estate.add_template(&template()).unwrap();
    let client = client(&estate, SECRET);
    (estate, client)
}

fn client(estate: &Estate, secret: &str) -> Client {
    let endpoint = Endpoint::new("https://pve.example:8006").unwrap();
    let transport = Transport::over(estate.service(), |_| false);
    Client::new(vec![endpoint], transport, Token::new("tenon@pve!sim", secret).unwrap())
}

pub(crate) fn mark(vmid: VmId) -> OwnerMark {
    OwnerMark { cluster: "cluster-1".to_owned(), claim: "claim-1".to_owned(), vmid }
}

pub(crate) fn request(vmid: VmId) -> CloneRequest {
    CloneRequest {
        template: id(9000),
        vmid,
        name: "default-abc".to_owned(),
        description: format!("Karpenter managed instance, class=default\n{}", mark(vmid)),
        pool: None,
        kind: CloneKind::Linked,
        target: None,
    }
}

async fn done(client: &Client, task: tenon_pve::Result<Upid>) -> TaskOutcome {
    client.await_task(&task.unwrap(), MINUTE).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_vm_is_made_proven_changed_started_and_gone_without_a_trace() {
    let (estate, client) = estate();
    let before = estate.volumes().len();
    let vmid = id(20_001);
    done(&client, client.clone_vm(&host(), &request(vmid)).await).await;
    let proof = Proof { mark: mark(vmid), uuid: None };
    let vm = client.prove(&host(), &proof).await.unwrap().unwrap();
    let uuid = vm.config().uuid().unwrap();

    let smbios = format!("uuid={uuid},base64=1,serial=aD1hO2k9MQ==");
    let digest = vm.config().digest().unwrap().to_owned();
    let keys = [("cores", "2".to_owned()), ("memory", "4096".to_owned()), ("smbios1", smbios), ("digest", digest)];
    client.configure_vm(&host(), vmid, &keys).await.unwrap();
    let (disk, _) = vm.config().boot_disk().unwrap();
    done(&client, client.resize_disk(&host(), vmid, disk, "30G").await).await;
    let image = Bytes::from(vec![7; 400_000]);
    done(&client, client.upload_iso(&host(), "shared", "user-data-20001.iso", &image).await).await;
    assert_eq!(estate.read_volume("shared:iso/user-data-20001.iso"), Some(image));
    let drive = [("ide2", "shared:iso/user-data-20001.iso,media=cdrom".to_owned())];
    client.configure_vm(&host(), vmid, &drive).await.unwrap();
    done(&client, client.start_vm(&host(), vmid).await).await;
    assert_eq!(client.vm_status(&host(), vmid).await.unwrap().power, PowerState::Running);

    let proof = Proof { uuid: Some(uuid), ..proof };
    let vm = client.prove(&host(), &proof).await.unwrap().unwrap();
    assert_eq!(vm.config().get("cores"), Some("2"));
    assert!(vm.config().boot_disk().unwrap().1.get("size") == Some("30G"), "{:?}", vm.config().boot_disk());
    done(&client, client.stop_proven(&vm).await).await;
    let vm = client.prove(&host(), &proof).await.unwrap().unwrap();
    done(&client, client.destroy_proven(vm).await).await;
    done(&client, client.delete_volume(&host(), "shared:iso/user-data-20001.iso").await).await;
    assert!(client.vm_config(&host(), vmid).await.unwrap_err().is_not_found());
    assert_eq!(estate.vms().len(), 1, "only the template is left");
    assert_eq!(estate.volumes().len(), before);
    println!("{} requests for one VM, polls included", estate.ledger().len());
}

#[tokio::test(start_paused = true)]
async fn a_foreign_vm_on_our_id_is_never_proven() {
    let (estate, client) = estate();
    let foreign = TemplateSpec { vmid: 20_001, name: "mail".to_owned(), ..template() };
    estate.add_vm(&VmSpec { base: foreign, running: true }).unwrap();
    let proof = |uuid: Option<&str>| Proof { mark: mark(id(20_001)), uuid: uuid.map(str::to_owned) };
    assert_eq!(client.prove(&host(), &proof(None)).await.unwrap().unwrap_err(), Doubt::NoMark);
    let doubt = client.prove(&host(), &proof(Some("9e01f0b4-0000-4000-8000-000000000001"))).await.unwrap().unwrap_err();
    assert!(matches!(doubt, Doubt::OtherUuid { .. }), "{doubt:?}");
    let taken = client.clone_vm(&host(), &request(id(20_001))).await.unwrap_err();
    assert_eq!(taken.refusal().unwrap().kind, RefusalKind::AlreadyExists);
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_changed_since_its_proof_is_not_destroyed() {
    let (estate, client) = estate();
    let vmid = id(20_001);
    done(&client, client.clone_vm(&host(), &request(vmid)).await).await;
    let vm = client.prove(&host(), &Proof { mark: mark(vmid), uuid: None }).await.unwrap().unwrap();
    client.configure_vm(&host(), vmid, &[("tags", "mine".to_owned())]).await.unwrap();
    let error = client.destroy_proven(vm).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().kind, RefusalKind::Changed);
    assert!(estate.vm(20_001).is_some());
}

#[tokio::test(start_paused = true)]
async fn while_a_copy_is_under_way_its_vm_is_nobodys() {
    let (estate, client) = estate();
    estate.hold_tasks("qmclone");
    let vmid = id(20_001);
    let task = client.clone_vm(&host(), &request(vmid)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(client.task_progress(&task).await.unwrap(), TaskProgress::Running);
    let doubt = client.prove(&host(), &Proof { mark: mark(vmid), uuid: None }).await.unwrap().unwrap_err();
    assert_eq!(doubt, Doubt::Locked("clone".to_owned()));
    assert!(estate.kill_worker(task.as_str()));
    let error = client.await_task(&task, MINUTE).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::MaybeDone(_)), "{:?}", error.cause());
    // A token can neither change nor remove what is left.
    let error = client.configure_vm(&host(), vmid, &[("cores", "1".to_owned())]).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().kind, RefusalKind::Locked(Some("clone".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_leaves_the_outcome_open_and_the_vm_is_found_by_its_mark() {
    let (estate, client) = estate();
    estate.fail_next(FaultSpec::new("POST", "/clone", FaultKind::DropReply));
    let vmid = id(20_001);
    let error = client.clone_vm(&host(), &request(vmid)).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::MaybeDone(_)), "{:?}", error.cause());
    tokio::time::sleep(Duration::from_secs(5)).await;
    client.prove(&host(), &Proof { mark: mark(vmid), uuid: None }).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_full_storage_and_a_wrong_token_have_their_kinds() {
    let (estate, client) = estate();
    estate.set_storage_free("shared", 0).unwrap();
    estate.set_storage_free("local", 0).unwrap();
    let image = Bytes::from(vec![7; 400_000]);
    let outcome = match client.upload_iso(&host(), "shared", "x.iso", &image).await {
        Ok(task) => client.await_task(&task, MINUTE).await.map(drop),
        Err(error) => Err(error),
    };
    assert_eq!(outcome.unwrap_err().refusal().unwrap().kind, RefusalKind::NoSpace);
    let stranger = self::client(&estate, "wrong");
    let error = stranger.version().await.unwrap_err();
    assert_eq!(error.refusal().unwrap().kind, RefusalKind::Unauthorized);
    assert!(!format!("{error:?}").contains("wrong\""), "the secret is in the error: {error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_host_out_of_reach_leaves_the_outcome_open() {
    let (estate, client) = estate();
    estate.set_host_online("pve2", false).unwrap();
    let error = client.host_status(&"pve2".parse().unwrap()).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::MaybeDone(_)), "{:?}", error.cause());
    assert!(client.is_quorate().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn the_listing_lags_and_says_so_by_leaving_out_what_it_does_not_know() {
    let (_estate, client) = estate();
    let vmid = id(20_001);
    done(&client, client.clone_vm(&host(), &request(vmid)).await).await;
    let resources = client.resources().await.unwrap();
    let row = resources.guests.iter().find(|guest| guest.id == vmid).unwrap();
    assert_eq!((row.status.as_deref(), row.name.as_deref()), (Some("unknown"), None));
    tokio::time::sleep(Duration::from_secs(15)).await;
    let resources = client.resources().await.unwrap();
    let row = resources.guests.iter().find(|guest| guest.id == vmid).unwrap();
    assert_eq!((row.status.as_deref(), row.name.as_deref()), (Some("stopped"), Some("default-abc")));
    assert_eq!(resources.hosts.len(), 3);
}
