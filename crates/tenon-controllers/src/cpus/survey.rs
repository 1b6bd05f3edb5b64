//! Reads what Proxmox says of CPUs, where VMs are bound to them: the CPU of each host, and the options of each running guest.
//!
//! What was read lately is not read again, unless the guest's row in the listing changed. A guest or host that does not answer
//! keeps what was last read of it; until it was read once, no VM is made on its host, because it may be bound to the same CPUs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::{self, StreamExt};
use jiff::{SignedDuration, Timestamp};
use tenon_api::NodeClaim;
use tenon_engine::cpu::{CapacityVm, CpuFacts, Layout, LayoutSource};
use tenon_model::{HostSettings, NodePolicy, NodeSettings, Place, VmId};
use tenon_pve::{Client, GuestKind, GuestRow, HostRow};
use tokio::time::{Instant, timeout_at};

use super::book::CpuBook;
use super::guest_binding::is_capacity_vm;
use super::reads::{Due, Read, Reading, Said, guest_row, host_row};
use crate::provision::record_of;
use crate::regions::Regions;
use crate::status::Estate;

/// Somebody may change the affinity of a VM by hand, which no listing shows.
const READ_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// A host gets other CPUs only while it is off.
const HOST_READ_EVERY: SignedDuration = SignedDuration::from_mins(10);

/// A configuration is read in a few milliseconds; who takes longer than this is away.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// All of it is read for so long in one look; the rest in the next.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// So much is read at the same time.
const AT_ONCE: usize = 8;

/// What is looked at.
pub(crate) struct Surveyed<'a> {
    pub(crate) regions: &'a Regions,
    pub(crate) estate: &'a Estate,
    pub(crate) claims: &'a [Arc<NodeClaim>],
    pub(crate) policy: NodePolicy,
    pub(crate) settings: &'a NodeSettings,
    pub(crate) now: Timestamp,
}

/// What was read of everything. May be lost at any time.
#[derive(Debug, Default)]
struct Readings {
    hosts: BTreeMap<Place, Reading<CpuFacts>>,
    guests: BTreeMap<(String, VmId), Reading<Said>>,
    /// What was logged of each host, by topic.
    told: BTreeMap<(Place, &'static str), String>,
}

/// Looks at CPUs in Proxmox.
#[derive(Debug, Default)]
pub(crate) struct CpuSurvey {
    readings: Mutex<Readings>,
}

impl CpuSurvey {
    /// Looks, if VMs are bound; otherwise nothing is asked.
    pub(crate) async fn look(&self, surveyed: &Surveyed<'_>) -> CpuBook {
        let Surveyed { policy, settings, .. } = surveyed;
        let book = CpuBook { policy: *policy, settings: (*settings).clone(), ..CpuBook::default() };
        if *policy == NodePolicy::Simple {
            return book;
        }
        let until = Instant::now() + READ_WITHIN;
        let due = self.due(surveyed);
        let mut reads = stream::iter(due.into_iter().map(|due| due.read(surveyed.now))).buffer_unordered(AT_ONCE);
        while let Ok(Some(read)) = timeout_at(until, reads.next()).await {
            let mut readings = self.readings();
            match read {
                Read::Host(place, Some(reading)) => drop(readings.hosts.insert(place, reading)),
                Read::Guest(key, Some(reading)) => drop(readings.guests.insert(key, reading)),
                Read::Host(_, None) | Read::Guest(_, None) => {}
            }
        }
        drop(reads);
        self.written(surveyed, book)
    }

    /// What is read in this look. What is gone is forgotten.
    fn due(&self, surveyed: &Surveyed<'_>) -> Vec<Due> {
        let mut readings = self.readings();
        let (hosts, guests) = (surveyed.hosts().collect::<Vec<_>>(), surveyed.guests());
        readings.hosts.retain(|place, _| {
            surveyed.estate.is_silent(&place.region) || hosts.iter().any(|(known, _)| known == place)
        });
        readings.guests.retain(|key, _| surveyed.estate.is_silent(&key.0) || guests.contains_key(key));
        let is_old = |at: Timestamp, every: SignedDuration| surveyed.now.duration_since(at) >= every;
        let mut due = Vec::new();
        for (place, row) in hosts {
            let known = readings.hosts.get(&place);
            if known.is_none_or(|known| known.row != host_row(row) || is_old(known.at, HOST_READ_EVERY))
                && let Some(pve) = surveyed.client(&place)
            {
                due.push(Due::Host(pve, place, row.clone()));
            }
        }
        for (key, row) in guests {
            let known = readings.guests.get(&key);
            let place = Place { region: key.0, host: row.host.clone() };
            if known.is_none_or(|known| known.row != guest_row(row) || is_old(known.at, READ_EVERY))
                && let Some(pve) = surveyed.client(&place)
            {
                due.push(Due::Guest(pve, place, row.clone()));
            }
        }
        due
    }

    /// What is known after the look.
    fn written(&self, surveyed: &Surveyed<'_>, mut book: CpuBook) -> CpuBook {
        let mut readings = self.readings();
        let mut capacity: BTreeMap<Place, Result<CapacityVm, String>> = BTreeMap::new();
        for (key, row) in surveyed.guests() {
            let place = Place { region: key.0.clone(), host: row.host.clone() };
            match readings.guests.get(&key).map(|reading| &reading.value) {
                Some(Said::Bound(bound)) => drop(book.guests.insert(key, bound.clone())),
                Some(Said::Host(said)) => drop(capacity.insert(place, (**said).clone())),
                None => {
                    let why = format!("the CPUs that VM {} is bound to are not known yet; retrying", key.1);
                    book.unread.entry(place).or_insert(why);
                }
            }
        }
        for (place, _) in surveyed.hosts() {
            let Some(facts) = readings.hosts.get(&place).map(|reading| reading.value.clone()) else { continue };
            let (settings, said) = (surveyed.settings.of(&place), capacity.get(&place));
            let (layout, source) = Layout::of(&facts, &settings, said.and_then(|said| said.as_ref().ok()));
            readings.tell(&place, (&layout, source), said.and_then(|said| said.as_ref().err()));
            readings.tell_reserved(&place, (&layout, &settings));
            book.layouts.insert(place, layout);
        }
        book
    }

    fn readings(&self) -> MutexGuard<'_, Readings> {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Readings {
    /// Whether this was not logged yet.
    fn is_news(&mut self, place: &Place, topic: &'static str, text: String) -> bool {
        self.told.insert((place.clone(), topic), text.clone()) != Some(text)
    }

    /// Logs how the CPUs of a host lie, once and whenever that changes.
    fn tell(&mut self, place: &Place, (layout, source): (&Layout, LayoutSource), trouble: Option<&String>) {
        let source = match source {
            LayoutSource::Settings => "node settings file",
            LayoutSource::CapacityVm => "VM node-capacity",
            LayoutSource::Prediction => "CPU model",
        };
        let cells: Vec<String> = layout.cells.iter().map(|(node, cell)| format!("{node}: {}", cell.cpus)).collect();
        let (host, region, numa_nodes) = (place.host.as_str(), place.region.as_str(), cells.join("; "));
        if self.is_news(place, "topology", format!("{source} {numa_nodes}")) {
            tracing::info!(host, region, source, sockets = layout.sockets, numa_nodes, "read CPU topology of host");
        }
        if self.is_news(place, "node-capacity", trouble.cloned().unwrap_or_default())
            && let Some(error) = trouble
        {
            tracing::warn!(host, region, error, "cannot use VM node-capacity; using {source} instead");
        }
    }

    /// Logs reserved CPUs that a host does not have.
    fn tell_reserved(&mut self, place: &Place, (layout, settings): (&Layout, &HostSettings)) {
        let missing = settings.reserved_cpus.without(&layout.cpus());
        if self.is_news(place, "reserved", missing.to_string()) && !missing.is_empty() {
            let (host, region) = (place.host.as_str(), place.region.as_str());
            tracing::warn!(host, region, cpus = %missing, "node settings reserve CPUs that the host does not have");
        }
    }
}

impl Surveyed<'_> {
    /// The client for a host that is online.
    fn client(&self, place: &Place) -> Option<Client> {
        let is_online = |row: &HostRow| row.status.as_deref() == Some("online");
        self.hosts().find(|(known, row)| known == place && is_online(row))?;
        Some(self.regions.get(&place.region)?.within(ANSWERS_WITHIN))
    }

    /// Every host of a region that answers, and can be planned with.
    fn hosts(&self) -> impl Iterator<Item = (Place, &HostRow)> {
        let views = self.estate.regions.iter().filter_map(|(region, view)| Some((region, view.as_ref().ok()?)));
        let rows = views.flat_map(|(region, view)| view.hosts.iter().map(move |row| (region, row.as_ref())));
        let place = |region: &String, row: &HostRow| Place { region: region.clone(), host: row.host.clone() };
        rows.filter(|(_, row)| row.maxcpu.is_some()).map(move |(region, row)| (place(region, row), row))
    }

    /// VMs that run, and those that describe their host. What our own are bound to stands in their claims.
    fn guests(&self) -> BTreeMap<(String, VmId), &GuestRow> {
        let records = self.claims.iter().filter_map(|claim| record_of(claim)).filter(|record| record.pinning.is_some());
        let held: Vec<(String, VmId)> = records.map(|record| (record.place.region, record.vmid)).collect();
        let is_running = |row: &GuestRow| row.status.as_deref() == Some("running");
        let is_read =
            |row: &GuestRow| row.kind == GuestKind::Qemu && !row.template && (is_running(row) || is_capacity_vm(row));
        let views = self.estate.regions.iter().filter_map(|(region, view)| Some((region, view.as_ref().ok()?)));
        let rows = views.flat_map(|(region, view)| view.guests.iter().map(move |row| (region, row.as_ref())));
        let rows = rows.filter(|(_, row)| is_read(row)).map(|(region, row)| ((region.clone(), row.id), row));
        rows.filter(|(key, _)| !held.contains(key)).collect()
    }
}
