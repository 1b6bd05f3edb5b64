//! What a listing does not show of hosts and guests, and planning needs: read rarely, and never waited for long.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use tenon_api::{NodeClaim, ProxmoxNodeClass};
use tenon_model::{Place, VmId};
use tenon_pve::{Client, GuestKind, Interface};
use tokio::time::{Instant, timeout_at};

use super::hosts::{place_of, record_of};
use crate::regions::Regions;
use crate::status::Estate;

/// Everything together is read for so long in one look; what is left is read in the next.
const READ_WITHIN: Duration = Duration::from_secs(5);

/// How many are read at the same time.
const AT_ONCE: usize = 8;

/// What a listing does not show.
#[derive(Debug, Clone, Default)]
pub struct HostFacts {
    /// Guests that are stopped and do not start with their host: they take nothing. Of others nobody knows.
    pub idle: BTreeSet<(String, VmId)>,
    /// What the HA manager says of hosts.
    pub ha_states: BTreeMap<Place, String>,
    /// The bridges of hosts, as far as they could be read.
    pub bridges: BTreeMap<Place, Arc<Vec<Interface>>>,
}

/// Looks. Regions that do not answer are passed over.
pub(crate) async fn look(
    regions: &Regions,
    estate: &Estate,
    classes: &[Arc<ProxmoxNodeClass>],
    claims: &[Arc<NodeClaim>],
) -> HostFacts {
    let until = Instant::now() + READ_WITHIN;
    let (idle, ha_states, bridges) = tokio::join!(
        idle_guests(regions, estate, claims, until),
        ha_states(regions, estate, until),
        bridges(regions, estate, classes, until)
    );
    HostFacts { idle, ha_states, bridges }
}

/// Our own guests always count, whatever they do.
async fn idle_guests(
    regions: &Regions,
    estate: &Estate,
    claims: &[Arc<NodeClaim>],
    until: Instant,
) -> BTreeSet<(String, VmId)> {
    let records = claims.iter().filter_map(|claim| record_of(claim));
    let ours: BTreeSet<(String, VmId)> = records.map(|record| (record.place.region, record.vmid)).collect();
    let shown = estate.regions.iter().filter_map(|(region, view)| Some((region, view.as_ref().ok()?)));
    let guests = shown.flat_map(|(region, view)| view.guests.iter().map(move |guest| (region, guest.as_ref())));
    let stopped = guests.filter(|(region, guest)| {
        let is_stopped = guest.status.as_deref() == Some("stopped") && guest.lock.is_none() && !guest.template;
        is_stopped && !ours.contains(&((*region).clone(), guest.id))
    });
    let read = |(region, guest): (&String, &tenon_pve::GuestRow)| {
        let place = Place { region: region.clone(), host: guest.host.clone() };
        let (pve, id, kind) = (regions.get(region), guest.id, guest.kind);
        async move {
            let starts = regions.reads.starts_with_host(&pve?, &place, (id, kind)).await.ok()?;
            (!*starts).then_some((place.region, id))
        }
    };
    let reads: Vec<_> = stopped.map(read).collect();
    gathered(reads, until).await.into_iter().flatten().collect()
}

async fn ha_states(regions: &Regions, estate: &Estate, until: Instant) -> BTreeMap<Place, String> {
    let awake = regions.clients().into_iter().filter(|(region, _)| !estate.is_silent(region));
    let read = |(region, pve): (String, Client)| async move {
        let states = regions.reads.ha_states(&pve, &region).await.ok()?;
        let place = |(host, state): (&String, &String)| {
            Some((Place { region: region.clone(), host: host.parse().ok()? }, state.clone()))
        };
        Some(states.iter().filter_map(place).collect::<Vec<_>>())
    };
    gathered(awake.map(read).collect(), until).await.into_iter().flatten().flatten().collect()
}

/// Of the hosts that VMs of a class may be made on.
async fn bridges(
    regions: &Regions,
    estate: &Estate,
    classes: &[Arc<ProxmoxNodeClass>],
    until: Instant,
) -> BTreeMap<Place, Arc<Vec<Interface>>> {
    let zones = classes.iter().filter_map(|class| class.status.as_ref()?.selected_zones.clone()).flatten();
    let places: BTreeSet<Place> = zones.filter_map(|zone| place_of(&zone)).collect();
    let read = |place: Place| async move {
        let pve = regions.get(&place.region)?;
        let bridges = regions.reads.bridges(&pve, &place).await.ok()?;
        Some((place, bridges))
    };
    let online = places.into_iter().filter(|place| estate.is_online(place));
    gathered(online.map(read).collect(), until).await.into_iter().flatten().collect()
}

/// What comes in time, a few at once, in whatever order.
async fn gathered<T>(reads: Vec<impl Future<Output = T>>, until: Instant) -> Vec<T> {
    let mut reads = stream::iter(reads).buffer_unordered(AT_ONCE);
    let mut all = Vec::new();
    while let Ok(Some(read)) = timeout_at(until, reads.next()).await {
        all.push(read);
    }
    all
}

/// What a guest is, as the listing says.
pub(crate) type GuestId = (VmId, GuestKind);
