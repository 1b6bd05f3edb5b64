//! A set of small numbers as words of bits: what sizes, offerings or nodes are still possible.

/// Numbers below a fixed length.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

const WORD: usize = u64::BITS as usize;

impl Bits {
    /// Room for numbers below `length`, none of them in it.
    pub(crate) fn none(length: usize) -> Bits {
        Bits { words: vec![0; length.div_ceil(WORD)] }
    }

    /// All numbers below `length`.
    pub(crate) fn all(length: usize) -> Bits {
        let mut all = Bits::none(length);
        (0..length).for_each(|number| all.insert(number));
        all
    }

    /// Those numbers below `length` that a test accepts.
    pub(crate) fn those(length: usize, mut test: impl FnMut(usize) -> bool) -> Bits {
        let mut those = Bits::none(length);
        (0..length).filter(|number| test(*number)).for_each(|number| those.insert(number));
        those
    }

    /// Puts a number in, making room for it.
    pub(crate) fn insert(&mut self, number: usize) {
        let word = number / WORD;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if let Some(word) = self.words.get_mut(word) {
            *word |= 1 << (number % WORD);
        }
    }

    /// Takes a number out.
    pub(crate) fn remove(&mut self, number: usize) {
        if let Some(word) = self.words.get_mut(number / WORD) {
            *word &= !(1 << (number % WORD));
        }
    }

    /// Whether a number is in it.
    pub(crate) fn has(&self, number: usize) -> bool {
        self.words.get(number / WORD).is_some_and(|word| word & (1 << (number % WORD)) != 0)
    }

    /// Keeps what is in both.
    pub(crate) fn keep(&mut self, other: &Bits) {
        let others = other.words.iter().chain(std::iter::repeat(&0));
        self.words.iter_mut().zip(others).for_each(|(word, other)| *word &= other);
    }

    /// Adds what is in the other one.
    pub(crate) fn join(&mut self, other: &Bits) {
        if other.words.len() > self.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    /// Takes out what is in the other one.
    pub(crate) fn drop_all(&mut self, other: &Bits) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= !other);
    }

    /// What is in both.
    pub(crate) fn and(&self, other: &Bits) -> Bits {
        let mut both = self.clone();
        both.keep(other);
        both
    }

    /// Whether something is in both.
    pub(crate) fn meets(&self, other: &Bits) -> bool {
        self.words.iter().zip(&other.words).any(|(word, other)| word & other != 0)
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The numbers, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(index, word)| Ones(*word).map(move |bit| index * WORD + bit))
    }

    /// The first number that is not below `from`.
    pub(crate) fn next_from(&self, from: usize) -> Option<usize> {
        let first = from / WORD;
        let start = self.words.get(first)? & (u64::MAX << (from % WORD));
        if start != 0 {
            return Some(first * WORD + start.trailing_zeros() as usize);
        }
        let later = self.words.iter().enumerate().skip(first + 1).find(|(_, word)| **word != 0);
        later.map(|(index, word)| index * WORD + word.trailing_zeros() as usize)
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
    use super::*;

    #[test]
    fn numbers_are_found_across_words() {
        let bits = Bits::those(200, |number| number % 67 == 0);
        assert_eq!(bits.iter().collect::<Vec<_>>(), [0, 67, 134]);
        assert_eq!((bits.next_from(0), bits.next_from(1), bits.next_from(135)), (Some(0), Some(67), None));
        let mut all = Bits::all(130);
        all.drop_all(&bits);
        assert!(!all.has(67) && all.has(66) && !all.meets(&bits));
        all.join(&bits);
        assert_eq!(all.iter().count(), 131);
        all.remove(134);
        all.keep(&bits);
        assert_eq!(all.iter().collect::<Vec<_>>(), [0, 67]);
        assert!(!all.is_empty() && Bits::none(5).is_empty());
    }
}
