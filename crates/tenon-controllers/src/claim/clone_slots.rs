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
}

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
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, CloneRoute>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        assert_eq!(take("d", "pve2", None), Ok(()), "a storage that is not known holds nobody up");
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
