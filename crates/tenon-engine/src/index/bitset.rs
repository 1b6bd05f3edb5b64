//! Which of many things? A set of numbers as words of bits: what slots, offerings or nodes are still possible.

use std::marker::PhantomData;

use super::ids::Id;

/// A set of numbers of one kind. Sets of the same numbers are equal if they were made for as many.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Bits<I> {
    words: Vec<u64>,
    of: PhantomData<I>,
}

impl<I> Default for Bits<I> {
    fn default() -> Bits<I> {
        Bits { words: Vec::new(), of: PhantomData }
    }
}

const WORD: usize = u64::BITS as usize;

impl<I: Id> Bits<I> {
    /// Room for so many, none of them in it.
    pub(crate) fn none(length: usize) -> Bits<I> {
        Bits { words: vec![0; length.div_ceil(WORD)], of: PhantomData }
    }

    /// All of so many.
    pub(crate) fn all(length: usize) -> Bits<I> {
        let mut words = vec![u64::MAX; length.div_ceil(WORD)];
        if let (Some(last), rest) = (words.last_mut(), length % WORD)
            && rest != 0
        {
            *last = (1 << rest) - 1;
        }
        Bits { words, of: PhantomData }
    }

    /// Those of so many that a test accepts.
    pub(crate) fn those(length: usize, mut test: impl FnMut(I) -> bool) -> Bits<I> {
        let mut those = Bits::none(length);
        (0..length).map(I::of).filter(|id| test(*id)).for_each(|id| those.insert(id));
        those
    }

    /// Becomes the same as another one, in the room it has.
    pub(crate) fn copy(&mut self, other: &Bits<I>) {
        self.words.clone_from(&other.words);
    }

    /// Puts one in, making room for it.
    pub(crate) fn insert(&mut self, id: I) {
        let (word, bit) = (id.position() / WORD, id.position() % WORD);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << bit;
    }

    /// Takes one out.
    pub(crate) fn remove(&mut self, id: I) {
        if let Some(word) = self.words.get_mut(id.position() / WORD) {
            *word &= !(1 << (id.position() % WORD));
        }
    }

    /// The first that another one has, too.
    pub(crate) fn first_common(&self, other: &Bits<I>) -> Option<I> {
        let mut words = self.words.iter().zip(&other.words).map(|(one, other)| one & other).enumerate();
        let (word, bits) = words.find(|(_, bits)| *bits != 0)?;
        Some(I::of(word * WORD + bits.trailing_zeros() as usize))
    }

    /// Takes all out.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }

    /// Puts one in or takes it out.
    pub(crate) fn set(&mut self, id: I, is_in: bool) {
        if is_in { self.insert(id) } else { self.remove(id) }
    }

    /// Just one, made for as many.
    pub(crate) fn only(&self, id: I) -> Bits<I> {
        let mut only = Bits { words: vec![0; self.words.len()], of: PhantomData };
        only.insert(id);
        only
    }

    /// Whether one is in it.
    pub(crate) fn has(&self, id: I) -> bool {
        self.words.get(id.position() / WORD).is_some_and(|word| word & (1 << (id.position() % WORD)) != 0)
    }

    /// Keeps what is in both.
    pub(crate) fn keep(&mut self, other: &Bits<I>) {
        let others = other.words.iter().chain(std::iter::repeat(&0));
        self.words.iter_mut().zip(others).for_each(|(word, other)| *word &= other);
    }

    /// Adds what is in the other one.
    pub(crate) fn join(&mut self, other: &Bits<I>) {
        if other.words.len() > self.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    /// Takes out what is in the other one.
    pub(crate) fn drop_all(&mut self, other: &Bits<I>) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= !other);
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// What is in it, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = I> {
        let ones = |(index, word): (usize, &u64)| Ones(*word).map(move |bit| I::of(index * WORD + bit));
        self.words.iter().enumerate().flat_map(ones)
    }

    /// The first at or behind a position.
    pub(crate) fn next_from(&self, from: usize) -> Option<I> {
        let first = from / WORD;
        let start = self.words.get(first)? & (u64::MAX << (from % WORD));
        if start != 0 {
            return Some(I::of(first * WORD + start.trailing_zeros() as usize));
        }
        let later = self.words.iter().enumerate().skip(first + 1).find(|(_, word)| **word != 0);
        later.map(|(index, word)| I::of(index * WORD + word.trailing_zeros() as usize))
    }

    /// How many words it has, each for 64 numbers.
    pub(crate) fn blocks(&self) -> usize {
        self.words.len()
    }

    /// The numbers of a word that are in it.
    pub(crate) fn of_block(&self, block: usize) -> impl Iterator<Item = I> + use<I> {
        let word = self.words.get(block).copied().unwrap_or_default();
        Ones(word).map(move |bit| I::of(block * WORD + bit))
    }

    /// Takes all numbers of a word out.
    pub(crate) fn clear_block(&mut self, block: usize) {
        if let Some(word) = self.words.get_mut(block) {
            *word = 0;
        }
    }
}

/// The bits of a word that are set.
struct Ones(u64);

impl Iterator for Ones {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ids::NodeIx;
    use super::*;

    fn positions(bits: &Bits<NodeIx>) -> Vec<usize> {
        bits.iter().map(Id::position).collect()
    }

    #[test]
    fn numbers_are_found_across_words() {
        let bits: Bits<NodeIx> = Bits::those(200, |id: NodeIx| id.position().is_multiple_of(67));
        assert_eq!(positions(&bits), [0, 67, 134]);
        let next = |from| bits.next_from(from).map(Id::position);
        assert_eq!((next(0), next(1), next(135)), (Some(0), Some(67), None));
        let mut all: Bits<NodeIx> = Bits::all(130);
        assert_eq!((all.iter().count(), all.blocks()), (130, 3));
        all.drop_all(&bits);
        assert!(!all.has(NodeIx::of(67)) && all.has(NodeIx::of(66)));
        all.join(&bits);
        assert_eq!(all.iter().count(), 131);
        all.remove(NodeIx::of(134));
        all.keep(&bits);
        assert_eq!(positions(&all), [0, 67]);
        assert!(!all.is_empty() && Bits::<NodeIx>::none(5).is_empty());
        assert_eq!(all.of_block(1).map(Id::position).collect::<Vec<_>>(), [67]);
        all.clear_block(1);
        assert_eq!(positions(&all), [0]);
    }

    #[test]
    fn all_of_a_number_of_things_are_just_these() {
        for length in [0, 1, 63, 64, 65, 128] {
            assert_eq!(Bits::<NodeIx>::all(length), Bits::those(length, |_| true), "{length}");
        }
    }
}
