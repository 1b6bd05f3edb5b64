//! What can be had: sizes, what of them pods can have, and where and at what price each is offered.

use std::collections::{BTreeMap, BTreeSet};

use crate::instance_type::Overhead;
use crate::labels::{self, CAPACITY_TYPE};
use crate::place::Place;
use crate::price::Price;
use crate::quantity::Quantity;
use crate::requirement::Operator;
use crate::requirements::Requirements;
use crate::resources::{HUGE_PAGES, MEMORY, Resources};

/// The value of [`CAPACITY_TYPE`] for what was set aside beforehand.
pub const RESERVED: &str = "reserved";

/// Everything that nodes of a pool can be made of. It never changes; when the world does, there is another one.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    types: Vec<CatalogType>,
    well_known: BTreeSet<String>,
}

/// A size as it is offered.
#[derive(Debug, Clone, Default)]
pub struct CatalogType {
    /// Its name, which is the value of the instance-type label.
    pub name: String,
    /// What is true of every node of this size.
    pub requirements: Requirements,
    /// What the machine has.
    pub capacity: Resources,
    /// What of it pods cannot have.
    pub overhead: Overhead,
    /// Where and how it can be had.
    pub offerings: Vec<Offering>,
    /// How many volumes of a CSI driver it attaches; a driver that is not named is not limited.
    pub volume_attachment_limits: BTreeMap<String, u32>,
    /// What of it NodeOverlays changed.
    pub overlaid: Overlaid,
}

/// What of a size NodeOverlays changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overlaid {
    /// The price of an offering.
    pub price: bool,
    /// An amount that its machines have.
    pub capacity: bool,
}

/// One way to have a size.
#[derive(Debug, Clone, Default)]
pub struct Offering {
    /// Zone, capacity type and whatever else tells it from the others.
    pub requirements: Requirements,
    /// What it counts as.
    pub price: Price,
    /// Whether nothing is wrong with it. One that is merely full is available.
    pub available: bool,
    /// What was set aside for it, if it is reserved.
    pub reservation: Option<Reservation>,
    /// The machine it is made on. Without one, as many can be made as anybody wants.
    pub place: Option<Place>,
    /// What is different from the size's own amounts.
    pub overrides: Overrides,
}

/// Capacity that was set aside beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The label that carries its name.
    pub label: String,
    /// Its name. Offerings with the same one share what it has.
    pub id: String,
    /// How many more machines it has.
    pub capacity: u32,
}

/// Amounts that stand in place of a size's own, resource by resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// What the machine has.
    pub capacity: Resources,
    /// What pods cannot have, all kinds together.
    pub overhead: Resources,
}

/// Offerings of a size that leave pods the same.
#[derive(Debug, Clone)]
pub struct AllocatableGroup {
    /// What pods can have.
    pub allocatable: Resources,
    /// Which offerings, by their index.
    pub offerings: Vec<usize>,
}

impl Catalog {
    /// A catalogue of these types. Every label it uses is well known: whoever makes the node sets it.
    pub fn new(mut types: Vec<CatalogType>) -> Catalog {
        types.sort_by(|a, b| a.name.cmp(&b.name));
        for offered in &mut types {
            offered.offerings.sort_by_cached_key(|way| (way.price, way.place.clone(), way.requirements.to_string()));
        }
        let of_types = types.iter().map(|offered| &offered.requirements);
        let of_offerings = types.iter().flat_map(|offered| offered.offerings.iter().map(|way| &way.requirements));
        let used = of_types.chain(of_offerings).flat_map(Requirements::iter).map(|(label, _)| label.to_owned());
        let well_known = used.chain(labels::WELL_KNOWN.map(str::to_owned)).collect();
        Catalog { types, well_known }
    }

    /// The sizes, by name.
    pub fn types(&self) -> &[CatalogType] {
        &self.types
    }

    /// A size by its name.
    pub fn find(&self, name: &str) -> Option<&CatalogType> {
        let found = self.types.binary_search_by(|offered| offered.name.as_str().cmp(name)).ok()?;
        self.types.get(found)
    }

    /// Whether a label may be asked for although a pool says nothing of it.
    pub fn is_well_known(&self, label: &str) -> bool {
        self.well_known.contains(label)
    }
}

impl CatalogType {
    /// What pods can have: offerings that differ in it form groups. One that is not available is in none.
    pub fn allocatable_groups(&self) -> Vec<AllocatableGroup> {
        let mut groups: Vec<(&Overrides, AllocatableGroup)> = Vec::new();
        for (index, offering) in self.offerings.iter().enumerate().filter(|(_, offering)| offering.available) {
            match groups.iter_mut().find(|(overrides, _)| **overrides == offering.overrides) {
                Some((_, group)) => group.offerings.push(index),
                None => {
                    let allocatable = self.allocatable(&offering.overrides);
                    groups.push((&offering.overrides, AllocatableGroup { allocatable, offerings: vec![index] }));
                }
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// What a machine with these differences has.
    pub fn capacity_with(&self, overrides: &Overrides) -> Resources {
        replaced(&self.capacity, &overrides.capacity)
    }

    /// What pods can have of a machine with these differences. Less than nothing is possible where more is kept back
    /// than there is.
    pub fn allocatable(&self, overrides: &Overrides) -> Resources {
        let capacity = self.capacity_with(overrides);
        let Overhead { kube_reserved, system_reserved, eviction_threshold } = &self.overhead;
        let mut kept = kube_reserved.clone();
        kept.add(system_reserved);
        kept.add(eviction_threshold);
        let kept = replaced(&kept, &overrides.overhead);
        let left: Resources = capacity.iter().map(|(name, amount)| (name, amount - kept.get(name))).collect();
        // Pages set aside at boot are taken from memory.
        let pages: Quantity =
            left.iter().filter(|(name, _)| name.starts_with(HUGE_PAGES)).map(|(_, amount)| amount).sum();
        if pages.is_zero() {
            return left;
        }
        let memory = (left.get(MEMORY) - pages).at_least_zero();
        left.with(MEMORY, memory)
    }
}

impl Offering {
    /// Whether a machine can be made from it now.
    pub fn is_launchable(&self) -> bool {
        self.available && (!self.is_reserved() || self.reservation.as_ref().is_some_and(|held| held.capacity > 0))
    }

    /// Whether it was set aside beforehand.
    pub fn is_reserved(&self) -> bool {
        self.label(CAPACITY_TYPE) == Some(RESERVED)
    }

    /// The one value it has for a label, if there is just one.
    pub fn label(&self, label: &str) -> Option<&str> {
        let allowed = self.requirements.get(label).filter(|allowed| allowed.operator() == Operator::In)?;
        allowed.values().first().filter(|_| allowed.values().len() == 1).map(String::as_str)
    }
}

fn replaced(amounts: &Resources, by: &Resources) -> Resources {
    by.iter().fold(amounts.clone(), |amounts, (name, amount)| amounts.with(name, amount))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::requirement::Requirement;
    use crate::resources::CPU;

    fn amounts(texts: &[(&str, &str)]) -> Resources {
        texts.iter().map(|(resource, amount)| (*resource, amount.parse().unwrap())).collect()
    }

    fn sized(capacity: &[(&str, &str)]) -> CatalogType {
        let kube_reserved = amounts(&[(CPU, "100m"), (MEMORY, "10Mi"), ("gpu", "1")]);
        let overhead = Overhead { kube_reserved, ..Overhead::default() };
        CatalogType { capacity: amounts(capacity), overhead, ..CatalogType::default() }
    }

    fn offering(available: bool, capacity: &[(&str, &str)]) -> Offering {
        let overrides = Overrides { capacity: amounts(capacity), ..Overrides::default() };
        Offering { available, overrides, ..Offering::default() }
    }

    #[test]
    fn i11_huge_pages_and_what_is_kept_back_are_not_for_pods() {
        let size = sized(&[(CPU, "4"), (MEMORY, "4Gi"), ("hugepages-2Mi", "1Gi")]);
        let left = size.allocatable(&Overrides::default());
        assert_eq!(left, amounts(&[(CPU, "3900m"), (MEMORY, "3062Mi"), ("hugepages-2Mi", "1Gi")]));
        assert!(!left.names("gpu"), "what is not there is not kept back");
    }

    #[test]
    fn i11_huge_pages_of_every_kind_leave_memory_at_nothing_and_not_below() {
        for pages in [
            [("hugepages-2Mi", "4086Mi"), ("hugepages-1Gi", "0")],
            [("hugepages-2Mi", "3Gi"), ("hugepages-1Gi", "2Gi")],
        ] {
            let size = sized(&[(CPU, "4"), (MEMORY, "4Gi"), pages[0], pages[1]]);
            assert_eq!(size.allocatable(&Overrides::default()).get(MEMORY), Quantity::ZERO, "{pages:?}");
        }
    }

    #[test]
    fn an_override_stands_in_place_of_the_sizes_own_amount() {
        let size = sized(&[(CPU, "4"), (MEMORY, "4Gi")]);
        let overrides =
            Overrides { capacity: amounts(&[(CPU, "2"), ("fpga", "1")]), overhead: amounts(&[(MEMORY, "1Gi")]) };
        assert_eq!(size.allocatable(&overrides), amounts(&[(CPU, "1900m"), (MEMORY, "3Gi"), ("fpga", "1")]));
    }

    #[test]
    fn i11_overrides_offerings_with_equal_ones_form_a_group_and_what_cannot_be_had_is_in_none() {
        let less: &[(&str, &str)] = &[(CPU, "2")];
        let offerings = vec![offering(true, &[]), offering(true, less), offering(false, &[]), offering(true, &[])];
        let size = CatalogType { offerings, ..sized(&[(CPU, "4")]) };
        let groups = size.allocatable_groups();
        let found: Vec<(Quantity, &[usize])> =
            groups.iter().map(|group| (group.allocatable.get(CPU), group.offerings.as_slice())).collect();
        assert_eq!(found, [(Quantity::milli(3900), &[0, 3][..]), (Quantity::milli(1900), &[1][..])]);
    }

    #[test]
    fn j6_a_full_reservation_is_available_and_not_launchable_unless_machines_are_supposed_to_be_free() {
        let reserved = |available, capacity| Offering {
            requirements: [(CAPACITY_TYPE.to_owned(), Requirement::is(RESERVED))].into_iter().collect(),
            available,
            reservation: Some(Reservation { label: "id".to_owned(), id: "r".to_owned(), capacity }),
            ..Offering::default()
        };
        let (plain, mut credited) = (Options::default(), Options::default());
        credited.credits.insert("r".to_owned(), 1);
        for (way, is_launchable, with_credit) in [
            (reserved(true, 1), true, true),
            (reserved(true, 0), false, true),
            (reserved(false, 5), false, false),
            (reserved(false, 0), false, false),
            (offering(true, &[]), true, true),
            (offering(false, &[]), false, false),
        ] {
            assert_eq!(way.is_launchable(), is_launchable, "{way:?}");
            assert_eq!((plain.can_launch(&way), credited.can_launch(&way)), (is_launchable, with_credit), "{way:?}");
        }
    }
}
