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

/// The clones that run, by NodeClaim. After a restart, those that are recorded count as soon as they are looked at.
#[derive(Debug, Default)]
pub(crate) struct CloneSlots {
    running: Mutex<BTreeMap<String, CloneRoute>>,
    /// Those that were refused a slot and have none since.
    waiting: Mutex<BTreeMap<String, CloneRoute>>,
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
    /// Takes a slot for a clone that is about to be sent. Whoever has one keeps it.
    pub(crate) fn take(&self, claim: &str, route: &CloneRoute, limits: CloneLimits) -> Result<(), NoSlot> {
        let taken = self.taken(claim, route, limits);
        let mut waiting = lock(&self.waiting);
        match taken {
            Ok(()) => waiting.remove(claim),
            Err(_) => waiting.insert(claim.to_owned(), route.clone()),
        };
        taken
    }

    fn taken(&self, claim: &str, route: &CloneRoute, limits: CloneLimits) -> Result<(), NoSlot> {
        let mut running = self.lock();
        if running.contains_key(claim) {
            return Ok(());
        }
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
        running.insert(claim.to_owned(), route.clone());
        Ok(())
    }

    /// A clone is known to run: it was sent before a restart.
    pub(crate) fn note(&self, claim: &str, route: &CloneRoute) {
        self.lock().entry(claim.to_owned()).or_insert_with(|| route.clone());
    }

    /// A clone ended, however it did.
    pub(crate) fn give_back(&self, claim: &str) {
        self.lock().remove(claim);
        lock(&self.waiting).remove(claim);
    }

    /// How many clones run, by the host that copies.
    pub(crate) fn running(&self) -> BTreeMap<Spot, usize> {
        by_spot(&self.lock())
    }

    /// How many wait for a slot, by the host that would copy.
    pub(crate) fn waiting(&self) -> BTreeMap<Spot, usize> {
        by_spot(&lock(&self.waiting))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, CloneRoute>> {
        lock(&self.running)
    }
}

fn by_spot(routes: &BTreeMap<String, CloneRoute>) -> BTreeMap<Spot, usize> {
    let mut counts = BTreeMap::new();
    for route in routes.values() {
        *counts.entry((route.region.clone(), route.host.clone())).or_default() += 1;
    }
    counts
}

fn lock(routes: &Mutex<BTreeMap<String, CloneRoute>>) -> MutexGuard<'_, BTreeMap<String, CloneRoute>> {
    routes.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn a_clone_of_before_a_restart_counts() {
        let (slots, limits) = (CloneSlots::default(), CloneLimits { per_host: 1, per_storage: 1 });
        slots.note("a", &route("pve1", None));
        assert!(slots.take("b", &route("pve1", None), limits).is_err());
        let elsewhere = CloneRoute { region: "attic".to_owned(), ..route("pve1", None) };
        assert_eq!(slots.take("b", &elsewhere, limits), Ok(()), "another cluster has hosts of the same name");
    }
}
