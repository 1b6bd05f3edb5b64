//! How many clones run at once? Proxmox locks a storage for each copy it begins; too many at once end with `got timeout`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenon_model::{HostName, LaunchRecord, LaunchStep};

/// How many clone tasks run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloneLimits {
    /// From one host: each is a process that copies.
    pub per_host: usize,
    /// Onto one storage: each waits for its lock.
    pub per_storage: usize,
}

impl Default for CloneLimits {
    fn default() -> CloneLimits {
        // Linked clones take a second or two, and a storage lock is waited for a minute.
        CloneLimits { per_host: 4, per_storage: 4 }
    }
}

/// What a clone is made from and onto.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CloneRoute {
    pub(crate) region: String,
    /// The host that copies: the template's.
    pub(crate) host: HostName,
    /// The storage that is written to, if it is known.
    pub(crate) storage: Option<String>,
}

/// The clones that run, by NodeClaim, and who waits for a slot. After a restart, those that are recorded count as soon as they are
/// looked at.
#[derive(Debug, Default)]
pub(crate) struct CloneSlots(Mutex<Slots>);

#[derive(Debug, Default)]
struct Slots {
    running: BTreeMap<String, CloneRoute>,
    /// Those that were refused a slot and have none since, with the number of their place in the queue.
    waiting: BTreeMap<String, (u64, CloneRoute)>,
    last_number: u64,
    /// Whether a slot became free since somebody was called.
    has_freed: bool,
}

/// A host of a region.
type Spot = (String, HostName);

/// Why a clone has to wait.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoSlot {
    #[error("{running} clones already run on host {host}")]
    Host { host: HostName, running: usize },
    #[error("{running} clones to storage {storage} already run")]
    Storage { storage: String, running: usize },
}

impl CloneSlots {
    /// Takes a slot for a clone that is about to be sent. Whoever has one keeps it; whoever is refused keeps its place in the queue.
    pub(crate) fn take(&self, claim: &str, route: &CloneRoute, limits: CloneLimits) -> Result<(), NoSlot> {
        let mut slots = self.lock();
        if !slots.running.contains_key(claim)
            && let Err(full) = room(&slots.running, route, limits)
        {
            slots.enqueue(claim, route);
            return Err(full);
        }
        slots.waiting.remove(claim);
        slots.running.insert(claim.to_owned(), route.clone());
        Ok(())
    }

    /// Those for whom there is room since a slot became free: first come, first called.
    pub(crate) fn called(&self, limits: CloneLimits) -> Vec<String> {
        let mut slots = self.lock();
        if !std::mem::take(&mut slots.has_freed) || slots.waiting.is_empty() {
            return Vec::new();
        }
        let mut queue: Vec<(&String, &(u64, CloneRoute))> = slots.waiting.iter().collect();
        queue.sort_unstable_by_key(|(_, (number, _))| *number);
        let mut running = slots.running.clone();
        let mut called = Vec::new();
        for (claim, (_, route)) in queue {
            if room(&running, route, limits).is_ok() {
                running.insert(claim.clone(), route.clone());
                called.push(claim.clone());
            }
        }
        called
    }

    /// A clone is known to run: it was sent before a restart.
    pub(crate) fn note(&self, claim: &str, route: &CloneRoute) {
        self.lock().running.entry(claim.to_owned()).or_insert_with(|| route.clone());
    }

    /// A clone ended, however it did.
    pub(crate) fn give_back(&self, claim: &str) {
        let mut slots = self.lock();
        let had_slot = slots.running.remove(claim).is_some();
        let was_waiting = slots.waiting.remove(claim).is_some();
        // One that was called, and goes, leaves its slot to the next.
        slots.has_freed |= had_slot || was_waiting;
    }

    /// How many clones run, by the host that copies.
    pub(crate) fn running(&self) -> BTreeMap<Spot, usize> {
        by_spot(self.lock().running.values())
    }

    /// How many wait for a slot, by the host that would copy.
    pub(crate) fn waiting(&self) -> BTreeMap<Spot, usize> {
        by_spot(self.lock().waiting.values().map(|(_, route)| route))
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    fn enqueue(&mut self, claim: &str, route: &CloneRoute) {
        match self.waiting.get_mut(claim) {
            Some((_, known)) => known.clone_from(route),
            None => {
                self.last_number = self.last_number.saturating_add(1);
                self.waiting.insert(claim.to_owned(), (self.last_number, route.clone()));
            }
        }
    }
}

/// Whether one more clone may run beside these.
fn room(running: &BTreeMap<String, CloneRoute>, route: &CloneRoute, limits: CloneLimits) -> Result<(), NoSlot> {
    let of = |is_like: &dyn Fn(&CloneRoute) -> bool| {
        running.values().filter(|other| other.region == route.region && is_like(other)).count()
    };
    let on_host = of(&|other| other.host == route.host);
    if on_host >= limits.per_host {
        return Err(NoSlot::Host { host: route.host.clone(), running: on_host });
    }
    if let Some(storage) = &route.storage {
        let onto = of(&|other| other.storage.as_ref() == Some(storage));
        if onto >= limits.per_storage {
            return Err(NoSlot::Storage { storage: storage.clone(), running: onto });
        }
    }
    Ok(())
}

fn by_spot<'r>(routes: impl Iterator<Item = &'r CloneRoute>) -> BTreeMap<Spot, usize> {
    let mut counts = BTreeMap::new();
    for route in routes {
        *counts.entry((route.region.clone(), route.host.clone())).or_default() += 1;
    }
    counts
}

/// Whether the clone of a record was sent, and may run.
pub(crate) fn is_sent(record: &LaunchRecord) -> bool {
    record.step == LaunchStep::Clone && record.upid.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(host: &str, storage: Option<&str>) -> CloneRoute {
        CloneRoute { region: "lab".to_owned(), host: host.parse().unwrap(), storage: storage.map(str::to_owned) }
    }

    #[test]
    fn a_storage_and_a_host_take_so_many_clones_at_once_and_others_go_on() {
        let (slots, limits) = (CloneSlots::default(), CloneLimits { per_host: 2, per_storage: 3 });
        let take = |claim: &str, host: &str, storage| slots.take(claim, &route(host, storage), limits);
        assert_eq!(take("a", "pve1", Some("ceph")), Ok(()));
        assert_eq!(take("a", "pve1", Some("ceph")), Ok(()), "who has a slot keeps it");
        assert_eq!(take("b", "pve1", Some("ceph")), Ok(()));
        let full = take("c", "pve1", Some("other")).unwrap_err();
        assert_eq!(full.to_string(), "2 clones already run on host pve1");
        assert_eq!(take("c", "pve2", Some("ceph")), Ok(()));
        let full = take("d", "pve2", Some("ceph")).unwrap_err();
        assert_eq!(full.to_string(), "3 clones to storage ceph already run");
        let spot = |host: &str| ("lab".to_owned(), host.parse().unwrap());
        assert_eq!(slots.running(), BTreeMap::from([(spot("pve1"), 2), (spot("pve2"), 1)]));
        assert_eq!(slots.waiting(), BTreeMap::from([(spot("pve2"), 1)]), "c found a slot elsewhere");
        assert_eq!(take("d", "pve2", None), Ok(()), "a storage that is not known holds nobody up");
        assert_eq!(slots.waiting(), BTreeMap::new());
        slots.give_back("a");
        assert_eq!(take("e", "pve1", Some("ceph")), Ok(()));
    }

    #[test]
    fn whoever_waits_longest_is_called_when_a_clone_that_was_in_its_way_ends() {
        let (slots, limits) = (CloneSlots::default(), CloneLimits { per_host: 1, per_storage: 2 });
        let take = |claim: &str, host: &str| slots.take(claim, &route(host, Some("ceph")), limits);
        assert_eq!((take("a", "pve1"), take("b", "pve2")), (Ok(()), Ok(())));
        assert!(["z", "y", "x"].iter().zip(["pve1", "pve2", "pve1"]).all(|(claim, host)| take(claim, host).is_err()));
        assert!(take("z", "pve1").is_err(), "it asks again, and keeps its place");
        assert_eq!(slots.called(limits), Vec::<String>::new(), "nothing became free");
        slots.give_back("b");
        assert_eq!(slots.called(limits), ["y"], "z waits for the host, and x after it");
        assert_eq!(slots.called(limits), Vec::<String>::new(), "it was called");
        assert_eq!(take("y", "pve2"), Ok(()));
        slots.give_back("a");
        slots.give_back("y");
        assert_eq!(slots.called(limits), ["z"], "x waits behind z");
        slots.give_back("z");
        assert_eq!(slots.called(limits), ["x"], "z was called, and did not come");
    }

    #[test]
    fn a_clone_of_before_a_restart_counts() {
        let (slots, limits) = (CloneSlots::default(), CloneLimits { per_host: 1, per_storage: 1 });
        slots.note("a", &route("pve1", None));
        assert!(slots.take("b", &route("pve1", None), limits).is_err());
        let elsewhere = CloneRoute { region: "attic".to_owned(), ..route("pve1", None) };
        assert_eq!(slots.take("b", &elsewhere, limits), Ok(()), "another cluster has hosts of the same name");
    }
}
