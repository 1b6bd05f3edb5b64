//! What changed between two listings of a Proxmox cluster? A row that says the same as before is the same row, and a listing that
//! differs only in loads has the same generation of facts: whoever goes by facts has nothing to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenon_model::{HostName, VmId};
use tenon_pve::{GuestRow, HostRow, Resources, StorageRow};

use crate::status::has_room_for_seed;

/// Numbers for generations. No number is given twice, so a region that was replaced is never taken for the one before.
#[derive(Debug, Default)]
pub(super) struct Generations(AtomicU64);

impl Generations {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// The last listing of a region.
#[derive(Debug, Clone, Default)]
pub(super) struct Listing {
    pub(super) resources: Arc<Resources>,
    /// Moves when a guest, a host or a storage is new, gone or different; not with loads. Zero before the first listing.
    pub(super) facts: u64,
}

/// What a listing shows otherwise than the one before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RowChanges {
    /// Guests that are new, gone or different.
    pub(super) guests: BTreeSet<VmId>,
    /// How many hosts are.
    pub(super) hosts: usize,
    /// How many storages are.
    pub(super) storages: usize,
    /// Rows of which only the load differs: what is used of a host or a storage.
    pub(super) loads: usize,
}

impl RowChanges {
    fn has_facts(&self) -> bool {
        !self.guests.is_empty() || self.hosts + self.storages > 0
    }
}

impl Listing {
    /// The next listing, which shares with this one what did not change, and what did.
    pub(super) fn followed_by(&self, next: Resources, generations: &Generations) -> (Listing, RowChanges) {
        let guests = compared(&self.resources.guests, next.guests);
        let hosts = compared(&self.resources.hosts, next.hosts);
        let storages = compared(&self.resources.storages, next.storages);
        let changes = RowChanges {
            guests: guests.changed,
            hosts: hosts.changed.len(),
            storages: storages.changed.len(),
            loads: guests.loads + hosts.loads + storages.loads,
        };
        let is_new_generation = changes.has_facts() || self.facts == 0;
        let facts = if is_new_generation { generations.next() } else { self.facts };
        let resources = if is_new_generation || changes.loads > 0 {
            Arc::new(Resources { guests: guests.rows, hosts: hosts.rows, storages: storages.rows })
        } else {
            self.resources.clone()
        };
        (Listing { resources, facts }, changes)
    }
}

/// A row of a listing.
trait Row: PartialEq {
    type Key: Ord;

    fn key(&self) -> Self::Key;

    /// Whether both say the same but for loads.
    fn has_facts_of(&self, other: &Self) -> bool;
}

impl Row for GuestRow {
    type Key = VmId;

    fn key(&self) -> VmId {
        self.id
    }

    fn has_facts_of(&self, other: &GuestRow) -> bool {
        self == other
    }
}

impl Row for HostRow {
    type Key = HostName;

    fn key(&self) -> HostName {
        self.host.clone()
    }

    fn has_facts_of(&self, other: &HostRow) -> bool {
        let facts = |row: &HostRow| HostRow { cpu: None, mem: None, ..row.clone() };
        facts(self) == facts(other)
    }
}

impl Row for StorageRow {
    type Key = (String, HostName);

    fn key(&self) -> (String, HostName) {
        (self.storage.clone(), self.host.clone())
    }

    /// Space in use is a load, until there is none left.
    fn has_facts_of(&self, other: &StorageRow) -> bool {
        let facts = |row: &StorageRow| StorageRow { disk: None, ..row.clone() };
        facts(self) == facts(other) && has_room_for_seed(self) == has_room_for_seed(other)
    }
}

/// Rows of one kind after they were compared with those before.
struct Compared<R: Row> {
    rows: Vec<Arc<R>>,
    changed: BTreeSet<R::Key>,
    loads: usize,
}

fn compared<R: Row>(before: &[Arc<R>], next: Vec<Arc<R>>) -> Compared<R> {
    let mut known: BTreeMap<R::Key, &Arc<R>> = before.iter().map(|row| (row.key(), row)).collect();
    let mut compared = Compared { rows: Vec::with_capacity(next.len()), changed: BTreeSet::new(), loads: 0 };
    for row in next {
        let row = match known.remove(&row.key()) {
            Some(old) if **old == *row => old.clone(),
            Some(old) if old.has_facts_of(&row) => {
                compared.loads += 1;
                row
            }
            _ => {
                compared.changed.insert(row.key());
                row
            }
        };
        compared.rows.push(row);
    }
    // What is left is listed no more.
    compared.changed.extend(known.into_keys());
    compared
}

#[cfg(test)]
mod tests {
    use tenon_pve::GuestKind;

    use super::*;

    fn guest(id: u32, status: &str) -> Arc<GuestRow> {
        Arc::new(GuestRow {
            id: id.try_into().unwrap(),
            host: "pve1".parse().unwrap(),
            kind: GuestKind::Qemu,
            status: Some(status.to_owned()),
            name: None,
            template: false,
            tags: None,
            lock: None,
            pool: None,
            maxcpu: Some(4),
            maxmem: Some(8 << 30),
        })
    }

    fn host(cpu: f64, status: &str) -> Arc<HostRow> {
        let (host, status) = ("pve1".parse().unwrap(), Some(status.to_owned()));
        Arc::new(HostRow { host, status, maxcpu: Some(16), maxmem: Some(64 << 30), cpu: Some(cpu), mem: Some(1 << 30) })
    }

    fn storage(used: u64) -> Arc<StorageRow> {
        let (storage, host) = ("local".to_owned(), "pve1".parse().unwrap());
        let (status, content) = (Some("available".to_owned()), "iso".to_owned());
        Arc::new(StorageRow {
            storage,
            host,
            status,
            shared: false,
            content,
            disk: Some(used),
            maxdisk: Some(100 << 30),
        })
    }

    fn listed(guests: &[Arc<GuestRow>], host: &Arc<HostRow>, storage: &Arc<StorageRow>) -> Resources {
        // As they come from Proxmox: nothing is shared.
        let fresh = |rows: &[Arc<GuestRow>]| rows.iter().map(|row| Arc::new(GuestRow::clone(row))).collect();
        Resources {
            guests: fresh(guests),
            hosts: vec![Arc::new(HostRow::clone(host))],
            storages: vec![Arc::new(StorageRow::clone(storage))],
        }
    }

    #[test]
    fn a_listing_that_says_the_same_is_the_same_and_one_row_that_changed_is_a_new_generation_with_all_other_rows() {
        let generations = Generations::default();
        let [one, two] = [guest(100, "running"), guest(101, "running")];
        let (load, disk) = (host(0.1, "online"), storage(1 << 30));
        let rows = || listed(&[one.clone(), two.clone()], &load, &disk);
        let (first, changes) = Listing::default().followed_by(rows(), &generations);
        assert_eq!((first.facts, changes.guests.len(), changes.hosts, changes.storages), (1, 2, 1, 1));
        let (same, changes) = first.followed_by(rows(), &generations);
        assert_eq!((same.facts, &changes), (1, &RowChanges::default()));
        assert!(Arc::ptr_eq(&same.resources, &first.resources));

        let (next, changes) =
            same.followed_by(listed(&[one.clone(), guest(101, "stopped")], &load, &disk), &generations);
        assert_eq!((next.facts, changes.guests), (2, BTreeSet::from([two.id])));
        let is_kept = |index: usize| Arc::ptr_eq(&next.resources.guests[index], &first.resources.guests[index]);
        assert!(is_kept(0) && !is_kept(1));
        assert!(Arc::ptr_eq(&next.resources.hosts[0], &first.resources.hosts[0]));

        let (gone, changes) = next.followed_by(listed(&[one], &load, &disk), &generations);
        assert_eq!((gone.facts, changes.guests), (3, BTreeSet::from([two.id])));
    }

    #[test]
    fn loads_move_no_generation_until_a_storage_has_no_room_left() {
        let generations = Generations::default();
        let guests = [guest(100, "running")];
        let rows = |cpu, used| listed(&guests, &host(cpu, "online"), &storage(used));
        let (first, _) = Listing::default().followed_by(rows(0.1, 1 << 30), &generations);
        let (busy, changes) = first.followed_by(rows(0.9, 2 << 30), &generations);
        assert_eq!((busy.facts, changes), (first.facts, RowChanges { loads: 2, ..RowChanges::default() }));
        assert_eq!(busy.resources.hosts[0].cpu, Some(0.9), "whoever goes by loads has the latest");
        let (full, changes) = busy.followed_by(rows(0.9, 100 << 30), &generations);
        assert_eq!((full.facts > busy.facts, changes.storages), (true, 1));
        let away = listed(&guests, &host(0.9, "offline"), &storage(100 << 30));
        let (away, changes) = full.followed_by(away, &generations);
        assert_eq!((away.facts > full.facts, changes.hosts), (true, 1));
    }
}
