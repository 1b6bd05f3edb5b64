//! What a survey of CPUs reads of a Proxmox, how often, and what it keeps of what does not answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::{SignedDuration, Timestamp};
use tenon_model::{HostSettings, NodePolicy, NodeSettings, Place};
use tenon_sim::{Estate, EstateConfig, FaultKind, FaultSpec, HostSpec, TemplateSpec, VmSpec};

use super::book::CpuBook;
use super::survey::{CpuSurvey, Surveyed};
use crate::addresses::counted_client as client;
use crate::regions::Regions;

/// A Proxmox of two hosts with two sockets each.
struct Stage {
    estate: Estate,
    regions: Regions,
    survey: CpuSurvey,
    asked: Arc<AtomicUsize>,
    policy: NodePolicy,
    settings: NodeSettings,
    now: Timestamp,
}

impl Stage {
    fn new() -> Stage {
        let host = |name: &str| HostSpec::new(name, 16, 32 << 30).cpu_model("Intel(R) Xeon(R)").sockets(2, 2);
        let estate = Estate::new(EstateConfig { hosts: vec![host("pve1"), host("pve2")], ..EstateConfig::default() });
        let asked = Arc::new(AtomicUsize::new(0));
        let regions = BTreeMap::from([("lab".to_owned(), client(&estate, asked.clone()))]).into();
        let (policy, settings, survey) = (NodePolicy::Static, NodeSettings::default(), CpuSurvey::default());
        Stage { estate, regions, survey, asked, policy, settings, now: Timestamp::UNIX_EPOCH }
    }

    fn add_vm(&self, vmid: u32, running: bool, config: &[(&str, &str)]) {
        let config = config.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let base = TemplateSpec { vmid, name: format!("vm{vmid}"), config, ..TemplateSpec::default() };
        self.estate.add_vm(&VmSpec { base, running }).unwrap();
    }

    /// What a host says of itself: one NUMA node with half of its CPUs.
    fn add_capacity_vm(&self, affinity: &str) {
        let numa = "cpus=0-7,hostnodes=0,memory=8192";
        let config = [("affinity", affinity), ("numa", "1"), ("numa0", numa), ("cores", "8"), ("memory", "8192")];
        let config = config.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let (name, tags) = ("node-capacity".to_owned(), "karpenter".to_owned());
        let base = TemplateSpec { vmid: 900, name, tags, config, ..TemplateSpec::default() };
        self.estate.add_vm(&VmSpec { base, running: false }).unwrap();
    }

    async fn look(&self) -> CpuBook {
        let (regions, estate) = (&self.regions, self.regions.look_now().await);
        let (policy, settings, now) = (self.policy, &self.settings, self.now);
        let surveyed = Surveyed { regions, estate: &estate, claims: &[], policy, settings, now };
        self.survey.look(&surveyed).await
    }

    /// Requests that a look makes beside the listing.
    async fn asked_by_a_look(&self) -> usize {
        let before = self.asked.load(Ordering::Relaxed);
        self.look().await;
        self.asked.load(Ordering::Relaxed) - before - 1
    }
}

fn place(host: &str) -> Place {
    Place { region: "lab".to_owned(), host: host.parse().unwrap() }
}

fn cells(book: &CpuBook, host: &str) -> Vec<String> {
    let cells = book.layouts[&place(host)].cells.iter();
    cells.map(|(node, cell)| format!("{node}: {} {}", cell.cpus, cell.memory_bytes >> 20)).collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_where_vms_are_not_bound() {
    let mut stage = Stage::new();
    stage.add_vm(500, true, &[("affinity", "0-1")]);
    stage.policy = NodePolicy::Simple;
    assert_eq!(stage.asked_by_a_look().await, 0);
    assert!(stage.look().await.layouts.is_empty());
}

#[tokio::test(start_paused = true)]
async fn hosts_and_running_guests_are_read_and_not_again_too_soon() {
    let mut stage = Stage::new();
    stage.add_vm(500, true, &[("cores", "2"), ("affinity", "0-1")]);
    stage.add_vm(501, false, &[("affinity", "2-3")]);
    let book = stage.look().await;
    assert_eq!(cells(&book, "pve1"), ["0: 0-3,8-11 16384", "1: 4-7,12-15 16384"]);
    let found: Vec<_> = book.guests.iter().map(|((_, id), bound)| (id.get(), bound.cpus.to_string())).collect();
    assert_eq!(found, [(500, "0-1".to_owned())], "a VM that does not run is bound to nothing");
    assert!(book.unread.is_empty());
    assert_eq!(stage.asked_by_a_look().await, 0);
    stage.now += SignedDuration::from_secs(60);
    assert_eq!(stage.asked_by_a_look().await, 1, "somebody may have changed it");
    stage.now += SignedDuration::from_mins(10);
    assert_eq!(stage.asked_by_a_look().await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_host_is_believed_and_an_operator_even_more() {
    let mut stage = Stage::new();
    stage.add_capacity_vm("8-15");
    assert_eq!(cells(&stage.look().await, "pve1"), ["0: 8-15 8192"]);
    assert_eq!(cells(&stage.look().await, "pve2").len(), 2);
    let cell = tenon_model::NumaCell { cpus: "0-15".parse().unwrap(), memory_bytes: 1 << 30 };
    let told = HostSettings { cells: [(3, cell)].into(), ..HostSettings::default() };
    stage.settings = NodeSettings { regions: [("lab".to_owned(), [("*".to_owned(), told)].into())].into() };
    assert_eq!(cells(&stage.look().await, "pve1"), ["3: 0-15 1024"]);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_describes_itself_wrongly_is_predicted() {
    let stage = Stage::new();
    stage.add_capacity_vm("0-3");
    assert_eq!(cells(&stage.look().await, "pve1").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_answer_keeps_its_host_closed_until_it_was_read_once() {
    let mut stage = Stage::new();
    stage.add_vm(500, true, &[("affinity", "0-1")]);
    let refuse = FaultKind::Refuse { status: 500, text: "it is busy".to_owned() };
    stage.estate.fail_next(FaultSpec::new("GET", "/qemu/500/config", refuse.clone()));
    let book = stage.look().await;
    let why = "the CPUs that VM 500 is bound to are not known yet; retrying";
    assert_eq!(book.unread, [(place("pve1"), why.to_owned())].into());
    assert!(stage.look().await.unread.is_empty());
    stage.now += SignedDuration::from_secs(60);
    stage.estate.fail_next(FaultSpec::new("GET", "/qemu/500/config", refuse));
    let book = stage.look().await;
    assert_eq!((book.unread.len(), book.guests.len()), (0, 1), "what was read before stays");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_answer_has_no_topology_yet() {
    let stage = Stage::new();
    let refuse = FaultKind::Refuse { status: 500, text: "it is busy".to_owned() };
    stage.estate.fail_next(FaultSpec::new("GET", "/nodes/pve2/status", refuse));
    assert_eq!(stage.look().await.layouts.into_keys().collect::<Vec<_>>(), [place("pve1")]);
    assert_eq!(stage.look().await.layouts.len(), 2);
}
