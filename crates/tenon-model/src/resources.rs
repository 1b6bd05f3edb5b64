//! Several amounts at once: what a pod asks for, what a node has.

use std::borrow::Cow;

use crate::quantity::Quantity;

/// Cores.
pub const CPU: &str = "cpu";
/// Bytes of memory.
pub const MEMORY: &str = "memory";
/// Bytes of local disk.
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
/// How many pods.
pub const PODS: &str = "pods";

/// How names of huge pages begin, such as `hugepages-2Mi`.
pub const HUGE_PAGES: &str = "hugepages-";

/// Names that nearly everything has: they are not copied.
const COMMON: [&str; 4] = [CPU, MEMORY, EPHEMERAL_STORAGE, PODS];

/// Resource names with their amounts. What is not named is nothing.
///
/// A node and a pod have few, and there are many nodes and pods: a sorted list takes a third of the memory of a map.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Resources {
    amounts: Vec<(Name, Quantity)>,
}

/// The name of a resource.
type Name = Cow<'static, str>;

fn name(resource: Cow<'_, str>) -> Name {
    let known = COMMON.into_iter().find(|known| *known == resource);
    known.map_or_else(|| Cow::Owned(resource.into_owned()), Cow::Borrowed)
}

/// The first resource of which there is not enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// Which resource.
    pub resource: String,
    /// How much was asked for.
    pub wanted: Quantity,
    /// How much there is.
    pub available: Quantity,
}

impl Resources {
    /// The amount of one resource.
    pub fn get(&self, resource: &str) -> Quantity {
        self.place(resource).map(|place| self.amounts[place].1).unwrap_or_default()
    }

    /// Whether the resource is named, if only with nothing.
    pub fn names(&self, resource: &str) -> bool {
        self.place(resource).is_ok()
    }

    /// Whether no resource is named.
    pub fn is_empty(&self) -> bool {
        self.amounts.is_empty()
    }

    /// The same with one amount set.
    #[must_use]
    pub fn with(mut self, resource: &str, amount: Quantity) -> Resources {
        self.set(resource.into(), amount);
        self
    }

    /// Where a resource is, or would be.
    fn place(&self, resource: &str) -> Result<usize, usize> {
        self.amounts.binary_search_by(|(known, _)| known.as_ref().cmp(resource))
    }

    fn set(&mut self, resource: Cow<'_, str>, amount: Quantity) {
        match self.place(&resource) {
            Ok(place) => self.amounts[place].1 = amount,
            Err(place) => self.amounts.insert(place, (name(resource), amount)),
        }
    }

    /// Adds another set of amounts.
    pub fn add(&mut self, other: &Resources) {
        self.add_times(other, 1);
    }

    /// Adds another set of amounts so many times.
    pub fn add_times(&mut self, other: &Resources, count: u32) {
        for (resource, amount) in &other.amounts {
            let more = amount.times(count);
            match self.place(resource) {
                Ok(place) => self.amounts[place].1 = self.amounts[place].1 + more,
                Err(place) => self.amounts.insert(place, (resource.clone(), Quantity::ZERO + more)),
            }
        }
    }

    /// What is left without `other`; less than nothing where there was too little.
    #[must_use]
    pub fn without(&self, other: &Resources) -> Resources {
        let mut left = self.clone();
        for (resource, amount) in &other.amounts {
            left.set(Cow::Borrowed(resource), self.get(resource) - *amount);
        }
        left
    }

    /// The larger amount of each resource.
    #[must_use]
    pub fn or_larger(&self, other: &Resources) -> Resources {
        let mut larger = self.clone();
        for (resource, amount) in &other.amounts {
            larger.set(Cow::Borrowed(resource), self.get(resource).max(*amount));
        }
        larger
    }

    /// Whether `self` fits into `room`; if not, what is short first. What is not asked for is never short, even where
    /// less than nothing is left of it.
    pub fn shortage_in(&self, room: &Resources) -> Option<Shortage> {
        let asked = self.iter().filter(|(_, wanted)| *wanted > Quantity::ZERO);
        let short = asked.map(|(resource, wanted)| (resource, wanted, room.get(resource)));
        short
            .filter(|(_, wanted, available)| wanted > available)
            .map(|(resource, wanted, available)| Shortage { resource: resource.to_owned(), wanted, available })
            .next()
    }

    /// All resources with their amounts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.amounts.iter().map(|(resource, amount)| (resource.as_ref(), *amount))
    }
}

impl<S: Into<String>> FromIterator<(S, Quantity)> for Resources {
    fn from_iter<I: IntoIterator<Item = (S, Quantity)>>(amounts: I) -> Resources {
        let mut all = Resources::default();
        amounts.into_iter().for_each(|(resource, amount)| all.set(Cow::Owned(resource.into()), amount));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(cpu_milli: i64, memory: i64) -> Resources {
        Resources::default().with(CPU, Quantity::milli(cpu_milli)).with(MEMORY, Quantity::whole(memory))
    }

    #[test]
    fn what_fits_exactly_fits() {
        assert_eq!(resources(500, 10).shortage_in(&resources(500, 10)), None);
        let short = resources(501, 10).shortage_in(&resources(500, 10));
        let expected =
            Shortage { resource: CPU.to_owned(), wanted: Quantity::milli(501), available: Quantity::milli(500) };
        assert_eq!(short, Some(expected));
    }

    #[test]
    fn adding_many_times_is_adding_one_by_one() {
        let (mut at_once, mut singly) = (resources(1, 1), resources(1, 1));
        let more = resources(7, 3).with("gpu", "2k".parse().unwrap());
        at_once.add_times(&more, 5);
        (0..5).for_each(|_| singly.add(&more));
        assert_eq!(at_once, singly);
        assert_eq!(at_once.get("gpu").to_string(), singly.get("gpu").to_string());
    }

    #[test]
    fn what_is_not_asked_for_is_never_short() {
        let overdrawn = resources(100, 0).without(&resources(0, 50));
        assert_eq!(resources(100, 0).shortage_in(&overdrawn), None);
        assert!(resources(0, 1).shortage_in(&overdrawn).is_some());
    }

    #[test]
    fn what_nobody_named_is_nothing() {
        let gpu = Resources::default().with("vendor.example/gpu", Quantity::whole(1));
        assert!(gpu.shortage_in(&resources(1, 1)).is_some());
        let mut sum = resources(1, 1);
        sum.add(&gpu);
        assert_eq!(sum.get("vendor.example/gpu"), Quantity::whole(1));
        assert_eq!(sum.or_larger(&resources(5, 0)).get(CPU), Quantity::milli(5));
    }
}
