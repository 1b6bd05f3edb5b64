//! Sizes of VMs: what each has, what of it pods can have, and what it counts as.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{CatalogType, Offering};
use crate::labels::{
    ARCH, CAPACITY_TYPE, INSTANCE_CPU_TYPE, INSTANCE_FAMILY, INSTANCE_IMAGE_ID, INSTANCE_TYPE, OS, REGION, ZONE,
};
use crate::place::Place;
use crate::price::Price;
use crate::price_formula::PriceFormula;
use crate::quantity::Quantity;
use crate::requirement::{Operator, Requirement};
use crate::resources::{HUGE_PAGES, MEMORY, Resources};
use crate::size_rule::SizeRule;

/// How a node is paid for. On one's own metal this is a way to group nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CapacityType {
    /// The usual kind.
    #[default]
    OnDemand,
    /// May be taken away, and costs half.
    Spot,
    /// Set aside beforehand.
    Reserved,
}

impl CapacityType {
    /// The value of its label.
    pub fn as_str(self) -> &'static str {
        match self {
            CapacityType::OnDemand => "on-demand",
            CapacityType::Spot => "spot",
            CapacityType::Reserved => "reserved",
        }
    }
}

/// What of a VM's resources pods cannot have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overhead {
    /// For the kubelet and the container runtime.
    pub kube_reserved: Resources,
    /// For the rest of the system.
    pub system_reserved: Resources,
    /// What must stay free, or pods are evicted.
    pub eviction_threshold: Resources,
}

/// A size of VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceType {
    /// Its name, which is a label value.
    pub name: String,
    /// What the VM has.
    pub capacity: Resources,
    /// What of it pods cannot have.
    pub overhead: Overhead,
    /// How it is paid for.
    pub capacity_type: CapacityType,
    /// How many volumes of a CSI driver it attaches; a driver that is not named is not limited.
    pub volume_attachment_limits: BTreeMap<String, u32>,
    /// What it counts as, if somebody said so; otherwise that is computed from its cores and its memory.
    pub price: Option<Price>,
}

impl InstanceType {
    /// The sizes there are if nobody brings a list: 1 to 16 cores, with 2, 3, 4 or 8 GiB for each.
    pub fn built_in() -> Vec<InstanceType> {
        SizeRule::default().instance_types()
    }

    /// What pods can have: what is there, less what is kept back. Huge pages are set aside from the memory, and only
    /// pods that name them get them.
    pub fn allocatable(&self) -> Resources {
        let Overhead { kube_reserved, system_reserved, eviction_threshold } = &self.overhead;
        let kept_back = |resource: &str| -> Quantity {
            [kube_reserved, system_reserved, eviction_threshold].map(|kept| kept.get(resource)).into_iter().sum()
        };
        let left = |(resource, amount): (&str, Quantity)| (resource.to_owned(), amount - kept_back(resource));
        let left: Resources = self.capacity.iter().map(left).collect();
        let pages =
            left.iter().filter(|(resource, _)| resource.starts_with(HUGE_PAGES)).map(|(_, amount)| amount).sum();
        let free = |(resource, amount): (&str, Quantity)| {
            let amount = if resource == MEMORY { amount - pages } else { amount };
            (resource.to_owned(), amount.at_least_zero())
        };
        left.iter().map(free).collect()
    }

    /// What it counts as when sizes are compared: what was said of it, or what the reference's formula gives.
    pub fn price(&self) -> Price {
        self.price_by(&PriceFormula::default())
    }

    fn price_by(&self, formula: &PriceFormula) -> Price {
        self.price.unwrap_or_else(|| formula.price(&self.capacity, self.capacity_type))
    }

    /// The same, with the price that this formula gives unless one was said.
    #[must_use]
    pub fn priced_by(self, formula: &PriceFormula) -> InstanceType {
        InstanceType { price: Some(self.price_by(formula)), ..self }
    }

    /// The size as it can be had on these machines.
    pub fn offered_at(&self, places: &[Place]) -> CatalogType {
        let way = |place: &Place| Offering {
            requirements: [
                (REGION, place.region.as_str()),
                (ZONE, place.host.as_str()),
                (CAPACITY_TYPE, self.capacity_type.as_str()),
            ]
            .into_iter()
            .map(|(label, value)| (label.to_owned(), Requirement::is(value)))
            .collect(),
            price: self.price(),
            available: true,
            place: Some(place.clone()),
            ..Offering::default()
        };
        let one_of = |values: BTreeSet<&str>| Requirement::new(Operator::In, values.into_iter().map(str::to_owned));
        // Templates for another architecture would bring a field to say so.
        let facts = [
            (INSTANCE_TYPE, Some(Requirement::is(&self.name))),
            (INSTANCE_FAMILY, Some(Requirement::is(self.family()))),
            (CAPACITY_TYPE, Some(Requirement::is(self.capacity_type.as_str()))),
            (ARCH, Some(Requirement::is("amd64"))),
            (OS, Some(Requirement::is("linux"))),
            // Known once a VM runs: whoever demands one of them gets no new node, rather than one after the other.
            (INSTANCE_CPU_TYPE, Requirement::new(Operator::DoesNotExist, [])),
            (INSTANCE_IMAGE_ID, Requirement::new(Operator::DoesNotExist, [])),
            (REGION, one_of(places.iter().map(|place| place.region.as_str()).collect())),
            (ZONE, one_of(places.iter().map(|place| place.host.as_str()).collect())),
        ];
        CatalogType {
            name: self.name.clone(),
            requirements: facts.into_iter().filter_map(|(label, fact)| Some((label.to_owned(), fact?))).collect(),
            capacity: self.capacity.clone(),
            overhead: self.overhead.clone(),
            offerings: places.iter().map(way).collect(),
            volume_attachment_limits: self.volume_attachment_limits.clone(),
            ..CatalogType::default()
        }
    }

    /// The part of the name before the first dot.
    pub fn family(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{CPU, PODS};

    const MIB: i64 = 1 << 20;

    fn built_in(name: &str) -> InstanceType {
        InstanceType::built_in().into_iter().find(|size| size.name == name).unwrap()
    }

    #[test]
    fn pods_get_what_kubelet_and_system_leave_them() {
        let small = built_in("c1.1VCPU-2GB");
        assert_eq!(small.allocatable().get(CPU), Quantity::milli(970));
        assert_eq!(small.allocatable().get(MEMORY), Quantity::whole((2048 - 256 - 64 - 100) * MIB));
        assert_eq!(small.allocatable().get(PODS), Quantity::whole(64));
        let large = built_in("s1.4VCPU-16GB");
        assert_eq!(large.allocatable().get(CPU), Quantity::milli(3890));
        assert_eq!(large.allocatable().get(PODS), Quantity::whole(110));
        assert_eq!(large.family(), "s1");
    }

    #[test]
    fn huge_pages_are_taken_from_the_memory() {
        let amounts = |texts: &[(&str, &str)]| -> Resources {
            texts.iter().map(|(resource, amount)| (*resource, amount.parse().unwrap())).collect()
        };
        let sized = |pages: &str| InstanceType {
            capacity: amounts(&[(CPU, "4"), (MEMORY, "4Gi"), ("hugepages-2Mi", pages)]),
            overhead: Overhead {
                kube_reserved: amounts(&[(CPU, "100m"), (MEMORY, "10Mi"), ("example.com/gpu", "1")]),
                ..Overhead::default()
            },
            ..built_in("c1.1VCPU-2GB")
        };
        let left = sized("1Gi").allocatable();
        assert_eq!(left, amounts(&[(CPU, "3900m"), (MEMORY, "3062Mi"), ("hugepages-2Mi", "1Gi")]));
        assert_eq!(left.get(MEMORY).to_string(), "3062Mi");
        assert!(!left.names("example.com/gpu"), "what is not there is not kept back");
        assert_eq!(sized("4Gi").allocatable().get(MEMORY), Quantity::ZERO);
    }

    #[test]
    fn a_larger_size_counts_as_more_and_spot_as_half() {
        // 0.025 x 1 + 0.001 x 2.147483648
        let small = built_in("c1.1VCPU-2GB");
        assert!((small.price().value() - 0.027_147_483_648).abs() < 1e-12);
        let spot = InstanceType { capacity_type: CapacityType::Spot, ..small.clone() };
        assert_eq!(spot.price(), Price::new(small.price().value() / 2.0));
        assert!(built_in("t1.1VCPU-3GB").price() > small.price());
    }

    #[test]
    fn a_price_that_was_said_stays_whatever_the_formula_gives() {
        let formula = PriceFormula { per_cpu: 1.0, per_gigabyte: 0.0, ..PriceFormula::default() };
        let small = built_in("c1.1VCPU-2GB");
        assert_eq!(small.clone().priced_by(&formula).price(), Price::new(1.0));
        let said = InstanceType { price: Some(Price::new(7.0)), capacity_type: CapacityType::Spot, ..small };
        assert_eq!(said.clone().priced_by(&formula), said);
        assert_eq!(
            said.offered_at(&[Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() }]).offerings[0].price,
            Price::new(7.0)
        );
    }

    #[test]
    fn an_offered_size_says_its_family_and_nothing_of_what_only_a_running_vm_shows() {
        let place = |host: &str| Place { region: "lab".to_owned(), host: host.parse().unwrap() };
        let offered = built_in("s1.4VCPU-16GB").offered_at(&[place("pve1"), place("pve2")]);
        let is = |label: &str, value: &str| assert_eq!(offered.requirements.get(label), Some(&Requirement::is(value)));
        is(INSTANCE_TYPE, "s1.4VCPU-16GB");
        is(INSTANCE_FAMILY, "s1");
        is(CAPACITY_TYPE, "on-demand");
        is(ARCH, "amd64");
        is(OS, "linux");
        is(REGION, "lab");
        for label in [INSTANCE_CPU_TYPE, INSTANCE_IMAGE_ID] {
            assert_eq!(
                offered.requirements.get(label).map(Requirement::operator),
                Some(Operator::DoesNotExist),
                "{label}"
            );
        }
        assert_eq!(offered.offerings.len(), 2);
        assert_eq!(offered.offerings[1].label(ZONE), Some("pve2"));
    }
}
