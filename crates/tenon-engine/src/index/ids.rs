//! How are things numbered? Each kind has numbers of its own, so that mixing them up does not compile.
//!
//! A number comes from the table that its thing was put into, and is good for as long as that table is.

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// The number of a thing.
pub(crate) trait Id: Copy + PartialEq {
    /// The thing at this position.
    fn of(position: usize) -> Self;
    /// The position of the thing.
    fn position(self) -> usize;
}

macro_rules! ids {
    ($($(#[$words:meta])* $name:ident;)*) => {
        $(
            $(#[$words])*
            #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub(crate) struct $name(u32);

            impl Id for $name {
                fn of(position: usize) -> $name {
                    $name(u32::try_from(position).unwrap_or(u32::MAX))
                }

                fn position(self) -> usize {
                    self.0 as usize
                }
            }
        )*
    };
}

ids! {
    /// A catalogue of instance types.
    CatalogIx;
    /// An instance type of a catalogue, by name.
    TypeIx;
    /// An instance type with what some of its offerings leave to pods.
    SlotIx;
    /// An available offering of a catalogue, the cheapest first.
    OfferingIx;
    /// A Proxmox host, by name.
    HostIx;
    /// What new nodes of a pool are made from, in the order the pools are asked.
    TemplateIx;
    /// A node that is there or on its way, in the order they are asked.
    NodeIx;
    /// A node that is being planned, in the order they were opened.
    OpenIx;
    /// A pod that is to be placed, in the order they are tried.
    PodIx;
    /// Pods that ask for the same.
    PodClassIx;
    /// One way to try a pod.
    AskIx;
    /// What pods demand of labels.
    DemandIx;
    /// Which taints pods put up with.
    TolerationsIx;
    /// What is demanded of a planned node.
    StateIx;
    /// A label whose values pods are spread over, or kept together in.
    KeyIx;
    /// A value of such a label, in the order of names.
    DomainIx;
    /// Constraints that count the same pods.
    GroupIx;
    /// Nodes that count for a group.
    FilterIx;
    /// A group as pods of one kind see it.
    ViewIx;
    /// Domains that were chosen for a pod.
    ChoiceIx;
    /// A CSI driver of which a node attaches only so many volumes, by name.
    DriverIx;
    /// A volume of such a driver.
    VolumeIx;
    /// So many pods on a planned node.
    PodCountIx;
    /// A list of instance types in order of price.
    TypeListIx;
}

/// Things by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table<I, T> {
    things: Vec<T>,
    numbers: PhantomData<I>,
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Table<I, T> {
        Table { things: Vec::new(), numbers: PhantomData }
    }
}

impl<I: Id, T> Table<I, T> {
    /// Puts a thing behind the others, and says which it is.
    pub(crate) fn push(&mut self, thing: T) -> I {
        self.things.push(thing);
        I::of(self.things.len() - 1)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.things.len()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.things.is_empty()
    }

    /// All things, in the order of their numbers.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.things.iter()
    }

    /// All things, to be changed.
    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.things.iter_mut()
    }

    /// All numbers.
    pub(crate) fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.things.len()).map(I::of)
    }

    /// The thing that is the one, where things are in order.
    pub(crate) fn search_by(&self, compare: impl FnMut(&T) -> Ordering) -> Option<I> {
        self.things.binary_search_by(compare).ok().map(I::of)
    }

    /// All things with their numbers.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (I, &T)> {
        self.things.iter().enumerate().map(|(position, thing)| (I::of(position), thing))
    }
}

impl<I: Id, T> Index<I> for Table<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        &self.things[id.position()]
    }
}

impl<I: Id, T> IndexMut<I> for Table<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.things[id.position()]
    }
}

impl<I, T> IntoIterator for Table<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> std::vec::IntoIter<T> {
        self.things.into_iter()
    }
}

impl<I, T> FromIterator<T> for Table<I, T> {
    fn from_iter<F: IntoIterator<Item = T>>(things: F) -> Table<I, T> {
        Table { things: things.into_iter().collect(), numbers: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_is_found_by_the_number_it_was_given() {
        let mut table: Table<NodeIx, &str> = Table::default();
        let (first, second) = (table.push("a"), table.push("b"));
        table[second] = "c";
        assert_eq!((table[first], table[second], table.len()), ("a", "c", 2));
        assert_eq!(table.ids().collect::<Vec<_>>(), [first, second]);
        assert_eq!(table.pairs().last(), Some((second, &"c")));
    }
}
