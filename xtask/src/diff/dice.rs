//! Where chance comes from: a seed, and nothing else.

/// A stream of numbers that a seed decides (splitmix64), so that a scenario is the same everywhere and for ever.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x2545_F491_4F6C_DD1D))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to and without `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// A number from `first` to `last`, both included.
    pub(crate) fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the things.
    pub(crate) fn pick<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        let index = usize::try_from(self.below(things.len() as u64)).unwrap_or(0);
        &things[index]
    }

    /// At least `least` of the things, in their order.
    pub(crate) fn some<T: Clone>(&mut self, things: &[T], least: usize) -> Vec<T> {
        let mut left_out = things.len() - least.min(things.len());
        let mut chosen = Vec::new();
        for thing in things {
            if left_out > 0 && self.chance(50) {
                left_out -= 1;
            } else {
                chosen.push(thing.clone());
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let roll = |seed| {
            let mut dice = Dice::new(seed);
            (0..20).map(|_| dice.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(roll(7), roll(7));
        assert_ne!(roll(7), roll(8));
    }

    #[test]
    fn some_keeps_the_order_and_the_least_number() {
        let mut dice = Dice::new(1);
        for _ in 0..100 {
            let chosen = dice.some(&[1, 2, 3, 4], 2);
            assert!(chosen.len() >= 2 && chosen.is_sorted(), "{chosen:?}");
        }
    }
}
