//! Table: every call of the client, with arguments that succeed on an estate prepared for them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use tenon_model::{HostName, VmId};
use tenon_pve::{
    Client, CloneOptions, CloudInitDocument, ConfigView, Detail, Download, Endpoint, Feature, NewRule, PoolChange,
    Proof, ProvenVm, ResourceKind, Result, Shutdown, Stop, StorageFilter, Suspend, TaskFilter, TemplateMark,
    TemplateProof, Token, Transport, Upid, Upload, VolumeFilter,
};
use tenon_sim::{ContainerSpec, Estate, EstateConfig, ReplyLost, TemplateSpec, VmSpec};
use tower::ServiceExt as _;

use crate::estate::{host, id, mark, request};

const SECRET: &str = "11111111-2222-3333-4444-555555555555";
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// A connection that broke before an answer came.
#[derive(Debug, thiserror::Error)]
#[error("connection reset")]
struct Reset;

impl From<Infallible> for Reset {
    fn from(never: Infallible) -> Reset {
        match never {}
    }
}

/// An estate with everything a call may be about, and a client of it.
pub(crate) struct Site {
    pub(crate) estate: Estate,
    pub(crate) client: Client,
    running: ProvenVm,
    stopped: ProvenVm,
    /// A task that has ended.
    task: Upid,
    /// The digest of the rules of the VM that runs.
    rules: String,
    /// A program inside the VM that runs.
    pid: u64,
}

impl Site {
    pub(crate) async fn new() -> Site {
        let containers = vec![ContainerSpec::new(700, "pve1", "name=eth0,bridge=vmbr0,ip=198.51.100.77/24")];
        let estate = Estate::new(EstateConfig { containers, ..EstateConfig::default() });
        estate.add_template(&TemplateSpec::default()).unwrap();
        estate.add_pool("spare");
        for (vmid, running) in [(20_001, true), (20_002, false)] {
            let config = [("agent", "1".to_owned()), ("description", format!("ours\n{}", mark(id(vmid))))];
            let config = config.map(|(key, value)| (key.to_owned(), value)).into();
            let base = TemplateSpec { vmid, name: format!("vm-{vmid}"), config, ..TemplateSpec::default() };
            estate.add_vm(&VmSpec { base, running }).unwrap();
        }
        estate.put_iso("pve1", "shared:iso/a.iso", Bytes::from_static(b"seed")).unwrap();
        // Until then no agent answers.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let client = client(&estate);
        let task = client.delete_volume(&host(), "shared:iso/none.iso").await.unwrap();
        client.await_task(&task, MINUTE).await.unwrap();
        client.add_firewall_rule(&host(), id(20_001), &rule()).await.unwrap();
        let rules = client.firewall_rules(&host(), id(20_001)).await.unwrap().remove(0).digest.unwrap();
        let pid = client.agent_exec(&host(), id(20_001), &["true"]).await.unwrap();
        let prove = async |vmid| client.prove(&host(), &proof(vmid)).await.unwrap().unwrap();
        let (running, stopped) = (prove(id(20_001)).await, prove(id(20_002)).await);
        Site { estate, client, running, stopped, task, rules, pid }
    }
}

/// A client to which a lost reply is a broken connection, as it is over HTTPS.
fn client(estate: &Estate) -> Client {
    let service = estate.service().map_result(|answer| {
        let Ok(response) = answer;
        if response.extensions().get::<ReplyLost>().is_some() { Err(Reset) } else { Ok(response) }
    });
    client_over(Transport::over(service, |_: &Reset| false))
}

pub(crate) fn client_over(transport: Transport) -> Client {
    let endpoint = Endpoint::new("https://pve.example:8006").unwrap();
    Client::new(vec![endpoint], transport, Token::new("tenon@pve!sim", SECRET).unwrap())
}

fn proof(vmid: VmId) -> Proof {
    Proof { mark: mark(vmid), uuid: None }
}

fn template_proof(vmid: VmId) -> TemplateProof {
    let mark = TemplateMark { cluster: "c1".to_owned(), template: "t1".to_owned(), vmid };
    TemplateProof { mark, uuid: "9e01f0b4-0000-4000-8000-000000000001".to_owned() }
}

fn rule() -> NewRule {
    NewRule { kind: "in".to_owned(), action: "ACCEPT".to_owned(), ..NewRule::default() }
}

/// What a call that succeeded left to be followed.
pub(crate) enum Made {
    Done,
    Task(Upid),
}

fn done<T>(made: Result<T>) -> Result<Made> {
    made.map(|_| Made::Done)
}

fn task(made: Result<Upid>) -> Result<Made> {
    made.map(Made::Task)
}

/// What else is known of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trait {
    /// It, or its task, takes the file lock of a VM.
    Locks,
    /// It is refused at once without quorum.
    NeedsQuorum,
    /// Its task finds out that there is no quorum.
    TaskNeedsQuorum,
    /// It gives a digest.
    Digest,
    /// Its task needs a network that tests do not have.
    Network,
    /// It does not tell the task it starts.
    Untold,
}

/// A call that was made.
type Running<'a> = Pin<Box<dyn Future<Output = Result<Made>> + 'a>>;

/// One call of the client.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The request that decides it.
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    traits: &'static [Trait],
    run: fn(&Site) -> Running<'_>,
}

impl Case {
    pub(crate) fn is(&self, wanted: Trait) -> bool {
        self.traits.contains(&wanted)
    }

    pub(crate) fn asks_a_host(&self) -> bool {
        self.path.starts_with("/nodes/")
    }

    pub(crate) async fn run(&self, site: &Site) -> Result<Made> {
        (self.run)(site).await
    }
}

macro_rules! calls {
    ($($name:ident $method:literal $path:literal $traits:tt |$site:ident| $run:expr;)*) => {
        &[$(Case {
            name: stringify!($name),
            method: $method,
            path: $path,
            traits: &$traits,
            run: |$site| Box::pin(async move { $run }),
        }),*]
    };
}

use Trait::{Digest, Locks, NeedsQuorum, Network, TaskNeedsQuorum, Untold};

fn on() -> HostName {
    host()
}

const RUNS: fn() -> VmId = || id(20_001);
const STOPPED: fn() -> VmId = || id(20_002);
const NEW: fn() -> VmId = || id(20_003);

fn keys<'a>(pairs: &[(&'a str, &str)]) -> Vec<(&'a str, String)> {
    pairs.iter().map(|(key, value)| (*key, (*value).to_owned())).collect()
}

pub(crate) const CALLS: &[Case] = calls! {
    version "GET" "/version" [] |site| done(site.client.version().await);
    permissions "GET" "/access/permissions" [] |site| done(site.client.permissions(None).await);
    cluster_status "GET" "/cluster/status" [] |site| done(site.client.cluster_status().await);
    is_quorate "GET" "/cluster/status" [] |site| done(site.client.is_quorate().await);
    ha_status "GET" "/cluster/ha/status/current" [] |site| done(site.client.ha_status().await);
    ha_host_states "GET" "/cluster/ha/status/manager_status" [] |site| done(site.client.ha_host_states().await);
    cluster_options "GET" "/cluster/options" [] |site| done(site.client.cluster_options().await);
    resources "GET" "/cluster/resources" [] |site| done(site.client.resources().await);
    resources_of "GET" "/cluster/resources" [] |site| done(site.client.resources_of(ResourceKind::Guests).await);
    next_id "GET" "/cluster/nextid" [] |site| done(site.client.next_id().await);
    is_id_free "GET" "/cluster/nextid" [] |site| done(site.client.is_id_free(NEW()).await);
    security_groups "GET" "/cluster/firewall/groups" [] |site| done(site.client.security_groups().await);
    pools "GET" "/pools" [] |site| done(site.client.pools().await);
    pool "GET" "/pools" [] |site| done(site.client.pool("tenon").await);
    create_pool "POST" "/pools" [NeedsQuorum] |site| done(site.client.create_pool("more", None).await);
    change_pool "PUT" "/pools" [NeedsQuorum]
        |site| done(site.client.change_pool("tenon", &[STOPPED()], PoolChange::Add).await);
    change_pool_storage "PUT" "/pools" [NeedsQuorum]
        |site| done(site.client.change_pool_storage("tenon", "local", PoolChange::Add).await);
    delete_pool "DELETE" "/pools" [NeedsQuorum] |site| done(site.client.delete_pool("spare").await);
    storage_definitions "GET" "/storage" [] |site| done(site.client.storage_definitions(None).await);
    storage_definition "GET" "/storage/*" [] |site| done(site.client.storage_definition("local").await);
    hosts "GET" "/nodes" [] |site| done(site.client.hosts().await);
    host_status "GET" "/nodes/*/status" [] |site| done(site.client.host_status(&on()).await);
    interfaces "GET" "/nodes/*/network" [] |site| done(site.client.interfaces(&on(), None).await);
    interface "GET" "/nodes/*/network/*" [] |site| done(site.client.interface(&on(), "vmbr0").await);
    pci_devices "GET" "/nodes/*/hardware/pci" [] |site| done(site.client.pci_devices(&on()).await);
    cpu_models "GET" "/nodes/*/capabilities/qemu/cpu" [] |site| done(site.client.cpu_models(&on()).await);
    storages "GET" "/nodes/*/storage" [] |site| done(site.client.storages(&on()).await);
    storages_where "GET" "/nodes/*/storage" []
        |site| done(site.client.storages_where(&on(), &StorageFilter::default()).await);
    storage_status "GET" "/nodes/*/storage/*/status" [] |site| done(site.client.storage_status(&on(), "local").await);
    volumes "GET" "/nodes/*/storage/*/content" [] |site| done(site.client.volumes(&on(), "shared", "iso").await);
    volumes_where "GET" "/nodes/*/storage/*/content" []
        |site| done(site.client.volumes_where(&on(), "shared", &VolumeFilter::default()).await);
    volume "GET" "/nodes/*/storage/*/content/**" []
        |site| done(site.client.volume(&on(), "shared:iso/a.iso").await);
    delete_volume "DELETE" "/nodes/*/storage/*/content/**" []
        |site| task(site.client.delete_volume(&on(), "shared:iso/a.iso").await);
    delete_volume_within "DELETE" "/nodes/*/storage/*/content/**" [Untold]
        |site| done(site.client.delete_volume_within(&on(), "shared:iso/a.iso", 5).await);
    download "POST" "/nodes/*/storage/*/download-url" [Network]
        |site| task(site.client.download(&on(), "local", &image()).await);
    upload "POST" "/nodes/*/storage/*/upload" []
        |site| task(site.client.upload(&on(), "shared", &seed(), &Bytes::from_static(b"seed")).await);
    upload_iso "POST" "/nodes/*/storage/*/upload" []
        |site| task(site.client.upload_iso(&on(), "shared", "b.iso", &Bytes::from_static(b"seed")).await);
    tasks "GET" "/nodes/*/tasks" [] |site| done(site.client.tasks(&on(), &TaskFilter::default()).await);
    task_progress "GET" "/nodes/*/tasks/*/status" [] |site| done(site.client.task_progress(&site.task).await);
    await_task "GET" "/nodes/*/tasks/*/status" [] |site| done(site.client.await_task(&site.task, MINUTE).await);
    await_task_telling "GET" "/nodes/*/tasks/*/status" []
        |site| done(site.client.await_task_telling(&site.task, MINUTE, |_| ()).await);
    task_log "GET" "/nodes/*/tasks/*/log" [] |site| done(site.client.task_log(&site.task).await);
    task_log_from "GET" "/nodes/*/tasks/*/log" [] |site| done(site.client.task_log_from(&site.task, 0, None).await);
    stop_task "DELETE" "/nodes/*/tasks/*" [] |site| done(site.client.stop_task(&site.task).await);
    vms "GET" "/nodes/*/qemu" [] |site| done(site.client.vms(&on(), Detail::Brief).await);
    vm_config "GET" "/nodes/*/qemu/*/config" [] |site| done(site.client.vm_config(&on(), RUNS()).await);
    vm_config_as "GET" "/nodes/*/qemu/*/config" []
        |site| done(site.client.vm_config_as(&on(), RUNS(), ConfigView::Running).await);
    container_config "GET" "/nodes/*/lxc/*/config" []
        |site| done(site.client.container_config(&on(), id(700)).await);
    vm_status "GET" "/nodes/*/qemu/*/status/current" [] |site| done(site.client.vm_status(&on(), RUNS()).await);
    pending "GET" "/nodes/*/qemu/*/pending" [] |site| done(site.client.pending(&on(), RUNS()).await);
    pending_keys "GET" "/nodes/*/qemu/*/pending" [] |site| done(site.client.pending_keys(&on(), RUNS()).await);
    has_feature "GET" "/nodes/*/qemu/*/feature" []
        |site| done(site.client.has_feature(&on(), id(9000), Feature::LinkedClone).await);
    prove "GET" "/nodes/*/qemu/*/config" [] |site| done(site.client.prove(&on(), &proof(RUNS())).await);
    prove_template "GET" "/nodes/*/qemu/*/config" []
        |site| done(site.client.prove_template(&on(), &template_proof(RUNS())).await);
    cloudinit_pending "GET" "/nodes/*/qemu/*/cloudinit" []
        |site| done(site.client.cloudinit_pending(&on(), RUNS()).await);
    cloudinit_document "GET" "/nodes/*/qemu/*/cloudinit/dump" []
        |site| done(site.client.cloudinit_document(&on(), RUNS(), CloudInitDocument::User).await);
    regenerate_cloudinit "PUT" "/nodes/*/qemu/*/cloudinit" []
        |site| done(site.client.regenerate_cloudinit(&on(), STOPPED()).await);
    create_vm "POST" "/nodes/*/qemu" [Locks, NeedsQuorum]
        |site| task(site.client.create_vm(&on(), NEW(), &keys(&[("memory", "512"), ("scsi0", "shared:1")])).await);
    clone_vm "POST" "/nodes/*/qemu/*/clone" [Locks, NeedsQuorum]
        |site| task(site.client.clone_vm(&on(), &request(NEW())).await);
    clone_vm_with "POST" "/nodes/*/qemu/*/clone" [Locks, NeedsQuorum]
        |site| task(site.client.clone_vm_with(&on(), (id(9000), NEW()), &CloneOptions::default()).await);
    make_template "POST" "/nodes/*/qemu/*/template" [Locks, TaskNeedsQuorum]
        |site| task(site.client.make_template(&site.stopped).await);
    configure_vm "PUT" "/nodes/*/qemu/*/config" [Locks, NeedsQuorum, Digest]
        |site| done(site.client.configure_vm(&on(), STOPPED(), &digested(site)).await);
    configure_vm_in_task "POST" "/nodes/*/qemu/*/config" [Locks, TaskNeedsQuorum]
        |site| task(site.client.configure_vm_in_task(&on(), STOPPED(), &keys(&[("cores", "2")])).await);
    revert_pending "PUT" "/nodes/*/qemu/*/config" [Locks, NeedsQuorum]
        |site| done(site.client.revert_pending(&on(), STOPPED(), &["cores".to_owned()]).await);
    resize_disk "PUT" "/nodes/*/qemu/*/resize" [Locks, TaskNeedsQuorum]
        |site| task(site.client.resize_disk(&on(), STOPPED(), "scsi0", "+1G").await);
    start_vm "POST" "/nodes/*/qemu/*/status/start" [Locks, NeedsQuorum]
        |site| task(site.client.start_vm(&on(), STOPPED()).await);
    start_vm_within "POST" "/nodes/*/qemu/*/status/start" [Locks, NeedsQuorum]
        |site| task(site.client.start_vm_within(&on(), STOPPED(), 60).await);
    stop_proven "POST" "/nodes/*/qemu/*/status/stop" [Locks] |site| task(site.client.stop_proven(&site.running).await);
    stop_proven_with "POST" "/nodes/*/qemu/*/status/stop" [Locks]
        |site| task(site.client.stop_proven_with(&site.running, Stop::default()).await);
    shutdown_proven "POST" "/nodes/*/qemu/*/status/shutdown" [Locks]
        |site| task(site.client.shutdown_proven(&site.running, Shutdown::default()).await);
    reset_proven "POST" "/nodes/*/qemu/*/status/reset" [Locks]
        |site| task(site.client.reset_proven(&site.running).await);
    reboot_proven "POST" "/nodes/*/qemu/*/status/reboot" [Locks]
        |site| task(site.client.reboot_proven(&site.running, None).await);
    suspend_proven "POST" "/nodes/*/qemu/*/status/suspend" [Locks]
        |site| task(site.client.suspend_proven(&site.running, Suspend::ToMemory).await);
    resume_vm "POST" "/nodes/*/qemu/*/status/resume" [Locks] |site| task(site.client.resume_vm(&on(), RUNS()).await);
    destroy_proven "DELETE" "/nodes/*/qemu/*" [Locks, NeedsQuorum]
        |site| task(destroy(site).await);
    // The same, struck at the tombstone it writes before.
    destroy_proven "PUT" "/nodes/*/qemu/*/config" [Locks, NeedsQuorum, Digest, Untold]
        |site| done(destroy(site).await);
    firewall_options "GET" "/nodes/*/qemu/*/firewall/options" []
        |site| done(site.client.firewall_options(&on(), RUNS()).await);
    set_firewall_options "PUT" "/nodes/*/qemu/*/firewall/options" [NeedsQuorum]
        |site| done(site.client.set_firewall_options(&on(), RUNS(), &keys(&[("enable", "1")])).await);
    firewall_rules "GET" "/nodes/*/qemu/*/firewall/rules" []
        |site| done(site.client.firewall_rules(&on(), RUNS()).await);
    firewall_rule "GET" "/nodes/*/qemu/*/firewall/rules/*" []
        |site| done(site.client.firewall_rule(&on(), RUNS(), 0).await);
    add_firewall_rule "POST" "/nodes/*/qemu/*/firewall/rules" [NeedsQuorum]
        |site| done(site.client.add_firewall_rule(&on(), RUNS(), &rule()).await);
    change_firewall_rule "PUT" "/nodes/*/qemu/*/firewall/rules/*" [NeedsQuorum, Digest]
        |site| done(site.client.change_firewall_rule(&on(), RUNS(), 0, &commented(site)).await);
    remove_firewall_rule "DELETE" "/nodes/*/qemu/*/firewall/rules/*" [NeedsQuorum, Digest]
        |site| done(site.client.remove_firewall_rule(&on(), RUNS(), 0, &site.rules).await);
    agent_ping "POST" "/nodes/*/qemu/*/agent/ping" [] |site| done(site.client.agent_ping(&on(), RUNS()).await);
    agent_interfaces "GET" "/nodes/*/qemu/*/agent/*" []
        |site| done(site.client.agent_interfaces(&on(), RUNS()).await);
    agent_os "GET" "/nodes/*/qemu/*/agent/*" [] |site| done(site.client.agent_os(&on(), RUNS()).await);
    agent_host_name "GET" "/nodes/*/qemu/*/agent/*" [] |site| done(site.client.agent_host_name(&on(), RUNS()).await);
    agent_read_file "GET" "/nodes/*/qemu/*/agent/file-read" []
        |site| done(site.client.agent_read_file(&on(), RUNS(), "/var/log/cloud-init-output.log").await);
    agent_exec "POST" "/nodes/*/qemu/*/agent/exec" []
        |site| done(site.client.agent_exec(&on(), RUNS(), &["true"]).await);
    agent_exec_status "GET" "/nodes/*/qemu/*/agent/exec-status" []
        |site| done(site.client.agent_exec_status(&on(), RUNS(), site.pid).await);
};

/// Proven anew each time: a destruction that failed has changed the configuration.
async fn destroy(site: &Site) -> Result<Upid> {
    let vm = site.client.prove(&on(), &proof(STOPPED())).await?.unwrap();
    site.client.destroy_proven(vm).await
}

fn image() -> Download {
    Download {
        content: "import".to_owned(),
        url: "http://127.0.0.1:1/x.qcow2".to_owned(),
        name: "x.qcow2".to_owned(),
        checksum: None,
        verify_certificates: None,
    }
}

fn seed() -> Upload {
    Upload { content: "iso".to_owned(), name: "b.iso".to_owned(), checked: true }
}

fn digested(site: &Site) -> Vec<(&'static str, String)> {
    let digest = site.stopped.config().digest().unwrap().to_owned();
    vec![("cores", "2".to_owned()), ("digest", digest)]
}

fn commented(site: &Site) -> Vec<(&'static str, String)> {
    vec![("comment", "seen".to_owned()), ("digest", site.rules.clone())]
}

/// The calls of the client, by name.
pub(crate) fn names() -> BTreeMap<&'static str, usize> {
    let mut names = BTreeMap::new();
    for case in CALLS {
        *names.entry(case.name).or_default() += 1;
    }
    names
}
