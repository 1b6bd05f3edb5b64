//! Equal things get equal numbers, so that they are compared and remembered by number.

use std::collections::BTreeMap;
use std::fmt::Debug;

/// Things by number.
///
/// Two things are equal if they are written equally; values without an order of their own can be kept in a sorted map that
/// way, and writing one down is cheap next to what is remembered for it.
#[derive(Debug)]
pub(crate) struct Interner<T> {
    numbers: BTreeMap<String, usize>,
    things: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Interner<T> {
        Interner { numbers: BTreeMap::new(), things: Vec::new() }
    }
}

impl<T> Interner<T> {
    /// The number of whatever is written like `key`; if there is none yet, it is made.
    pub(crate) fn number(&mut self, key: &impl Debug, make: impl FnOnce() -> T) -> usize {
        let key = format!("{key:?}");
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.things.len();
        self.things.push(make());
        self.numbers.insert(key, number);
        number
    }

    /// The thing with this number.
    pub(crate) fn get(&self, number: usize) -> Option<&T> {
        self.things.get(number)
    }

    /// The thing with this number, to be changed.
    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.things.get_mut(number)
    }
}
