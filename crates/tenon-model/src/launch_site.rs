//! What a new node needs besides an instance type and a host: a template, a storage for its first-boot data, a VM id.

use std::collections::{BTreeMap, BTreeSet};

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
}

impl VmIds {
    /// A range of which nothing is taken yet.
    pub fn new(range: VmIdRange) -> VmIds {
        VmIds { range, taken: BTreeMap::new() }
    }

    /// Marks ids of a region as taken.
    pub fn take(&mut self, region: &str, ids: impl IntoIterator<Item = VmId>) {
        self.taken.entry(region.to_owned()).or_default().extend(ids);
    }

    /// The lowest free id of a region, which is taken from then on.
    pub fn take_lowest_free(&mut self, region: &str) -> Option<VmId> {
        let taken = self.taken.entry(region.to_owned()).or_default();
        let id = self.range.lowest_free(taken)?;
        taken.insert(id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_given_once_in_a_region_and_again_in_another() {
        let id = |number: u32| VmId::try_from(number).unwrap();
        let mut ids = VmIds::new(VmIdRange::new(id(100), id(102)).unwrap());
        ids.take("lab", [id(100)]);
        let given: Vec<_> = ["lab", "lab", "lab", "attic"].map(|region| ids.take_lowest_free(region)).into();
        assert_eq!(given, [Some(id(101)), Some(id(102)), None, Some(id(100))]);
    }
}
