//! Which choices does a generator make? The same ones for the same seed.

/// A stream of numbers that depends on nothing but its seed.
pub(crate) struct Seeded(u64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Seeded {
        Seeded(seed)
    }

    /// Any number.
    pub(crate) fn bits(&mut self) -> u64 {
        // SplitMix64: a counter in large steps, and its bits well mixed.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.bits() % end as u64).unwrap()
    }

    /// Whether something happens that happens once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// A variable of the environment, with which a person asks for another run than the usual one.
#[expect(clippy::disallowed_methods, reason = "the crate asks for no variables, but its tests do")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
    variable(name)?.trim().parse().ok()
}

/// The seed of this run; `usual` unless `TENON_FUZZ_SEED` is set.
pub(crate) fn seed(usual: u64) -> u64 {
    number("TENON_FUZZ_SEED").unwrap_or(usual)
}

/// How much is tried in this run; `usual` unless `TENON_FUZZ_RUNS` is set.
pub(crate) fn runs(usual: usize) -> usize {
    number("TENON_FUZZ_RUNS").unwrap_or(usual)
}
