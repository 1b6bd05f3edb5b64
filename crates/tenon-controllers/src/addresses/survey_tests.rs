//! What a survey reads of a Proxmox, how often, and what it keeps of what does not answer.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tenon_api::{NodeClaim, ProxmoxNodeClass, launch_record, names};
use tenon_model::{CardAddresses, GivenAddress, LaunchRecord, Place, Seconds};
use tenon_pve::{Endpoint, Token, Transport};
use tenon_sim::{ContainerSpec, Estate, EstateConfig, TemplateSpec, VmSpec};

use super::book::AddressFacts;
use super::survey::{AddressSurvey, Surveyed};
use crate::regions::Regions;

/// A Proxmox with a template, a container and a VM that have addresses.
struct Stage {
    estate: Estate,
    regions: Regions,
    survey: AddressSurvey,
    asked: Arc<AtomicUsize>,
    class: Arc<ProxmoxNodeClass>,
    claims: Vec<Arc<NodeClaim>>,
    now: Timestamp,
}

impl Stage {
    fn new(ipconfig: &str) -> Stage {
        let containers = vec![ContainerSpec::new(700, "pve2", "name=eth0,bridge=vmbr0,ip=198.51.100.77/24")];
        let estate = Estate::new(EstateConfig { containers, ..EstateConfig::default() });
        let config = [("ipconfig0".to_owned(), ipconfig.to_owned())].into();
        estate.add_template(&TemplateSpec { vmid: 9001, config, ..TemplateSpec::default() }).unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let regions = BTreeMap::from([("lab".to_owned(), client(&estate, asked.clone()))]).into();
        let class = json!({
            "metadata": { "name": "default" },
            "spec": { "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" } },
            "status": { "selectedZones": ["lab/pve1/9001"] },
        });
        let class = Arc::new(serde_json::from_value(class).unwrap());
        let stage = Stage {
            estate,
            regions,
            survey: AddressSurvey::default(),
            asked,
            class,
            claims: Vec::new(),
            now: Timestamp::UNIX_EPOCH,
        };
        stage.add_vm(500, "pve1", "ip=198.51.100.50/24");
        stage
    }

    fn add_vm(&self, vmid: u32, host: &str, ipconfig: &str) {
        let config = [("ipconfig0".to_owned(), ipconfig.to_owned())].into();
        let base =
            TemplateSpec { vmid, host: host.into(), name: format!("vm{vmid}"), config, ..TemplateSpec::default() };
        self.estate.add_vm(&VmSpec { base, running: false }).unwrap();
    }

    async fn look(&self) -> AddressFacts {
        let (regions, estate) = (&self.regions, self.regions.look_now().await);
        let classes = std::slice::from_ref(&self.class);
        let surveyed = Surveyed { regions, estate: &estate, classes, claims: &self.claims, now: self.now };
        self.survey.look(&surveyed).await
    }

    /// Requests that a look makes beside the listing.
    async fn asked_by_a_look(&self) -> usize {
        let before = self.asked.load(Ordering::Relaxed);
        self.look().await;
        self.asked.load(Ordering::Relaxed) - before - 1
    }
}

/// A client that counts its requests.
pub(crate) fn client(estate: &Estate, asked: Arc<AtomicUsize>) -> tenon_pve::Client {
    let service = tower::ServiceExt::map_request(estate.service(), move |request| {
        asked.fetch_add(1, Ordering::Relaxed);
        request
    });
    let transport = Transport::over(service, |never: &Infallible| match *never {});
    let token = Token::new("tenon@pve!sim", "11111111-2222-3333-4444-555555555555").unwrap();
    tenon_pve::Client::new(vec![Endpoint::new("https://pve.example:8006").unwrap()], transport, token)
}

fn addresses(texts: &[&str]) -> BTreeSet<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn where_no_class_gives_addresses_only_templates_are_read() {
    let stage = Stage::new("ip=dhcp");
    assert_eq!(stage.asked_by_a_look().await, 1);
    assert_eq!(stage.asked_by_a_look().await, 0, "and not with every look");
    assert!(stage.look().await.guests.is_empty());
}

#[tokio::test(start_paused = true)]
async fn addresses_of_vms_and_containers_that_do_not_even_run_are_read_once_in_a_while() {
    let mut stage = Stage::new("ip=198.51.100.0/24");
    let facts = stage.look().await;
    assert_eq!(facts.guests, addresses(&["198.51.100.50", "198.51.100.77"]));
    assert_eq!(facts.hosts.len(), 3);
    assert_eq!(stage.asked_by_a_look().await, 0);
    // One that is new is read at once, one that was read lately is not.
    stage.add_vm(501, "pve3", "ip=198.51.100.51/24");
    assert_eq!(stage.asked_by_a_look().await, 1);
    stage.now += SignedDuration::from_secs(150);
    assert_eq!(stage.asked_by_a_look().await, 1 + 3 + 3, "a template, three hosts, three guests");
    stage.now += SignedDuration::from_secs(10);
    assert_eq!(stage.asked_by_a_look().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_is_gone_frees_its_address_and_one_on_a_host_that_is_away_keeps_it() {
    let mut stage = Stage::new("ip=198.51.100.0/24");
    stage.add_vm(501, "pve3", "ip=198.51.100.51/24");
    stage.look().await;
    stage.estate.remove_vm(500).unwrap();
    stage.estate.set_host_online("pve3", false).unwrap();
    stage.now += SignedDuration::from_secs(60);
    assert_eq!(stage.look().await.guests, addresses(&["198.51.100.51", "198.51.100.77"]));
}

#[tokio::test(start_paused = true)]
async fn a_vm_whose_addresses_stand_in_its_claim_is_read_when_the_claim_lets_it_go() {
    let mut stage = Stage::new("ip=198.51.100.0/24");
    let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
    let given = GivenAddress { address: "198.51.100.50/24".parse().unwrap(), gateway: None };
    let addresses_of_card = vec![CardAddresses { card: 0, v4: Some(given), v6: None }];
    let record = LaunchRecord::new(place, 500.try_into().unwrap(), 9001.try_into().unwrap(), Seconds(0));
    let record = LaunchRecord { addresses: addresses_of_card, ..record };
    let claim = json!({
        "metadata": { "name": "a", "annotations": { names::ANNOTATION_LAUNCH: launch_record::write(&record) } },
        "spec": { "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "n" } },
    });
    stage.claims = vec![Arc::new(serde_json::from_value(claim).unwrap())];
    assert_eq!(stage.look().await.guests, addresses(&["198.51.100.77"]));
    stage.claims.clear();
    assert_eq!(stage.look().await.guests, addresses(&["198.51.100.50", "198.51.100.77"]));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_hangs_is_waited_for_once() {
    let mut stage = Stage::new("ip=198.51.100.0/24");
    stage.add_vm(501, "pve3", "ip=198.51.100.51/24");
    stage.look().await;
    stage.estate.set_host_online("pve3", false).unwrap();
    stage.now += SignedDuration::from_secs(60);
    let waited = async || {
        let begun = tokio::time::Instant::now();
        let facts = stage.look().await;
        assert!(facts.guests.contains(&"198.51.100.51".parse().unwrap()), "what was read stays");
        begun.elapsed().as_secs()
    };
    assert!(waited().await >= 3);
    assert_eq!(waited().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_was_just_made_or_is_held_is_read_again_soon() {
    let mut stage = Stage::new("ip=198.51.100.0/24");
    stage.look().await;
    stage.now += SignedDuration::from_secs(5);
    assert_eq!(stage.asked_by_a_look().await, 2, "both guests were seen first a moment ago");
    stage.now += SignedDuration::from_secs(150);
    stage.look().await;
    stage.estate.lock(500, "clone").unwrap();
    stage.now += SignedDuration::from_secs(5);
    assert_eq!(stage.asked_by_a_look().await, 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_nothing_is_given_while_a_guest_s_host_is_away_but_not_for_ever() {
    let mut stage = Stage::new("ip=198.51.100.0/24");
    stage.add_vm(501, "pve3", "ip=198.51.100.51/24");
    stage.estate.set_host_online("pve3", false).unwrap();
    let told = stage.look().await.unread.unwrap();
    assert!(told.contains("guest 501 in region lab"), "{told}");
    stage.now += SignedDuration::from_secs(599);
    assert!(stage.look().await.unread.is_some());
    stage.now += SignedDuration::from_secs(1);
    assert!(stage.look().await.unread.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_cannot_be_read_for_a_moment_keeps_its_address() {
    let mut stage = Stage::new("ip=198.51.100.0/24");
    stage.look().await;
    let gone = "Configuration file 'nodes/pve1/qemu-server/500.conf' does not exist";
    let effect = tenon_sim::FaultEffect::Refuse { status: 500, text: gone.to_owned() };
    stage
        .estate
        .add_fault(tenon_sim::FaultRule::new(tenon_sim::FaultMatch::call("GET", "/nodes/*/qemu/500/config"), effect));
    stage.now += SignedDuration::from_secs(150);
    let facts = stage.look().await;
    assert!(facts.guests.contains(&"198.51.100.50".parse().unwrap()), "it may have moved");
    assert_eq!(facts.unread, None);
}
