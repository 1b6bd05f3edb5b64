//! Is this one known? Equal things get equal numbers, so that they are compared and remembered by number.
//!
//! Hashes are the same in every run, and what is found by one is compared, so nothing depends on how it is spread. Nothing
//! here is ever walked through in the order of hashes.

use std::hash::{Hash, Hasher};

use super::ids::{Id, Table};

/// The hash of a thing.
pub(crate) fn fixed_hash(thing: &impl Hash) -> u64 {
    let mut hasher = FixedHasher(0);
    thing.hash(&mut hasher);
    hasher.finish()
}

/// Multiplies and turns, eight bytes at a time.
struct FixedHasher(u64);

const FACTOR: u64 = 0x517c_c1b7_2722_0a95;

impl FixedHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    }
}

impl Hasher for FixedHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.add(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    fn finish(&self) -> u64 {
        // The upper bits are the better ones.
        self.0 ^ (self.0 >> 32)
    }
}

/// Positions by hash: a table in which a place that is taken leads to the next.
#[derive(Debug, Clone, Default)]
struct Positions {
    /// One more than the position; nothing where nobody is.
    places: Vec<u32>,
    hashes: Vec<u64>,
}

impl Positions {
    /// The position with this hash that is the one, or the free place for it.
    fn find(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> Result<usize, usize> {
        let mask = self.places.len().wrapping_sub(1);
        let mut place = usize::try_from(hash & mask as u64).unwrap_or_default();
        loop {
            match self.places.get(place) {
                None | Some(0) => return Err(place),
                Some(position) => {
                    let position = *position as usize - 1;
                    if self.hashes[position] == hash && is_it(position) {
                        return Ok(position);
                    }
                }
            }
            place = (place + 1) & mask;
        }
    }

    /// Takes a free place for the next position. At most half of the places are taken, so that a free one is near.
    fn add(&mut self, hash: u64, place: usize) {
        self.hashes.push(hash);
        if self.hashes.len() * 2 <= self.places.len() {
            self.places[place] = u32::try_from(self.hashes.len()).unwrap_or(u32::MAX);
            return;
        }
        let places = (self.places.len() * 2).max(16);
        self.places = vec![0; places];
        for position in 0..self.hashes.len() {
            if let Err(free) = self.find(self.hashes[position], |_| false) {
                self.places[free] = u32::try_from(position + 1).unwrap_or(u32::MAX);
            }
        }
    }
}

/// Things by number, and numbers by thing.
#[derive(Debug, Clone)]
pub(crate) struct Interner<I, T> {
    things: Table<I, T>,
    positions: Positions,
}

impl<I, T> Default for Interner<I, T> {
    fn default() -> Interner<I, T> {
        Interner { things: Table::default(), positions: Positions::default() }
    }
}

impl<I: Id, T> Interner<I, T> {
    /// The number of the thing with this hash that is the same; if there is none yet, it is made.
    pub(crate) fn number_of(&mut self, hash: u64, is_same: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> I {
        match self.positions.find(hash, |position| is_same(&self.things[I::of(position)])) {
            Ok(position) => I::of(position),
            Err(place) => {
                self.positions.add(hash, place);
                self.things.push(make())
            }
        }
    }

    /// The number of a thing.
    pub(crate) fn number(&mut self, thing: T) -> I
    where
        T: Hash + Eq,
    {
        let hash = fixed_hash(&thing);
        match self.positions.find(hash, |position| self.things[I::of(position)] == thing) {
            Ok(position) => I::of(position),
            Err(place) => {
                self.positions.add(hash, place);
                self.things.push(thing)
            }
        }
    }

    /// All things.
    pub(crate) fn things(&self) -> &Table<I, T> {
        &self.things
    }

    /// All things, without the way to find them.
    pub(crate) fn into_things(self) -> Table<I, T> {
        self.things
    }
}

/// What is remembered for a pair of numbers.
#[derive(Debug, Clone)]
pub(crate) struct NumberMap<T> {
    entries: Vec<(u64, T)>,
    positions: Positions,
}

impl<T> Default for NumberMap<T> {
    fn default() -> NumberMap<T> {
        NumberMap { entries: Vec::new(), positions: Positions::default() }
    }
}

impl<T: Copy> NumberMap<T> {
    /// What is remembered for the pair; if nothing is, it is found out.
    pub(crate) fn get_or(&mut self, pair: (u32, u32), find_out: impl FnOnce() -> T) -> T {
        let key = u64::from(pair.0) << 32 | u64::from(pair.1);
        let hash = fixed_hash(&key);
        match self.positions.find(hash, |position| self.entries[position].0 == key) {
            Ok(position) => self.entries[position].1,
            Err(place) => {
                let found = find_out();
                self.positions.add(hash, place);
                self.entries.push((key, found));
                found
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ids::DemandIx;
    use super::*;

    #[test]
    fn equal_things_have_equal_numbers_however_many_there_are() {
        let mut interner: Interner<DemandIx, String> = Interner::default();
        let first: Vec<DemandIx> = (0..500).map(|number| interner.number(format!("thing {}", number % 300))).collect();
        let second: Vec<DemandIx> = (0..500).map(|number| interner.number(format!("thing {}", number % 300))).collect();
        assert_eq!(first, second);
        assert_eq!((interner.things().len(), first[299].position(), first[300].position()), (300, 299, 0));
        assert_eq!(interner.things()[first[7]], "thing 7");
    }

    #[test]
    fn things_with_one_hash_are_told_apart() {
        let mut interner: Interner<DemandIx, u32> = Interner::default();
        let numbers: Vec<usize> = [5, 6, 5, 7]
            .into_iter()
            .map(|thing| interner.number_of(1, |known| *known == thing, || thing).position())
            .collect();
        assert_eq!(numbers, [0, 1, 0, 2]);
    }

    #[test]
    fn what_is_remembered_for_a_pair_is_found_out_once() {
        let (mut map, mut asked) = (NumberMap::default(), 0);
        for round in 0..2 {
            for pair in (0..100).flat_map(|one| (0..10).map(move |other| (one, other))) {
                let found = map.get_or(pair, || {
                    asked += 1;
                    pair.0 * pair.1
                });
                assert_eq!(found, pair.0 * pair.1, "round {round}");
            }
        }
        assert_eq!(asked, 1000);
    }
}
