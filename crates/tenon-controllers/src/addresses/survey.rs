//! Reads what Proxmox says of addresses: templates of classes, and, where addresses are given at all, every guest and host.
//!
//! What was read lately is not read again. A guest or host that does not answer keeps what was last read of it; one that is
//! in no listing any more is forgotten. Until a guest was read once, nobody is given an address, because it may be that
//! guest's; but not for ever, since its host may be gone for good.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use tenon_api::{NodeClaim, ProxmoxNodeClass};
use tenon_model::{Place, VmId};
use tenon_pve::{Client, GuestKind, GuestRow, Interface, VmConfig};
use tokio::time::Instant;

use super::book::{AddressFacts, TemplateKey, rules_of, templates_of};
use super::card_wishes::card_wishes;
use super::reads::{GuestsRead, read_guests, read_host, read_template};
use crate::provision::record_of;
use crate::regions::Regions;
use crate::status::Estate;

/// Templates and host networks are changed by people, and rarely.
const READ_EVERY: SignedDuration = SignedDuration::from_secs(30);

/// A guest that was just made, or that something holds, is about to be given its addresses: it is read again this soon.
const READ_NEW_EVERY: SignedDuration = SignedDuration::from_secs(5);
/// For this long it counts as just made.
const NEW_FOR: SignedDuration = SignedDuration::from_mins(2);

/// A guest that could not be read for so long is given up on.
const AWAITED_FOR: SignedDuration = SignedDuration::from_mins(10);

/// All guests together are read for so long in one look; the others in the next.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// With more guests than this they are read less often, so that the requests in a minute do not grow.
const GUESTS: usize = 300;

/// A configuration is read in a few milliseconds; a host that takes longer than this is away.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// What was read, and when.
#[derive(Debug, Clone)]
struct Reading<T> {
    at: Timestamp,
    value: T,
}

/// What is known of a guest.
#[derive(Debug, Clone)]
struct Guest {
    first_seen: Timestamp,
    reading: Option<Reading<Vec<IpAddr>>>,
}

impl Guest {
    /// Whether it is read in this look.
    fn is_due(&self, surveyed: &Surveyed<'_>, is_locked: bool, slower: i32) -> bool {
        let Some(reading) = &self.reading else { return true };
        let age = surveyed.now.duration_since(reading.at);
        let is_new = is_locked || surveyed.now.duration_since(self.first_seen) < NEW_FOR;
        age >= if is_new { READ_NEW_EVERY } else { READ_EVERY.saturating_mul(slower) }
    }

    fn is_awaited(&self, now: Timestamp) -> bool {
        self.reading.is_none() && now.duration_since(self.first_seen) < AWAITED_FOR
    }
}

/// What was read of everything. May be lost at any time.
#[derive(Debug, Default)]
struct Readings {
    templates: BTreeMap<TemplateKey, Reading<VmConfig>>,
    guests: BTreeMap<(String, VmId), Guest>,
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
        self.look_at_guests(surveyed).await;
        let readings = self.readings();
        let read = readings.guests.values().filter_map(|guest| guest.reading.as_ref());
        facts.guests = read.flat_map(|reading| reading.value.iter().copied()).collect();
        facts.unread = readings.guests.iter().find_map(|((region, id), guest)| {
            let why = "its host does not answer, or its configuration cannot be read";
            guest.is_awaited(surveyed.now).then(|| {
                format!(
                    "the addresses of guest {id} in region {region} are not known yet: {why}; retrying for 10 minutes"
                )
            })
        });
        drop(readings);
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
            // On a shared storage the template may lie on another host than its VMs.
            let host = surveyed.estate.host_of(&key.0.region, key.1).unwrap_or(&key.0.host).clone();
            match self.client(surveyed, &Place { host: host.clone(), ..key.0.clone() }) {
                Ok(pve) => asked.push((pve, host, key)),
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
        for (place, read, is_away) in join_all(due.into_iter().map(read_host)).await {
            if is_away {
                self.is_away(surveyed, &place);
            }
            if let Some(value) = read {
                self.readings().hosts.insert(place, Reading { at: surveyed.now, value });
            }
        }
        let readings = self.readings();
        readings.hosts.iter().map(|(place, reading)| (place.clone(), reading.value.clone())).collect()
    }

    /// Guests whose addresses stand in a claim are not read: the claim knows them before their VM has them.
    async fn look_at_guests(&self, surveyed: &Surveyed<'_>) {
        let due = self.due_guests(surveyed);
        let until = Instant::now() + READ_WITHIN;
        let of_host = |(place, guests)| Some(read_guests(self.client(surveyed, &place).ok()?, (place, guests), until));
        let due: Vec<_> = due.into_iter().filter_map(of_host).collect();
        for GuestsRead { place, read, is_away } in join_all(due).await {
            if is_away {
                self.is_away(surveyed, &place);
            }
            let mut readings = self.readings();
            for (id, value) in read {
                let Some(guest) = readings.guests.get_mut(&(place.region.clone(), id)) else { continue };
                // Of one that the token may not read any more, what was read stays.
                let before = guest.reading.take().map(|reading| reading.value);
                let value = value.or(before).unwrap_or_default();
                guest.reading = Some(Reading { at: surveyed.now, value });
            }
        }
    }

    /// The guests that are read in this look, by host. Those that are gone are forgotten.
    fn due_guests(&self, surveyed: &Surveyed<'_>) -> BTreeMap<Place, Vec<(VmId, GuestKind)>> {
        let held: BTreeSet<(String, VmId)> = surveyed.held().collect();
        let listed = surveyed.guests().filter(|(key, _)| !held.contains(key));
        let listed: BTreeMap<(String, VmId), &GuestRow> = listed.collect();
        let mut readings = self.readings();
        readings.guests.retain(|key, _| listed.contains_key(key) || surveyed.estate.is_silent(&key.0));
        let slower = i32::try_from(listed.len() / GUESTS + 1).unwrap_or(i32::MAX);
        let mut by_host: BTreeMap<Place, Vec<(VmId, GuestKind)>> = BTreeMap::new();
        for (key, row) in listed {
            let new = Guest { first_seen: surveyed.now, reading: None };
            let guest = readings.guests.entry(key.clone()).or_insert(new);
            if guest.is_due(surveyed, row.lock.is_some(), slower) {
                let place = Place { region: key.0, host: row.host.clone() };
                by_host.entry(place).or_default().push((key.1, row.kind));
            }
        }
        by_host
    }

    /// A guest other than this one that has one of these addresses, and no claim.
    pub(crate) fn holder(&self, addresses: &BTreeSet<IpAddr>, (region, vmid): (&str, VmId)) -> Option<VmId> {
        let readings = self.readings();
        let has =
            |guest: &Guest| guest.reading.iter().flat_map(|reading| &reading.value).any(|own| addresses.contains(own));
        let mut others = readings.guests.iter().filter(|((theirs, id), _)| theirs != region || *id != vmid);
        others.find(|(_, guest)| has(guest)).map(|((_, id), _)| *id)
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

/// Whether VMs of any class are given addresses.
fn gives_addresses(classes: &[Arc<ProxmoxNodeClass>], facts: &AddressFacts) -> bool {
    let gives = |config: &VmConfig| {
        let rules = tenon_api::AddressRules::default();
        card_wishes(&rules, config, Some(&[])).is_ok_and(|wishes| !wishes.is_empty())
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
        if !self.estate.is_online(place) {
            return Err(format!("host {} is not online", place.host));
        }
        Ok(pve.within(ANSWERS_WITHIN))
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
        let rows = views.flat_map(|(region, view)| view.guests.iter().map(move |guest| (region, guest.as_ref())));
        rows.filter(|(_, guest)| !guest.template).map(|(region, guest)| ((region.clone(), guest.id), guest))
    }

    /// VMs whose addresses stand in a claim.
    fn held(&self) -> impl Iterator<Item = (String, VmId)> {
        let records = self.claims.iter().filter_map(|claim| record_of(claim));
        records.filter(|record| !record.addresses.is_empty()).map(|record| (record.place.region, record.vmid))
    }
}
