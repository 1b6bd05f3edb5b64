//! Reads what Proxmox says of addresses: templates of classes, and, where addresses are given at all, every guest and host.
//!
//! What was read lately is not read again. A guest or host that does not answer keeps what was last read of it; one that is
//! in no listing any more is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{self, StreamExt};
use jiff::{SignedDuration, Timestamp};
use tenon_api::{NodeClaim, ProxmoxNodeClass};
use tenon_model::{HostName, Place, VmId};
use tenon_pve::{Client, GuestKind, GuestRow, Interface, RefusalKind, VmConfig};

use super::book::{AddressFacts, TemplateKey, rules_of, templates_of};
use super::card_wishes::card_wishes;
use super::guest_addresses::{of_container, of_vm};
use crate::provision::record_of;
use crate::regions::Regions;
use crate::status::Estate;

/// Templates and host networks are changed by people, and rarely.
const READ_EVERY: SignedDuration = SignedDuration::from_secs(30);

/// With more guests than this they are read less often, so that the requests in a minute do not grow.
const GUESTS: usize = 300;

/// Guests of one host that are read at the same time.
const AT_ONCE: usize = 4;

/// A configuration is read in a few milliseconds; a host that takes longer than this is away.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// What was read, and when.
#[derive(Debug, Clone)]
struct Reading<T> {
    at: Timestamp,
    value: T,
}

/// What was read of everything. May be lost at any time.
#[derive(Debug, Default)]
struct Readings {
    templates: BTreeMap<TemplateKey, Reading<VmConfig>>,
    guests: BTreeMap<(String, VmId), Reading<Vec<IpAddr>>>,
    hosts: BTreeMap<Place, Reading<Vec<Interface>>>,
    /// Hosts that did not answer, and when.
    away: BTreeMap<Place, Timestamp>,
}

/// Looks at addresses in Proxmox.
#[derive(Debug, Default)]
pub(crate) struct AddressSurvey {
    readings: Mutex<Readings>,
}

/// What is looked at.
pub(crate) struct Surveyed<'a> {
    pub(crate) regions: &'a Regions,
    pub(crate) estate: &'a Estate,
    pub(crate) classes: &'a [Arc<ProxmoxNodeClass>],
    pub(crate) claims: &'a [Arc<NodeClaim>],
    pub(crate) now: Timestamp,
}

impl AddressSurvey {
    /// Looks. Every host is asked at the same time as the others, and not again in this look once it does not answer.
    pub(crate) async fn look(&self, surveyed: &Surveyed<'_>) -> AddressFacts {
        let templates = self.look_at_templates(surveyed).await;
        let mut facts = AddressFacts { templates, ..AddressFacts::default() };
        if !gives_addresses(surveyed.classes, &facts) {
            let mut readings = self.readings();
            (readings.guests, readings.hosts) = (BTreeMap::new(), BTreeMap::new());
            return facts;
        }
        facts.hosts = self.look_at_hosts(surveyed).await;
        facts.guests = self.look_at_guests(surveyed).await;
        facts
    }

    async fn look_at_templates(&self, surveyed: &Surveyed<'_>) -> BTreeMap<TemplateKey, Result<VmConfig, String>> {
        let wanted: BTreeSet<TemplateKey> = surveyed.classes.iter().flat_map(|class| templates_of(class)).collect();
        self.readings().templates.retain(|key, _| wanted.contains(key));
        let is_due =
            |key: &&TemplateKey| surveyed.is_due(self.readings().templates.get(key).map(|reading| reading.at), 1);
        let due: Vec<TemplateKey> = wanted.iter().filter(is_due).cloned().collect();
        let (mut asked, mut failed) = (Vec::new(), BTreeMap::new());
        for key in due {
            match self.client(surveyed, &key.0) {
                Ok(pve) => asked.push((pve, key)),
                Err(why) => drop(failed.insert(key, why)),
            }
        }
        for (key, read) in join_all(asked.into_iter().map(read_template)).await {
            match read {
                Ok(value) => drop(self.readings().templates.insert(key, Reading { at: surveyed.now, value })),
                Err(error) => {
                    if error.refusal().is_none() {
                        self.is_away(surveyed, &key.0);
                    }
                    failed.insert(key, error.full_message());
                }
            }
        }
        let readings = self.readings();
        let known = |key: &TemplateKey| readings.templates.get(key).map(|reading| Ok(reading.value.clone()));
        let told = |key: TemplateKey| {
            let why = || Err(failed.get(&key).cloned().unwrap_or_default());
            (key.clone(), known(&key).unwrap_or_else(why))
        };
        wanted.into_iter().map(told).collect()
    }

    async fn look_at_hosts(&self, surveyed: &Surveyed<'_>) -> BTreeMap<Place, Vec<Interface>> {
        let places: BTreeSet<Place> = surveyed.places().collect();
        self.readings().hosts.retain(|place, _| places.contains(place) || surveyed.estate.is_silent(&place.region));
        let is_due = |place: &&Place| surveyed.is_due(self.readings().hosts.get(place).map(|reading| reading.at), 1);
        let due = places.iter().filter(is_due);
        let due: Vec<_> = due.filter_map(|place| Some((self.client(surveyed, place).ok()?, place.clone()))).collect();
        for (place, read) in join_all(due.into_iter().map(read_host)).await {
            match read {
                Some(value) => drop(self.readings().hosts.insert(place, Reading { at: surveyed.now, value })),
                None => self.is_away(surveyed, &place),
            }
        }
        let readings = self.readings();
        readings.hosts.iter().map(|(place, reading)| (place.clone(), reading.value.clone())).collect()
    }

    /// Guests whose addresses stand in a claim are not read: the claim knows them before their VM has them.
    async fn look_at_guests(&self, surveyed: &Surveyed<'_>) -> BTreeSet<IpAddr> {
        let held: BTreeSet<(String, VmId)> = surveyed.held().collect();
        let listed = surveyed.guests().filter(|(key, _)| !held.contains(key));
        let listed: BTreeMap<(String, VmId), &GuestRow> = listed.collect();
        self.readings().guests.retain(|key, _| listed.contains_key(key) || surveyed.estate.is_silent(&key.0));
        let slower = i32::try_from(listed.len() / GUESTS + 1).unwrap_or(i32::MAX);
        let is_due = |key| surveyed.is_due(self.readings().guests.get(key).map(|reading| reading.at), slower);
        let mut by_host: BTreeMap<Place, Vec<(VmId, GuestKind)>> = BTreeMap::new();
        for ((region, id), guest) in listed.iter().filter(|(key, _)| is_due(key)) {
            let place = Place { region: region.clone(), host: guest.host.clone() };
            by_host.entry(place).or_default().push((*id, guest.kind));
        }
        let of_host = |(place, guests)| Some(read_guests(self.client(surveyed, &place).ok()?, place, guests));
        let due: Vec<_> = by_host.into_iter().filter_map(of_host).collect();
        for (place, read, is_complete) in join_all(due).await {
            if !is_complete {
                self.is_away(surveyed, &place);
            }
            let mut readings = self.readings();
            let keyed = |(id, value)| ((place.region.clone(), id), Reading { at: surveyed.now, value });
            readings.guests.extend(read.into_iter().map(keyed));
        }
        self.readings().guests.values().flat_map(|reading| reading.value.iter().copied()).collect()
    }

    /// The client for a host that answers. One that did not is not waited for again in a while.
    fn client(&self, surveyed: &Surveyed<'_>, place: &Place) -> Result<Client, String> {
        let away = self.readings().away.get(place).copied();
        if away.is_some_and(|at| !surveyed.is_due(Some(at), 1)) {
            return Err(format!("host {} did not answer", place.host));
        }
        surveyed.client(place)
    }

    fn is_away(&self, surveyed: &Surveyed<'_>, place: &Place) {
        self.readings().away.insert(place.clone(), surveyed.now);
    }

    fn readings(&self) -> MutexGuard<'_, Readings> {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn read_template((pve, key): (Client, TemplateKey)) -> (TemplateKey, Result<VmConfig, tenon_pve::Error>) {
    let read = pve.vm_config(&key.0.host, key.1).await;
    (key, read)
}

async fn read_host((pve, place): (Client, Place)) -> (Place, Option<Vec<Interface>>) {
    let read = match pve.interfaces(&place.host, None).await {
        // To a token that may not see them they are unknown.
        Err(error) if is_denied(&error) => Some(Vec::new()),
        read => read.ok(),
    };
    (place, read)
}

/// The addresses of guests of one host, a few at a time, until the host does not answer; whether it always did.
async fn read_guests(
    pve: Client,
    place: Place,
    guests: Vec<(VmId, GuestKind)>,
) -> (Place, Vec<(VmId, Vec<IpAddr>)>, bool) {
    let reads: Vec<_> = guests.into_iter().map(|guest| read_guest(pve.clone(), place.host.clone(), guest)).collect();
    let mut reads = stream::iter(reads).buffer_unordered(AT_ONCE);
    let mut read = Vec::new();
    while let Some(guest) = reads.next().await {
        let Some(guest) = guest else { return (place, read, false) };
        read.push(guest);
    }
    (place, read, true)
}

/// The addresses of a guest; `None` if its host does not answer.
async fn read_guest(pve: Client, host: HostName, (id, kind): (VmId, GuestKind)) -> Option<(VmId, Vec<IpAddr>)> {
    let read = match kind {
        GuestKind::Qemu => pve.vm_config(&host, id).await.map(|config| of_vm(&config)),
        GuestKind::Lxc => pve.container_config(&host, id).await.map(|config| of_container(&config)),
    };
    match read {
        Ok(addresses) => Some((id, addresses)),
        // It went in between, or the token may not read it; the next ones may well be read.
        Err(error) if is_denied(&error) || error.is_not_found() => Some((id, Vec::new())),
        Err(_) => None,
    }
}

fn is_denied(error: &tenon_pve::Error) -> bool {
    matches!(error.refusal().map(|told| &told.kind), Some(RefusalKind::Denied { .. }))
}

/// Whether VMs of any class are given addresses.
fn gives_addresses(classes: &[Arc<ProxmoxNodeClass>], facts: &AddressFacts) -> bool {
    let gives = |config: &VmConfig| {
        let rules = tenon_api::AddressRules::default();
        card_wishes(&rules, config, &[]).is_ok_and(|wishes| !wishes.is_empty())
    };
    classes.iter().any(|class| rules_of(class).is_ok_and(|rules| !rules.ranges.is_empty()))
        || facts.templates.values().flatten().any(gives)
}

impl Surveyed<'_> {
    /// The client for a host of a region that answers.
    fn client(&self, place: &Place) -> Result<Client, String> {
        if let Some(Err(why)) = self.estate.regions.get(&place.region) {
            return Err(why.to_string());
        }
        let pve = self.regions.get(&place.region);
        let pve = pve.ok_or_else(|| format!("region {} is not in the cloud config", place.region))?;
        if !self.is_online(place) {
            return Err(format!("host {} is not online", place.host));
        }
        Ok(pve.within(ANSWERS_WITHIN))
    }

    fn is_online(&self, place: &Place) -> bool {
        let resources = self.estate.regions.get(&place.region).and_then(|view| view.as_ref().ok());
        let mut rows = resources.into_iter().flat_map(|resources| &resources.hosts);
        rows.any(|row| row.host == place.host && row.status.as_deref() == Some("online"))
    }

    fn is_due(&self, read_at: Option<Timestamp>, slower: i32) -> bool {
        read_at.is_none_or(|at| self.now.duration_since(at) >= READ_EVERY.saturating_mul(slower))
    }

    /// Every host of a region that answers.
    fn places(&self) -> impl Iterator<Item = Place> {
        let views = self.estate.regions.iter().filter_map(|(region, view)| Some((region, view.as_ref().ok()?)));
        views.flat_map(|(region, view)| {
            view.hosts.iter().map(|row| Place { region: region.clone(), host: row.host.clone() })
        })
    }

    /// Every guest that is listed and may run.
    fn guests(&self) -> impl Iterator<Item = ((String, VmId), &GuestRow)> {
        let views = self.estate.regions.iter().filter_map(|(region, view)| Some((region, view.as_ref().ok()?)));
        let rows = views.flat_map(|(region, view)| view.guests.iter().map(move |guest| (region, guest)));
        rows.filter(|(_, guest)| !guest.template).map(|(region, guest)| ((region.clone(), guest.id), guest))
    }

    /// VMs whose addresses stand in a claim.
    fn held(&self) -> impl Iterator<Item = (String, VmId)> {
        let records = self.claims.iter().filter_map(|claim| record_of(claim));
        records.filter(|record| !record.addresses.is_empty()).map(|record| (record.place.region, record.vmid))
    }
}
