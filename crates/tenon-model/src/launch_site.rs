//! What a new node needs besides an instance type and a host: a template, a storage for its first-boot data, a VM id, and
//! addresses.

use std::collections::{BTreeMap, BTreeSet};

use crate::assignment::AddressSite;
use crate::place::Place;
use crate::vmid::{VmId, VmIdRange};

/// What VMs can be launched from and under. Empty where nothing is launched, as in a plan from files.
#[derive(Debug, Clone, Default)]
pub struct LaunchSite {
    /// What the nodes of each NodePool boot from, by the NodePool's name.
    pub images: BTreeMap<String, BootImage>,
    /// The storage of each host that takes first-boot data.
    pub seed_storages: BTreeMap<Place, String>,
    /// VM ids, taken and free.
    pub ids: VmIds,
    /// Addresses, taken and free.
    pub addresses: AddressSite,
}

/// What the nodes of a NodePool boot from.
#[derive(Debug, Clone, Default)]
pub struct BootImage {
    /// The template on each host.
    pub templates: BTreeMap<Place, VmId>,
    /// Whether its nodes get first-boot data on a CD-ROM.
    pub has_seed: bool,
}

/// VM ids: the range they are chosen from, and those in use in each region by guests, open claims or incomplete clones.
#[derive(Debug, Clone, Default)]
pub struct VmIds {
    range: VmIdRange,
    taken: BTreeMap<String, BTreeSet<VmId>>,
    /// The id of each region after which the next is looked for.
    last: BTreeMap<String, VmId>,
}

impl VmIds {
    /// A range of which nothing is taken yet.
    pub fn new(range: VmIdRange) -> VmIds {
        VmIds { range, taken: BTreeMap::new(), last: BTreeMap::new() }
    }

    /// Marks ids of a region as taken.
    pub fn take(&mut self, region: &str, ids: impl IntoIterator<Item = VmId>) {
        self.taken.entry(region.to_owned()).or_default().extend(ids);
    }

    /// The next id of a region comes after this one, if it does not come after a higher one already.
    pub fn begin_after(&mut self, region: &str, id: VmId) {
        let last = self.last.entry(region.to_owned()).or_insert(id);
        *last = id.max(*last);
    }

    /// The next free id of a region, which is taken from then on. Ids ascend: one that was used comes again last.
    pub fn take_next(&mut self, region: &str) -> Option<VmId> {
        let taken = self.taken.entry(region.to_owned()).or_default();
        let id = self.range.next_free(taken, self.last.get(region).copied())?;
        taken.insert(id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_ascend_and_begin_anew_at_the_end_of_the_range() {
        let id = |number: u32| VmId::try_from(number).unwrap();
        let mut ids = VmIds::new(VmIdRange::new(id(100), id(103)).unwrap());
        ids.begin_after("lab", id(101));
        ids.begin_after("lab", id(100));
        let given: Vec<_> = (0..5).map(|_| ids.take_next("lab").map(VmId::get)).collect();
        assert_eq!(given, [Some(102), Some(103), Some(100), Some(101), None]);
    }

    #[test]
    fn an_id_is_given_once_in_a_region_and_again_in_another() {
        let id = |number: u32| VmId::try_from(number).unwrap();
        let mut ids = VmIds::new(VmIdRange::new(id(100), id(102)).unwrap());
        ids.take("lab", [id(100)]);
        let given: Vec<_> = ["lab", "lab", "lab", "attic"].map(|region| ids.take_next(region)).into();
        assert_eq!(given, [Some(id(101)), Some(id(102)), None, Some(id(100))]);
    }
}
