//! Which CPUs? A set of numbers as Linux and Proxmox write it: `0-3,8-11`.

use std::fmt;
use std::str::FromStr;

/// The kernel knows no more CPUs than this on any machine.
pub const CPUS_MAX: u32 = 8192;

/// Numbers of CPUs or NUMA nodes. Two are equal if they have the same numbers in them, however they were written.
///
/// Invariant: ranges are sorted, do not touch each other, and none is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuSet {
    ranges: Vec<(u32, u32)>,
}

/// Why a text is no set of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuSetError {
    /// It is something else.
    #[error("`{0}` is not a list of CPU numbers such as 0-3,8-11")]
    NotAList(String),
    /// It has numbers that no machine has.
    #[error("CPU {0} is more than the largest number a CPU can have, {max}", max = CPUS_MAX - 1)]
    TooLarge(u32),
}

impl CpuSet {
    /// The numbers, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.ranges.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|(first, last)| u64::from(last - first) + 1).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a number is in it.
    pub fn has(&self, number: u32) -> bool {
        let at = self.ranges.partition_point(|(_, last)| *last < number);
        self.ranges.get(at).is_some_and(|(first, _)| *first <= number)
    }

    /// Whether every number of another set is in it.
    pub fn has_all(&self, other: &CpuSet) -> bool {
        other.without(self).is_empty()
    }

    /// What is in one of them.
    #[must_use]
    pub fn with(&self, other: &CpuSet) -> CpuSet {
        CpuSet::normal(self.ranges.iter().chain(&other.ranges).copied().collect())
    }

    /// What is in this one only.
    #[must_use]
    pub fn without(&self, other: &CpuSet) -> CpuSet {
        let mut left = Vec::with_capacity(self.ranges.len());
        for (first, last) in &self.ranges {
            let mut from = Some(*first);
            for (taken, end) in other.ranges.iter().filter(|(taken, end)| end >= first && taken <= last) {
                if let Some(start) = from.filter(|start| start < taken) {
                    left.push((start, taken - 1));
                }
                from = end.checked_add(1).filter(|next| next <= last);
            }
            left.extend(from.map(|start| (start, *last)));
        }
        CpuSet { ranges: left }
    }

    /// What is in both.
    #[must_use]
    pub fn shared_with(&self, other: &CpuSet) -> CpuSet {
        self.without(&self.without(other))
    }

    /// As property strings of Proxmox have it: divided by semicolons.
    pub fn with_semicolons(&self) -> String {
        self.to_string().replace(',', ";")
    }

    /// The numbers of a text in the order they are written. Where a text says which CPU is the first of a VM, order counts.
    pub fn in_order(text: &str) -> Result<Vec<u32>, CpuSetError> {
        let mut numbers = Vec::new();
        for (first, last) in ranges(text)? {
            if last >= CPUS_MAX || numbers.len() > CPUS_MAX as usize {
                return Err(CpuSetError::TooLarge(last));
            }
            numbers.extend(first..=last);
        }
        Ok(numbers)
    }

    /// The set, unless it has numbers that no machine has.
    pub fn of_machine(self) -> Result<CpuSet, CpuSetError> {
        match self.ranges.last() {
            Some((_, last)) if *last >= CPUS_MAX => Err(CpuSetError::TooLarge(*last)),
            _ => Ok(self),
        }
    }

    fn normal(mut ranges: Vec<(u32, u32)>) -> CpuSet {
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => merged.push((first, last)),
            }
        }
        CpuSet { ranges: merged }
    }
}

/// The ranges of a text, as they are written.
fn ranges(text: &str) -> Result<Vec<(u32, u32)>, CpuSetError> {
    let number = |word: &str| word.trim().parse::<u32>().ok();
    let range = |word: &str| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some((number(first)?, number(last)?)).filter(|(first, last)| first <= last)
    };
    let ranges = text.split([',', ';']).map(range).collect::<Option<Vec<_>>>();
    ranges.ok_or_else(|| CpuSetError::NotAList(text.to_owned()))
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> CpuSet {
        CpuSet::normal(numbers.into_iter().map(|number| (number, number)).collect())
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    fn from_str(text: &str) -> Result<CpuSet, CpuSetError> {
        ranges(text).map(CpuSet::normal)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.ranges.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if first == last { write!(f, "{comma}{first}")? } else { write!(f, "{comma}{first}-{last}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    #[test]
    fn sets_are_equal_however_they_are_written() {
        assert_eq!(set("0-3,8"), set("8;3,0;1-2"));
        assert_eq!(set("8,0-3").to_string(), "0-3,8");
        assert_eq!(set("0-3,8").with_semicolons(), "0-3;8");
        assert_eq!((set("0-3,8").count(), (0..4).chain([8]).collect::<CpuSet>()), (5, set("0-3,8")));
        // Ranges are not counted out, so a huge one costs nothing.
        assert_eq!(set("0-4294967295").count(), 1 << 32);
        for text in ["", "a", "3-1", "1-", "-1", "1,,2", "1-2-3", "4294967296"] {
            assert_eq!(text.parse::<CpuSet>(), Err(CpuSetError::NotAList(text.to_owned())));
        }
    }

    #[test]
    fn numbers_in_order_are_those_of_one_machine() {
        assert_eq!(CpuSet::in_order("8-9,0-1,16").unwrap(), [8, 9, 0, 1, 16]);
        assert_eq!(CpuSet::in_order("0-4294967295"), Err(CpuSetError::TooLarge(u32::MAX)));
        let said = set("7,9000").of_machine().unwrap_err().to_string();
        assert_eq!(said, "CPU 9000 is more than the largest number a CPU can have, 8191");
    }

    proptest! {
        #[test]
        fn sets_behave_like_sets(one in prop::collection::btree_set(0_u32..40, 0..30), other in prop::collection::btree_set(0_u32..40, 0..30)) {
            let plain = |numbers: &CpuSet| numbers.iter().collect::<BTreeSet<u32>>();
            let (a, b): (CpuSet, CpuSet) = (one.iter().copied().collect(), other.iter().copied().collect());
            prop_assert_eq!(plain(&a.with(&b)), &one | &other);
            prop_assert_eq!(plain(&a.without(&b)), &one - &other);
            prop_assert_eq!(plain(&a.shared_with(&b)), &one & &other);
            prop_assert_eq!(a.has_all(&b), other.is_subset(&one));
            prop_assert_eq!((0..41).filter(|number| a.has(*number)).collect::<BTreeSet<u32>>(), one);
            prop_assert_eq!(a.is_empty() || a.to_string().parse() == Ok(a.clone()), true);
            prop_assert_eq!(a.without(&b).with(&a.shared_with(&b)), a);
        }
    }
}
